//! Spans that wait for their verdict: copied out of their export, so that they keep none alive.
//!
//! Promises: a kept span leaves once, by release, by the byte limit, or at the end; which position
//! it came from is never lost.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::model::fact::HeldSpan;
use crate::model::ids::{Position, SpanRef};
use crate::wire::regroup;

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

/// All held spans of the process.
pub struct Hold {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    bytes: usize,
    pages: BTreeMap<Position, Page>,
    /// Where each span is kept; a span that came twice is kept twice.
    places: HashMap<SpanRef, Vec<Position>>,
    origins: HashSet<Origin>,
    /// How many origins make it worth to look for unused ones.
    prune_at: usize,
    /// Resources of spans seen lately, also of those that left: events name them.
    resources: HashMap<SpanRef, Origin>,
    seen: VecDeque<SpanRef>,
}

/// The held spans of one export, in one buffer.
struct Page {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

struct Entry {
    at: SpanRef,
    range: Range<usize>,
    resource: Origin,
    scope: Origin,
}

/// Spans whose resource is remembered.
const REMEMBERED: usize = 100_000;

impl Entry {
    /// What an entry takes beside its bytes.
    const OVERHEAD: usize = 160;
}

impl Hold {
    /// `limit`: bytes that may be held.
    pub fn new(limit: usize) -> Self {
        Hold { limit, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that are held.
    pub fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// Copies spans out of a traces export. Returns those that must leave un-enriched, oldest
    /// first, because the limit is met.
    pub fn keep(&self, position: Position, export: &[u8], held: &[HeldSpan]) -> Vec<Leaving> {
        let mut wanted: Vec<HeldSpan> = held.to_vec();
        wanted.sort_by_key(|held| held.index);
        wanted.dedup_by_key(|held| held.index);
        let mut next = wanted.iter().peekable();
        let mut state = self.state();
        let mut page = Page { bytes: Vec::new(), entries: Vec::with_capacity(wanted.len()) };
        for item in regroup::items(export) {
            let Some(span) = next.next_if(|held| held.index == item.index) else { continue };
            let start = page.bytes.len();
            page.bytes.extend_from_slice(item.bytes);
            let resource = state.origin(&item.resource.origin());
            state.remember(span.at, resource.clone());
            page.entries.push(Entry {
                at: span.at,
                range: start..page.bytes.len(),
                resource,
                scope: state.origin(&item.scope.origin()),
            });
        }
        page.bytes.shrink_to_fit();
        state.add(position, page);
        let mut evicted = Vec::new();
        while state.bytes > self.limit {
            let Some((oldest, _)) = state.pages.first_key_value() else { break };
            let oldest = *oldest;
            evicted.extend(state.take_page(oldest));
        }
        evicted
    }

    /// Notes the resources of spans that left already.
    pub fn remember(&self, export: &[u8], held: &[HeldSpan]) {
        let mut state = self.state();
        for item in regroup::items(export) {
            for span in held.iter().filter(|held| held.index == item.index) {
                let resource = state.origin(&item.resource.origin());
                state.remember(span.at, resource);
            }
        }
    }

    /// Takes a span out, from every export that brought it.
    pub fn release(&self, at: SpanRef) -> Vec<Leaving> {
        let mut state = self.state();
        let places = state.places.remove(&at).unwrap_or_default();
        places.into_iter().flat_map(|position| state.take(position, at)).collect()
    }

    /// Takes everything out.
    pub fn release_all(&self) -> Vec<Leaving> {
        let mut state = self.state();
        let positions: Vec<Position> = state.pages.keys().copied().collect();
        positions.into_iter().flat_map(|position| state.take_page(position)).collect()
    }

    /// The resource of a span that was held lately.
    pub fn resource(&self, at: SpanRef) -> Option<Origin> {
        self.state().resources.get(&at).cloned()
    }
}

impl State {
    fn origin(&mut self, bytes: &[u8]) -> Origin {
        if let Some(known) = self.origins.get(bytes) {
            return known.clone();
        }
        if self.origins.len() >= self.prune_at {
            self.prune();
        }
        let origin: Origin = bytes.into();
        self.bytes += origin.len();
        self.origins.insert(origin.clone());
        origin
    }

    fn remember(&mut self, at: SpanRef, resource: Origin) {
        if self.resources.insert(at, resource).is_none() {
            self.seen.push_back(at);
        }
        while self.seen.len() > REMEMBERED {
            let Some(oldest) = self.seen.pop_front() else { return };
            self.resources.remove(&oldest);
        }
    }

    /// Origins that nothing names any more go, often enough to stay within twice of what is needed.
    fn prune(&mut self) {
        let mut freed = 0;
        self.origins.retain(|origin| {
            let used = Arc::strong_count(origin) > 1;
            freed += if used { 0 } else { origin.len() };
            used
        });
        self.bytes -= freed;
        self.prune_at = 2 * self.origins.len().max(512);
    }

    fn add(&mut self, position: Position, page: Page) {
        if page.entries.is_empty() {
            return;
        }
        self.bytes += page.cost();
        for entry in &page.entries {
            let places = self.places.entry(entry.at).or_default();
            if places.last() != Some(&position) {
                places.push(position);
            }
        }
        self.pages.insert(position, page);
    }

    fn take(&mut self, position: Position, at: SpanRef) -> Vec<Leaving> {
        let Some(mut page) = self.pages.remove(&position) else { return Vec::new() };
        self.bytes -= page.cost();
        let (gone, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut page.entries).into_iter().partition(|entry| entry.at == at);
        let leaving = gone.into_iter().map(|entry| entry.leave(position, &page.bytes)).collect();
        page.entries = left;
        if !page.entries.is_empty() {
            page.compact();
            self.bytes += page.cost();
            self.pages.insert(position, page);
        }
        leaving
    }

    fn take_page(&mut self, position: Position) -> Vec<Leaving> {
        let Some(page) = self.pages.remove(&position) else { return Vec::new() };
        self.bytes -= page.cost();
        for entry in &page.entries {
            if let Some(places) = self.places.get_mut(&entry.at) {
                places.retain(|place| *place != position);
                if places.is_empty() {
                    self.places.remove(&entry.at);
                }
            }
        }
        let bytes = page.bytes;
        page.entries.into_iter().map(|entry| entry.leave(position, &bytes)).collect()
    }
}

impl Page {
    fn cost(&self) -> usize {
        self.bytes.capacity() + self.entries.len() * Entry::OVERHEAD
    }

    /// Moves what is left together once half of the buffer is dead.
    fn compact(&mut self) {
        let live: usize = self.entries.iter().map(|entry| entry.range.len()).sum();
        if live * 2 > self.bytes.capacity() {
            return;
        }
        let mut bytes = Vec::with_capacity(live);
        for entry in &mut self.entries {
            let start = bytes.len();
            bytes.extend_from_slice(&self.bytes[entry.range.clone()]);
            entry.range = start..bytes.len();
        }
        self.bytes = bytes;
    }
}

impl Entry {
    fn leave(self, position: Position, page: &[u8]) -> Leaving {
        Leaving {
            position,
            at: self.at,
            resource: self.resource,
            scope: self.scope,
            span: page[self.range].to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::{SpanId, TraceId};
    use crate::wire::fields::put_bytes_field;

    fn at(span: u8) -> SpanRef {
        SpanRef { trace: TraceId([1; 16]), span: SpanId([span; 8]) }
    }

    /// One resource named "r" with a scope of these spans, each with a name of 100 bytes.
    fn export(spans: &[u8]) -> Vec<u8> {
        let mut scope = Vec::new();
        for span in spans {
            let mut body = Vec::new();
            put_bytes_field(&mut body, 2, &[*span; 8]);
            put_bytes_field(&mut body, 5, &[b'x'; 100]);
            put_bytes_field(&mut scope, 2, &body);
        }
        let (mut resource, mut out) = (Vec::new(), Vec::new());
        put_bytes_field(&mut resource, 1, b"");
        put_bytes_field(&mut resource, 2, &scope);
        put_bytes_field(&mut resource, 3, b"r");
        put_bytes_field(&mut out, 1, &resource);
        out
    }

    fn held(spans: &[(u8, usize)]) -> Vec<HeldSpan> {
        spans.iter().map(|(span, index)| HeldSpan { at: at(*span), index: *index }).collect()
    }

    fn names(leaving: &[Leaving]) -> Vec<(u64, u8)> {
        leaving.iter().map(|l| (l.position.0, l.at.span.0[0])).collect()
    }

    #[test]
    fn a_span_leaves_once_from_every_export_that_brought_it() {
        let hold = Hold::new(1 << 20);
        let both = held(&[(1, 0), (2, 1)]);
        assert!(hold.keep(Position(1), &export(&[1, 2, 3]), &both).is_empty());
        assert!(hold.keep(Position(2), &export(&[1]), &held(&[(1, 0)])).is_empty());
        let left = hold.release(at(1));
        assert_eq!(names(&left), [(1, 1), (2, 1)]);
        assert_eq!(&left[0].span[2..10], &[1; 8]);
        assert!(left[0].resource.ends_with(b"r"));
        assert!(hold.release(at(1)).is_empty() && hold.release(at(3)).is_empty());
        assert_eq!(names(&hold.release_all()), [(1, 2)]);
        assert!(hold.resource(at(1)).is_some(), "it is remembered");
        assert!(hold.bytes() < 100, "origins alone are left, not {}", hold.bytes());
    }

    #[test]
    fn the_oldest_leave_at_the_limit() {
        let hold = Hold::new(1_000);
        let mut evicted = Vec::new();
        for number in 0..20 {
            let export = export(&[number]);
            evicted.extend(hold.keep(Position(number.into()), &export, &held(&[(number, 0)])));
            assert!(hold.bytes() <= 1_000);
        }
        assert_eq!(evicted[0].position, Position(0));
        assert_eq!(evicted.len() + hold.release_all().len(), 20);
    }
}
