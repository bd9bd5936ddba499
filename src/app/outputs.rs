//! What of ours leaves: events and verdict spans, logged before they are sent, and spans that name
//! a verdict, sent after it is logged.
//!
//! Promises: nothing is dropped that the log does not take now; it waits, and so does judging once
//! much waits. What a checkpoint holds of it is as safe as what is logged.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::checkpoints::Unfolded;
use super::unsaid::Unsaid;
use crate::clock::timer;
use crate::export::{Due, Origin, Outbox, Parcel};
use crate::log::{Kind, Log, OutId, Part, Record, Refused};
use crate::wire::Signal;
use crate::wire::inflate::Coding;
use crate::wire::schema::{RESOURCE_LOGS, RESOURCE_SPANS};
use crate::wire::{regroup, text};

/// Items of ours, gathered until they are sent together.
pub struct Gathered {
    signal: Signal,
    items: Vec<(Origin, Vec<u8>)>,
    ids: Vec<OutId>,
    bytes: usize,
}

/// A round that says much says it in parts of this size.
const PART: usize = 1 << 20;

impl Gathered {
    pub fn new(signal: Signal) -> Self {
        Gathered { signal, items: Vec::new(), ids: Vec::new(), bytes: 0 }
    }

    /// Whether it is time to take what was gathered.
    pub fn is_full(&self) -> bool {
        self.bytes >= PART
    }

    /// Adds the body of a `LogRecord` or `Span`, under the resource of what it speaks of.
    pub fn add(&mut self, resource: Origin, item: Vec<u8>, id: Option<OutId>) {
        self.bytes += item.len();
        self.items.push((resource, item));
        self.ids.extend(id);
    }

    /// Names a verdict that is said by no item here, so that it is logged all the same.
    pub fn name(&mut self, id: OutId) {
        self.ids.push(id);
    }

    /// What was gathered, as one request; `None` when nothing was.
    pub fn take(&mut self, scope: &[u8]) -> Option<Output> {
        let items = std::mem::take(&mut self.items);
        let ids = std::mem::take(&mut self.ids);
        self.bytes = 0;
        if items.is_empty() && ids.is_empty() {
            return None;
        }
        let around = match self.signal {
            Signal::Logs => &RESOURCE_LOGS,
            _ => &RESOURCE_SPANS,
        };
        // A strict backend would refuse what we say for what somebody else's resource holds.
        let under = |resource| {
            let resource: &Origin = resource;
            text::repaired(resource, around).map_or(Cow::Borrowed(&resource[..]), Cow::Owned)
        };
        let groups: Vec<_> = items
            .chunk_by(|(one, _), (next, _)| Arc::ptr_eq(one, next))
            .map(|same| (under(&same[0].0), same))
            .collect();
        let parts: Vec<regroup::Part<'_>> = groups
            .iter()
            .flat_map(|(resource, same)| {
                same.iter().map(move |(_, item)| regroup::Part { resource, scope, item })
            })
            .collect();
        let bytes = Bytes::from(regroup::regroup(&parts));
        Some(Output { signal: self.signal, bytes, items: items.len(), ids })
    }
}

/// An export request of our own making.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub signal: Signal,
    pub bytes: Bytes,
    pub items: usize,
    pub ids: Vec<OutId>,
}

impl Output {
    /// Whether a record of the log is this.
    pub fn is(&self, record: &Record) -> bool {
        let same = |ids: &[OutId]| ids == self.ids && record.payload == self.bytes;
        record.signal == self.signal && matches!(&record.kind, Kind::Out(ids) if same(ids))
    }
}

/// Takes outputs in order, and logs and sends them; who hands over never waits.
#[derive(Clone)]
pub struct Outputs {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Rings when there is something new to do, and when something was done.
    new: Notify,
    done: Notify,
}

#[derive(Default)]
struct State {
    unsaid: Unsaid<Output, Vec<Parcel>>,
    /// Of what is not logged.
    bytes: usize,
    /// A release is on its way between the queue and the lanes.
    is_leaving: bool,
    /// Since when the log refuses the next one.
    refused: Option<Instant>,
}

/// When so much waits, nothing more is judged: the engine keeps facts, and intake ends where the
/// log is full.
const CONGESTED: usize = 8 << 20;
/// How long it is waited before the log is asked again.
const SOON: Duration = Duration::from_millis(20);
const LATER: Duration = Duration::from_secs(1);
/// The log refuses for so long: only a checkpoint may make room.
const STUCK: Duration = Duration::from_secs(1);

