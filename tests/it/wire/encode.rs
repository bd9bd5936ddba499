//! What this program writes itself is what the independent reader reads.

use mcp_verdict::wire::Signal;
use mcp_verdict::wire::encode::{
    NewAttr, NewEvent, NewLink, NewRecord, NewSpan, NewValue, resource_origin, scope_origin,
};
use mcp_verdict::wire::regroup::{Part, regroup};
use mcp_verdict::wire::scan::check;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use prost::Message;

fn pair(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.into(), value: Some(AnyValue { value: Some(value) }), key_strindex: 0 }
}

#[test]
fn a_span_with_all_its_parts() {
    let span = NewSpan {
        trace_id: &[1; 16],
        span_id: &[2; 8],
        parent_span_id: &[3; 8],
        trace_state: "a=b",
        name: "mcp_verdict tools/call",
        kind: 1,
        start: 10,
        end: 20,
        attributes: &[NewAttr::new("d", 0.5), NewAttr::new("s", String::from("x"))],
        events: &[NewEvent { time: 15, name: "e", attributes: &[NewAttr::new("n", 1i64)] }],
        links: &[NewLink { trace_id: &[4; 16], span_id: &[5; 8], attributes: &[] }],
        status_code: 2,
        status_message: "why",
        flags: Some(1),
    };
    let item = span.to_bytes();
    let resource = resource_origin(&[NewAttr::new("service.name", "mcp-verdict")]);
    let scope = scope_origin("mcp-verdict", "1");
    let export = regroup(&[Part { resource: &resource, scope: &scope, item: &item }]);
    assert_eq!(check(Signal::Traces, &export).map(|counts| counts.items), Ok(1));
    let read = ExportTraceServiceRequest::decode(export.as_slice()).expect("readable");
    let resource = read.resource_spans[0].resource.as_ref().expect("a resource");
    let service = Value::StringValue("mcp-verdict".into());
    assert_eq!(resource.attributes, [pair("service.name", service)]);
    let scope = &read.resource_spans[0].scope_spans[0];
    assert_eq!(
        scope.scope.as_ref().map(|s| (s.name.as_str(), s.version.as_str())),
        Some(("mcp-verdict", "1"))
    );
    let read = &scope.spans[0];
    assert_eq!((&read.trace_id[..], &read.span_id[..]), (&[1u8; 16][..], &[2u8; 8][..]));
    assert_eq!((&read.parent_span_id[..], read.trace_state.as_str()), (&[3u8; 8][..], "a=b"));
    assert_eq!((read.name.as_str(), read.kind, read.flags), ("mcp_verdict tools/call", 1, 1));
    assert_eq!((read.start_time_unix_nano, read.end_time_unix_nano), (10, 20));
    let text = pair("s", Value::StringValue("x".into()));
    assert_eq!(read.attributes, [pair("d", Value::DoubleValue(0.5)), text]);
    assert_eq!((read.events[0].time_unix_nano, read.events[0].name.as_str()), (15, "e"));
    assert_eq!(read.events[0].attributes, [pair("n", Value::IntValue(1))]);
    assert_eq!((read.links[0].trace_id.len(), read.links[0].span_id.len()), (16, 8));
    let status = read.status.as_ref().expect("a status");
    assert_eq!((status.code, status.message.as_str()), (2, "why"));
}

#[test]
fn a_record_with_all_its_parts() {
    let record = NewRecord {
        time: 1,
        observed_time: 2,
        severity_number: 17,
        severity_text: "ERROR",
        event_name: "mcp_verdict.verdict",
        body: Some(NewValue::from("said")),
        attributes: &[NewAttr::new("k", false)],
        trace_id: &[1; 16],
        span_id: &[2; 8],
        flags: Some(1),
    };
    let item = record.to_bytes();
    let export = regroup(&[Part { resource: &[], scope: &[], item: &item }]);
    let read = ExportLogsServiceRequest::decode(export.as_slice()).expect("readable");
    let read = &read.resource_logs[0].scope_logs[0].log_records[0];
    assert_eq!((read.time_unix_nano, read.observed_time_unix_nano), (1, 2));
    assert_eq!((read.severity_number, read.severity_text.as_str()), (17, "ERROR"));
    assert_eq!((read.event_name.as_str(), read.flags), ("mcp_verdict.verdict", 1));
    assert_eq!(read.body, pair("", Value::StringValue("said".into())).value);
    assert_eq!(read.attributes, [pair("k", Value::BoolValue(false))]);
    assert_eq!((read.trace_id.len(), read.span_id.len()), (16, 8));
}
