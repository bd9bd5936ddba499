//! Everything that we say and hear, as a semantic-convention registry describes it: attributes with
//! their types, the events that carry them, the labels of metrics. `semconv/` and
//! `docs/attributes.md` are printed from it.
//!
//! Promises: the keys are those of the registries that the program itself reads and writes by; a
//! test holds what is really written to the types and words here.

use crate::emit::attributes::{Stands, VERDICT};
use crate::emit::event;
use crate::model::attributes as key;
use crate::model::attributes::EVIDENCE;
use crate::model::findings::Code;
use crate::model::words::*;

/// What a value is.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// One of closed words.
    Word(fn() -> Vec<&'static str>),
    /// A text, by examples.
    Text(&'static [&'static str]),
    /// Several, by one example.
    Texts(&'static [&'static str]),
    Int(&'static [i64]),
    Number(&'static [f64]),
    Bool,
}

/// One attribute, whole key.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    pub key: &'static str,
    pub form: Form,
    pub says: &'static str,
}

/// A log record with a name, and the attributes that it may carry.
#[derive(Clone, Debug)]
pub struct Event {
    pub name: &'static str,
    pub says: &'static str,
    pub attributes: Vec<&'static str>,
}

macro_rules! words {
    ($($vocabulary:ident),*) => {
        Form::Word(|| {
            let mut words = Vec::new();
            $(for word in $vocabulary::ALL.iter().map(|word| word.as_str()) {
                if !words.contains(&word) {
                    words.push(word);
                }
            })*
            words
        })
    };
}

const CHAIN: Form = Form::Text(&["9f2c1d0e4b7a48d3a5c6e7f8091a2b3c"]);
const DIGEST: Form = Form::Text(&[
    "mcp-tool/1:sha256:64f26a2fdc4600a8d8f7f0a1c2b3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5",
]);
const NANOS: Form = Form::Text(&["1795996800000000000"]);
const WHEN: Form = Form::Text(&["2026-11-30T12:00:00.5Z", "1795996800500000000"]);
const COUNT: Form = Form::Int(&[3]);
const MILLISECONDS: Form = Form::Int(&[30_000]);
const SERVER: Form = Form::Text(&["tickets.example.com"]);
const TOOL: Form = Form::Text(&["create_ticket"]);
const AGENT: Form = Form::Text(&["helpdesk"]);
const VERSION: Form = Form::Text(&["2025-11-25"]);
const SESSION_ID: Form = Form::Text(&["191c4850af6c49e08843a3f6c80e5046"]);
const ANY_DIGEST: Form = Form::Text(&["sha256:2c26b46b68ffc68f"]);
const OPAQUE: Form = Form::Text(&["b3a1"]);
const REASON: Form = Form::Text(&["tool_error", "insufficient_scope", "http_503"]);
const RUNG: Form = words!(Rung);
const DETAIL: Form = Form::Texts(&["unknown_tool:create_tiket"]);

