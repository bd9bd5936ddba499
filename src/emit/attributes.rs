//! The registry of `mcp_verdict.*` attributes of a verdict: where each stands, what its value is,
//! and one sentence. Spans and events are written from it, the documentation is printed from it.

use crate::emit::Enrich;
use crate::model::ids::Name;
use crate::model::record::Verdict;
use crate::model::words::*;
use crate::wire::encode::{NewAttr, NewValue};

/// The narrowest place where an attribute stands; each place holds all of those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stands {
    /// Request spans with `enrich: compact`, as far as it says something there.
    Compact,
    /// Request spans with `enrich: full`.
    Full,
    /// Events and verdict spans.
    Event,
}

pub struct Row {
    /// Whole key.
    pub key: &'static str,
    pub stands: Stands,
    /// `None` where the verdict has no such value.
    value: for<'a> fn(&'a Verdict) -> Option<NewValue<'a>>,
    /// Whether a span with `enrich: compact` or `full` carries the value.
    on_span: fn(&Verdict) -> bool,
    pub says: &'static str,
}

macro_rules! rows {
    ($($key:literal, $stands:ident $(if $when:expr)?, $value:expr, $says:literal;)*) => {
        &[$(Row {
            key: concat!("mcp_verdict.", $key),
            stands: Stands::$stands,
            value: $value,
            on_span: rows!(@when $($when)?),
            says: $says,
        }),*]
    };
    (@when) => { |_| true };
    (@when $when:expr) => { $when };
}

fn word<'a>(text: &'static str) -> Option<NewValue<'a>> {
    Some(NewValue::from(text))
}

fn name(name: &Option<Name>) -> Option<NewValue<'_>> {
    name.as_ref().map(|name| NewValue::from(name.as_str()))
}

fn shown<'a>(value: impl ToString) -> Option<NewValue<'a>> {
    Some(NewValue::from(value.to_string()))
}

fn number<'a>(value: u32) -> Option<NewValue<'a>> {
    Some(NewValue::from(i64::from(value)))
}

fn somebody(verdict: &Verdict) -> bool {
    verdict.owner != Owner::None
}

