//! OTLP log records for verdicts, sessions, contract drift and incidents (judgment.md §8.2). Each
//! function returns the body of a `LogRecord`; its resource is the request span's, its scope ours.
//!
//! The observed time is when it was judged; a repeat of one id and revision is equal in all else.

use crate::emit::severity::{Severity, severity};
use crate::model::findings::Finding;
use crate::model::ids::{Name, Nanos, SpanRef};
use crate::model::record::{Drift, Incident, Session, Verdict};
use crate::model::words::*;
use crate::wire::encode::{NewAttr, NewRecord, NewValue};

/// `event_name` of a first verdict.
pub const VERDICT: &str = "mcp_verdict.verdict";
/// `event_name` of later revisions.
pub const REVISED: &str = "mcp_verdict.revised";
pub const SESSION: &str = "mcp_verdict.session";
pub const CONTRACT_DRIFT: &str = "mcp_verdict.contract_drift";
pub const INCIDENT: &str = "mcp_verdict.incident";

/// One verdict, with what [`on_event`](crate::emit::attributes::on_event) says of it.
/// `judged_at` is Unix nanoseconds.
pub fn verdict(verdict: &Verdict, said: &[NewAttr<'_>], judged_at: Nanos) -> Vec<u8> {
    let reason = verdict.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let call = match &verdict.tool {
        Some(tool) => format!("{} {tool}", verdict.method),
        None => verdict.method.to_string(),
    };
    Event {
        name: if verdict.revision > 1 { REVISED } else { VERDICT },
        severity: severity(verdict.state),
        body: format!("{call}: {}{reason}", verdict.state),
        time: verdict.evidence_time,
        span: verdict.operator.span,
        attributes: said,
    }
    .to_bytes(judged_at)
}

/// A scope's record. A failed session and a catalog known to be behind are warnings.
pub fn session(session: &Session, time: Nanos, judged_at: Nanos) -> Vec<u8> {
    let behind = matches!(session.convergence, Convergence::Stale | Convergence::Incomplete);
    let mut codes: Vec<&str> = session.findings.iter().map(|f| f.code.as_str()).collect();
    codes.dedup();
    let attributes = Fields::default()
        .text("mcp_verdict.scope", &session.scope)
        .name("mcp_verdict.session_id", &session.session_id)
        .word("mcp_verdict.era", session.era.as_str())
        .name("mcp_verdict.protocol_version", &session.protocol_version)
        .word("mcp_verdict.state", session.state.as_str())
        .word("mcp_verdict.convergence", session.convergence.as_str())
        .name("mcp_verdict.discovered_digest", &session.discovered_digest)
        .name("mcp_verdict.installed_digest", &session.installed_digest)
        .number("mcp_verdict.tool_count", session.tool_count)
        .number("mcp_verdict.pages", Some(session.pages))
        .number("mcp_verdict.requests", Some(session.requests))
        .texts("mcp_verdict.findings", codes.into_iter().map(str::to_string).collect())
        .texts("mcp_verdict.findings.detail", details(&session.findings));
    Event {
        name: SESSION,
        severity: if session.state == Rung::Failed || behind {
            Severity::Warn
        } else {
            Severity::Info
        },
        body: format!("session {}: catalog {}", session.state, session.convergence),
        time,
        span: session.span,
        attributes: &attributes.0,
    }
    .to_bytes(judged_at)
}

/// A changed definition. Breaking changes are errors, compatible ones information.
pub fn contract_drift(drift: &Drift, judged_at: Nanos) -> Vec<u8> {
    let changes = drift.changes.iter();
    let attributes = Fields::default()
        .text("mcp_verdict.server", &drift.server)
        .text("mcp_verdict.tool", &drift.tool)
        .word("mcp_verdict.grade", drift.grade.as_str())
        .text("mcp_verdict.scheme", &drift.scheme)
        .text("mcp_verdict.old_digest", &drift.old_digest)
        .name("mcp_verdict.new_digest", &drift.new_digest)
        .texts(
            "mcp_verdict.changes",
            changes.map(|c| format!("{}:{}:{}", c.grade, c.kind, c.pointer)).collect(),
        )
        .word("mcp_verdict.confidence", drift.confidence.as_str())
        .shown("mcp_verdict.first_seen", Some(drift.first_seen));
    Event {
        name: CONTRACT_DRIFT,
        severity: match drift.grade {
            Grade::Breaking => Severity::Error,
            Grade::Semantic | Grade::Unlocated => Severity::Warn,
            Grade::Compatible => Severity::Info,
        },
        body: format!("{} of {} drifted: {}", drift.tool, drift.server, drift.grade),
        time: drift.first_seen,
        span: drift.span,
        attributes: &attributes.0,
    }
    .to_bytes(judged_at)
}

/// Where an incident stands now. `contact` is what is configured for its owner.
pub fn incident(incident: &Incident, contact: Option<&str>, judged_at: Nanos) -> Vec<u8> {
    let names = |names: &[Name]| names.iter().map(|name| name.to_string()).collect();
    let attributes = Fields::default()
        .text("mcp_verdict.layer", &incident.layer)
        .shown("mcp_verdict.reason", Some(incident.reason))
        .text("mcp_verdict.server", &incident.server)
        .name("mcp_verdict.discriminator", &incident.discriminator)
        .word("mcp_verdict.status", incident.status.as_str())
        .number("mcp_verdict.count", Some(incident.count))
        .texts("mcp_verdict.agents", names(&incident.agents))
        .texts("mcp_verdict.tools", names(&incident.tools))
        .shown("mcp_verdict.first_seen", Some(incident.first_seen))
        .shown("mcp_verdict.last_seen", Some(incident.last_seen))
        .shown("mcp_verdict.resolved_at", incident.resolved_at)
        .word("mcp_verdict.owner", incident.owner.as_str())
        .word("mcp_verdict.next_step", incident.next_step.as_str())
        .shown("mcp_verdict.owner.contact", contact);
    let Incident { layer, reason, server, status, count, .. } = incident;
    Event {
        name: INCIDENT,
        severity: match incident.status {
            IncidentStatus::Open => Severity::Error,
            IncidentStatus::Recovering => Severity::Warn,
            IncidentStatus::Resolved | IncidentStatus::Expired => Severity::Info,
        },
        body: format!("incident {status}: {layer} {reason} at {server}, {count} failures"),
        time: incident.resolved_at.unwrap_or(incident.last_seen),
        span: incident.span,
        attributes: &attributes.0,
    }
    .to_bytes(judged_at)
}

fn details(findings: &[Finding]) -> Vec<String> {
    let detail = |f: &Finding| f.detail.as_ref().map(|d| format!("{}:{d}", f.code.as_str()));
    findings.iter().filter_map(detail).collect()
}

struct Event<'a> {
    name: &'static str,
    severity: Severity,
    body: String,
    time: Nanos,
    span: SpanRef,
    attributes: &'a [NewAttr<'a>],
}

