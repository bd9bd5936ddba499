//! The held spans of one export, copied into one buffer.
//!
//! Promises: a span leaves its page once, as it came; what is dead takes at most half of a page.

use std::ops::Range;
use std::sync::Arc;

use crate::model::ids::{Position, SpanRef};

/// Bytes of a resource or a scope without what it holds; shared by all that came from it.
pub type Origin = Arc<[u8]>;

/// A span that leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving {
    pub position: Position,
    pub at: SpanRef,
    pub resource: Origin,
    pub scope: Origin,
    /// The body of the `Span`, as it came.
    pub span: Vec<u8>,
}

/// The held spans of one export, in one buffer.
#[derive(Default)]
pub(super) struct Page {
    pub bytes: Vec<u8>,
    /// `None` for those that left.
    pub entries: Vec<Option<Entry>>,
    pub left: usize,
    /// Bytes of those that are left.
    live: usize,
}

pub(super) struct Entry {
    pub at: SpanRef,
    pub range: Range<usize>,
    pub resource: Origin,
    pub scope: Origin,
}

impl Page {
    pub fn cost(&self) -> usize {
        self.bytes.capacity() + self.entries.len() * Entry::OVERHEAD
    }

    pub fn add(&mut self, entry: Entry) {
        self.live += entry.range.len();
        self.left += 1;
        self.entries.push(Some(entry));
    }

    pub fn take(&mut self, position: Position, entry: usize) -> Option<Leaving> {
        let held = self.entries.get_mut(entry)?.take()?;
        self.live -= held.range.len();
        self.left -= 1;
        let leaving = held.leave(position, &self.bytes);
        if self.live * 2 < self.bytes.capacity() {
            self.compact();
        }
        Some(leaving)
    }

    /// Moves what is left together.
    fn compact(&mut self) {
        let mut bytes = Vec::with_capacity(self.live);
        for entry in self.entries.iter_mut().flatten() {
            let start = bytes.len();
            bytes.extend_from_slice(&self.bytes[entry.range.clone()]);
            entry.range = start..bytes.len();
        }
        self.bytes = bytes;
    }
}

impl Entry {
    /// What an entry takes beside its bytes.
    const OVERHEAD: usize = 160;

    pub fn leave(self, position: Position, page: &[u8]) -> Leaving {
        Leaving {
            position,
            at: self.at,
            resource: self.resource,
            scope: self.scope,
            span: page[self.range].to_vec(),
        }
    }
}
