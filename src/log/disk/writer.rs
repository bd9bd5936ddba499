//! The one thread that writes: whatever waits goes into one write, then one sync, then the answers.
//!
//! Promises: an answer follows the safety that `sync` promises; a write that failed leaves nothing
//! behind that is read later; a segment goes when all its records are done, and takes no mark with
//! it that an older one still needs.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::chunk::Chunk;
use super::error::is_full;
use super::layout::{Directory, Name, Sequence};
use super::medium::Tail;
use super::shared::{Batch, Shared, Waiting};
use crate::clock::monotonic_millis;
use crate::log::Refused;
use crate::log::record::Noted;
use crate::log::settings::Sync;
use crate::model::ids::Position;

/// What the writer is told.
pub struct Plan {
    pub sync: Sync,
    pub sync_interval: Duration,
    pub segment_size: u64,
}

pub struct Writer {
    shared: Arc<Shared>,
    directory: Arc<Directory>,
    plan: Plan,
    active: Active,
    /// Of the next segment. An attempt that failed may have left a file: its number is not given
    /// again.
    sequence: Sequence,
    next: Position,
    /// The last write failed.
    failing: bool,
    synced_at: u64,
}

/// The segment that is written.
struct Active {
    name: Name,
    tail: Box<dyn Tail>,
    length: u64,
    /// Something in it is not synced.
    dirty: bool,
    /// Its end is not known any more: the next write goes into a new one.
    broken: bool,
}

/// However the writer ends, nobody waits for it.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.ended();
    }
}

/// How long marks wait after a write that failed.
const RECOVERY: Duration = Duration::from_secs(1);

impl Writer {
    /// Opens the first segment of this process.
    ///
    /// # Errors
    /// When it cannot be created and written.
    pub fn start(
        shared: Arc<Shared>,
        directory: Arc<Directory>,
        plan: Plan,
        sequence: Sequence,
        next: Position,
    ) -> io::Result<Self> {
        let active = create(&directory, sequence, next, plan.sync)?;
        shared.state().index.open(active.name);
        let synced_at = monotonic_millis();
        let (sequence, failing) = (sequence + 1, false);
        let mut writer =
            Writer { shared, directory, plan, active, sequence, next, failing, synced_at };
        writer.sweep();
        let mut probe = Chunk::default();
        probe.put_marks(writer.active.name.marker(), Vec::new());
        writer.write_out(&probe, true)?;
        writer.account(&probe);
        Ok(writer)
    }

    /// Until the log ends.
    pub fn run(mut self) {
        let _ending = Ending(self.shared.clone());
        loop {
            let batch = self.shared.take(self.patience(), self.failing);
            if self.round(batch) {
                return;
            }
        }
    }

    /// One round over what waits now, on the thread of the caller.
    pub fn step(&mut self) {
        let batch = self.shared.take(Some(Duration::ZERO), self.failing);
        self.round(batch);
    }

    /// Writes a batch and answers; whether it was the last.
    fn round(&mut self, batch: Batch) -> bool {
        let (last, flushes) = (batch.last, batch.flushes.len());
        self.failing = false;
        let flushed = self.write(batch);
        self.sweep();
        if last || flushes > 0 {
            self.sync();
        } else {
            self.sync_when_due();
        }
        drop(flushed);
        last
    }

    fn patience(&self) -> Option<Duration> {
        let interval = self.plan.sync == Sync::Interval && self.active.dirty;
        match (self.failing, interval) {
            (true, _) => Some(RECOVERY),
            (false, true) => Some(self.until_sync()),
            (false, false) => None,
        }
    }

    fn until_sync(&self) -> Duration {
        let since = monotonic_millis().saturating_sub(self.synced_at);
        self.plan.sync_interval.saturating_sub(Duration::from_millis(since))
    }

    /// Writes a batch, a segment at a time. Returns who waits for it.
    fn write(&mut self, batch: Batch) -> Vec<std::sync::mpsc::Sender<()>> {
        let Batch { records, marks, flushes, .. } = batch;
        if self.active.broken
            && let Err(error) = self.roll()
        {
            self.refuse(records, marks, &error);
            return flushes;
        }
        let mut chunk = Chunk::default();
        if !marks.is_empty() {
            chunk.put_marks(self.active.name.marker(), marks);
        }
        let mut records = records.into_iter();
        while let Some(waiting) = records.next() {
            let length = self.active.length + chunk.bytes();
            if length > 0 && length + waiting.length > self.plan.segment_size {
                self.commit(std::mem::take(&mut chunk));
                if let Err(error) = self.roll() {
                    let left = std::iter::once(waiting).chain(records).collect();
                    self.refuse(left, Vec::new(), &error);
                    return flushes;
                }
            }
            let position = Position(self.next.0 + chunk.records.len() as u64);
            chunk.put(self.active.name.marker(), position, waiting);
        }
        self.commit(chunk);
        flushes
    }

    /// Writes one chunk and answers.
    fn commit(&mut self, chunk: Chunk) {
        if chunk.bytes() == 0 {
            return;
        }
        let durable = self.plan.sync == Sync::Always && !chunk.records.is_empty();
        if let Err(error) = self.write_out(&chunk, durable) {
            let records = chunk.records.into_iter().map(|placed| placed.waiting).collect();
            return self.refuse(records, chunk.marks, &error);
        }
        self.account(&chunk);
        self.next.0 += chunk.records.len() as u64;
        for placed in chunk.records {
            // Whoever does not wait any more finds the record at the next start.
            let _ = placed.waiting.answer.send(Ok(placed.position));
        }
    }