impl Outputs {
    /// Starts the task that logs and sends.
    pub fn start(writer: Writer) -> Self {
        let outputs = Outputs { shared: Arc::default() };
        tokio::spawn(outputs.clone().run(writer));
        outputs
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change below is whole before anything can panic.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(self, writer: Writer) {
        let mut wait = SOON;
        loop {
            self.let_go(&writer).await;
            let next = self.state().unsaid.next().map(|(number, output)| (number, output.clone()));
            let Some((number, output)) = next else {
                wait = SOON;
                self.shared.new.notified().await;
                continue;
            };
            let bytes = output.bytes.len();
            match writer.say(output).await {
                Ok(()) => {
                    wait = SOON;
                    self.note_logged(number, bytes);
                }
                Err(error) => {
                    self.note_refusal(&error);
                    // What is in a checkpoint meanwhile lets spans go.
                    let _ = tokio::time::timeout(wait, self.shared.new.notified()).await;
                    wait = (wait * 2).min(LATER);
                }
            }
        }
    }

    /// Spans leave whose verdicts are safe.
    async fn let_go(&self, writer: &Writer) {
        loop {
            let Some(parcels) = self.leaving() else { break };
            for parcel in parcels {
                writer.release(parcel).await;
            }
        }
        self.shared.done.notify_waiters();
    }

    fn note_logged(&self, number: u64, bytes: usize) {
        let mut state = self.state();
        state.unsaid.logged(number);
        state.bytes -= bytes;
        state.refused = None;
        drop(state);
        self.shared.done.notify_waiters();
    }

    fn leaving(&self) -> Option<Vec<Parcel>> {
        let mut state = self.state();
        let leaving = state.unsaid.leaving();
        state.is_leaving = leaving.is_some();
        leaving
    }

    fn note_refusal(&self, error: &Refused) {
        let mut state = self.state();
        if state.refused.is_none() {
            state.refused = Some(timer());
            tracing::warn!(%error, "events and verdict spans wait until the log takes them");
        }
    }

    /// Hands over one output.
    pub fn push(&self, output: Option<Output>) {
        if let Some(output) = output {
            let mut state = self.state();
            state.bytes += output.bytes.len();
            state.unsaid.say(output);
            drop(state);
            self.shared.new.notify_one();
        }
    }

    /// Hands over spans that leave once everything handed over before is safe: no verdict is seen
    /// that a next process would not know of.
    pub fn release(&self, parcels: Vec<Parcel>) {
        if !parcels.is_empty() {
            self.state().unsaid.follow(parcels);
            self.shared.new.notify_one();
        }
    }

    /// Whether so much waits that nothing should be added to it.
    pub fn is_congested(&self) -> bool {
        self.state().bytes >= CONGESTED
    }

    /// How long the log has refused what is next; `None` where it does not.
    pub fn refused(&self) -> Option<Duration> {
        self.state().refused.map(|since| since.elapsed())
    }

    /// Whether the log refuses for so long that a checkpoint must make room.
    pub fn is_stuck(&self) -> bool {
        self.refused().is_some_and(|since| since >= STUCK)
    }

    /// How many outputs were handed over so far.
    pub fn handed(&self) -> u64 {
        self.state().unsaid.handed()
    }

    /// Waits until everything handed over before is logged and on its way.
    pub async fn flush(&self) {
        loop {
            let done = self.shared.done.notified();
            let mut done = std::pin::pin!(done);
            // From here on no ring is missed.
            done.as_mut().enable();
            if self.is_idle() {
                return;
            }
            done.await;
        }
    }

    fn is_idle(&self) -> bool {
        let state = self.state();
        state.unsaid.is_empty() && !state.is_leaving
    }

    /// Bytes that wait.
    pub fn waiting(&self) -> usize {
        self.state().bytes
    }

    /// Of the first so many outputs those that are not logged.
    pub fn unlogged(&self, handed: u64) -> Vec<Output> {
        self.state().unsaid.unlogged(handed).cloned().collect()
    }

    /// The first so many outputs are logged or in a checkpoint.
    pub fn secure(&self, handed: u64) {
        self.state().unsaid.secure(handed);
        self.shared.new.notify_one();
    }

    /// Items that are neither logged nor in a checkpoint: they end with the process.
    pub fn lost(&self) -> usize {
        self.state().unsaid.unsafe_things().map(|output| output.items).sum()
    }
}

/// Logs and sends.
pub struct Writer {
    pub log: Arc<dyn Log>,
    pub outbox: Arc<Outbox>,
    pub unfolded: Arc<Unfolded>,
}

impl Writer {
    /// # Errors
    /// When the log does not take it now.
    async fn say(&self, output: Output) -> Result<(), Refused> {
        let Output { signal, bytes, items, ids } = output;
        self.send(Kind::Out(ids), signal, bytes, items).await
    }

    /// Held spans leave from memory, unless an exporter is so far behind that they go to the log
    /// first, to be read back when their turn comes.
    async fn release(&self, parcel: Parcel) {
        if !self.log.survives() || !self.outbox.is_behind(parcel.signal) {
            return self.outbox.push(&parcel);
        }
        let Parcel { signal, bytes, items, dues, .. } = parcel.clone();
        match self.send(Kind::Out(Vec::new()), signal, bytes, items).await {
            Ok(()) => {
                let lanes = self.outbox.lanes_of(signal).iter();
                lanes.for_each(|lane| self.outbox.ledger.settle(*lane, &dues));
            }
            // What they were held of is still in the log.
            Err(_) => self.outbox.push(&parcel),
        }
    }

    /// # Errors
    /// When the log does not take it.
    async fn send(
        &self,
        kind: Kind,
        signal: Signal,
        bytes: Bytes,
        items: usize,
    ) -> Result<(), Refused> {
        let coding = Coding::Identity;
        // Nobody looks for it in the log before it was handed on.
        let _unfolded = self.unfolded.clone().begin(&*self.log);
        let record = Record { kind, signal, coding, payload: bytes.clone() };
        let position = self.log.append(record).await?;
        let lanes = self.outbox.lanes_of(signal);
        self.outbox.ledger.open(position, lanes, items > 0, 0);
        if items > 0 {
            let plain_length = bytes.len();
            let dues = [Due { position, part: Part::Rest, weight: 1 }].into();
            self.outbox.push(&Parcel { signal, bytes, coding, plain_length, items, dues });
        }
        Ok(())
    }
}