/// In the order in which they are written.
pub const VERDICT: &[Row] = rows! {
    "state", Compact, |v| word(v.state.as_str()), "what to do next, in one word";
    "reason", Compact, |v| v.reason.and_then(shown), "why";
    "first_failed_layer", Compact, |v| word(v.first_failed_layer?.as_str()),
        "where this attempt broke";
    "next_step", Compact if somebody, |v| word(v.next_step.as_str()), "the next safe step";
    "owner", Compact if somebody, |v| word(v.owner.as_str()), "who takes the next step";
    "confidence", Compact if |v| v.confidence == Confidence::Weak,
        |v| word(v.confidence.as_str()), "weak where the verdict rests on an opinion or a guess";
    "chain.id", Compact, |v| shown(v.id), "the chain, the same for all its revisions";
    "revision", Compact if |v| v.revision > 1, |v| number(v.revision), "counts from 1";
    "findings", Compact, codes, "codes of named defects";
    "lifecycle", Full, |v| word(v.lifecycle.as_str()), "how far the request came";
    "layer.session", Full, |v| word(v.layers.session.as_str()), "rung of the health contract";
    "layer.catalog", Full, |v| word(v.layers.catalog.as_str()), "rung of the health contract";
    "layer.request", Full, |v| word(v.layers.request.as_str()), "rung of the health contract";
    "layer.effect", Full, |v| word(v.layers.effect.as_str()), "rung of the health contract";
    "layer.outcome", Full, |v| word(v.layers.outcome.as_str()), "rung of the health contract";
    "failure.transport", Full, |v| word(v.failure_layers.transport.as_str()),
        "rung of the failure ladder";
    "failure.protocol", Full, |v| word(v.failure_layers.protocol.as_str()),
        "rung of the failure ladder";
    "failure.authority", Full, |v| word(v.failure_layers.authority.as_str()),
        "rung of the failure ladder";
    "failure.execution", Full, |v| word(v.failure_layers.execution.as_str()),
        "rung of the failure ladder";
    "failure.outcome", Full, |v| word(v.failure_layers.outcome.as_str()),
        "rung of the failure ladder";
    "convergence", Full, |v| word(v.convergence?.as_str()), "the catalog at the call's start";
    "contract.status", Full, |v| word(v.contract.status?.as_str()),
        "the tool against its reference";
    "contract.digest", Full, |v| name(&v.contract.digest), "the definition the caller holds";
    "retry", Full, |v| word(v.retry.as_str()), "whether trying again is safe";
    "operation.id", Full, |v| name(&v.operation_id), "joins attempts and rounds";
    "supersedes", Event, |v| number(v.supersedes?), "the revision this one replaces";
    "merged_into", Event, |v| v.operator.merged_into.and_then(shown),
        "the chain this one turned out to be";
    "scope", Event, |v| Some(NewValue::from(v.scope.as_str())), "opaque and stable";
    "session_id", Event, |v| name(&v.session_id), "Mcp-Session-Id from the wire";
    "era", Event, |v| word(v.era.as_str()), "legacy, modern or unknown";
    "protocol_version", Event, |v| name(&v.protocol_version), "MCP version";
    "transport", Event, |v| word(v.transport?.as_str()), "http or stdio";
    "agent", Event, |v| name(&v.agent), "who asked";
    "server", Event, |v| Some(NewValue::from(v.server.as_str())), "who was asked";
    "method", Event, |v| Some(NewValue::from(v.method.as_str())), "JSON-RPC method";
    "tool", Event, |v| name(&v.tool), "the tool of a call";
    "request_id", Event, |v| name(&v.request_id), "JSON-RPC id as the wire gave it";
    "attempt", Event, |v| number(v.attempt), "counts from 1";
    "effect", Event, |v| word(v.effect?.as_str()), "what is known of the side effect";
    "outcome.status", Event, |v| word(v.outcome.status?.as_str()),
        "what a check of the outcome said";
    "outcome.method", Event, |v| word(v.outcome.method?.as_str()), "how the outcome was checked";
    "findings.detail", Event, details, "code:detail of the findings that point at something";
    "trace_id", Event, |v| v.trace_id.and_then(shown), "trace of the request";
    "client_span_id", Event, |v| v.client_span_id.and_then(shown), "asking half";
    "server_span_id", Event, |v| v.server_span_id.and_then(shown), "answering half";
    "start_time", Event, |v| shown(v.start_time), "Unix nanoseconds";
    "end_time", Event, |v| v.end_time.and_then(shown), "Unix nanoseconds";
    "evidence_time", Event, |v| shown(v.evidence_time), "newest evidence, Unix nanoseconds";
    "impact", Event, |v| word(v.operator.impact?.as_str()), "what may have happened to the world";
    "required_scope", Event, |v| name(&v.operator.required_scope), "scope the server asks for";
    "agent.run", Event, |v| name(&v.operator.agent_run), "the run that owns the request";
    "owner.contact", Event, |v| v.operator.owner_contact.as_deref().map(NewValue::from),
        "configured text";
};

fn codes(verdict: &Verdict) -> Option<NewValue<'_>> {
    let mut codes: Vec<&str> = verdict.findings.iter().map(|f| f.code.as_str()).collect();
    codes.dedup();
    (!codes.is_empty()).then(|| codes.into_iter().collect())
}

fn details(verdict: &Verdict) -> Option<NewValue<'_>> {
    let detail = |f: &crate::model::findings::Finding| {
        f.detail.as_ref().map(|detail| format!("{}:{detail}", f.code.as_str()).into())
    };
    let details: Vec<_> = verdict.findings.iter().filter_map(detail).collect();
    (!details.is_empty()).then_some(NewValue::StrArray(details))
}

/// What a request span gains.
pub fn on_span(verdict: &Verdict, enrich: Enrich) -> Vec<NewAttr<'_>> {
    let widest = match enrich {
        Enrich::Compact => Stands::Compact,
        Enrich::Full => Stands::Full,
    };
    collect(verdict, |row| row.stands <= widest && (row.on_span)(verdict))
}

/// What an event and a verdict span say: every value the verdict has.
pub fn on_event(verdict: &Verdict) -> Vec<NewAttr<'_>> {
    collect(verdict, |_| true)
}

fn collect<'a>(verdict: &'a Verdict, wanted: impl Fn(&Row) -> bool) -> Vec<NewAttr<'a>> {
    let value = |row: &Row| (row.value)(verdict).map(|value| NewAttr { key: row.key, value });
    VERDICT.iter().filter(|row| wanted(row)).filter_map(value).collect()
}
