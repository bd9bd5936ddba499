//! Incidents (judgment.md §8.5): many failures with one cause, one record.
//!
//! [`Entry`] is the little that one final verdict contributes; [`fold`] turns all entries of a
//! server into its incidents. Folding is a pure function of the set of entries: their order and
//! repeats of one chain's entry do not matter, so the engine may fold again whenever one changes.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::case::Ending;
use crate::model::findings::Code;
use crate::model::ids::{Digest16, Name, Nanos, SpanRef};
use crate::model::record::{FailureLayers, FailureRow, Incident, Verdict};
use crate::model::words::*;

#[cfg(test)]
mod tests;

/// What a final verdict contributes.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Entry {
    /// The chain's id: one chain counts once.
    pub id: Digest16,
    pub server: Name,
    pub scope: Name,
    pub agent: Option<Name>,
    pub method: Name,
    pub tool: Option<Name>,
    /// The scope's complete listing lacks the tool.
    pub unknown_tool: bool,
    pub credential: Option<Name>,
    pub start: Nanos,
    /// Newest evidence time.
    pub time: Nanos,
    pub span: SpanRef,
    pub failure: Option<Failure>,
    pub passes: Passes,
}

/// The failure a verdict contributes: the first failed rung of the failure ladder, else a catalog
/// that the call's state names.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Failure {
    /// A rung of either ladder.
    pub layer: Name,
    pub reason: Reason,
    pub discriminator: Option<Name>,
    pub owner: Owner,
    pub next_step: NextStep,
}

/// What an attempt shows about layers that once failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Passes {
    pub layers: FailureLayers,
    pub catalog: Rung,
    /// Its outcome was verified, or none is required of it.
    pub settled: bool,
}

const CATALOG: &str = "catalog";

impl Entry {
    /// `None` for verdicts that say nothing of incidents: superseded attempts and open requests.
    /// `credential` is what the request was made with, `requires` are the layers required of this
    /// server and tool.
    pub fn of(
        credential: Option<Name>,
        ending: Ending,
        verdict: &Verdict,
        requires: &[Layer],
    ) -> Option<Self> {
        if verdict.lifecycle == Lifecycle::Superseded || verdict.state == State::Working {
            return None;
        }
        let call = verdict.method.as_str() == "tools/call";
        let required = call && requires.contains(&Layer::Outcome);
        let verified = verdict.outcome.status == Some(OutcomeStatus::Verified);
        Some(Self {
            id: verdict.id,
            server: verdict.server.clone(),
            scope: verdict.scope.clone(),
            agent: verdict.agent.clone(),
            method: verdict.method.clone(),
            tool: verdict.tool.clone(),
            unknown_tool: verdict.findings.iter().any(|f| f.code == Code::UnknownTool),
            failure: failure(&credential, ending, verdict),
            credential,
            start: verdict.start_time,
            time: verdict.evidence_time,
            span: verdict.operator.span,
            passes: Passes {
                layers: verdict.failure_layers,
                catalog: verdict.layers.catalog,
                settled: verified || !required,
            },
        })
    }
}

fn failure(credential: &Option<Name>, ending: Ending, verdict: &Verdict) -> Option<Failure> {
    let Some(FailureRow { layer, reason, owner, next_step }) = verdict.operator.failure else {
        return (verdict.state == State::StaleCatalog).then(|| Failure {
            layer: Name::new(CATALOG),
            reason: verdict.reason.unwrap_or(Reason::Stale),
            discriminator: verdict.contract.digest.clone(),
            owner: verdict.owner,
            next_step: verdict.next_step,
        });
    };
    let discriminator = match layer {
        FailureLayer::Authority => credential.clone(),
        FailureLayer::Transport => Some(verdict.server.clone()),
        FailureLayer::Protocol => Some(match ending {
            Ending::Error { code: Some(code) } => Name::new(&format!("{} {code}", verdict.method)),
            _ => verdict.method.clone(),
        }),
        FailureLayer::Execution | FailureLayer::Outcome => verdict.tool.clone(),
    };
    let (layer, reason) = (Name::new(layer.as_str()), reason?);
    Some(Failure { layer, reason, discriminator, owner, next_step })
}

/// Server, layer, reason, discriminator.
type Key = (Name, Name, Reason, Option<Name>);

