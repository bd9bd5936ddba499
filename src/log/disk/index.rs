//! Which record lies where, and what is done: the state of a directory of segments, without I/O.
//!
//! Promises: twelve bytes a record; a segment is given up only when all its records are done and
//! folded into a checkpoint, and what its marks say of older segments can be told again before it
//! goes.

use std::collections::{BTreeMap, BTreeSet};

use super::layout::{Name, Sequence};
use crate::log::Mark;
use crate::log::record::Noted;
use crate::model::ids::Position;

/// One file of entries.
#[derive(Debug)]
pub struct Segment {
    pub name: Name,
    bytes: u64,
    slots: Vec<Slot>,
    /// Records that are not done.
    live: usize,
    /// Older segments that marks in this one speak of.
    speaks_of: BTreeSet<Sequence>,
}

/// A record: its position relative to the segment's first, the place and length of its entry.
#[derive(Debug)]
struct Slot {
    delta: u32,
    offset: u32,
    length: u32,
}

impl Slot {
    const DONE: u32 = 1 << 31;

    fn delta(&self) -> u32 {
        self.delta & !Slot::DONE
    }

    fn done(&self) -> bool {
        self.delta & Slot::DONE != 0
    }
}

impl Segment {
    fn new(name: Name) -> Self {
        Segment { name, bytes: 0, slots: Vec::new(), live: 0, speaks_of: BTreeSet::new() }
    }

    fn position(&self, slot: &Slot) -> Position {
        Position(self.name.first.0 + u64::from(slot.delta()))
    }

    /// Index of the first slot at or after a position.
    fn find(&self, position: Position) -> usize {
        self.slots.partition_point(|slot| self.position(slot) < position)
    }

    fn slot(&self, position: Position) -> Option<&Slot> {
        let slot = self.slots.get(self.find(position))?;
        (self.position(slot) == position).then_some(slot)
    }

    /// Whether no record in it is needed any more: all are done and folded.
    fn over(&self, folded: Position) -> bool {
        let last = self.slots.last().map(|slot| self.position(slot));
        self.live == 0 && last.is_none_or(|last| last <= folded)
    }

    pub fn records(&self) -> usize {
        self.slots.len()
    }

    fn done_runs(&self) -> Vec<Noted> {
        let mut runs: Vec<Noted> = Vec::new();
        let mut extends = false;
        for slot in &self.slots {
            let position = self.position(slot);
            match runs.last_mut() {
                Some(Noted::Done { to, .. }) if extends && slot.done() => *to = position,
                _ if slot.done() => runs.push(Noted::Done { from: position, to: position }),
                _ => {}
            }
            extends = slot.done();
        }
        runs
    }
}

/// All segments, and the marks of records that are not done.
#[derive(Debug)]
pub struct Index {
    segments: BTreeMap<Sequence, Segment>,
    /// Which segment has a position: the last whose first record is not beyond it. A segment
    /// without records is not among them: its name may lie inside what an older one holds.
    by_first: BTreeMap<Position, Sequence>,
    delivered: BTreeMap<Position, Vec<Mark>>,
    pending: u64,
    pending_bytes: u64,
    bytes: u64,
    /// Records behind it are kept though they are done: no checkpoint has their facts.
    folded: Position,
}

impl Default for Index {
    fn default() -> Self {
        Index {
            segments: BTreeMap::new(),
            by_first: BTreeMap::new(),
            delivered: BTreeMap::new(),
            pending: 0,
            pending_bytes: 0,
            bytes: 0,
            folded: Position(u64::MAX),
        }
    }
}

impl Index {
    /// Adds a segment, later than all others, with nothing in it.
    pub fn open(&mut self, name: Name) {
        self.segments.insert(name.sequence, Segment::new(name));
    }

    pub fn close(&mut self, sequence: Sequence) {
        let Some(segment) = self.segments.remove(&sequence) else { return };
        self.bytes -= segment.bytes;
        if let Some(first) = segment.slots.first() {
            self.by_first.remove(&segment.position(first));
        }
    }

    /// A record was written. Positions grow, and lie within 2³¹ of their segment's first.
    pub fn add(&mut self, sequence: Sequence, position: Position, offset: u32, length: u32) {
        let Some(segment) = self.segments.get_mut(&sequence) else { return };
        let delta = position.0.saturating_sub(segment.name.first.0);
        let delta = u32::try_from(delta).unwrap_or(Slot::DONE - 1).min(Slot::DONE - 1);
        if segment.slots.is_empty() {
            self.by_first.insert(position, sequence);
        }
        segment.slots.push(Slot { delta, offset, length });
        segment.live += 1;
        self.pending += 1;
        self.pending_bytes += u64::from(length);
    }

    /// A segment has grown.
    pub fn grow(&mut self, sequence: Sequence, bytes: u64) {
        if let Some(segment) = self.segments.get_mut(&sequence) {
            segment.bytes += bytes;
            self.bytes += bytes;
        }
    }

    /// Marks were written into a segment.
    pub fn spoke(&mut self, sequence: Sequence, marks: &[Noted]) {
        let mut spoken = BTreeSet::new();
        for mark in marks {
            let (from, to) = match mark {
                Noted::Done { from, to } => (from, to),
                Noted::Delivered { position, .. } => (position, position),
            };
            let (from, to) = (self.holder(*from).unwrap_or(0), self.holder(*to).unwrap_or(0));
            spoken.extend(self.segments.range(from..=to.max(from)).map(|(sequence, _)| *sequence));
        }
        spoken.remove(&sequence);
        if let Some(segment) = self.segments.get_mut(&sequence) {
            segment.speaks_of.extend(spoken);
        }
    }

    fn holder(&self, position: Position) -> Option<Sequence> {
        self.by_first.range(..=position).next_back().map(|(_, sequence)| *sequence)
    }

