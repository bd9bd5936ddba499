//! What waits to be sent: bytes of one export, and which log positions it settles.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use super::ledger::Ledger;
use super::shelf::Load;
use crate::log::Part;
use crate::model::ids::Position;
use crate::wire::Signal;
use crate::wire::inflate::Coding;

/// An export request on its way out. Clones share the bytes.
#[derive(Clone, Debug)]
pub struct Parcel {
    pub signal: Signal,
    /// In `coding`.
    pub bytes: Bytes,
    pub coding: Coding,
    /// Length without the coding.
    pub plain_length: usize,
    /// Spans, log records, data points or samples.
    pub items: usize,
    pub dues: Arc<[Due]>,
}

impl Parcel {
    /// The record that it is the rest of, where it is that alone.
    pub fn rest_of(&self) -> Option<Position> {
        match &self.dues[..] {
            [Due { position, part: Part::Rest, .. }] => Some(*position),
            _ => None,
        }
    }
}

/// A share of a log record that a parcel delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    pub position: Position,
    pub part: Part,
    /// Held spans of the record in the parcel; 1 for the rest.
    pub weight: u32,
}

/// One lane's duty to settle a parcel, once all its pieces are finished. Pieces share it by
/// cloning; a piece that is only dropped (at the end of the process) finishes nothing.
#[derive(Clone)]
pub struct Receipt {
    inner: Arc<Inner>,
}

struct Inner {
    ledger: Arc<Ledger>,
    lane: usize,
    dues: Arc<[Due]>,
    pieces: AtomicUsize,
    /// Let go of once the last piece is finished and what it settles is marked.
    _load: Option<Load>,
}

impl Receipt {
    /// For a parcel in this many pieces, in a lane.
    pub fn new(ledger: Arc<Ledger>, lane: usize, dues: Arc<[Due]>, pieces: usize) -> Self {
        Receipt::loaded(ledger, lane, dues, pieces, None)
    }

    /// As [`Receipt::new`], for bytes that count against a bound as long as they are there.
    pub fn loaded(
        ledger: Arc<Ledger>,
        lane: usize,
        dues: Arc<[Due]>,
        pieces: usize,
        load: Option<Load>,
    ) -> Self {
        let pieces = AtomicUsize::new(pieces);
        Receipt { inner: Arc::new(Inner { ledger, lane, dues, pieces, _load: load }) }
    }

    /// More pieces than were known at first.
    pub fn add_pieces(&self, more: usize) {
        self.inner.pieces.fetch_add(more, Ordering::Relaxed);
    }

    /// Whether any record waits for it: none does for what we make and can make again.
    pub fn is_due(&self) -> bool {
        !self.inner.dues.is_empty()
    }

    /// One piece was delivered, or dropped with a reason.
    pub fn finish(self) {
        if self.inner.pieces.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.inner.ledger.settle(self.inner.lane, &self.inner.dues);
        }
    }
}
