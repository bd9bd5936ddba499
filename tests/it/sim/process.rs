//! One process: the real log and engine, and in between what the program does, a step at a time. All
//! of it is gone when the process dies.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use mcp_verdict::app::unsaid::Unsaid;
use mcp_verdict::engine::{Checkpoint, Claim, Effect, Engine, Limits};
use mcp_verdict::log::{Appended, Disk, Kind, Log, Mark, OutId, Part, Pending, Record, Refused};
use mcp_verdict::model::fact::Sighting;
use mcp_verdict::model::ids::{Arrival, Nanos, Position, SECOND, SpanRef};
use mcp_verdict::model::record::Verdict;
use mcp_verdict::normalise::sight;
use mcp_verdict::wire::inflate::Coding;
use mcp_verdict::wire::{Signal, scan};

use super::outside::{Outside, What};
use super::plant::Plant;
use super::scenario::Scenario;
use crate::dice::Dice;

/// An export on its way into the log.
struct Arriving {
    export: usize,
    /// Its record will stand behind this position.
    behind: Position,
    appended: Appended,
}

/// A record that the engine has not seen.
struct Unseen {
    behind: Position,
    position: Position,
    sighting: Sighting,
}

/// A held span, and the verdict that it names on its way out.
type Leaving = (SpanRef, Option<OutId>);

struct Parcel {
    position: Position,
    part: Part,
    what: What,
}

/// A checkpoint that waits for what was said before it to be logged, for a while.
struct Snapshot {
    position: Position,
    slices: Vec<Vec<u8>>,
    handed: u64,
}

/// What is to be logged, and the engine's first slice.
const NEEDED: usize = 2;

pub struct Process<'a> {
    scenario: &'a Scenario,
    plant: Option<Plant>,
    pub log: Disk,
    engine: Engine,
    monotonic: Nanos,
    /// Up to where what the last process left is taken up; `None` once all of it is.
    resuming: Option<Position>,
    arriving: Vec<Arriving>,
    unseen: Vec<Unseen>,
    outputs: Unsaid<Vec<OutId>, Vec<Leaving>>,
    /// What the last process said and had not logged.
    unsaid: Vec<Vec<OutId>>,
    writing: Option<(u64, Vec<OutId>, Appended)>,
    outbox: Vec<Parcel>,
    sent: Vec<(Position, Part)>,
    /// Of each record: is the rest owed, and how many held spans.
    owed: BTreeMap<Position, (bool, usize)>,
    held: BTreeMap<SpanRef, Vec<(Position, usize)>>,
    snapshot: Option<Snapshot>,
}