    /// Takes a mark in. Whether it says something new.
    pub fn mark(&mut self, mark: &Noted) -> bool {
        match mark {
            Noted::Done { from, to } => self.done(*from, *to),
            Noted::Delivered { position, exporter, part } => {
                if self.is_done(*position) {
                    return false;
                }
                let mark = Mark::Delivered { exporter: exporter.clone(), part: *part };
                let marks = self.delivered.entry(*position).or_default();
                let place = marks.binary_search(&mark);
                place.map_err(|place| marks.insert(place, mark)).is_err()
            }
        }
    }

    fn done(&mut self, from: Position, to: Position) -> bool {
        let first = self.holder(from).unwrap_or(0);
        let before = self.pending;
        for segment in self.segments.range_mut(first..).map(|(_, segment)| segment) {
            if segment.name.first > to {
                break;
            }
            let start = segment.find(from);
            let end = segment.slots.partition_point(|slot| {
                Position(segment.name.first.0 + u64::from(slot.delta())) <= to
            });
            for slot in &mut segment.slots[start..end.max(start)] {
                if !slot.done() {
                    let position = Position(segment.name.first.0 + u64::from(slot.delta));
                    slot.delta |= Slot::DONE;
                    segment.live -= 1;
                    self.pending -= 1;
                    self.pending_bytes -= u64::from(slot.length);
                    self.delivered.remove(&position);
                }
            }
        }
        self.pending < before
    }

    /// Facts of every record up to here are in a checkpoint, or nobody wants them.
    pub fn fold(&mut self, folded: Position) {
        self.folded = folded;
    }

    /// Bytes of segments that are done, and that only the lack of a checkpoint keeps.
    pub fn foldable(&self) -> u64 {
        let done = self.segments.values().filter(|s| s.live == 0 && !s.over(self.folded));
        done.map(|segment| segment.bytes).sum()
    }

    fn keeps(&self, segment: &Segment, slot: &Slot) -> bool {
        !slot.done() || segment.position(slot) > self.folded
    }

    /// Where a record lies that is kept.
    pub fn find(&self, position: Position) -> Option<(Name, u32)> {
        let segment = self.segments.get(&self.holder(position)?)?;
        let slot = segment.slot(position).filter(|slot| self.keeps(segment, slot))?;
        Some((segment.name, slot.offset))
    }

    fn is_done(&self, position: Position) -> bool {
        let segment = self.holder(position).and_then(|sequence| self.segments.get(&sequence));
        segment.and_then(|segment| segment.slot(position)).is_none_or(Slot::done)
    }

    /// The first record after a position that is kept.
    pub fn next_after(&self, position: Position) -> Option<Position> {
        let start = self.holder(position).unwrap_or_default();
        let later = |segment: &Segment| {
            let slots =
                segment.slots.get(segment.find(Position(position.0.saturating_add(1)))..)?;
            slots.iter().find(|slot| self.keeps(segment, slot)).map(|slot| segment.position(slot))
        };
        let kept = self.segments.range(start..).filter(|(_, s)| !s.over(self.folded));
        kept.map(|(_, segment)| segment).find_map(later)
    }

    /// What was delivered of a record.
    pub fn delivered(&self, position: Position) -> Vec<Mark> {
        if self.is_done(position) {
            return vec![Mark::Done];
        }
        self.delivered.get(&position).cloned().unwrap_or_default()
    }

    /// Segments before `active` that hold nothing any more, oldest first. One that would leave half
    /// of its bytes to be told again is worth more where it is.
    pub fn given_up(&self, active: Sequence) -> Vec<Sequence> {
        let before = self.segments.range(..active).filter(|(_, segment)| segment.over(self.folded));
        let worth = before.filter(|(_, segment)| self.told_again(segment) <= segment.bytes / 2);
        worth.map(|(sequence, _)| *sequence).collect()
    }

    /// At most so many bytes must be told again of what a segment speaks of.
    fn told_again(&self, segment: &Segment) -> u64 {
        /// A run of what is done, and what may have been delivered of one record.
        const RUN: usize = 17;
        const DELIVERED: usize = 64;
        let older = segment.speaks_of.iter().filter_map(|of| self.segments.get(of));
        let most = |old: &Segment| {
            let runs = (old.live + 1).min(old.slots.len() - old.live);
            (runs * RUN + old.live * DELIVERED) as u64
        };
        older.map(most).sum()
    }

    /// What must be told again before a segment goes: all that is known of the older ones that its
    /// marks speak of, as far as they are still there. One that nobody needs may stay for a while:
    /// without its marks its records would come back.
    pub fn retell(&self, sequence: Sequence) -> Vec<Noted> {
        let Some(segment) = self.segments.get(&sequence) else { return Vec::new() };
        let older = segment.speaks_of.iter().filter_map(|of| self.segments.get(of));
        let mut told = Vec::new();
        for old in older {
            told.extend(old.done_runs());
            let live = old.slots.iter().filter(|slot| !slot.done());
            for position in live.map(|slot| old.position(slot)) {
                let marks = self.delivered(position).into_iter();
                told.extend(marks.map(|mark| Noted::new(position, mark)));
            }
        }
        told
    }

    pub fn segment(&self, sequence: Sequence) -> Option<&Segment> {
        self.segments.get(&sequence)
    }

    /// Whether no record of a segment is needed any more.
    pub fn is_over(&self, sequence: Sequence) -> bool {
        self.segment(sequence).is_some_and(|segment| segment.over(self.folded))
    }

    /// Records that are not done.
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// Bytes of their entries.
    pub fn pending_bytes(&self) -> u64 {
        self.pending_bytes
    }

    /// Bytes of all segments.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
