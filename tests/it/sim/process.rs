//! One process: the real log and engine, and in between what the program does, a step at a time. All
//! of it is gone when the process dies.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
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

enum Output {
    Said(Vec<OutId>),
    Release(Vec<SpanRef>),
}

struct Parcel {
    position: Position,
    part: Part,
    what: What,
}

/// A checkpoint that waits until what was said before it is logged.
struct Snapshot {
    position: Position,
    slices: Vec<Vec<u8>>,
    outputs: u64,
}

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
    outputs: VecDeque<Output>,
    /// Outputs that were handed over, and those that are logged or on their way.
    handed: u64,
    done: u64,
    writing: Option<(Vec<OutId>, Appended)>,
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
        if let Some(found) = log.take_checkpoint() {
            match Checkpoint::from_slices(&found.slices) {
                Some(checkpoint) => drop(engine.restore(checkpoint, Arrival { monotonic, wall })),
                None => log.refuse_checkpoint(),
            }
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
            outputs: VecDeque::new(),
            handed: 0,
            done: 0,
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
                Effect::Release { span, .. } => leaving.push(span),
                _ => {}
            }
        }
        let news = !ids.is_empty();
        if news {
            self.handed += 1;
            self.outputs.push_back(Output::Said(ids));
        }
        if !leaving.is_empty() {
            self.handed += 1;
            self.outputs.push_back(Output::Release(leaving));
        }
        news
    }

    /// The next thing of ours is logged, and then on its way.
    pub fn put_out(&mut self, outside: &mut Outside) {
        if let Some((ids, mut appended)) = self.writing.take() {
            match poll(&mut appended) {
                None => self.writing = Some((ids, appended)),
                Some(Ok(position)) => {
                    self.done += 1;
                    self.owed.insert(position, (true, 0));
                    let what = What::Said(ids);
                    self.outbox.push(Parcel { position, part: Part::Rest, what });
                }
                // It is tried again.
                Some(Err(_)) => self.outputs.push_front(Output::Said(ids)),
            }
            return;
        }
        match self.outputs.pop_front() {
            None => {}
            Some(Output::Said(ids)) => {
                if self.plant == Some(Plant::SentBeforeLogged) {
                    outside.deliver(&What::Said(ids.clone()));
                }
                let kind = Kind::Out(ids.clone());
                let payload = Bytes::from_static(b"what is said of them");
                let (signal, coding) = (Signal::Logs, Coding::Identity);
                let record = Record { kind, signal, coding, payload };
                self.writing = Some((ids, self.log.append(record)));
            }
            Some(Output::Release(spans)) => {
                self.done += 1;
                spans.into_iter().for_each(|span| self.release(span));
            }
        }
    }

    fn release(&mut self, span: SpanRef) {
        for (position, export) in self.held.remove(&span).unwrap_or_default() {
            let what = What::Held(export, span);
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
    pub fn checkpoint(&mut self, wall: Nanos) -> bool {
        let Some(snapshot) = self.snapshot.take() else {
            let behind = self.unseen.iter().map(|unseen| unseen.behind);
            let behind = behind.chain(self.arriving.iter().map(|arriving| arriving.behind));
            let seen = behind.min().unwrap_or_else(|| self.log.head());
            let position = match self.plant {
                Some(Plant::StaleCheckpoint) => self.log.head(),
                _ => seen,
            };
            let slices = self.engine.checkpoint(self.now(wall)).into_slices().collect();
            self.snapshot = Some(Snapshot { position, slices, outputs: self.handed });
            return false;
        };
        if self.done < snapshot.outputs {
            self.snapshot = Some(snapshot);
            return false;
        }
        self.log.write_checkpoint(snapshot.position, &mut snapshot.slices.into_iter()).is_ok()
    }

    /// Takes up one record that the last process left.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn resume(&mut self, wall: Nanos, outside: &mut Outside) -> std::io::Result<()> {
        let Some(after) = self.resuming else { return Ok(()) };
        let page = self.log.page(after, 1, &|_| true)?;
        match page.into_iter().next() {
            None => self.resuming = None,
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
