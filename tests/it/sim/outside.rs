//! What outlives every process: who was answered, what the backend got, and what is wrong with it.

use std::collections::{BTreeMap, BTreeSet};

use mcp_verdict::log::OutId;
use mcp_verdict::model::ids::{Digest16, Position, SpanRef};
use mcp_verdict::model::record::Verdict;

use super::scenario::{Last, Scenario, plain};

/// Part of what was accepted, or something of ours, as the backend gets it.
#[derive(Clone, Debug)]
pub enum What {
    Rest(usize),
    /// With the verdict that it names.
    Held(usize, SpanRef, Option<OutId>),
    Said(Vec<OutId>),
}

#[derive(Default)]
pub struct Outside {
    /// Exports that were acknowledged.
    pub acknowledged: BTreeSet<usize>,
    /// Positions that were given, with the export.
    given: BTreeMap<Position, usize>,
    rests: BTreeSet<usize>,
    spans: BTreeSet<(usize, SpanRef)>,
    revisions: BTreeMap<Digest16, BTreeMap<u32, Digest16>>,
    /// Content by digest, as an engine said it.
    said: BTreeMap<Digest16, Verdict>,
    pub faults: Vec<String>,
}

impl Outside {
    pub fn fault(&mut self, what: String) {
        self.faults.push(what);
    }

    pub fn acknowledge(&mut self, export: usize, position: Position) {
        self.acknowledged.insert(export);
        if self.given.insert(position, export).is_some() {
            self.fault(format!("position {} was given twice", position.0));
        }
    }

    /// An engine says a verdict: it is known by its digest from now on.
    pub fn note(&mut self, verdict: &Verdict) {
        self.said.insert(verdict.digest(), verdict.clone());
    }

    pub fn deliver(&mut self, what: &What) {
        match what {
            What::Rest(export) => drop(self.rests.insert(*export)),
            What::Held(export, span, named) => {
                self.spans.insert((*export, *span));
                named.iter().for_each(|id| self.deliver_verdict(id));
            }
            What::Said(ids) => ids.iter().for_each(|id| self.deliver_verdict(id)),
        }
    }

    fn deliver_verdict(&mut self, id: &OutId) {
        let known = self.revisions.entry(id.chain).or_default().insert(id.revision, id.digest);
        if known.is_some_and(|known| known != id.digest) {
            self.fault(format!("{} revision {} has two contents", id.chain, id.revision));
        }
    }

    /// Everything that was promised has come.
    pub fn check_delivered(&mut self, scenario: &Scenario, owed: &[(bool, Vec<SpanRef>)]) {
        for (export, (rest, held)) in owed.iter().enumerate() {
            if !self.acknowledged.contains(&export) {
                self.faults.push(format!("export {export} was never taken"));
            } else if *rest && !self.rests.contains(&export) {
                self.faults.push(format!("export {export} never came"));
            } else if let Some(span) = held.iter().find(|s| !self.spans.contains(&(export, **s))) {
                self.faults.push(format!("export {export}: span {span:?} never came"));
            }
        }
        if owed.len() != scenario.exports.len() {
            self.faults.push("not every export was looked at".into());
        }
    }

    /// Revisions have no gap, and the last of each chain is what replay says of the whole, where
    /// all of it was known.
    pub fn check_verdicts(&mut self, scenario: &Scenario, jumped: bool, whole: bool) {
        let mut last = Last::new();
        for (id, revisions) in &self.revisions {
            let gap = revisions.keys().zip(1..).find(|(revision, place)| **revision != *place);
            if let Some((revision, place)) = gap {
                self.faults.push(format!("{id}: revision {revision} comes as number {place}"));
            }
            let Some(verdict) = revisions.values().next_back().and_then(|d| self.said.get(d))
            else {
                continue;
            };
            if verdict.operator.merged_into.is_none() {
                last.insert(*id, plain(verdict.clone()));
            }
        }
        let ids: BTreeSet<Digest16> = last.keys().chain(scenario.want.keys()).copied().collect();
        for id in ids {
            if !whole || jumped && scenario.timed.contains(&id) {
                continue;
            }
            let (got, want) = (last.get(&id), scenario.want.get(&id));
            if got != want {
                let differ = difference(got, want);
                self.faults.push(format!("{id} ends otherwise than in replay: {differ}"));
            }
        }
    }
}

fn difference(got: Option<&Verdict>, want: Option<&Verdict>) -> String {
    let (Some(got), Some(want)) = (got, want) else {
        return format!("said {}, replayed {}", got.is_some(), want.is_some());
    };
    let fields = |verdict: &Verdict| serde_json::to_value(verdict).unwrap();
    let (got, want) = (fields(got), fields(want));
    let keys = got.as_object().unwrap().keys().filter(|key| got[*key] != want[*key]);
    keys.map(|key| format!("{key}: {} / {}", got[key], want[key])).collect::<Vec<_>>().join("; ")
}
