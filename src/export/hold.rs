//! Spans that wait for their verdict: copied out of their export, so that they keep none alive.
//!
//! Promises: a kept span leaves once, by release, by the byte limit, or at the end; which position
//! it came from is never lost.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque, hash_map};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::page::{Entry, Page};
pub use super::page::{Leaving, Origin};
use crate::model::fact::HeldSpan;
use crate::model::ids::{Position, SpanRef};
use crate::wire::regroup;

/// All held spans of the process.
pub struct Hold {
    limit: usize,
    remembered: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    bytes: usize,
    pages: HashMap<Position, Page>,
    /// Pages by age: those that are gone may still stand here.
    ages: VecDeque<Position>,
    places: HashMap<SpanRef, Place>,
    origins: HashSet<Origin>,
    /// How many origins make it worth to look for unused ones.
    prune_at: usize,
    /// Resources of spans seen lately, also of those that left: events name them.
    resources: HashMap<SpanRef, Origin>,
    seen: VecDeque<SpanRef>,
}

/// Where a span is kept.
struct Place {
    position: Position,
    entry: usize,
    /// A span that came again is kept again.
    again: Option<Box<Place>>,
}

impl Hold {
    /// `limit`: bytes that may be held. `remembered`: spans whose resource stays known.
    pub fn new(limit: usize, remembered: usize) -> Self {
        Hold { limit, remembered, state: Mutex::default() }
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
        let mut page = Page::default();
        page.entries.reserve_exact(wanted.len());
        let (mut resources, mut scopes) = (Nearby::default(), Nearby::default());
        for item in regroup::items(export) {
            let Some(span) = next.next_if(|held| held.index == item.index) else { continue };
            let start = page.bytes.len();
            page.bytes.extend_from_slice(item.bytes);
            let resource =
                resources.origin(item.resource.bytes, || item.resource.origin(), &mut state);
            let scope = scopes.origin(item.scope.bytes, || item.scope.origin(), &mut state);
            state.remember(span.at, resource.clone(), self.remembered);
            let range = start..page.bytes.len();
            page.add(Entry { at: span.at, range, resource, scope });
        }
        page.bytes.shrink_to_fit();
        state.add(position, page);
        let mut evicted = Vec::new();
        while state.bytes > self.limit {
            let Some(oldest) = state.ages.pop_front() else { break };
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
                state.remember(span.at, resource, self.remembered);
            }
        }
    }

    /// Takes a span out, from every export that brought it, the first of them first.
    pub fn release(&self, at: SpanRef) -> Vec<Leaving> {
        let mut state = self.state();
        let mut next = state.places.remove(&at).map(Box::new);
        let mut leaving = Vec::new();
        while let Some(place) = next {
            leaving.extend(state.take(place.position, place.entry));
            next = place.again;
        }
        leaving
    }

    /// Takes everything out, the oldest first.
    pub fn release_all(&self) -> Vec<Leaving> {
        let mut state = self.state();
        let pages = std::mem::take(&mut state.ages);
        pages.into_iter().flat_map(|position| state.take_page(position)).collect()
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

    fn remember(&mut self, at: SpanRef, resource: Origin, most: usize) {
        if self.resources.insert(at, resource).is_none() {
            self.seen.push_back(at);
        }
        while self.seen.len() > most {
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
        if page.left == 0 {
            return;
        }
        self.bytes += page.cost();
        for (entry, held) in page.entries.iter().enumerate() {
            let Some(held) = held else { continue };
            let place = Place { position, entry, again: None };
            match self.places.entry(held.at) {
                hash_map::Entry::Vacant(free) => drop(free.insert(place)),
                hash_map::Entry::Occupied(known) => {
                    let mut last = &mut known.into_mut().again;
                    while let Some(place) = last {
                        last = &mut place.again;
                    }
                    *last = Some(Box::new(place));
                }
            }
        }
        self.pages.insert(position, page);
        self.ages.push_back(position);
        if self.ages.len() > 2 * self.pages.len().max(512) {
            let pages = &self.pages;
            self.ages.retain(|position| pages.contains_key(position));
        }
    }

    fn take(&mut self, position: Position, entry: usize) -> Option<Leaving> {
        let page = self.pages.get_mut(&position)?;
        self.bytes -= page.cost();
        let leaving = page.take(position, entry);
        match page.left {
            0 => drop(self.pages.remove(&position)),
            _ => self.bytes += page.cost(),
        }
        leaving
    }

    fn take_page(&mut self, position: Position) -> Vec<Leaving> {
        let Some(mut page) = self.pages.remove(&position) else { return Vec::new() };
        self.bytes -= page.cost();
        let mut leaving = Vec::with_capacity(page.left);
        for held in std::mem::take(&mut page.entries).into_iter().flatten() {
            self.forget(held.at, position);
            leaving.push(held.leave(position, &page.bytes));
        }
        leaving
    }

    /// A span is not kept any more where its page was.
    fn forget(&mut self, at: SpanRef, position: Position) {
        let mut next = self.places.remove(&at).map(Box::new);
        let mut kept = None;
        let mut last = &mut kept;
        while let Some(mut place) = next {
            next = place.again.take();
            if place.position != position {
                last = &mut last.insert(place).again;
            }
        }
        self.places.extend(kept.map(|place| (at, *place)));
    }
}

/// The origin of the item before: neighbours mostly share theirs, and to look it up means to build
/// it.
#[derive(Default)]
struct Nearby<'a> {
    known: Option<(&'a [u8], Origin)>,
}

impl<'a> Nearby<'a> {
    fn origin(
        &mut self,
        of: &'a [u8],
        bytes: impl FnOnce() -> Cow<'a, [u8]>,
        state: &mut State,
    ) -> Origin {
        match &self.known {
            Some((at, origin)) if std::ptr::eq(*at, of) => origin.clone(),
            _ => {
                let origin = state.origin(&bytes());
                self.known = Some((of, origin.clone()));
                origin
            }
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
        let hold = Hold::new(1 << 20, 100);
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
        let hold = Hold::new(1_000, 100);
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