/// All incidents of these entries at event time `now`, in the order of the records: by first seen,
/// layer, server, discriminator. `quiet` is `policy.incident_quiet`, in nanoseconds.
pub fn fold<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    now: Nanos,
    quiet: Nanos,
) -> Vec<Incident> {
    // Within one chain the newest evidence is the chain's last word.
    let mut chains: BTreeMap<Digest16, &Entry> = BTreeMap::new();
    for entry in entries {
        let known = chains.entry(entry.id).or_insert(entry);
        if (entry.time, entry.span) > (known.time, known.span) {
            *known = entry;
        }
    }
    let mut sorted: Vec<&Entry> = chains.into_values().collect();
    sorted.sort_by_key(|entry| (entry.start, entry.span, entry.id));
    let mut groups: BTreeMap<Key, Vec<&Entry>> = BTreeMap::new();
    for entry in &sorted {
        if let Some(failure) = &entry.failure {
            let Failure { layer, reason, discriminator, .. } = failure.clone();
            let key = (entry.server.clone(), layer, reason, discriminator);
            groups.entry(key).or_default().push(entry);
        }
    }
    let mut incidents: Vec<Incident> = groups
        .iter()
        .filter_map(|(key, failed)| incident(key, failed, &sorted, now, quiet))
        .collect();
    incidents.sort_by(|a, b| order(a).cmp(&order(b)));
    incidents
}

fn order(incident: &Incident) -> impl Ord + '_ {
    let Incident { first_seen, layer, server, discriminator, reason, .. } = incident;
    (*first_seen, layer, server, discriminator, *reason)
}

/// One incident from its failures, in order of start, and everything else the server did.
fn incident(
    (server, layer, reason, discriminator): &Key,
    failed: &[&Entry],
    all: &[&Entry],
    now: Nanos,
    quiet: Nanos,
) -> Option<Incident> {
    let (first, last) = (failed.first()?, failed.last()?);
    let newest = last.failure.as_ref()?;
    let scopes: BTreeSet<&Name> = failed.iter().map(|entry| &entry.scope).collect();
    let kind = Kind { server, layer, last, scopes };
    let later = || {
        let after = all.iter().filter(|entry| entry.start > last.start);
        after.filter(|entry| kind.holds(entry) && kind.passed(entry))
    };
    let resolved = later().filter(|entry| entry.passes.settled).map(|entry| entry.time).min();
    let seen = failed.iter().map(|entry| entry.time).max()?;
    let active = later().map(|entry| entry.time).max().unwrap_or(0).max(seen);
    let status = match (resolved, later().next()) {
        (Some(_), _) => IncidentStatus::Resolved,
        _ if now.saturating_sub(active) > quiet => IncidentStatus::Expired,
        (None, Some(_)) => IncidentStatus::Recovering,
        (None, None) => IncidentStatus::Open,
    };
    let names = |pick: fn(&Entry) -> Option<Name>| -> Vec<Name> {
        let all: BTreeSet<Name> = failed.iter().filter_map(|entry| pick(entry)).collect();
        all.into_iter().collect()
    };
    let recovery = later().min_by_key(|entry| (entry.time, entry.id)).map(|entry| entry.id);
    let tools = names(|entry| entry.tool.clone());
    let named_tool = match &tools[..] {
        [tool] if failed.iter().all(|entry| !entry.unknown_tool) => Some(tool.clone()),
        _ => None,
    };
    Some(Incident {
        layer: layer.clone(),
        reason: *reason,
        server: server.clone(),
        discriminator: discriminator.clone(),
        status,
        count: failed.len() as u64,
        agents: names(|entry| entry.agent.clone()),
        tools,
        first_seen: first.start,
        last_seen: seen,
        resolved_at: resolved,
        owner: newest.owner,
        next_step: newest.next_step,
        span: last.span,
        named_tool,
        rests_on: [last.id].into_iter().chain(recovery).collect(),
    })
}

/// Which later attempts speak of an incident.
struct Kind<'a> {
    server: &'a Name,
    layer: &'a Name,
    last: &'a Entry,
    scopes: BTreeSet<&'a Name>,
}

impl Kind<'_> {
    /// Of that kind: what the discriminator stands for is the same.
    fn holds(&self, entry: &Entry) -> bool {
        let same = match FailureLayer::parse(self.layer) {
            Some(FailureLayer::Authority) => self.same_credential(entry),
            Some(FailureLayer::Transport) => true,
            Some(FailureLayer::Protocol) => entry.method == self.last.method,
            Some(FailureLayer::Execution | FailureLayer::Outcome) => entry.tool == self.last.tool,
            None => entry.method == self.last.method,
        };
        same && entry.server == *self.server
    }

    /// Another known credential proves nothing; an unknown one only where the failures were.
    fn same_credential(&self, entry: &Entry) -> bool {
        match (&self.last.credential, &entry.credential) {
            (Some(failed), Some(other)) => failed == other,
            _ => self.scopes.contains(&entry.scope),
        }
    }

    fn passed(&self, entry: &Entry) -> bool {
        let rung = match FailureLayer::parse(self.layer) {
            Some(layer) => entry.passes.layers.get(layer),
            None => entry.passes.catalog,
        };
        rung == Rung::Passed
    }
}
