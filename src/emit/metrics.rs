//! The registry of our metrics, and what a verdict or record adds to which (judgment.md §8.4).
//! Recording and bounding of labels is the telemetry module's.

use std::borrow::Cow;

use crate::model::findings::Code;
use crate::model::record::{Drift, Incident, Verdict};
use crate::model::words::{Lifecycle, Owner, State};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Counter,
    /// A value that goes up and down.
    Gauge,
    Histogram,
}

pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    /// UCUM.
    pub unit: &'static str,
    pub labels: &'static [&'static str],
    pub says: &'static str,
}

macro_rules! metrics {
    ($($constant:ident = $name:literal, $kind:ident, $unit:literal, [$($label:literal),*],
        $says:literal;)*) => {
        $(pub const $constant: Metric = Metric {
            name: $name,
            kind: Kind::$kind,
            unit: $unit,
            labels: &[$($label),*],
            says: $says,
        };)*

        /// Every metric of ours, in the order of the documentation.
        pub const METRICS: &[&Metric] = &[$(&$constant),*];
    };
}

metrics! {
    VERDICTS = "mcp_verdict.verdicts", Counter, "{chain}",
        ["state", "reason", "owner", "first_failed_layer", "server", "tool"],
        "chains, each once, at the first verdict that is not `working`";
    AGENT_VERDICTS = "mcp_verdict.agent.verdicts", Counter, "{chain}",
        ["agent", "state", "owner"], "the same chains, by who asked";
    REVISIONS = "mcp_verdict.revisions", Counter, "{revision}", ["from", "to"],
        "revisions that changed the state";
    ATTEMPTS = "mcp_verdict.attempts", Counter, "{call}", [],
        "tool calls, superseded attempts left out";
    PROTOCOL_SUCCESS = "mcp_verdict.protocol_success", Counter, "{call}", [],
        "tool calls that got a JSON-RPC result";
    VERIFIED_SUCCESS = "mcp_verdict.verified_success", Counter, "{call}", [],
        "tool calls with a verified outcome";
    FINDINGS = "mcp_verdict.findings", Counter, "{finding}", ["code", "blame"],
        "named defects, each once a chain";
    CATALOG = "mcp_verdict.catalog", Counter, "{call}", ["convergence"],
        "tool calls by the state of the catalog they were made on";
    COVERAGE = "mcp_verdict.coverage", Gauge, "{call}", ["layer", "observed", "server", "tool"],
        "remembered tool calls to which a layer of the health contract applies, by whether \
         anything was seen of it";
    CONTRACT_DRIFT = "mcp_verdict.contract_drift", Counter, "{change}", ["grade"],
        "changed tool definitions";
    INCIDENTS = "mcp_verdict.incidents", Counter, "{incident}",
        ["status", "layer", "owner", "server"], "changes of an incident's status";
    INCIDENTS_ACTIVE = "mcp_verdict.incidents.active", Gauge, "{incident}",
        ["status", "layer", "reason", "owner", "contact", "server", "tool"],
        "incidents `open` or `recovering`; `contact` as configured, `tool` where it is one";
    OPEN_REQUESTS = "mcp_verdict.open_requests", Gauge, "{request}", [],
        "requests that wait for an answer";
    EVICTED = "mcp_verdict.evicted", Counter, "{chain}", ["reason"],
        "chains that left at a limit";
    LATE_FACTS = "mcp_verdict.late_facts", Counter, "{fact}", [],
        "facts for chains that were forgotten: forwarded, never judged";
    JUDGE_DURATION = "mcp_verdict.judge.duration", Histogram, "s", [],
        "time of one round of judging";
}

/// An addition to a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    pub metric: &'static str,
    pub labels: Vec<(&'static str, Cow<'static, str>)>,
    pub by: u64,
}

impl Sample {
    fn one(metric: &Metric, values: Vec<Cow<'static, str>>) -> Self {
        let labels = metric.labels.iter().copied().zip(values).collect();
        Self { metric: metric.name, labels, by: 1 }
    }
}

/// What a chain has already added: kept beside it, so that each thing counts once.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counted {
    /// A verdict that is not `working` was counted.
    pub settled: bool,
    pub verified: bool,
    /// State and finding codes of the revision before; `None` before the first.
    state: Option<State>,
    codes: Vec<Code>,
}