    /// All of it is in the file, and durable where that is asked for, or nothing of it is.
    fn write_out(&mut self, chunk: &Chunk, durable: bool) -> io::Result<()> {
        let active = &mut self.active;
        let mut written = chunk.write(&mut *active.tail);
        if written.is_ok() && durable {
            written = active.tail.sync();
            // After a failed sync nobody knows what the device has: nothing is added to it.
            active.broken |= written.is_err();
        }
        match &written {
            Ok(()) => active.dirty = !durable,
            Err(_) => {
                active.broken |= active.tail.cut(active.length).is_err();
                // The positions may be on the device, and what was cut off may come back with the
                // power: they are not given again.
                self.next.0 += chunk.records.len() as u64;
            }
        }
        written
    }

    /// What was written is in the index before anybody hears of it.
    fn account(&mut self, chunk: &Chunk) {
        let sequence = self.active.name.sequence;
        let mut state = self.shared.state();
        for placed in &chunk.records {
            // Segments end far below 4 GiB: only a record at their very start is larger.
            let offset = u32::try_from(self.active.length + placed.offset).unwrap_or(u32::MAX);
            let length = u32::try_from(placed.waiting.length).unwrap_or(u32::MAX);
            state.index.add(sequence, placed.position, offset, length);
            state.leave(&placed.waiting);
            state.head = placed.position;
        }
        state.index.grow(sequence, chunk.bytes());
        state.index.spoke(sequence, &chunk.marks);
        state.device_full = false;
        self.active.length += chunk.bytes();
    }

    fn refuse(&mut self, records: Vec<Waiting>, marks: Vec<Noted>, error: &io::Error) {
        self.failing = true;
        let mut state = self.shared.state();
        state.device_full = is_full(error);
        state.put_back(marks);
        for waiting in &records {
            state.leave(waiting);
        }
        drop(state);
        for waiting in records {
            let refused = match is_full(error) {
                true => self.shared.full(),
                false => Refused::Failed(self.explain(error)),
            };
            // Nobody may wait any more.
            let _ = waiting.answer.send(Err(refused));
        }
    }

    fn explain(&self, error: &io::Error) -> io::Error {
        let path = self.directory.segment(&self.active.name);
        io::Error::new(error.kind(), format!("storage.directory: `{}`: {error}", path.display()))
    }

    /// Goes on in a new segment.
    fn roll(&mut self) -> io::Result<()> {
        self.sync();
        let sequence = self.sequence;
        self.sequence += 1;
        let active = create(&self.directory, sequence, self.next, self.plan.sync)?;
        self.shared.state().index.open(active.name);
        self.active = active;
        Ok(())
    }

    /// Gives up segments that nobody needs.
    fn sweep(&mut self) {
        if self.active.broken || self.active_is_done() {
            // Where no other can be begun it stays, and the others go all the same.
            let _ = self.roll();
        }
        let active = self.active.name.sequence;
        let given_up = self.shared.state().index.given_up(active);
        for sequence in given_up {
            // One whose marks find no room waits until another has made some.
            if self.tell_again(sequence) {
                self.remove(sequence);
            }
        }
    }

    /// Whether the active segment is worth to be given up: nothing in it is needed, and it is large
    /// or room is short.
    fn active_is_done(&self) -> bool {
        let state = self.shared.state();
        let short = state.used() > self.shared.limit() / 2;
        let large = self.active.length >= self.plan.segment_size / 2;
        let segment = state.index.segment(self.active.name.sequence);
        // Of a segment without records nothing comes back but marks: it may become large.
        let worth = segment.is_some_and(|s| large || short && s.records() > 0);
        worth && state.index.is_over(self.active.name.sequence)
    }

    fn tell_again(&mut self, sequence: Sequence) -> bool {
        let told = self.shared.state().index.retell(sequence);
        if told.is_empty() || self.active.broken {
            return told.is_empty();
        }
        let mut chunk = Chunk::default();
        chunk.put_marks(self.active.name.marker(), told);
        let told = self.write_out(&chunk, self.plan.sync != Sync::Never);
        if told.is_ok() {
            self.account(&chunk);
        }
        told.is_ok()
    }

    fn remove(&mut self, sequence: Sequence) {
        let name = self.shared.state().index.segment(sequence).map(|segment| segment.name);
        let Some(name) = name else { return };
        match self.directory.remove(&name) {
            Ok(()) => self.shared.state().index.close(sequence),
            // It stays in the index: the next sweep tries again.
            Err(error) => {
                tracing::warn!(%error, file = name.file_name(), "a segment cannot be removed");
            }
        }
    }

    fn sync_when_due(&mut self) {
        let interval = self.plan.sync == Sync::Interval && self.active.dirty;
        if interval && self.until_sync().is_zero() {
            self.sync();
        }
    }

    fn sync(&mut self) {
        if !self.active.dirty || self.plan.sync == Sync::Never {
            return;
        }
        self.active.dirty = false;
        self.synced_at = monotonic_millis();
        if let Err(error) = self.active.tail.sync() {
            self.active.broken = true;
            let error = self.explain(&error);
            tracing::error!(%error, "what was written last may not survive a power cut");
        }
    }
}

fn create(
    directory: &Directory,
    sequence: Sequence,
    next: Position,
    sync: Sync,
) -> io::Result<Active> {
    let (name, tail) = directory.create(sequence, next)?;
    if sync != Sync::Never
        && let Err(error) = directory.sync()
    {
        // Where it stays, it is an empty segment that the next start gives up.
        let _ = directory.remove(&name);
        return Err(error);
    }
    Ok(Active { name, tail, length: 0, dirty: false, broken: false })
}
