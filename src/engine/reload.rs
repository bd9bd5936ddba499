//! A policy that changes while the engine runs: it judges the requests first seen after it; those
//! that were known keep the one they were judged by, whatever is learned of them later.

use std::sync::Arc;

use super::tables::Tables;
use crate::correlate::chain::Chain;
use crate::model::ids::{SpanId, SpanRef, TraceId};
use crate::model::policy::{Policy, Rule};

/// The policy that a request was first judged by, and how many reloads came before it.
pub type Elder = (u64, Arc<Policy>);

impl Tables {
    /// From now on this policy. What windows of correlation it sets (`clock_skew`, `settle`), it
    /// sets for everybody.
    pub fn reload(&mut self, policy: Arc<Policy>) {
        let requests = self.traces.values().flat_map(|trace| &trace.requests);
        for key in requests.map(|request| request.key()) {
            self.elders.entry(key).or_insert_with(|| (self.reloads, self.policy.clone()));
        }
        self.reloads += 1;
        self.drifting.extend(self.references.keys().cloned());
        self.rules.extend(policy.numbered_rules().map(|(number, rule)| (number, rule.clone())));
        self.policy = policy;
    }

    /// The policy of a chain: that of whichever of its records was known first.
    pub(super) fn policy_of(&self, chain: &Chain) -> &Policy {
        if self.elders.is_empty() {
            return &self.policy;
        }
        let records = chain.sides().flat_map(|side| &side.facts).map(|fact| fact.id.at);
        let known = records.filter_map(|at| self.elders.get(&at));
        known.min_by_key(|(reloads, _)| *reloads).map_or(&*self.policy, |(_, policy)| policy)
    }

    /// An evidence rule by its number, of this policy or an earlier one.
    pub(super) fn rule(&self, number: u16) -> Option<&Rule> {
        self.rules.get(&number)
    }

    /// A trace that is forgotten is judged by nothing any more.
    pub(super) fn forget_elders(&mut self, trace: TraceId) {
        if self.elders.is_empty() {
            return;
        }
        let at = |byte| SpanRef { trace, span: SpanId([byte; 8]) };
        let gone: Vec<SpanRef> = self.elders.range(at(0)..=at(0xff)).map(|(key, _)| *key).collect();
        for key in gone {
            self.elders.remove(&key);
        }
    }
}
