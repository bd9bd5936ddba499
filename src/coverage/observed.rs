//! What was seen of each server's tools: layers by call, and the evidence behind them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::recording::{Recording, counts};
use crate::engine::{Explained, Role};
use crate::model::fact::Origin;
use crate::model::ids::{Digest16, Name, SpanRef};
use crate::model::policy::Policy;
use crate::model::record::Verdict;
use crate::model::words::{Layer, Rung, State};

/// One layer over the calls of a tool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LayerSeen {
    pub layer: Layer,
    /// Calls of which something was seen of it, passed or failed.
    pub observed: u64,
    /// Calls that it does not apply to.
    pub not_applicable: u64,
    /// What was seen, and of how many calls.
    pub evidence: BTreeMap<String, u64>,
}

/// The calls of one tool at one server.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Tool {
    pub server: Name,
    /// `null` where the recordings do not name it.
    pub tool: Option<Name>,
    pub calls: u64,
    pub unverified: u64,
    pub states: BTreeMap<State, u64>,
    pub layers: Vec<LayerSeen>,
    /// The unverified ones, for the advice.
    #[serde(skip)]
    pub lacking: Vec<Lacking>,
}

/// A call that is `unverified`, and what it lacks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lacking {
    pub chain: Digest16,
    /// The span that would carry what is added.
    pub at: SpanRef,
    /// Layers that it needs, and those of them that nobody observed.
    pub requires: Vec<Layer>,
    pub missing: Vec<Layer>,
    pub version: Option<Name>,
}

/// Every tool that was called, the most unverified calls first.
pub fn tools(recording: &Recording) -> Vec<Tool> {
    let explained = recording.explain(&counts);
    let mut tools: BTreeMap<(Name, Option<Name>), Tool> = BTreeMap::new();
    for call in &explained {
        let verdict = &call.verdict;
        let key = (verdict.server.clone(), verdict.tool.clone());
        let tool = tools.entry(key).or_insert_with_key(|(server, tool)| Tool {
            server: server.clone(),
            tool: tool.clone(),
            calls: 0,
            unverified: 0,
            states: BTreeMap::new(),
            layers: Layer::ALL.iter().map(|layer| nothing(*layer)).collect(),
            lacking: Vec::new(),
        });
        tool.calls += 1;
        *tool.states.entry(verdict.state).or_default() += 1;
        tool.layers.iter_mut().for_each(|seen| add(seen, call));
        if verdict.state == State::Unverified {
            tool.unverified += 1;
            tool.lacking.push(lacking(recording, verdict));
        }
    }
    let mut tools: Vec<Tool> = tools.into_values().collect();
    tools.sort_by_key(|tool| std::cmp::Reverse((tool.unverified, tool.calls)));
    tools
}

fn nothing(layer: Layer) -> LayerSeen {
    LayerSeen { layer, observed: 0, not_applicable: 0, evidence: BTreeMap::new() }
}

/// Layers that a call needs to be `healthy` and that nobody observed.
pub(super) fn missing(policy: &Policy, verdict: &Verdict) -> Vec<Layer> {
    let requires = policy.requires(&verdict.server, verdict.tool.as_deref());
    let unseen = |layer: &Layer| verdict.layers.get(*layer) == Rung::Unobserved;
    requires.into_iter().filter(unseen).collect()
}

fn lacking(recording: &Recording, verdict: &Verdict) -> Lacking {
    let policy = &recording.policy;
    Lacking {
        chain: verdict.id,
        at: verdict.operator.span,
        missing: missing(policy, verdict),
        requires: policy.requires(&verdict.server, verdict.tool.as_deref()),
        version: verdict.protocol_version.clone(),
    }
}

fn add(seen: &mut LayerSeen, call: &Explained) {
    let rung = call.verdict.layers.get(seen.layer);
    if rung == Rung::NotApplicable {
        seen.not_applicable += 1;
        return;
    }
    let evidence = evidence(seen.layer, call);
    // A layer behind a failed one is not counted as passed, and was seen all the same.
    let shown = !evidence.is_empty() && matches!(seen.layer, Layer::Effect | Layer::Outcome);
    if rung == Rung::Unobserved && !shown {
        return;
    }
    seen.observed += 1;
    for what in evidence {
        *seen.evidence.entry(what).or_default() += 1;
    }
}

/// What a layer of one call rests on, each once.
fn evidence(layer: Layer, call: &Explained) -> Vec<String> {
    let x = &call.exchange;
    let from = |origin: Origin| match origin {
        Origin::Attribute => "attribute".to_string(),
        Origin::Rule(number) => format!("evidence rule {}", usize::from(number) + 1),
    };
    let mut found: Vec<String> = match layer {
        Layer::Session => vec![match call.negotiation {
            Some(_) => "negotiation in its scope".to_string(),
            None => "protocol version and an answer".to_string(),
        }],
        Layer::Catalog => vec!["listing in its scope".to_string()],
        Layer::Request => {
            let halves = call.facts.iter().filter_map(|(role, fact)| match role {
                Role::Asking => Some(format!("asking half by {}", fact.scope)),
                Role::Answering => Some(format!("answering half by {}", fact.scope)),
                Role::Evidence | Role::Notification => None,
            });
            let http = x.http.map(|http| format!("HTTP status {}", http.status));
            halves.chain(http).collect()
        }
        Layer::Effect => {
            let checked = x.outcomes.iter().filter(|_| x.effects.is_empty());
            let checked = checked.filter(|fact| fact.method.is_some_and(|method| !method.weak()));
            let checked = checked.map(|_| "a checked outcome".to_string());
            let told = x.effects.iter().map(|fact| format!("{}: {}", from(fact.from), fact.status));
            told.chain(checked).collect()
        }
        Layer::Outcome => x
            .outcomes
            .iter()
            .map(|fact| {
                let method = fact.method.map_or("no method", |method| method.as_str());
                format!("{}: {} by {method}", from(fact.from), fact.status)
            })
            .collect(),
    };
    found.sort();
    found.dedup();
    found
}
