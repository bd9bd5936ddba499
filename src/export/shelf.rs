//! What lies in memory of what waits for delivery, and what was left in the log.
//!
//! Promises: a lane that falls behind holds its share of memory and one position: everything behind
//! it that was not delivered is taken from the log when there is room again, once.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::parcel::Parcel;
use crate::model::ids::Position;
use crate::wire::Signal;

/// Knows how a record of the log becomes a parcel again.
pub trait Shelf: Send + Sync {
    /// What `exporter` was not sent of the rests of records of a signal, in order, from the first
    /// behind `after` on, about so many bytes of it. Records that are on their way to the lanes for
    /// the first time are not among them, nor anything behind those.
    ///
    /// # Errors
    /// When the log cannot be read.
    fn page(&self, signal: Signal, exporter: &str, after: Position, bytes: u64)
    -> io::Result<Page>;
}

/// A look into the log.
pub struct Page {
    pub taken: Vec<Taken>,
    /// Everything up to here was looked at.
    pub up_to: Position,
}

/// The rest of a record.
pub struct Taken {
    pub parcel: Parcel,
    /// Spans of the record were held.
    pub holds: bool,
}

/// A lane's shelf.
pub struct Shelved {
    pub shelf: Arc<dyn Shelf>,
    /// Bytes that the lane may have in memory.
    pub bound: usize,
    /// All lanes of the signal.
    pub lanes: Vec<usize>,
}

/// What a lane left in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind {
    /// All of it stands behind this position, none behind `last`.
    pub after: Position,
    last: Position,
}

impl Behind {
    /// One more record was left there.
    pub fn with(behind: Option<Self>, position: Position) -> Self {
        let before = Position(position.0.saturating_sub(1));
        match behind {
            None => Behind { after: before, last: position },
            Some(Behind { after, last }) => {
                Behind { after: after.min(before), last: last.max(position) }
            }
        }
    }

    /// Everything up to a position was taken up; `None` when nothing is left.
    pub fn read(self, up_to: Position) -> Option<Self> {
        let after = self.after.max(up_to);
        (after < self.last).then_some(Behind { after, ..self })
    }
}

/// How much waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    pub exports: usize,
    /// In the codings in which they wait.
    pub bytes: usize,
}

impl Backlog {
    pub fn add(&mut self, bytes: usize) {
        self.exports += 1;
        self.bytes += bytes;
    }

    pub fn remove(&mut self, bytes: usize) {
        self.exports = self.exports.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// What a lane has in memory: waiting, on the wire, or waiting to be tried again.
#[derive(Default)]
pub struct Present {
    bytes: AtomicUsize,
    parcels: AtomicUsize,
    /// Records whose rest it is.
    rests: Mutex<BTreeSet<Position>>,
}

/// Stands for one parcel in memory, until it is dropped.
pub struct Load {
    of: Arc<Present>,
    bytes: usize,
    rest: Option<Position>,
}

impl Present {
    pub fn load(self: &Arc<Self>, bytes: usize, rest: Option<Position>) -> Load {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.parcels.fetch_add(1, Ordering::Relaxed);
        if let Some(position) = rest {
            self.rests.lock().unwrap_or_else(PoisonError::into_inner).insert(position);
        }
        Load { of: self.clone(), bytes, rest }
    }

    /// Whether there is room; nothing at all has room for anything.
    pub fn fits(&self, more: usize, bound: usize) -> bool {
        let bytes = self.bytes.load(Ordering::Relaxed);
        bytes == 0 || bytes.saturating_add(more) <= bound
    }

    pub fn backlog(&self) -> Backlog {
        let exports = self.parcels.load(Ordering::Relaxed);
        Backlog { exports, bytes: self.bytes.load(Ordering::Relaxed) }
    }

    /// The records whose rest it is.
    pub fn here(&self) -> BTreeSet<Position> {
        self.rests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.of.parcels.fetch_sub(1, Ordering::Relaxed);
        if let Some(position) = self.rest {
            self.of.rests.lock().unwrap_or_else(PoisonError::into_inner).remove(&position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_is_an_interval_that_shrinks() {
        let behind = Behind::with(None, Position(7));
        assert_eq!(behind, Behind { after: Position(6), last: Position(7) });
        // One that was appended before it and comes to the lane after it.
        let behind = Behind::with(Some(behind), Position(5));
        let behind = Behind::with(Some(behind), Position(9));
        assert_eq!(behind, Behind { after: Position(4), last: Position(9) });
        let behind = behind.read(Position(8)).unwrap();
        assert_eq!(behind, Behind { after: Position(8), last: Position(9) });
        assert_eq!(behind.read(Position(3)), Some(behind));
        assert_eq!(behind.read(Position(9)), None);
    }

    #[test]
    fn what_is_dropped_makes_room() {
        let present = Arc::new(Present::default());
        assert!(present.fits(1_000, 10), "alone, anything fits");
        let first = present.load(6, Some(Position(1)));
        let second = present.load(3, None);
        assert!(present.fits(1, 10) && !present.fits(2, 10));
        assert_eq!(present.here(), [Position(1)].into());
        assert_eq!(present.backlog(), Backlog { exports: 2, bytes: 9 });
        drop(first);
        assert!(present.fits(7, 10) && present.here().is_empty());
        drop(second);
        assert!(present.fits(1_000, 10));
    }
}