/// Types of what a verdict says, and of evidence.
const FORMS: &[(&str, Form)] = &[
    ("mcp_verdict.state", words!(State, Rung)),
    ("mcp_verdict.reason", REASON),
    ("mcp_verdict.first_failed_layer", words!(FailureLayer)),
    ("mcp_verdict.next_step", words!(NextStep)),
    ("mcp_verdict.owner", words!(Owner)),
    ("mcp_verdict.confidence", words!(Confidence)),
    ("mcp_verdict.chain.id", CHAIN),
    ("mcp_verdict.revision", COUNT),
    ("mcp_verdict.findings", Form::Texts(&["unknown_tool", "views_disagree"])),
    ("mcp_verdict.lifecycle", words!(Lifecycle)),
    ("mcp_verdict.layer.session", RUNG),
    ("mcp_verdict.layer.catalog", RUNG),
    ("mcp_verdict.layer.request", RUNG),
    ("mcp_verdict.layer.effect", RUNG),
    ("mcp_verdict.layer.outcome", RUNG),
    ("mcp_verdict.failure.transport", RUNG),
    ("mcp_verdict.failure.protocol", RUNG),
    ("mcp_verdict.failure.authority", RUNG),
    ("mcp_verdict.failure.execution", RUNG),
    ("mcp_verdict.failure.outcome", RUNG),
    ("mcp_verdict.convergence", words!(Convergence)),
    ("mcp_verdict.contract.status", words!(ContractStatus)),
    ("mcp_verdict.contract.digest", DIGEST),
    ("mcp_verdict.retry", words!(Retry)),
    ("mcp_verdict.operation.id", OPAQUE),
    ("mcp_verdict.supersedes", COUNT),
    ("mcp_verdict.merged_into", CHAIN),
    ("mcp_verdict.scope", OPAQUE),
    ("mcp_verdict.session_id", SESSION_ID),
    ("mcp_verdict.era", words!(Era)),
    ("mcp_verdict.protocol_version", VERSION),
    ("mcp_verdict.transport", words!(Transport)),
    ("mcp_verdict.agent", AGENT),
    ("mcp_verdict.server", SERVER),
    ("mcp_verdict.method", Form::Text(&["tools/call"])),
    ("mcp_verdict.tool", TOOL),
    ("mcp_verdict.request_id", Form::Text(&["42"])),
    ("mcp_verdict.attempt", COUNT),
    ("mcp_verdict.effect", words!(Effect)),
    ("mcp_verdict.outcome.status", words!(OutcomeStatus)),
    ("mcp_verdict.outcome.method", words!(OutcomeMethod)),
    ("mcp_verdict.findings.detail", DETAIL),
    ("mcp_verdict.trace_id", Form::Text(&["4bf92f3577b34da6a3ce929d0e0e4736"])),
    ("mcp_verdict.client_span_id", Form::Text(&["00f067aa0ba902b7"])),
    ("mcp_verdict.server_span_id", Form::Text(&["00f067aa0ba902b7"])),
    ("mcp_verdict.start_time", NANOS),
    ("mcp_verdict.end_time", NANOS),
    ("mcp_verdict.evidence_time", NANOS),
    ("mcp_verdict.impact", words!(Impact)),
    ("mcp_verdict.required_scope", Form::Text(&["tickets.write"])),
    ("mcp_verdict.agent.run", Form::Text(&["run-7"])),
    ("mcp_verdict.owner.contact", Form::Text(&["#auth-oncall"])),
    (key::SESSION_REQUESTED_VERSION, VERSION),
    (key::SESSION_CLIENT_CAPABILITIES, Form::Texts(&["sampling"])),
    (key::SESSION_SERVER_CAPABILITIES, Form::Texts(&["tools.listChanged"])),
    (key::SESSION_SUBSCRIBED, Form::Texts(&["tools.listChanged"])),
    (key::SESSION_AUTH_CONTEXT, ANY_DIGEST),
    (key::SESSION_SERVER_NAME, Form::Text(&["tickets"])),
    (key::LIST_CURSOR, Form::Text(&["page-2"])),
    (key::LIST_NEXT_CURSOR, Form::Text(&["page-3"])),
    (key::LIST_LAST_PAGE, Form::Bool),
    (key::LIST_TTL_MS, MILLISECONDS),
    (key::LIST_TOOLS, Form::Texts(&["create_ticket=sha256:2c26b46b68ffc68f"])),
    (
        key::LIST_DEFINITIONS,
        Form::Text(&["[{\"name\":\"create_ticket\",\"inputSchema\":{\"type\":\"object\"}}]"]),
    ),
    (key::REGISTRY_DISCOVERED_DIGEST, ANY_DIGEST),
    (key::REGISTRY_INSTALLED_DIGEST, ANY_DIGEST),
    (key::REGISTRY_TOOL_COUNT, COUNT),
    (key::CALL_CONTRACT_DIGEST, DIGEST),
    (key::CALL_IS_ERROR, Form::Bool),
    (key::CALL_RESULT_TYPE, words!(ResultType)),
    (key::CALL_READ_ONLY, Form::Bool),
    (key::CALL_IDEMPOTENT, Form::Bool),
    (key::CALL_DEADLINE_MS, MILLISECONDS),
    (key::CALL_INACTIVITY_MS, MILLISECONDS),
    (key::CALL_PROGRESS_TOKEN, OPAQUE),
    (key::PROGRESS_TOKEN, OPAQUE),
    (key::PROGRESS_VALUE, Form::Number(&[0.5])),
    (key::PROGRESS_TOTAL, Form::Number(&[1.0])),
    (key::CALL_CANCELLED_REQUEST_ID, Form::Text(&["42"])),
    (key::CALL_REQUEST_STATE, OPAQUE),
    (key::CALL_NEXT_REQUEST_STATE, OPAQUE),
    (key::CALL_TASK_ID, Form::Text(&["task-9"])),
    (key::TASK_STATUS, words!(TaskStatus)),
    (key::OPERATION_KEY, Form::Text(&["order-1001"])),
    (key::OPERATION_ATTEMPT, COUNT),
    (key::AUTH_ERROR, Form::Word(|| vec!["invalid_token", "insufficient_scope"])),
    (key::AUTH_SCOPE, Form::Text(&["tickets.write"])),
    (key::AUTH_RESOURCE, Form::Text(&["https://tickets.example.com/mcp"])),
    (key::AUTH_CREDENTIAL, ANY_DIGEST),
    (key::EFFECT_STATUS, words!(Effect)),
    (key::EFFECT_KEY, Form::Text(&["ticket-123"])),
    (key::EFFECT_OBSERVED_AT, WHEN),
    (key::OUTCOME_STATUS, words!(OutcomeStatus)),
    (key::OUTCOME_METHOD, words!(OutcomeMethod)),
    (key::OUTCOME_EXPECTED, ANY_DIGEST),
    (key::OUTCOME_OBSERVED, ANY_DIGEST),
    (key::OUTCOME_OBSERVED_AT, WHEN),
    (key::AGENT_RUN, Form::Text(&["run-7"])),
];

