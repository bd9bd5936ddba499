//! Splicing: an edited span decodes to the old span with what was asked for, and nothing else.

use mcp_verdict::wire::Signal;
use mcp_verdict::wire::encode::NewAttr;
use mcp_verdict::wire::fields::Fields;
use mcp_verdict::wire::scan::ValueRef;
use mcp_verdict::wire::splice::{Edit, Place, Redaction, enrich, enrich_record, redact_export};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::Span;
use proptest::prelude::*;
use prost::Message;

use super::arbitrary::{logs, record, span, traces, unknown};

fn string(text: &str) -> AnyValue {
    AnyValue { value: Some(Value::StringValue(text.into())) }
}

fn pair(key: &str, value: AnyValue) -> KeyValue {
    KeyValue { key: key.into(), value: Some(value), key_strindex: 0 }
}

/// What is added in these tests, for us and for the independent reader.
fn added() -> (Vec<NewAttr<'static>>, Vec<KeyValue>) {
    let ours = vec![
        NewAttr::new("mcp_verdict.state", "tool_error"),
        NewAttr::new("a", -7i64),
        NewAttr::new("mcp_verdict.late", true),
        NewAttr { key: "mcp_verdict.findings", value: ["x", "y"].into_iter().collect() },
    ];
    let array = ArrayValue { values: vec![string("x"), string("y")] };
    let theirs = vec![
        pair("mcp_verdict.state", string("tool_error")),
        pair("a", AnyValue { value: Some(Value::IntValue(-7)) }),
        pair("mcp_verdict.late", AnyValue { value: Some(Value::BoolValue(true)) }),
        pair("mcp_verdict.findings", AnyValue { value: Some(Value::ArrayValue(array)) }),
    ];
    (ours, theirs)
}

/// The fields of a message but its attributes, byte for byte.
fn but_attributes(message: &[u8], attributes: u32) -> Vec<u8> {
    Fields::new(message)
        .map(|field| field.expect("readable"))
        .filter(|field| field.number != attributes)
        .flat_map(|field| message[field.range].to_vec())
        .collect()
}

/// Replaces `gen_ai.a`, drops `gen_ai.b` and bodies, in our words.
fn redact(place: Place<'_>, _: &ValueRef<'_>) -> Redaction {
    match place {
        Place::Attribute("gen_ai.a") => Redaction::Replace("sha256:0".into()),
        Place::Attribute("gen_ai.b") | Place::Body => Redaction::Drop,
        Place::Attribute(_) => Redaction::Keep,
    }
}

/// The same on the independent reader's types.
fn redact_theirs(attributes: &mut Vec<KeyValue>) {
    attributes.retain(|attribute| attribute.key != "gen_ai.b");
    for attribute in attributes.iter_mut().filter(|attribute| attribute.key == "gen_ai.a") {
        attribute.value = Some(string("sha256:0"));
    }
}

fn redact_span(span: &mut Span) {
    redact_theirs(&mut span.attributes);
    span.events.iter_mut().for_each(|event| redact_theirs(&mut event.attributes));
    span.links.iter_mut().for_each(|link| redact_theirs(&mut link.attributes));
}

fn redact_record(record: &mut LogRecord) {
    redact_theirs(&mut record.attributes);
    record.body = None;
}

proptest! {
    #[test]
    fn an_enriched_span_is_the_old_span_and_the_added_attributes(
        span in span(), before in unknown(), behind in unknown(),
    ) {
        let bytes = [before, span.encode_to_vec(), behind].concat();
        let (ours, theirs) = added();
        let prefix = Some("mcp_verdict.");
        let new = enrich(&bytes, &Edit { add: &ours, replace_prefix: prefix, redact: None });
        let mut expected = span;
        expected.attributes.retain(|attribute| {
            !attribute.key.starts_with("mcp_verdict.") && attribute.key != "a"
        });
        expected.attributes.extend(theirs);
        prop_assert_eq!(Span::decode(new.as_slice()).expect("readable"), expected);
        prop_assert_eq!(but_attributes(&new, 9), but_attributes(&bytes, 9));
    }

    #[test]
    fn an_empty_edit_changes_no_byte(span in span(), behind in unknown()) {
        let bytes = [span.encode_to_vec(), behind].concat();
        prop_assert_eq!(enrich(&bytes, &Edit::default()), bytes);
    }

    #[test]
    fn redaction_reaches_events_and_links_and_nothing_else(span in span(), behind in unknown()) {
        let bytes = [span.encode_to_vec(), behind.clone()].concat();
        let new = enrich(&bytes, &Edit { redact: Some(&redact), ..Edit::default() });
        let mut expected = span;
        redact_span(&mut expected);
        prop_assert_eq!(Span::decode(new.as_slice()).expect("readable"), expected);
        prop_assert!(new.ends_with(&behind));
    }

    #[test]
    fn a_record_is_edited_like_a_span(record in record()) {
        let (ours, theirs) = added();
        let edit = Edit { add: &ours, redact: Some(&redact), replace_prefix: None };
        let new = enrich_record(&record.encode_to_vec(), &edit);
        let mut expected = record;
        redact_record(&mut expected);
        expected.attributes.retain(|old| theirs.iter().all(|new| new.key != old.key));
        expected.attributes.extend(theirs);
        prop_assert_eq!(LogRecord::decode(new.as_slice()).expect("readable"), expected);
    }

    #[test]
    fn a_redacted_export_keeps_all_else(traces in traces(), logs in logs()) {
        let bytes = traces.encode_to_vec();
        let new = redact_export(Signal::Traces, &bytes, &redact);
        let mut expected = traces;
        let scopes = expected.resource_spans.iter_mut().flat_map(|r| &mut r.scope_spans);
        scopes.flat_map(|scope| &mut scope.spans).for_each(redact_span);
        let read = ExportTraceServiceRequest::decode(&new[..]).expect("readable");
        prop_assert_eq!(read, expected);

        let bytes = logs.encode_to_vec();
        let new = redact_export(Signal::Logs, &bytes, &redact);
        let mut expected = logs;
        let scopes = expected.resource_logs.iter_mut().flat_map(|r| &mut r.scope_logs);
        scopes.flat_map(|scope| &mut scope.log_records).for_each(redact_record);
        prop_assert_eq!(ExportLogsServiceRequest::decode(&new[..]).expect("readable"), expected);
    }

    #[test]
    fn bytes_that_are_no_span_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let (ours, _) = added();
        let new = enrich(&bytes, &Edit { add: &ours, ..Edit::default() });
        if Fields::new(&bytes).any(|field| field.is_err()) {
            prop_assert_eq!(new, bytes);
        } else {
            prop_assert!(Fields::new(&new).all(|field| field.is_ok()));
        }
    }
}
