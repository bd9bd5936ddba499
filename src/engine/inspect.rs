//! A look into one judgement: every fact of a chain and every rule that fired. `explain` prints it; it
//! holds no logic of its own, it judges again with a witness.

use std::sync::Arc;

use super::records::order;
use super::replay::settled;
use super::tables::{ChainEntry, Now, Tables};
use crate::judge::Note;
use crate::model::case::Ending;
use crate::model::fact::{Fact, Sighting};
use crate::model::ids::SpanRef;
use crate::model::policy::Policy;
use crate::model::record::Verdict;

/// One chain with what its verdict rests on.
#[derive(Clone, PartialEq, Debug)]
pub struct Inspected {
    /// As its operation's other attempts left it.
    pub verdict: Verdict,
    pub ending: Ending,
    /// Which rows, rules and facts decided, in the order in which they did.
    pub notes: Vec<Note>,
    /// Every record of its halves, its evidence and the notifications of its scope, by time.
    pub facts: Vec<Arc<Fact>>,
}

/// All chains of recorded exports, in the order of judgment.md §8.
pub fn inspect(sightings: Vec<Sighting>, policy: &Arc<Policy>) -> Vec<Inspected> {
    let tables = settled(sightings, policy);
    let now = Now { event: tables.newest, live: false };
    let chains = tables.chains.iter();
    let mut all: Vec<Inspected> =
        chains.filter_map(|(key, entry)| inspected(&tables, *key, entry, now)).collect();
    all.sort_by_key(|one| order(&one.verdict));
    all
}

fn inspected(tables: &Tables, key: SpanRef, entry: &ChainEntry, now: Now) -> Option<Inspected> {
    let verdict = entry.verdict.as_deref()?.clone();
    let ending = entry.ending?;
    let case = tables.case(key, entry, now);
    let mut notes = Vec::new();
    crate::judge::verdict(&case, ending, &mut notes);
    Some(Inspected { verdict, ending, notes, facts: facts(tables, key, entry) })
}

fn facts(tables: &Tables, key: SpanRef, entry: &ChainEntry) -> Vec<Arc<Fact>> {
    let own = entry.chain.sides().flat_map(|side| side.facts.iter().cloned());
    let evidence = entry.chain.evidence.iter().cloned();
    let placed = tables.placed.get(&key).into_iter().flatten();
    let placed = placed.filter_map(|id| tables.unplaced.get(id)).cloned();
    let scope = tables.scopes.get(&entry.scope);
    let notes = scope.into_iter().flat_map(|scope| scope.note_facts.values().cloned());
    let mut all: Vec<Arc<Fact>> =
        own.chain(evidence).chain(placed).chain(tables.keyed_evidence(key)).chain(notes).collect();
    all.sort_by_key(|fact| (fact.start, fact.id));
    all.dedup_by_key(|fact| fact.id);
    all
}
