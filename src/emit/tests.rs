//! One verdict of each state as an event, a span and attributes, read back by an independent
//! reader.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use super::attributes::on_event;
use super::metrics::{Counted, Sample};
use super::*;
use crate::model::findings::{Code, Detail, Finding};
use crate::model::ids::{Digest16, Name, SpanId, SpanRef, TraceId};
use crate::model::record::*;
use crate::model::words::*;
use crate::wire::Signal;
use crate::wire::splice::redact_export;

/// A call that ended so; only what matters to emission is filled in.
fn sample(state: State) -> Verdict {
    let (owner, next_step, retry, reason) = match state {
        State::NeedsAuth => {
            let reason = Some(Reason::InvalidToken);
            (Owner::CredentialOwner, NextStep::RefreshCredentialOnce, Retry::Once, reason)
        }
        State::Working => (Owner::None, NextStep::Wait, Retry::Never, Some(Reason::InProgress)),
        State::Healthy => (Owner::None, NextStep::Continue, Retry::Never, None),
        State::Cancelled => (Owner::None, NextStep::None, Retry::Never, Some(Reason::Cancelled)),
        State::Unverified => {
            let reason = Some(Reason::Unobserved(Layer::Outcome));
            (Owner::OutcomeOwner, NextStep::VerifyOutcome, Retry::Never, reason)
        }
        State::Unreachable => {
            let reason = Some(Reason::Http(503));
            (Owner::AvailabilityOwner, NextStep::CheckAvailability, Retry::BoundedBackoff, reason)
        }
        _ => {
            (Owner::ToolOwner, NextStep::InspectToolOrInput, Retry::Never, Some(Reason::ToolError))
        }
    };
    let at = SpanRef { trace: TraceId([1; 16]), span: SpanId([2; 8]) };
    let rung = if state == State::Healthy { Rung::Passed } else { Rung::Unobserved };
    Verdict {
        id: Digest16([7; 16]),
        revision: 1,
        supersedes: None,
        scope: Name::new("s1"),
        session_id: Some(Name::new("session")),
        era: Era::Legacy,
        protocol_version: Some(Name::new("2025-06-18")),
        transport: Some(Transport::Http),
        agent: Some(Name::new("agent")),
        server: Name::new("srv"),
        method: Name::new("tools/call"),
        tool: Some(Name::new("send_mail")),
        request_id: Some(Name::new("4")),
        operation_id: None,
        attempt: 1,
        state,
        reason,
        lifecycle: if state == State::Working { Lifecycle::Open } else { Lifecycle::Complete },
        layers: Layers { session: rung, catalog: rung, request: rung, effect: rung, outcome: rung },
        failure_layers: FailureLayers {
            transport: Rung::Passed,
            protocol: rung,
            authority: rung,
            execution: rung,
            outcome: rung,
        },
        first_failed_layer: (state == State::ToolFailed).then_some(FailureLayer::Execution),
        convergence: Some(Convergence::Converged),
        contract: Contract::default(),
        effect: None,
        outcome: Outcome::default(),
        confidence: Confidence::Strong,
        findings: vec![
            Finding::new(Code::ResponseLost, vec![at.span]),
            Finding::new(Code::SecretInAttribute, vec![at.span])
                .detail(Detail::Key(Name::new("http.header"))),
        ],
        next_step,
        owner,
        retry,
        trace_id: Some(at.trace),
        client_span_id: Some(at.span),
        server_span_id: None,
        start_time: 1_000,
        end_time: (state != State::Working).then_some(2_000),
        evidence_time: 3_000,
        operator: OperatorRow {
            impact: Some(Impact::Blocked),
            owner_contact: Some("#oncall".into()),
            span: at,
            ..OperatorRow::default()
        },
    }
}

fn text(value: &AnyValue) -> String {
    match &value.value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::ArrayValue(items)) => {
            format!("[{}]", items.values.iter().map(text).collect::<Vec<_>>().join(", "))
        }
        other => format!("{other:?}"),
    }
}

