//! Evidence rules tried on a recording: what each would have matched, of which calls it would have
//! spoken, and which verdicts it would have changed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};

use super::observed::missing;
use super::recording::{Judged, Recording, Trial, counts};
use crate::engine::{self, Explained};
use crate::model::fact::{Fact, FactId, Origin};
use crate::model::ids::{Digest16, Name};
use crate::model::policy::Rule;
use crate::model::words::{Layer, State};

/// What a rule did, or several together.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Tried {
    /// Spans that look as the rule says.
    pub matched: u64,
    /// Of those, spans that stand at no tool call.
    pub without_call: u64,
    /// Spans that stand at a call which `when` does not admit.
    pub refused: u64,
    /// Calls that it speaks of.
    pub calls: Vec<Called>,
    /// Of the calls that it speaks of, those that stay `unverified`, by each layer they still lack.
    pub still_lacking: BTreeMap<Layer, u64>,
    /// Verdicts that change, by what they were and would be.
    pub changes: Vec<Moved>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Called {
    pub server: Name,
    pub tool: Option<Name>,
    pub calls: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Moved {
    pub from: State,
    pub to: State,
    #[serde(serialize_with = "shown")]
    pub chains: Vec<Digest16>,
}

fn shown<S: Serializer>(chains: &[Digest16], s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(chains.iter().map(ToString::to_string))
}

/// Each rule by itself, beside those that are configured.
pub fn try_out(recording: &Recording, rules: &[Rule]) -> Vec<Tried> {
    let before = recording.judge(&Trial::default());
    let one = |rule: &Rule| tried(recording, &before, std::slice::from_ref(rule));
    rules.iter().map(one).collect()
}

/// All of them together.
pub fn together(recording: &Recording, rules: &[Rule]) -> Tried {
    tried(recording, &recording.judge(&Trial::default()), rules)
}

fn tried(recording: &Recording, before: &Judged, rules: &[Rule]) -> Tried {
    let trial = Trial { rules: rules.to_vec(), ..Trial::default() };
    let (sightings, policy) = recording.sighted(&trial);
    let first = recording.policy.evidence.len();
    let ours = |origin: Origin| matches!(origin, Origin::Rule(at) if usize::from(at) >= first);
    let facts = sightings.iter().flat_map(|sighting| &sighting.facts);
    let matched: BTreeSet<FactId> =
        facts.filter(|fact| speaks(fact, &ours)).map(|fact| fact.id).collect();
    let explained = engine::explain(sightings, &policy, &counts);
    let placed = |call: &Explained| -> Vec<FactId> {
        let facts = call.facts.iter().map(|(_, fact)| fact);
        facts.filter(|fact| matched.contains(&fact.id)).map(|fact| fact.id).collect()
    };
    let (mut at_calls, mut spoken) = (BTreeSet::new(), BTreeSet::new());
    let mut calls: BTreeMap<(Name, Option<Name>), u64> = BTreeMap::new();
    let mut still_lacking = BTreeMap::new();
    for call in &explained {
        let here = placed(call);
        at_calls.extend(here.iter().copied());
        let x = &call.exchange;
        let effects = x.effects.iter().map(|fact| fact.from);
        if effects.chain(x.outcomes.iter().map(|fact| fact.from)).any(ours) {
            spoken.extend(here);
            let key = (call.verdict.server.clone(), call.verdict.tool.clone());
            *calls.entry(key).or_default() += 1;
            if call.verdict.state == State::Unverified {
                for layer in missing(&policy, &call.verdict) {
                    *still_lacking.entry(layer).or_default() += 1;
                }
            }
        }
    }
    let calls = calls.into_iter().map(|((server, tool), calls)| Called { server, tool, calls });
    let after = explained.iter().map(|call| (call.verdict.id, call.verdict.state));
    Tried {
        matched: matched.len() as u64,
        without_call: (matched.len() - at_calls.len()) as u64,
        refused: (at_calls.len() - spoken.len()) as u64,
        calls: calls.collect(),
        still_lacking,
        changes: moved(before, &after.collect()),
    }
}

fn speaks(fact: &Fact, ours: &dyn Fn(Origin) -> bool) -> bool {
    let effects = fact.evidence.effects.iter().map(|effect| effect.from);
    effects.chain(fact.evidence.outcomes.iter().map(|outcome| outcome.from)).any(ours)
}

fn moved(before: &Judged, after: &BTreeMap<Digest16, State>) -> Vec<Moved> {
    let mut moved: BTreeMap<(State, State), Vec<Digest16>> = BTreeMap::new();
    for (id, verdict) in before {
        if let Some(to) = after.get(id).filter(|to| **to != verdict.state) {
            moved.entry((verdict.state, *to)).or_default().push(*id);
        }
    }
    moved.into_iter().map(|((from, to), chains)| Moved { from, to, chains }).collect()
}