impl Event<'_> {
    fn to_bytes(&self, judged_at: Nanos) -> Vec<u8> {
        NewRecord {
            time: self.time,
            observed_time: judged_at,
            severity_number: self.severity.number(),
            severity_text: self.severity.text(),
            event_name: self.name,
            body: Some(NewValue::from(self.body.as_str())),
            attributes: self.attributes,
            trace_id: id(&self.span.trace.0),
            span_id: id(&self.span.span.0),
            flags: None,
        }
        .to_bytes()
    }
}

/// An id of zeros is no id.
fn id(bytes: &[u8]) -> &[u8] {
    if bytes.iter().all(|b| *b == 0) { &[] } else { bytes }
}

/// Gathers attributes; absent values are left out.
#[derive(Default)]
struct Fields<'a>(Vec<NewAttr<'a>>);

impl<'a> Fields<'a> {
    fn word(mut self, key: &'static str, word: &'static str) -> Self {
        self.0.push(NewAttr::new(key, word));
        self
    }

    fn text(mut self, key: &'static str, name: &'a Name) -> Self {
        self.0.push(NewAttr::new(key, name.as_str()));
        self
    }

    fn name(mut self, key: &'static str, name: &'a Option<Name>) -> Self {
        self.0.extend(name.as_ref().map(|name| NewAttr::new(key, name.as_str())));
        self
    }

    fn number(mut self, key: &'static str, number: Option<u64>) -> Self {
        let number = number.map(|n| i64::try_from(n).unwrap_or(i64::MAX));
        self.0.extend(number.map(|number| NewAttr::new(key, number)));
        self
    }

    fn shown(mut self, key: &'static str, value: Option<impl ToString>) -> Self {
        self.0.extend(value.map(|value| NewAttr::new(key, value.to_string())));
        self
    }

    fn texts(mut self, key: &'static str, texts: Vec<String>) -> Self {
        if !texts.is_empty() {
            let value = NewValue::StrArray(texts.into_iter().map(Into::into).collect());
            self.0.push(NewAttr { key, value });
        }
        self
    }
}
