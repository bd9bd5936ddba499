//! When the engine's state is written beside the log, and how it is found again.
//!
//! Promises: a checkpoint holds the facts of every record up to its position, and nothing that was
//! said but not logged; a record is not forgotten before one does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::effects::Effects;
use super::judging::{Judging, Left, Snapshot};
use super::outputs::Outputs;
use crate::clock::timer;
use crate::engine::Checkpoint;
use crate::log::Log;
use crate::model::ids::Position;

/// Records that were or will be appended and that were not handed on yet: to the lanes, to the
/// engine.
#[derive(Default)]
pub struct Unfolded {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    /// By ticket: its record stands behind this position.
    behind: BTreeMap<u64, Position>,
}

/// Stands for one such record. Dropped once the engine has seen it, or nobody will show it.
pub struct Ticket {
    of: Arc<Unfolded>,
    number: u64,
}

impl Unfolded {
    /// For a record that is about to be appended.
    pub fn begin(self: Arc<Self>, log: &dyn Log) -> Ticket {
        // Under the lock: the position cannot be an old one once it is noted.
        let number = self.note(|| log.head());
        Ticket { of: self, number }
    }

    /// For records behind a position.
    pub fn behind(self: Arc<Self>, position: Position) -> Ticket {
        let number = self.note(|| position);
        Ticket { of: self, number }
    }

    fn note(&self, behind: impl FnOnce() -> Position) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.next += 1;
        let number = state.next;
        state.behind.insert(number, behind());
        number
    }

    /// Every record up to here was handed on, and the engine has seen it.
    pub fn seen(&self, log: &dyn Log) -> Position {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.behind.values().min().copied().unwrap_or_else(|| log.head())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.of.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.behind.remove(&self.number);
    }
}

/// Writes checkpoints.
pub struct Checkpoints {
    pub log: Arc<dyn Log>,
    pub judging: Judging,
    pub outputs: Outputs,
    pub unfolded: Arc<Unfolded>,
}

/// How often it is looked whether one is due.
const LOOK: Duration = Duration::from_secs(1);
/// One is due after this time, or when the log has grown by this or by an eighth of what it may
/// hold.
const TIME: Duration = Duration::from_secs(60);
const GROWTH: u64 = 64 << 20;

impl Checkpoints {
    /// Writes one whenever it is due, for ever.
    pub async fn run(self) {
        let growth = GROWTH.min(self.log.usage().limit / 8);
        // What earlier processes left counts as grown: lives that end soon would fill the log.
        let (mut written, mut at, mut bytes) = (Position(0), timer(), 0);
        while self.log.survives() {
            tokio::time::sleep(LOOK).await;
            let usage = self.log.usage();
            // Segments that went make room for as much again.
            bytes = bytes.min(usage.bytes);
            let due = at.elapsed() >= TIME || usage.bytes - bytes >= growth;
            if !due || self.log.head() == written {
                continue;
            }
            let position = self.unfolded.seen(&*self.log);
            let Some(snapshot) = self.judging.snapshot().await else { return };
            // What the engine said before is logged, or never will be.
            self.outputs.flush().await;
            self.write(position, snapshot).await;
            (written, at, bytes) = (position, timer(), self.log.usage().bytes);
        }
    }

    /// The last one: nothing is received or said any more.
    pub async fn write_last(&self, snapshot: Snapshot) {
        if self.log.survives() {
            let position = self.unfolded.seen(&*self.log);
            self.write(position, snapshot).await;
        }
    }

    async fn write(&self, position: Position, snapshot: Snapshot) {
        let log = self.log.clone();
        let write = move || {
            let first = std::iter::once(snapshot.told);
            log.write_checkpoint(position, &mut first.chain(snapshot.engine.into_slices()))
        };
        match tokio::task::spawn_blocking(write).await {
            Ok(Ok(0)) => {}
            Ok(Ok(left_out)) => {
                tracing::warn!(left_out, "the oldest chains found no room in the checkpoint");
            }
            Ok(Err(error)) => tracing::error!(%error, "the checkpoint cannot be written"),
            // The pool ends with the process.
            Err(_) => {}
        }
    }
}

/// What an earlier process left in the log; all of it, or the log alone.
pub fn left(log: &dyn Log, effects: &mut Effects) -> Left {
    let goes_on = log.survives();
    let Some(found) = log.take_checkpoint() else { return Left { engine: None, goes_on } };
    let read = found.slices.split_first().and_then(|(told, engine)| {
        let engine = Checkpoint::from_slices(engine)?;
        effects.take_up(told).then_some(engine)
    });
    if read.is_none() {
        tracing::warn!("the checkpoint is refused: the log alone is read again");
        log.refuse_checkpoint();
    }
    Left { engine: read, goes_on }
}