fn lines(attributes: &[KeyValue]) -> String {
    let value = |a: &KeyValue| a.value.as_ref().map(text).unwrap_or_default();
    attributes.iter().map(|a| format!("  {} = {}\n", a.key, value(a))).collect()
}

#[test]
fn an_event_for_each_state() {
    let mut shown = String::new();
    for state in State::ALL {
        let bytes = event::verdict(&sample(*state), &on_event(&sample(*state)), 9_000);
        let record = LogRecord::decode(&*bytes).unwrap();
        assert_eq!((record.time_unix_nano, record.observed_time_unix_nano), (3_000, 9_000));
        assert_eq!((record.trace_id.len(), record.span_id.len()), (16, 8));
        let body = record.body.as_ref().map(text).unwrap_or_default();
        shown += &format!("{} {} {body}\n", record.event_name, record.severity_text);
        if *state == State::NeedsAuth {
            shown += &lines(&record.attributes);
        }
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_repeat_is_equal_in_all_but_the_observed_time() {
    let verdict = sample(State::ToolFailed);
    let at = |judged_at| {
        LogRecord::decode(&*event::verdict(&verdict, &on_event(&verdict), judged_at)).unwrap()
    };
    let (mut first, second) = (at(5), at(6));
    first.observed_time_unix_nano = 6;
    assert_eq!(first, second);
}

#[test]
fn later_revisions_have_a_name_of_their_own() {
    let mut verdict = sample(State::Healthy);
    (verdict.revision, verdict.supersedes) = (2, Some(1));
    let record = LogRecord::decode(&*event::verdict(&verdict, &on_event(&verdict), 1)).unwrap();
    assert_eq!(record.event_name, "mcp_verdict.revised");
    let has = |key: &str| record.attributes.iter().any(|a| a.key == key);
    assert!(has("mcp_verdict.supersedes") && has("mcp_verdict.revision"));
}

#[test]
fn request_spans_gain_little_or_all() {
    let keys = |verdict: &Verdict, enrich| {
        let found: Vec<_> = attributes::on_span(verdict, enrich)
            .iter()
            .map(|attr| attr.key[12..].to_string())
            .collect();
        found.join(" ")
    };
    let healthy = sample(State::Healthy);
    assert_eq!(keys(&healthy, Enrich::Compact), "state chain.id findings");
    let mut failed = sample(State::ToolFailed);
    assert_eq!(
        keys(&failed, Enrich::Compact),
        "state reason first_failed_layer next_step owner chain.id findings"
    );
    (failed.revision, failed.confidence) = (2, Confidence::Weak);
    failed.findings.clear();
    failed.operation_id = Some(Name::new("op"));
    failed.contract.status = Some(ContractStatus::Pinned);
    insta::assert_snapshot!(keys(&failed, Enrich::Full));
}

#[test]
fn a_verdict_span_is_a_child_of_its_request_with_an_event_a_rung() {
    let verdict = sample(State::NeedsAuth);
    let span = Span::decode(&*span::verdict(&verdict, &on_event(&verdict))).unwrap();
    assert_eq!(span.name, "mcp verdict needs_auth");
    assert_eq!(span.parent_span_id, verdict.operator.span.span.0);
    assert_eq!((span.start_time_unix_nano, span.end_time_unix_nano), (2_000, 2_000));
    assert_eq!(span.status.as_ref().map(|s| (s.code, &*s.message)), Some((2, "invalid_token")));
    let events: Vec<_> = span.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(events.len(), 10);
    assert_eq!(events[0], "mcp_verdict.layer.session");
    let mut next = verdict.clone();
    next.revision = 2;
    assert_ne!(span::id(next.id, 2), span::id(verdict.id, 1));
    assert!(Span::decode(&*span::verdict(&sample(State::Healthy), &[])).unwrap().status.is_none());
}

#[test]
fn which_verdicts_leave() {
    let problems = |state, revision| Which::Problems.wants(&Verdict { revision, ..sample(state) });
    assert!(problems(State::FalseSuccess, 1) && problems(State::Healthy, 2));
    assert!(!problems(State::Healthy, 1) && !problems(State::Unverified, 1));
    assert!(Which::All.wants(&sample(State::Working)));
    assert!(!Which::None.wants(&sample(State::NeedsAuth)));
}

fn names(samples: &[Sample]) -> Vec<&str> {
    samples.iter().map(|sample| &sample.metric["mcp_verdict.".len()..]).collect()
}

#[test]
fn a_chain_counts_once() {
    let mut working = sample(State::Working);
    working.findings.clear();
    let (counted, samples) = metrics::verdict(&working, &Counted::default());
    assert!(samples.is_empty());
    let mut healthy = sample(State::Healthy);
    healthy.findings.clear();
    healthy.outcome.status = Some(OutcomeStatus::Verified);
    let (counted, samples) = metrics::verdict(&healthy, &counted);
    assert_eq!(
        names(&samples),
        [
            "revisions",
            "verdicts",
            "agent.verdicts",
            "attempts",
            "catalog",
            "protocol_success",
            "verified_success"
        ]
    );
    let failed = sample(State::FalseSuccess);
    let (counted, samples) = metrics::verdict(&failed, &counted);
    assert_eq!(names(&samples), ["revisions", "findings", "findings"]);
    let (_, samples) = metrics::verdict(&healthy, &counted);
    assert_eq!(names(&samples), ["revisions"]);
}

#[test]
fn a_tool_that_no_catalog_holds_is_no_label() {
    let mut verdict = sample(State::ProtocolError);
    let tool = |verdict: &Verdict| {
        let (_, samples) = metrics::verdict(verdict, &Counted::default());
        let sample = samples.into_iter().find(|s| s.metric == metrics::VERDICTS.name).unwrap();
        sample.labels.into_iter().find(|(key, _)| *key == "tool").unwrap().1
    };
    assert_eq!(tool(&verdict), "send_mail");
    verdict.findings = vec![Finding::new(Code::UnknownTool, Vec::new())];
    assert_eq!(tool(&verdict), "");
}

#[test]
fn redaction_drops_or_digests_content_and_nothing_else() {
    let json = br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"a","attributes":[
        {"key":"gen_ai.tool.call.arguments","value":{"stringValue":"canary"}},
        {"key":"mcp.request.argument.to","value":{"stringValue":"canary"}},
        {"key":"mcp_evidence.list.definitions","value":{"stringValue":"canary"}},
        {"key":"mcp.method.name","value":{"stringValue":"tools/call"}}],
        "events":[{"attributes":[{"key":"output.value","value":{"kvlistValue":{"values":[
            {"key":"a","value":{"stringValue":"canary"}}]}}}]}]}]}]}]}"#;
    let limits = crate::wire::json::Limits { max_bytes: 1 << 20 };
    let export = crate::wire::json::to_protobuf(Signal::Traces, json, limits).unwrap().bytes;
    let with = |content, definitions| {
        let plan = redaction::Plan { content, definitions };
        let done =
            redact_export(Signal::Traces, &export, &|place, value| plan.decide(place, value));
        String::from_utf8_lossy(&done).into_owned()
    };
    assert_eq!(with(Redact::Keep, Redact::Keep), String::from_utf8_lossy(&export));
    let dropped = with(Redact::Drop, Redact::Drop);
    assert!(!dropped.contains("canary") && dropped.contains("tools/call"));
    assert!(!dropped.contains("arguments"));
    let digested = with(Redact::Digest, Redact::Digest);
    assert!(!digested.contains("canary"));
    assert_eq!(digested.matches("sha256:").count(), 4);
    assert_eq!(with(Redact::Drop, Redact::Keep).matches("canary").count(), 1);
}
