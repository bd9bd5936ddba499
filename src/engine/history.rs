//! What scopes keep of forgotten traces: the requests that shaped them, listings above all, and
//! notes. Bounded by what it takes, for nothing else ever ends it.

use std::sync::Arc;

use super::scopes::ScopeEntry;
use super::tables::Tables;
use crate::correlate::chain::Chain;
use crate::correlate::scope::ScopeKey;
use crate::model::fact::{Definitions, FactId, ListFacts};
use crate::model::ids::Nanos;

/// What a request takes that its scope keeps, each tool that it lists, and a note, in bytes, by
/// estimate, the definitions of the tools aside.
const REQUEST: usize = 3_072;
const LISTED: usize = 1_024;
const NOTE: usize = 768;

/// What history takes, in bytes, by estimate.
#[derive(Clone, Copy, Default)]
pub struct Kept {
    pub own: usize,
    /// Tool definitions that it holds, each once; others may hold them too.
    pub definitions: usize,
}

impl Kept {
    pub fn all(self) -> usize {
        self.own + self.definitions
    }
}

fn lists(chain: &Chain) -> impl Iterator<Item = &ListFacts> {
    chain.sides().filter_map(|side| side.half.list.as_deref())
}

impl ScopeEntry {
    fn requests_kept(&self) -> impl Iterator<Item = &Arc<Chain>> {
        self.history.iter().filter_map(|(_, key)| self.controls.get(key))
    }

    fn pages_kept(&self) -> impl Iterator<Item = &Arc<Definitions>> {
        let lists = self.requests_kept().flat_map(|chain| lists(chain));
        lists.filter_map(|list| list.definitions.as_ref())
    }

    fn kept_without_definitions(&self) -> usize {
        let size = |chain: &Arc<Chain>| {
            let tools = lists(chain).map(|list| {
                let defined = list.definitions.as_ref().map_or(0, |page| page.tools.len());
                defined.max(list.tools.len())
            });
            REQUEST + LISTED * tools.sum::<usize>()
        };
        self.requests_kept().map(size).sum::<usize>() + NOTE * self.note_facts.len()
    }

    /// What would be freed by forgetting all of it, in bytes, by estimate.
    fn kept(&self) -> usize {
        let definitions = self.pages_kept().map(|page| page.size()).sum::<usize>();
        self.kept_without_definitions() + definitions
    }

    /// Forgets the oldest request that it keeps of forgotten traces. Whether there was one.
    pub(super) fn forget_oldest(&mut self) -> bool {
        let oldest = self.history.pop_first();
        oldest.is_some_and(|(_, key)| self.controls.remove(&key).is_some())
    }
}

impl Tables {
    /// What all scopes keep of forgotten traces.
    fn count_kept(&self) -> Kept {
        let scopes = || self.scopes.values();
        let mut pages: Vec<&Arc<Definitions>> = scopes().flat_map(ScopeEntry::pages_kept).collect();
        pages.sort_by_key(|page| Arc::as_ptr(page));
        pages.dedup_by_key(|page| Arc::as_ptr(page));
        Kept {
            own: scopes().map(ScopeEntry::kept_without_definitions).sum(),
            definitions: pages.into_iter().map(|page| page.size()).sum(),
        }
    }

    /// Forgets scopes without a live chain where there are too many, the longest idle first;
    /// which they were.
    pub(super) fn thin_scopes(&mut self) -> Vec<ScopeKey> {
        let over = self.scopes.len().saturating_sub(self.limits.scopes);
        let mut idle: Vec<(Nanos, ScopeKey)> = Vec::new();
        if over > 0 {
            let without = self.scopes.iter().filter(|(_, scope)| scope.is_empty());
            idle.extend(without.map(|(key, scope)| (scope.newest, key.clone())));
            idle.sort();
            idle.truncate(over);
        }
        idle.iter().for_each(|(_, key)| self.drop_scope(key));
        idle.into_iter().map(|(_, key)| key).collect()
    }

    /// History may take half of the room for facts; where it takes more, half of that leaves. Adds
    /// the scopes that left whole, and says how many requests and notes left the others.
    pub(super) fn thin_history(&mut self, scopes: &mut Vec<ScopeKey>) -> u64 {
        let most = self.limits.facts / 2;
        let mut gone = 0;
        loop {
            self.kept = self.count_kept();
            let before = scopes.len();
            let items = if self.kept.all() > most { self.shed(most / 2, scopes) } else { 0 };
            if items == 0 && scopes.len() == before {
                break;
            }
            gone += items;
        }
        self.interned.sweep();
        gone
    }

    /// Sheds history until it takes about `most` bytes: of scopes without a live chain all of it,
    /// the longest idle first; then the older half of every other, again and again.
    fn shed(&mut self, most: usize, gone: &mut Vec<ScopeKey>) -> u64 {
        let mut kept = self.kept.all();
        let mut by_age: Vec<(Nanos, ScopeKey)> =
            self.scopes.iter().map(|(key, scope)| (scope.newest, key.clone())).collect();
        by_age.sort();
        let mut items = 0;
        for (_, key) in &by_age {
            if kept <= most {
                return items;
            }
            let idle = self.scopes.get(key).filter(|scope| scope.is_empty());
            if let Some(scope) = idle {
                kept -= scope.kept().min(kept);
                self.drop_scope(key);
                gone.push(key.clone());
            }
        }
        loop {
            let before = items;
            for (_, key) in &by_age {
                if kept <= most {
                    return items;
                }
                let size = |tables: &Self| tables.scopes.get(key).map_or(0, ScopeEntry::kept);
                let was = size(self);
                items += self.halve(key);
                kept -= was.saturating_sub(size(self)).min(kept);
            }
            if items == before {
                return items;
            }
        }
    }

    /// Forgets the older half of what a scope keeps of forgotten traces; how much that was.
    fn halve(&mut self, key: &ScopeKey) -> u64 {
        let Some(scope) = self.scopes.get_mut(key) else { return 0 };
        let requests = scope.history.len().div_ceil(2);
        let mut gone = (0..requests).filter(|_| scope.forget_oldest()).count();
        let left = scope.note_facts.iter().filter(|(id, _)| !self.notes.contains_key(id));
        let mut notes: Vec<(Nanos, FactId)> = left.map(|(id, fact)| (fact.start, *id)).collect();
        notes.sort();
        notes.truncate(notes.len().div_ceil(2));
        for (_, id) in &notes {
            scope.unnote(id);
        }
        gone += notes.len();
        if gone > 0 {
            self.marks.scopes.insert(key.clone());
        }
        gone as u64
    }
}
