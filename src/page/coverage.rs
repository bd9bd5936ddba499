//! What was observed of each server's tools, over the calls that are remembered:
//! `GET /v1/coverage`, and the gauge that counts the same.
//!
//! Promises: counted as `mcp-verdict coverage` counts; nothing is kept for it, so that it costs
//! what it is asked, and is bounded by what is remembered.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::listing::limit;
use super::question::Wrong;
use super::recent::Recent;
use crate::model::findings::Code;
use crate::model::ids::Name;
use crate::model::record::Verdict;
use crate::model::words::{Layer, Lifecycle, Reason, Rung, State};
use crate::proto::{GetCoverageResponse, LayerCoverage, ToolCoverage};

/// What is wanted of it.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wanted {
    pub server: String,
    pub tool: String,
    pub limit: Option<u32>,
}

const DEFAULT: u32 = 100;

/// The tools with the most unverified calls first.
///
/// # Errors
/// For a limit of zero.
pub fn coverage(recent: &Recent, wanted: &Wanted) -> Result<GetCoverageResponse, Wrong> {
    let limit = limit(wanted.limit, DEFAULT)?;
    let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
    let fits = |verdict: &Verdict| {
        is(&wanted.server, &verdict.server)
            && is(&wanted.tool, verdict.tool.as_deref().unwrap_or_default())
    };
    let mut tools: Vec<_> = counted(recent, &fits, &evidence).into_iter().collect();
    tools.sort_by_key(|(_, seen)| Reverse((seen.unverified, seen.calls)));
    let omitted = tools.len().saturating_sub(limit) as u64;
    tools.truncate(limit);
    let tools = tools.into_iter().map(|((server, tool), seen)| seen.told(server, tool)).collect();
    Ok(GetCoverageResponse { tools, omitted })
}

/// Calls of a layer, by what was seen of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    pub layer: Layer,
    pub server: Name,
    /// Empty where the catalog does not have it: whatever a model came up with.
    pub tool: String,
    /// Calls of which something was seen of it, and the others that it applies to.
    pub observed: u64,
    pub unobserved: u64,
}

/// One for each layer of each tool, the most called tools first.
pub fn observed(recent: &Recent) -> Vec<Observed> {
    let mut tools: Vec<_> = counted(recent, &|_| true, &|_, _| Vec::new()).into_iter().collect();
    tools.sort_by_key(|(_, seen)| Reverse(seen.calls));
    let layers = |((server, tool), seen): ((Name, Option<Name>), Seen)| {
        let name = tool.filter(|_| seen.named).map(|tool| tool.to_string()).unwrap_or_default();
        Layer::ALL.iter().zip(seen.layers).map(move |(layer, of)| Observed {
            layer: *layer,
            server: server.clone(),
            tool: name.clone(),
            observed: of.observed,
            unobserved: seen.calls - of.observed - of.not_applicable,
        })
    };
    tools.into_iter().flat_map(layers).collect()
}

/// The calls of one tool.
#[derive(Default)]
struct Seen {
    calls: u64,
    unverified: u64,
    /// Whether its name is in a catalog, as far as is known.
    named: bool,
    states: BTreeMap<State, u64>,
    layers: [Of; Layer::ALL.len()],
}

/// One layer of them.
#[derive(Default)]
struct Of {
    observed: u64,
    not_applicable: u64,
    /// Unverified calls that lack it first.
    lacking: u64,
    evidence: BTreeMap<String, u64>,
}

/// What a layer of a verdict rests on, in words.
type Told = dyn Fn(Layer, &Verdict) -> Vec<String>;

fn counted(
    recent: &Recent,
    wanted: &dyn Fn(&Verdict) -> bool,
    evidence: &Told,
) -> BTreeMap<(Name, Option<Name>), Seen> {
    let mut tools: BTreeMap<(Name, Option<Name>), Seen> = BTreeMap::new();
    let counts = |verdict: &Verdict| {
        verdict.method.as_str() == "tools/call" && verdict.lifecycle != Lifecycle::Superseded
    };
    let all = recent.chains_before(u64::MAX).map(|(_, said)| &***said);
    for verdict in all.filter(|verdict| counts(verdict) && wanted(verdict)) {
        let key = (verdict.server.clone(), verdict.tool.clone());
        tools.entry(key).or_default().add(verdict, evidence);
    }
    tools
}

impl Seen {
    fn add(&mut self, verdict: &Verdict, evidence: &Told) {
        self.calls += 1;
        self.unverified += u64::from(verdict.state == State::Unverified);
        self.named |= verdict.findings.iter().all(|finding| finding.code != Code::UnknownTool);
        *self.states.entry(verdict.state).or_default() += 1;
        for (layer, of) in Layer::ALL.iter().zip(&mut self.layers) {
            of.add(*layer, verdict, evidence);
        }
    }

    fn told(self, server: Name, tool: Option<Name>) -> ToolCoverage {
        let layer = |(layer, of): (&Layer, Of)| LayerCoverage {
            layer: layer.to_string(),
            observed: of.observed,
            not_applicable: of.not_applicable,
            lacking: of.lacking,
            evidence: of.evidence,
        };
        ToolCoverage {
            server: server.to_string(),
            tool: tool.map(|tool| tool.to_string()),
            calls: self.calls,
            unverified: self.unverified,
            states: self.states.into_iter().map(|(state, n)| (state.to_string(), n)).collect(),
            layers: Layer::ALL.iter().zip(self.layers).map(layer).collect(),
        }
    }
}

impl Of {
    fn add(&mut self, layer: Layer, verdict: &Verdict, evidence: &Told) {
        let unverified = verdict.state == State::Unverified;
        self.lacking += u64::from(unverified && verdict.reason == Some(Reason::Unobserved(layer)));
        let shown = match layer {
            Layer::Effect => verdict.effect.is_some(),
            Layer::Outcome => verdict.outcome.status.is_some(),
            Layer::Session | Layer::Catalog | Layer::Request => false,
        };
        match verdict.layers.get(layer) {
            Rung::NotApplicable => self.not_applicable += 1,
            // A layer behind a failed one is not counted as passed, and was seen all the same.
            Rung::Unobserved if !shown => {}
            _ => {
                self.observed += 1;
                for what in evidence(layer, verdict) {
                    *self.evidence.entry(what).or_default() += 1;
                }
            }
        }
    }
}

/// What the verdict itself says of where that comes from.
fn evidence(layer: Layer, verdict: &Verdict) -> Vec<String> {
    match layer {
        Layer::Session => {
            let version = verdict.protocol_version.as_ref();
            version.map(|version| format!("protocol version {version}")).into_iter().collect()
        }
        Layer::Catalog => {
            verdict.convergence.map(|word| format!("catalog {word}")).into_iter().collect()
        }
        Layer::Request => {
            let half = |span: bool, name: &str| span.then(|| format!("{name} half"));
            let asking = half(verdict.client_span_id.is_some(), "asking");
            asking.into_iter().chain(half(verdict.server_span_id.is_some(), "answering")).collect()
        }
        Layer::Effect => verdict.effect.map(|word| word.to_string()).into_iter().collect(),
        Layer::Outcome => {
            let method = verdict.outcome.method.map_or("no method", |method| method.as_str());
            let status = verdict.outcome.status;
            status.map(|status| format!("{status} by {method}")).into_iter().collect()
        }
    }
}