fn poll(appended: &mut Appended) -> Option<Result<Position, Refused>> {
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(appended).poll(&mut context) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

fn delivered(part: Part) -> Mark {
    Mark::Delivered { exporter: "backend".into(), part }
}

/// Whether anything of an export leaves at once, and which spans wait.
pub fn parts(signal: Signal, bytes: &[u8], sighting: &Sighting) -> (bool, Vec<SpanRef>) {
    let items = scan::check(signal, bytes).map_or(0, |counts| counts.items);
    let indices: BTreeSet<usize> = sighting.held.iter().map(|held| held.index).collect();
    let spans: BTreeSet<SpanRef> = sighting.held.iter().map(|held| held.at).collect();
    (items > indices.len(), spans.into_iter().collect())
}

fn out_id(verdict: &Verdict) -> OutId {
    OutId {
        chain: verdict.id,
        span: verdict.operator.span,
        revision: verdict.revision,
        closes: verdict.operator.merged_into.is_some(),
        digest: verdict.digest(),
    }
}

impl<'a> Process<'a> {
    pub fn start(scenario: &'a Scenario, log: Disk, plant: Option<Plant>, wall: Nanos) -> Self {
        let mut engine = Engine::new(scenario.policy.clone(), Limits::default());
        let monotonic = 86_400 * SECOND;
        let mut unsaid = Vec::new();
        if let Some(found) = log.take_checkpoint() {
            let (first, rest) = found.slices.split_first().expect("what is needed is there");
            match Checkpoint::from_slices(rest) {
                Some(checkpoint) => drop(engine.restore(checkpoint, Arrival { monotonic, wall })),
                None => log.refuse_checkpoint(),
            }
            unsaid = postcard::from_bytes(first).expect("it is what was written");
        }
        Process {
            scenario,
            plant,
            log,
            engine,
            monotonic,
            resuming: Some(Position(0)),
            arriving: Vec::new(),
            unseen: Vec::new(),
            outputs: Unsaid::default(),
            unsaid,
            writing: None,
            outbox: Vec::new(),
            sent: Vec::new(),
            owed: BTreeMap::new(),
            held: BTreeMap::new(),
            snapshot: None,
        }
    }

    pub fn is_resuming(&self) -> bool {
        self.resuming.is_some()
    }

    fn now(&self, wall: Nanos) -> Arrival {
        Arrival { monotonic: self.monotonic, wall }
    }

    fn sight(&self, signal: Signal, bytes: &[u8]) -> Sighting {
        sight(signal, bytes, &self.scenario.policy)
    }

    /// A sender sends an export.
    pub fn send(&mut self, export: usize, outside: &mut Outside) {
        let (signal, bytes) = &self.scenario.exports[export];
        let payload = Bytes::from(bytes.clone());
        let record = Record { kind: Kind::In, signal: *signal, coding: Coding::Identity, payload };
        let behind = self.log.head();
        if self.plant == Some(Plant::AckBeforeAppend) {
            outside.acknowledged.insert(export);
        }
        let appended = self.log.append(record);
        self.arriving.push(Arriving { export, behind, appended });
    }

    pub fn is_arriving(&self, export: usize) -> bool {
        self.arriving.iter().any(|arriving| arriving.export == export)
    }

    /// Answers the senders whose records are written.
    pub fn answer(&mut self, outside: &mut Outside) {
        for mut arriving in std::mem::take(&mut self.arriving) {
            match poll(&mut arriving.appended) {
                None => self.arriving.push(arriving),
                // The sender comes again.
                Some(Err(_)) => {}
                Some(Ok(position)) => {
                    let export = arriving.export;
                    outside.acknowledge(export, position);
                    let (signal, bytes) = &self.scenario.exports[export];
                    let sighting = self.sight(*signal, bytes);
                    self.dispatch(position, export, &sighting, &[]);
                    self.unseen.push(Unseen { behind: arriving.behind, position, sighting });
                }
            }
        }
    }

    fn dispatch(&mut self, position: Position, export: usize, sighting: &Sighting, marks: &[Mark]) {
        let (signal, bytes) = &self.scenario.exports[export];
        let (rest, held) = parts(*signal, bytes, sighting);
        let rest = rest && !marks.contains(&delivered(Part::Rest));
        let held = match marks.contains(&delivered(Part::Held)) {
            true => Vec::new(),
            false => held,
        };
        let waits = match self.plant {
            Some(Plant::HeldSpansForgotten) => 0,
            _ => held.len(),
        };
        self.owed.insert(position, (rest, waits));
        if rest {
            self.outbox.push(Parcel { position, part: Part::Rest, what: What::Rest(export) });
        }
        for span in held {
            self.held.entry(span).or_default().push((position, export));
        }
        self.settle(position);
    }

    /// The engine sees one of the records that wait.
    pub fn show(&mut self, dice: &mut Dice, wall: Nanos) {
        if !self.unseen.is_empty() {
            let unseen = self.unseen.swap_remove(dice.below(self.unseen.len()));
            self.engine.see(unseen.position, unseen.sighting, self.now(wall));
        }
    }

    /// Time passes and the engine judges. Whether it said anything.
    pub fn tick(&mut self, passed: Nanos, wall: Nanos, outside: &mut Outside) -> bool {
        self.monotonic += passed;
        let (mut ids, mut leaving) = (Vec::new(), Vec::new());
        for effect in self.engine.tick(self.now(wall)) {
            match effect {
                Effect::Verdict(verdict) => {
                    outside.note(&verdict);
                    ids.push(out_id(&verdict));
                }
                Effect::Release { span, with, .. } => {
                    leaving.push((span, with.as_deref().map(out_id)))
                }
                _ => {}
            }
        }
        let news = !ids.is_empty();
        if news {
            self.outputs.say(ids);
        }
        if self.plant == Some(Plant::SpansBeforeVerdicts) {
            self.outputs.secure(self.outputs.handed());
        }
        if !leaving.is_empty() {
            self.outputs.follow(leaving);
        }
        news
    }

    /// The next thing of ours is logged, and then on its way.
    pub fn put_out(&mut self, outside: &mut Outside) {
        if let Some(spans) = self.outputs.leaving() {
            return spans.into_iter().for_each(|span| self.release(span));
        }
        if let Some((number, ids, mut appended)) = self.writing.take() {
            match poll(&mut appended) {
                None => self.writing = Some((number, ids, appended)),
                Some(Ok(position)) => {
                    self.outputs.logged(number);
                    self.owed.insert(position, (true, 0));
                    let what = What::Said(ids);
                    self.outbox.push(Parcel { position, part: Part::Rest, what });
                }
                // It is tried again.
                Some(Err(_)) => {}
            }
            return;
        }
        if let Some((number, ids)) = self.outputs.next().map(|(number, ids)| (number, ids.clone()))
        {
            if self.plant == Some(Plant::SentBeforeLogged) {
                outside.deliver(&What::Said(ids.clone()));
            }
            let kind = Kind::Out(ids.clone());
            let payload = Bytes::from_static(b"what is said of them");
            let (signal, coding) = (Signal::Logs, Coding::Identity);
            let record = Record { kind, signal, coding, payload };
            self.writing = Some((number, ids, self.log.append(record)));
        }
    }

    fn release(&mut self, (span, named): Leaving) {
        for (position, export) in self.held.remove(&span).unwrap_or_default() {
            let what = What::Held(export, span, named);
            self.outbox.push(Parcel { position, part: Part::Held, what });
        }
    }

    /// The backend takes one of the parcels.
    pub fn deliver(&mut self, dice: &mut Dice, outside: &mut Outside) {
        if self.outbox.is_empty() {
            return;
        }
        let parcel = self.outbox.swap_remove(dice.below(self.outbox.len()));
        if self.plant == Some(Plant::MarkBeforeSend) && dice.once_in(2) {
            self.log.mark(parcel.position, Mark::Done);
            self.outbox.push(parcel);
            return;
        }
        outside.deliver(&parcel.what);
        self.sent.push((parcel.position, parcel.part));
    }

    /// The log hears of one delivery.
    pub fn mark(&mut self, dice: &mut Dice) {
        if self.sent.is_empty() {
            return;
        }
        let (position, part) = self.sent.swap_remove(dice.below(self.sent.len()));
        let Some(owed) = self.owed.get_mut(&position) else { return };
        let over = match part {
            Part::Rest => {
                owed.0 = false;
                true
            }
            Part::Held => {
                owed.1 = owed.1.saturating_sub(1);
                owed.1 == 0
            }
        };
        if !self.settle(position) && over {
            self.log.mark(position, delivered(part));
        }
    }

    fn settle(&mut self, position: Position) -> bool {
        let done = self.owed.get(&position) == Some(&(false, 0));
        if done {
            self.owed.remove(&position);
            self.log.mark(position, Mark::Done);
        }
        done
    }

    /// Looks at the engine's state, or writes what was looked at. Whether a checkpoint was written.
    pub fn checkpoint(&mut self, dice: &mut Dice, wall: Nanos) -> bool {
        let Some(snapshot) = self.snapshot.take() else {
            let behind = self.unseen.iter().map(|unseen| unseen.behind);
            let behind = behind.chain(self.arriving.iter().map(|arriving| arriving.behind));
            let seen = behind.min().unwrap_or_else(|| self.log.head());
            let position = match self.plant {
                Some(Plant::StaleCheckpoint) => self.log.head(),
                _ => seen,
            };
            let slices = self.engine.checkpoint(self.now(wall)).into_slices().collect();
            let handed = self.outputs.handed();
            self.snapshot = Some(Snapshot { position, slices, handed });
            return false;
        };
        let Snapshot { position, slices, handed } = snapshot;
        let mut unsaid: Vec<&Vec<OutId>> = self.outputs.unlogged(handed).collect();
        if !unsaid.is_empty() && dice.once_in(2) {
            self.snapshot = Some(Snapshot { position, slices, handed });
            return false;
        }
        if self.plant == Some(Plant::UnsaidForgotten) {
            unsaid.clear();
        }
        let first = postcard::to_stdvec(&unsaid).unwrap();
        let mut slices = std::iter::once(first).chain(slices);
        let written = self.log.write_checkpoint(position, NEEDED, &mut slices).is_ok();
        if written {
            self.outputs.secure(handed);
        }
        written
    }

    /// Takes up one record that the last process left.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn resume(&mut self, wall: Nanos, outside: &mut Outside) -> std::io::Result<()> {
        let Some(after) = self.resuming else { return Ok(()) };
        let page = self.log.page(after, 1, &|_| true)?;
        match page.into_iter().next() {
            None => {
                self.resuming = None;
                std::mem::take(&mut self.unsaid).into_iter().for_each(|ids| self.outputs.say(ids));
            }
            Some(pending) => {
                self.resuming = Some(pending.position);
                self.take_up(pending, wall, outside);
            }
        }
        Ok(())
    }

    fn take_up(&mut self, pending: Pending, wall: Nanos, outside: &mut Outside) {
        let Pending { position, record, marks } = pending;
        let done = marks == [Mark::Done];
        if let Kind::Out(ids) = record.kind {
            self.claim(&ids, wall);
            // It was logged after the checkpoint that holds it.
            self.unsaid.retain(|unsaid| *unsaid != ids);
            if !done {
                self.owed.insert(position, (true, 0));
                let what = What::Said(ids);
                self.outbox.push(Parcel { position, part: Part::Rest, what });
            }
            return;
        }
        let same = |(signal, bytes): &(Signal, Vec<u8>)| {
            *signal == record.signal && bytes[..] == record.payload[..]
        };
        let Some(export) = self.scenario.exports.iter().position(same) else {
            return outside.fault(format!("record {} was never sent", position.0));
        };
        let mut sighting = self.sight(record.signal, &record.payload);
        match done {
            true => sighting.held.clear(),
            false => self.dispatch(position, export, &sighting, &marks),
        }
        self.engine.see(position, sighting, self.now(wall));
    }

    fn claim(&mut self, ids: &[OutId], wall: Nanos) {
        if self.plant == Some(Plant::ClaimsIgnored) {
            return;
        }
        for OutId { chain, span, revision, closes, digest } in ids.iter().copied() {
            let again = u32::from(self.plant == Some(Plant::ClaimsFoldedTwice));
            let claim = Claim { key: span, revision: revision + again, closes, digest };
            self.engine.claim(chain, claim, self.now(wall));
        }
    }

    /// A record of which something is owed is there; else what is wrong.
    pub fn read_back(&self, dice: &mut Dice) -> Option<String> {
        let position = *self.owed.keys().nth(dice.below(self.owed.len()))?;
        match self.log.read(position) {
            Ok(Some(_)) => None,
            Ok(None) => Some(format!("record {} is owed and gone", position.0)),
            Err(error) => Some(format!("record {} cannot be read: {error}", position.0)),
        }
    }

    /// Whether the engine has seen all that was sent.
    pub fn is_shown(&self) -> bool {
        self.resuming.is_none() && self.arriving.is_empty() && self.unseen.is_empty()
    }

    /// Whether nothing is under way, and nothing owed.
    pub fn is_idle(&self) -> bool {
        let said = self.outputs.is_empty() && self.writing.is_none();
        self.is_shown()
            && said
            && self.outbox.is_empty()
            && self.sent.is_empty()
            && self.owed.is_empty()
    }
}