/// What a verdict adds to what its chain has added so far.
pub fn verdict(verdict: &Verdict, counted: &Counted) -> (Counted, Vec<Sample>) {
    let mut samples = Vec::new();
    if let Some(before) = counted.state.filter(|before| *before != verdict.state) {
        let states = [before, verdict.state].map(|state| state.as_str().into());
        samples.push(Sample::one(&REVISIONS, states.into()));
    }
    samples.extend(new_findings(verdict, &counted.codes));
    let call = verdict.method.as_str() == "tools/call";
    let superseded = verdict.lifecycle == Lifecycle::Superseded;
    let mut now = Counted {
        state: Some(verdict.state),
        codes: verdict.findings.iter().map(|finding| finding.code).collect(),
        ..*counted
    };
    if verdict.state != State::Working && !counted.settled && !superseded {
        now.settled = true;
        samples.push(Sample::one(&VERDICTS, labels(verdict)));
        samples.push(Sample::one(&AGENT_VERDICTS, by_agent(verdict)));
        if call {
            samples.push(Sample::one(&ATTEMPTS, Vec::new()));
            let convergence =
                verdict.convergence.map(|c| Sample::one(&CATALOG, vec![c.as_str().into()]));
            samples.extend(convergence);
        }
        if call && verdict.protocol_success() {
            samples.push(Sample::one(&PROTOCOL_SUCCESS, Vec::new()));
        }
    }
    if call && !superseded && verdict.verified_success() && !counted.verified {
        now.verified = true;
        samples.push(Sample::one(&VERIFIED_SUCCESS, Vec::new()));
    }
    (now, samples)
}

fn labels(verdict: &Verdict) -> Vec<Cow<'static, str>> {
    // A name that no catalog holds is whatever a model came up with: never a label.
    let unknown = verdict.findings.iter().any(|finding| finding.code == Code::UnknownTool);
    let tool = verdict.tool.as_ref().filter(|_| !unknown);
    let text = |text: Option<String>| Cow::from(text.unwrap_or_default());
    vec![
        verdict.state.as_str().into(),
        text(verdict.reason.map(|reason| reason.to_string())),
        owner(verdict).into(),
        verdict.first_failed_layer.map_or("", |layer| layer.as_str()).into(),
        text(Some(verdict.server.to_string())),
        text(tool.map(|tool| tool.to_string())),
    ]
}

fn by_agent(verdict: &Verdict) -> Vec<Cow<'static, str>> {
    let agent = verdict.agent.as_ref().map_or_else(String::new, |agent| agent.to_string());
    vec![agent.into(), verdict.state.as_str().into(), owner(verdict).into()]
}

fn owner(verdict: &Verdict) -> &'static str {
    match verdict.owner {
        Owner::None => "",
        owner => owner.as_str(),
    }
}

/// Findings that the revision before did not have.
fn new_findings(verdict: &Verdict, known: &[Code]) -> Vec<Sample> {
    let mut pairs: Vec<_> = verdict
        .findings
        .iter()
        .filter(|finding| !known.contains(&finding.code))
        .map(|finding| (finding.code.as_str(), finding.blame.as_str()))
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
        .into_iter()
        .map(|(code, blame)| Sample::one(&FINDINGS, vec![code.into(), blame.into()]))
        .collect()
}

pub fn contract_drift(drift: &Drift) -> Sample {
    Sample::one(&CONTRACT_DRIFT, vec![drift.grade.as_str().into()])
}

/// An incident among those that stand; `contact` is who is configured for its owner.
pub fn standing(incident: &Incident, contact: String) -> Sample {
    let values = vec![
        incident.status.as_str().into(),
        incident.layer.to_string().into(),
        incident.reason.to_string().into(),
        incident.owner.as_str().into(),
        contact.into(),
        incident.server.to_string().into(),
        incident.named_tool.as_ref().map_or_else(String::new, |tool| tool.to_string()).into(),
    ];
    Sample::one(&INCIDENTS_ACTIVE, values)
}

/// Counts an incident at each status it reaches.
pub fn incident(incident: &Incident) -> Sample {
    let values = vec![
        incident.status.as_str().into(),
        incident.layer.to_string().into(),
        incident.owner.as_str().into(),
        incident.server.to_string().into(),
    ];
    Sample::one(&INCIDENTS, values)
}
