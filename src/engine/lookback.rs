//! The look-back: spans that look like nothing when they come, kept for the traces that turn out to
//! be about MCP. Bounded in bytes; what is overwritten young is counted, never guessed at.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crate::model::fact::{Bone, Fact};
use crate::model::ids::{Nanos, TraceId};

/// What waits for its trace to become live.
#[derive(Clone, Debug)]
pub enum Remembered {
    Bone(Bone),
    Fact(Arc<Fact>),
}

impl Remembered {
    pub fn trace(&self) -> TraceId {
        match self {
            Self::Bone(bone) => bone.at.trace,
            Self::Fact(fact) => fact.trace(),
        }
    }

    /// An estimate of what it takes, in bytes.
    fn size(&self) -> usize {
        match self {
            Self::Bone(_) => size_of::<Bone>() + 16,
            Self::Fact(_) => size_of::<Fact>() + 128,
        }
    }
}

#[derive(Default)]
pub struct LookBack {
    ring: VecDeque<(Nanos, Remembered)>,
    bytes: usize,
    /// Traces that became live since the last sweep.
    wanted: BTreeSet<TraceId>,
    /// Overwritten before `settle` + 30 s had passed: an ancestor may have been among them.
    pub lost_young: u64,
}

impl LookBack {
    pub fn want(&mut self, trace: TraceId) {
        self.wanted.insert(trace);
    }

    /// Keeps one more, at the cost of the oldest where there is no room.
    pub fn keep(&mut self, item: Remembered, now: Nanos, limit: usize, young: Nanos) {
        self.bytes += item.size();
        self.ring.push_back((now, item));
        while self.bytes > limit {
            let Some((at, gone)) = self.ring.pop_front() else { break };
            self.bytes -= gone.size();
            self.lost_young += u64::from(now < at.saturating_add(young));
        }
    }

    /// What waits, with when it came.
    pub fn items(&self) -> impl Iterator<Item = (Nanos, &Remembered)> {
        self.ring.iter().map(|(at, item)| (*at, item))
    }

    /// Drops what is older than `oldest`.
    pub fn forget(&mut self, oldest: Nanos) {
        while self.ring.front().is_some_and(|(at, _)| *at < oldest) {
            if let Some((_, gone)) = self.ring.pop_front() {
                self.bytes -= gone.size();
            }
        }
    }

    /// One pass over the ring: what it holds of the traces that became live.
    pub fn sweep(&mut self) -> Vec<Remembered> {
        if self.wanted.is_empty() {
            return Vec::new();
        }
        let wanted = std::mem::take(&mut self.wanted);
        let (mut found, mut kept) = (Vec::new(), VecDeque::with_capacity(self.ring.len()));
        for (at, item) in self.ring.drain(..) {
            if wanted.contains(&item.trace()) {
                self.bytes -= item.size();
                found.push(item);
            } else {
                kept.push_back((at, item));
            }
        }
        self.ring = kept;
        found
    }
}
