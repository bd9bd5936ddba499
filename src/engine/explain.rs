//! What chains rest on, for people: the same tables as `replay`, with a witness at the judge's
//! side.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::live::Engine;
use super::replay::settled;
use super::tables::{ChainEntry, Now, Tables};
use super::whatif::{WhatIf, what_ifs};
use crate::correlate::scope::ScopeKey;
use crate::correlate::side::Side;
use crate::judge::Note;
use crate::model::case::{Ending, Exchange};
use crate::model::fact::{Fact, Sighting};
use crate::model::ids::{Arrival, Digest16, Nanos, SpanRef};
use crate::model::policy::Policy;
use crate::model::record::Verdict;

/// What a record is to the chain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    Asking,
    Answering,
    /// Effect or outcome evidence placed on the request.
    Evidence,
    /// A notification of its scope while it was in flight.
    Notification,
}

/// One chain with everything its verdict rests on.
#[derive(Clone, PartialEq, Debug)]
pub struct Explained {
    pub verdict: Verdict,
    /// The verdict before the other attempts of its operation were looked at, where it differs.
    pub alone: Option<Verdict>,
    /// The request as judged: halves, HTTP, cancel, progress, evidence.
    pub exchange: Exchange,
    /// Every record behind it, asking half first.
    pub facts: Vec<(Role, Arc<Fact>)>,
    /// What was decided, in order, and by which rule.
    pub notes: Vec<Note>,
    /// The newest listing of its scope before it: where evidence about the catalog would stand.
    pub listing: Option<SpanRef>,
    /// The negotiation of its scope before it.
    pub negotiation: Option<SpanRef>,
}

/// Explains every chain whose final verdict is wanted, in the order of judgment.md §8.
pub fn explain(
    sightings: Vec<Sighting>,
    policy: &Arc<Policy>,
    wanted: &dyn Fn(&Verdict) -> bool,
) -> Vec<Explained> {
    let tables = settled(sightings, policy);
    let now = Now { event: tables.newest, live: false };
    let mut around: BTreeMap<&ScopeKey, Around> = BTreeMap::new();
    let mut found = Vec::new();
    for (key, entry) in &tables.chains {
        if entry.verdict.as_deref().is_some_and(wanted) {
            let around = around.entry(&entry.scope).or_insert_with(|| tables.around(&entry.scope));
            found.extend(tables.explained(*key, entry, around, now));
        }
    }
    found.sort_by_key(|explained: &Explained| super::records::order(&explained.verdict));
    found
}

/// What stands around the requests of a scope, each in the order of time.
struct Around {
    listings: Vec<(Nanos, SpanRef)>,
    negotiations: Vec<(Nanos, SpanRef)>,
    notes: Vec<Arc<Fact>>,
}

/// The last that began no later.
fn last(all: &[(Nanos, SpanRef)], start: Nanos) -> Option<SpanRef> {
    let before = all.partition_point(|(time, _)| *time <= start);
    all[..before].last().map(|(_, at)| *at)
}

impl Engine {
    /// What the verdict of a chain rests on, with what one more piece of evidence would make of it,
    /// while its facts are remembered.
    pub fn explained(&self, id: &Digest16, now: Arrival) -> Option<(Explained, Vec<WhatIf>)> {
        let key = self.sent.get(id)?.key;
        let entry = self.tables.chains.get(&key)?;
        let now = Now { event: now.wall.saturating_sub(self.tables.policy.clock_skew), live: true };
        let around = self.tables.around(&entry.scope);
        let explained = self.tables.explained(key, entry, &around, now)?;
        let case = self.tables.case(key, entry, explained.exchange.clone(), now);
        let ending = entry.ending.unwrap_or(Ending::Unobserved);
        // Where other attempts decide, one span's evidence may not.
        let alone = explained.alone.is_none();
        let what_ifs = alone.then(|| what_ifs(&case, ending, &explained.verdict));
        Some((explained, what_ifs.unwrap_or_default()))
    }
}

impl Tables {
    fn around(&self, key: &ScopeKey) -> Around {
        let scope = self.scopes.get(key);
        let of = |methods: &[&str]| {
            let controls = scope.into_iter().flat_map(|scope| scope.controls());
            let fit = controls.filter(|chain| methods.contains(&chain.method().as_str()));
            let mut found: Vec<(Nanos, SpanRef)> =
                fit.map(|chain| (chain.start(), chain.key())).collect();
            found.sort_unstable();
            found
        };
        let notes = scope.into_iter().flat_map(|scope| scope.note_facts.values());
        let mut notes: Vec<Arc<Fact>> = notes.cloned().collect();
        notes.sort_by_key(|fact| (fact.start, fact.id));
        Around {
            listings: of(&["tools/list"]),
            negotiations: of(&["initialize", "server/discover"]),
            notes,
        }
    }

    fn explained(
        &self,
        key: SpanRef,
        entry: &ChainEntry,
        around: &Around,
        now: Now,
    ) -> Option<Explained> {
        let start = entry.chain.start();
        let verdict = entry.verdict.as_deref()?.clone();
        let case = self.case(key, entry, self.exchange(key, entry), now);
        let mut notes: Vec<Note> = Vec::new();
        let ending = entry.ending.unwrap_or(Ending::Unobserved);
        let alone = crate::judge::verdict(&case, ending, &mut notes);
        Some(Explained {
            alone: Some(alone).filter(|alone| alone.state != verdict.state),
            verdict,
            exchange: case.exchange,
            facts: self.behind(key, entry, around),
            notes,
            listing: last(&around.listings, start),
            negotiation: last(&around.negotiations, start),
        })
    }

    fn behind(&self, key: SpanRef, entry: &ChainEntry, around: &Around) -> Vec<(Role, Arc<Fact>)> {
        let chain = &entry.chain;
        let of = |side: &Option<Arc<Side>>, role: Role| -> Vec<_> {
            side.iter().flat_map(|side| &side.facts).map(|fact| (role, fact.clone())).collect()
        };
        let placed = self.placed.get(&key).into_iter().flatten();
        let placed = placed.filter_map(|id| self.unplaced.get(id)).cloned();
        let evidence = chain.evidence.iter().cloned().chain(placed).chain(self.keyed_evidence(key));
        let mut facts = of(&chain.asking, Role::Asking);
        facts.extend(of(&chain.answering, Role::Answering));
        facts.extend(evidence.map(|fact| (Role::Evidence, fact)));
        let first = around.notes.partition_point(|fact| fact.start < chain.start());
        let meanwhile = around.notes[first..].iter().take_while(|fact| fact.start <= chain.stop());
        facts.extend(meanwhile.map(|fact| (Role::Notification, fact.clone())));
        facts.sort_by_key(|(role, fact)| (*role, fact.start, fact.id));
        facts.dedup_by_key(|(role, fact)| (*role, fact.id));
        facts
    }
}
