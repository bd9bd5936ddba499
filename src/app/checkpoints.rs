//! When the engine's state is written beside the log, and how it is found again.
//!
//! Promises: a checkpoint holds the facts of every record up to its position, and what was said and
//! is not logged; a record is not forgotten before one does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::effects::Effects;
use super::judging::{Judging, Left, Snapshot};
use super::outputs::{Output, Outputs};
use crate::clock::timer;
use crate::engine::Checkpoint;
use crate::log::{Log, OutId};
use crate::model::ids::Position;
use crate::wire::Signal;

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
/// And again after this, where the log is full and a checkpoint makes room.
const AGAIN: Duration = Duration::from_secs(2);
/// How long the log may take for what was said before.
const PATIENCE: Duration = Duration::from_secs(2);

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
            let full = usage.bytes >= usage.limit / 10 * 9;
            let short = full && usage.foldable > 0 || self.outputs.is_stuck();
            let again = short && at.elapsed() >= AGAIN;
            if !again && (!due || self.log.head() == written) {
                continue;
            }
            let position = self.unfolded.seen(&*self.log);
            let Some(snapshot) = self.judging.snapshot().await else { return };
            // What was said by then is logged by now; where the log has no room it is written here.
            let _ = tokio::time::timeout(PATIENCE, self.outputs.flush()).await;
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
        let Snapshot { engine, told, handed } = snapshot;
        let unsaid = written(&self.outputs.unlogged(handed));
        let write = move || {
            let first = [told, unsaid].into_iter();
            log.write_checkpoint(position, NEEDED, &mut first.chain(engine.into_slices()))
        };
        let left_out = match tokio::task::spawn_blocking(write).await {
            Ok(Ok(left_out)) => left_out,
            Ok(Err(error)) => {
                tracing::error!(%error, "the checkpoint cannot be written: the last one stays");
                return;
            }
            // The pool ends with the process.
            Err(_) => return,
        };
        self.outputs.secure(handed);
        if left_out > 0 {
            tracing::warn!(left_out, "the oldest chains found no room in the checkpoint");
        }
    }
}

/// What was told, what is still to be logged, and of the engine what was said of whom: without
/// these a revision might be said twice with other content.
const NEEDED: usize = 3;

/// An output as a checkpoint holds it.
#[derive(Serialize, Deserialize)]
struct Kept {
    signal: u8,
    bytes: Vec<u8>,
    items: usize,
    ids: Vec<OutId>,
}

fn written(outputs: &[Output]) -> Vec<u8> {
    let kept = |output: &Output| Kept {
        signal: output.signal as u8,
        bytes: output.bytes.to_vec(),
        items: output.items,
        ids: output.ids.clone(),
    };
    let kept: Vec<Kept> = outputs.iter().map(kept).collect();
    // Values in memory can always be written to memory.
    postcard::to_stdvec(&kept).unwrap_or_default()
}

/// The outputs back; `None` where the bytes are not what this version writes.
fn outputs(bytes: &[u8]) -> Option<Vec<Output>> {
    let output = |kept: Kept| {
        let signal = Signal::ALL.into_iter().find(|signal| *signal as u8 == kept.signal)?;
        let Kept { bytes, items, ids, .. } = kept;
        Some(Output { signal, bytes: bytes.into(), items, ids })
    };
    postcard::from_bytes::<Vec<Kept>>(bytes).ok()?.into_iter().map(output).collect()
}

/// What an earlier process left beside the log, and what it had said and not logged; all of it, or
/// the log alone.
pub fn left(log: &dyn Log, effects: &mut Effects) -> (Left, Vec<Output>) {
    let goes_on = log.survives();
    let Some(found) = log.take_checkpoint() else {
        return (Left { engine: None, goes_on }, Vec::new());
    };
    let read = match &found.slices[..] {
        [told, unsaid, engine @ ..] => {
            Checkpoint::from_slices(engine).zip(outputs(unsaid)).filter(|_| effects.take_up(told))
        }
        _ => None,
    };
    if read.is_none() {
        tracing::warn!("the checkpoint is refused: the log alone is read again");
        log.refuse_checkpoint();
    }
    let (engine, unsaid) = read.unzip();
    (Left { engine, goes_on }, unsaid.unwrap_or_default())
}