const fn extra(key: &'static str, form: Form, says: &'static str) -> Attribute {
    Attribute { key, form, says }
}

/// What records of sessions, drifts and incidents say that no verdict says.
const MORE: &[Attribute] = &[
    extra("mcp_verdict.discovered_digest", ANY_DIGEST, "digest of what was listed"),
    extra("mcp_verdict.installed_digest", ANY_DIGEST, "digest of what the client installed"),
    extra("mcp_verdict.tool_count", COUNT, "tools that the client installed"),
    extra("mcp_verdict.pages", COUNT, "pages of listings"),
    extra("mcp_verdict.requests", COUNT, "requests of the scope"),
    extra("mcp_verdict.grade", words!(Grade), "how bad the change is"),
    extra("mcp_verdict.scheme", Form::Text(&["mcp-tool/1"]), "scheme of the digests"),
    extra("mcp_verdict.old_digest", DIGEST, "the definition before"),
    extra("mcp_verdict.new_digest", DIGEST, "the definition after; absent where it is gone"),
    extra(
        "mcp_verdict.changes",
        Form::Texts(&["breaking:property_renamed:/inputSchema/properties/q"]),
        "grade:kind:pointer of each located change",
    ),
    extra("mcp_verdict.layer", words!(Layer, FailureLayer), "rung of either ladder"),
    extra("mcp_verdict.discriminator", OPAQUE, "what tells incidents of one reason apart"),
    extra("mcp_verdict.status", words!(IncidentStatus), "where the incident stands"),
    extra("mcp_verdict.count", COUNT, "failures so far"),
    extra("mcp_verdict.agents", Form::Texts(&["helpdesk"]), "who met it"),
    extra("mcp_verdict.tools", Form::Texts(&["create_ticket"]), "tools that it hit"),
    extra("mcp_verdict.first_seen", NANOS, "Unix nanoseconds"),
    extra("mcp_verdict.last_seen", NANOS, "Unix nanoseconds"),
    extra("mcp_verdict.resolved_at", NANOS, "Unix nanoseconds"),
];

/// Labels of metrics. They have no prefix: a metric is ours already.
pub const LABELS: &[Attribute] = &[
    extra("state", words!(State), "the verdict's state"),
    extra("reason", REASON, "why; for `mcp_verdict.evicted` the limit that was reached"),
    extra("owner", words!(Owner), "who takes the next step; empty for nobody"),
    extra("contact", Form::Text(&["#auth-oncall"]), "who is configured for the owner"),
    extra("first_failed_layer", words!(FailureLayer), "where the call broke; empty for nowhere"),
    extra("server", SERVER, "who was asked"),
    extra("tool", TOOL, "the tool of a call"),
    extra("agent", AGENT, "who asked"),
    extra("from", words!(State), "the state before"),
    extra("to", words!(State), "the state after"),
    extra("code", Form::Word(codes), "code of a finding"),
    extra("blame", words!(Blame), "whose defect it is"),
    extra("convergence", words!(Convergence), "the catalog at the call's start"),
    extra("grade", words!(Grade), "how bad a change is"),
    extra("status", words!(IncidentStatus), "where an incident stands"),
    extra("layer", words!(Layer, FailureLayer), "rung of either ladder"),
    extra("observed", Form::Word(|| vec!["true", "false"]), "whether anything was seen of it"),
];

