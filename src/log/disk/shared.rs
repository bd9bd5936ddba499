//! What callers and the writer share: the queue, the index, and how much room there is.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use tokio::sync::oneshot;

use super::index::Index;
use crate::log::record::{self, Noted};
use crate::log::{Appended, Kind, Mark, Record, Refused, Usage};
use crate::model::ids::Position;

/// A record that waits to be written.
pub struct Waiting {
    pub record: Record,
    /// Bytes of its entry.
    pub length: u64,
    pub answer: oneshot::Sender<Result<Position, Refused>>,
}

/// Everything that waits, for one write.
#[derive(Default)]
pub struct Batch {
    pub records: Vec<Waiting>,
    pub marks: Vec<Noted>,
    /// Who waits until all this is written.
    pub flushes: Vec<mpsc::Sender<()>>,
    /// Nothing comes after it.
    pub last: bool,
}

/// The state that both sides change.
#[derive(Default)]
pub struct State {
    pub index: Index,
    /// The last position that was given.
    pub head: Position,
    /// Bytes of files that are no segments.
    pub other_bytes: u64,
    /// Bytes that the spare of the checkpoint lacks: nobody else gets them.
    pub spare_wanted: u64,
    /// The device had no room for the last write.
    pub device_full: bool,
    batch: Batch,
    /// Nobody writes any more.
    ended: bool,
    /// Records that are admitted and not yet in the index, and the bytes of their entries.
    admitted: u64,
    admitted_bytes: u64,
}

/// The state, the bell that wakes the writer, and the bounds.
pub struct Shared {
    state: Mutex<State>,
    work: Condvar,
    /// Bytes of all files.
    max_size: u64,
    /// Bytes that may wait for the writer.
    memory: u64,
}

/// Room that every record keeps for the marks that end it.
const RESERVED: u64 = 96;

impl State {
    /// Bytes of all files, as they will be once every record has its marks.
    pub fn used(&self) -> u64 {
        let reserved = RESERVED * (self.admitted + self.index.pending());
        self.index.bytes() + self.other_bytes + self.admitted_bytes + reserved
    }

    /// Bytes that what is ours may still take: a twentieth more than others.
    pub fn left(&self, max_size: u64) -> u64 {
        (max_size + max_size / 20).saturating_sub(self.used())
    }

    /// A record is in the index now, or was refused.
    pub fn leave(&mut self, waiting: &Waiting) {
        self.admitted -= 1;
        self.admitted_bytes -= waiting.length;
    }

    /// Marks that could not be written wait again.
    pub fn put_back(&mut self, marks: Vec<Noted>) {
        let newer = std::mem::replace(&mut self.batch.marks, marks);
        self.batch.marks.extend(newer);
    }

    fn note(&mut self, mark: Noted) {
        if let Noted::Done { from, to: end } = mark
            && let Some(Noted::Done { to, .. }) = self.batch.marks.last_mut()
            && to.0.checked_add(1) == Some(from.0)
        {
            *to = end;
            return;
        }
        self.batch.marks.push(mark);
    }
}

impl Shared {
    pub fn new(state: State, max_size: u64, memory: u64) -> Self {
        Shared { state: Mutex::new(state), work: Condvar::new(), max_size, memory }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        // Every change below is whole before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn limit(&self) -> u64 {
        self.max_size
    }

    pub fn full(&self) -> Refused {
        Refused::Full { limit: self.max_size }
    }

    pub fn append(&self, record: Record) -> Appended {
        let now = |refused| Appended::Now(Some(Err(refused)));
        let Some(length) = record::entry_length(&record) else {
            let error = std::io::Error::other("a record of 4 GiB or more has no place in the log");
            return now(Refused::Failed(error));
        };
        let (answer, waiting) = oneshot::channel();
        let mut state = self.state();
        if state.batch.last {
            return now(Refused::Failed(std::io::Error::other("the log has ended")));
        }
        let limit = match record.kind {
            Kind::In => self.max_size.saturating_sub(state.spare_wanted),
            // What was accepted may still be told of.
            Kind::Out(_) => self.max_size + self.max_size / 20,
        };
        let fits = state.used() + length + RESERVED <= limit;
        // An empty queue takes any record: what is larger than the bound is alone in it.
        let waits = state.admitted == 0 || state.admitted_bytes + length <= self.memory;
        if !fits || !waits {
            return now(self.full());
        }
        state.admitted += 1;
        state.admitted_bytes += length;
        state.batch.records.push(Waiting { record, length, answer });
        drop(state);
        self.work.notify_one();
        Appended::Later(waiting)
    }

    pub fn mark(&self, position: Position, mark: Mark) {
        let mark = Noted::new(position, mark);
        let mut state = self.state();
        if !state.index.mark(&mark) {
            return;
        }
        // Near the end of the slack only what frees room is written: a part of an export that is
        // sent again costs less than one that cannot be taken.
        let slack = state.used() > self.max_size + self.max_size / 20;
        if slack && !matches!(mark, Noted::Done { .. }) {
            return;
        }
        state.note(mark);
        drop(state);
        self.work.notify_one();
    }

    /// Asks that everything handed over before be written; whoever listens hears the end of it.
    pub fn flush(&self) -> mpsc::Receiver<()> {
        let (done, flushed) = mpsc::channel::<()>();
        let mut state = self.state();
        // The writer lets go of its end once it has written; one that has ended never writes.
        if !state.ended {
            state.batch.flushes.push(done);
        }
        drop(state);
        self.work.notify_one();
        flushed
    }

    /// Lets the writer end once everything is written.
    pub fn end(&self) {
        let mut state = self.state();
        state.batch.last = true;
        drop(state);
        self.work.notify_one();
    }

    /// The writer has ended: nobody waits for it any more.
    pub fn ended(&self) {
        let mut state = self.state();
        state.ended = true;
        let left = std::mem::replace(&mut state.batch, Batch { last: true, ..Batch::default() });
        for waiting in &left.records {
            state.leave(waiting);
        }
    }

    /// Takes everything that waits; waits for something at most so long. `marks_wait`: marks alone
    /// are no reason to write.
    pub fn take(&self, patience: Option<Duration>, marks_wait: bool) -> Batch {
        let mut state = self.state();
        loop {
            let batch = &state.batch;
            let marks = !batch.marks.is_empty() && !marks_wait;
            if !batch.records.is_empty() || !batch.flushes.is_empty() || batch.last || marks {
                break;
            }
            match patience {
                None => state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(patience) => {
                    let waited = self.work.wait_timeout(state, patience);
                    let (guard, timed) = waited.unwrap_or_else(PoisonError::into_inner);
                    state = guard;
                    if timed.timed_out() {
                        break;
                    }
                }
            }
        }
        let last = state.batch.last;
        std::mem::replace(&mut state.batch, Batch { last, ..Batch::default() })
    }

    pub fn usage(&self) -> Usage {
        let state = self.state();
        let bytes = if state.device_full { self.max_size } else { state.used() };
        let records = state.index.pending() + state.admitted;
        let entries = state.index.pending_bytes() + state.admitted_bytes;
        Usage {
            records,
            pending_bytes: entries + records * Record::OVERHEAD,
            bytes,
            foldable: state.index.foldable(),
            limit: self.max_size,
        }
    }
}