fn codes() -> Vec<&'static str> {
    Code::ALL.iter().map(|code| code.as_str()).collect()
}

/// The type of a key of another registry.
fn form_of(key: &str) -> Option<Form> {
    FORMS.iter().find(|(known, _)| *known == key).map(|(_, form)| *form)
}

fn typed(rows: impl Iterator<Item = (&'static str, &'static str)>) -> Vec<Attribute> {
    let typed = |(key, says)| form_of(key).map(|form| Attribute { key, form, says });
    rows.filter_map(typed).collect()
}

/// Every `mcp_verdict.*` attribute.
pub fn said() -> Vec<Attribute> {
    let mut all = typed(VERDICT.iter().map(|row| (row.key, row.says)));
    all.extend(MORE);
    all
}

/// Every `mcp_evidence.*` attribute.
pub fn heard() -> Vec<Attribute> {
    typed(EVIDENCE.iter().map(|row| (row.key, row.says)))
}

/// What request spans gain: with `enrich: compact`, and what `full` adds.
pub fn enrichment() -> [Vec<&'static str>; 2] {
    [Stands::Compact, Stands::Full].map(|stands| {
        VERDICT.iter().filter(|row| row.stands == stands).map(|row| row.key).collect()
    })
}

/// Every event of ours.
pub fn events() -> Vec<Event> {
    let all = || VERDICT.iter().map(|row| row.key).collect::<Vec<_>>();
    // A first verdict replaces none, and is of a chain that stands for itself.
    let mut first = all();
    first.retain(|key| !["supersedes", "merged_into"].contains(&bare(key)));
    let some = |keys: &[&str]| {
        let known = said();
        known.iter().map(|row| row.key).filter(|key| keys.contains(&bare(key))).collect()
    };
    vec![
        Event { name: event::VERDICT, says: "the first verdict on a chain", attributes: first },
        Event { name: event::REVISED, says: "a verdict that replaces one", attributes: all() },
        Event {
            name: event::SESSION,
            says: "a scope of requests, and what its client holds; `mcp_verdict.state` is the \
                   session layer",
            attributes: some(SESSION),
        },
        Event {
            name: event::CONTRACT_DRIFT,
            says: "a tool's definition changed",
            attributes: some(DRIFT),
        },
        Event {
            name: event::INCIDENT,
            says: "where failures with one cause stand",
            attributes: some(INCIDENT),
        },
    ]
}

fn bare(key: &'static str) -> &'static str {
    key.strip_prefix(key::VERDICT_PREFIX).unwrap_or(key)
}

const SESSION: &[&str] = &[
    "scope",
    "session_id",
    "era",
    "protocol_version",
    "state",
    "convergence",
    "discovered_digest",
    "installed_digest",
    "tool_count",
    "pages",
    "requests",
    "findings",
    "findings.detail",
];
const DRIFT: &[&str] = &[
    "server",
    "tool",
    "grade",
    "scheme",
    "old_digest",
    "new_digest",
    "changes",
    "confidence",
    "first_seen",
];
const INCIDENT: &[&str] = &[
    "layer",
    "reason",
    "server",
    "discriminator",
    "status",
    "count",
    "agents",
    "tools",
    "first_seen",
    "last_seen",
    "resolved_at",
    "owner",
    "next_step",
    "owner.contact",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::metrics::METRICS;

    #[test]
    fn every_key_has_one_type() {
        let keys = VERDICT.iter().map(|row| row.key).chain(EVIDENCE.iter().map(|row| row.key));
        let mut keys: Vec<&str> = keys.collect();
        for key in &keys {
            let types = FORMS.iter().filter(|(known, _)| known == key).count();
            assert_eq!(types, 1, "{key} has {types} types in FORMS");
        }
        assert_eq!(FORMS.len(), keys.len(), "FORMS has a key that there is not");
        keys.extend(MORE.iter().map(|row| row.key));
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), all, "a key is there twice");
    }

    #[test]
    fn every_label_is_described_and_used() {
        let used: Vec<&str> = METRICS.iter().flat_map(|metric| metric.labels).copied().collect();
        for label in &used {
            assert!(LABELS.iter().any(|row| row.key == *label), "{label}");
        }
        for row in LABELS {
            assert!(used.contains(&row.key), "no metric has {}", row.key);
        }
    }
}
