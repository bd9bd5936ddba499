//! Scanning: what is refused, and that views say what the independent reader says.

use mcp_verdict::wire::Signal;
use mcp_verdict::wire::fields::{put_bytes_field, put_varint_field};
use mcp_verdict::wire::scan::{ValueRef, check, resource_spans};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message;

fn field(number: u32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes_field(&mut out, number, body);
    out
}

/// An export of one span with one attribute that nests so many arrays.
fn nested_arrays(depth: usize) -> Vec<u8> {
    let mut value = Vec::new();
    for _ in 0..depth {
        value = field(5, &field(1, &value));
    }
    let attribute = field(9, &[field(1, b"deep"), field(2, &value)].concat());
    field(1, &field(2, &field(2, &attribute)))
}

#[test]
fn depth_is_counted_from_the_request() {
    // Request, resource, scope, span, attribute and value are six; each array adds two.
    assert!(check(Signal::Traces, &nested_arrays(47)).is_ok());
    assert!(check(Signal::Traces, &nested_arrays(48)).is_err());
    assert!(ExportTraceServiceRequest::decode(nested_arrays(47).as_slice()).is_ok());
}

#[test]
fn a_cut_export_is_refused_at_every_length() {
    let whole = nested_arrays(3);
    for length in 1..whole.len() {
        assert!(check(Signal::Traces, &whole[..length]).is_err(), "cut at {length}");
    }
    let counts = check(Signal::Traces, &whole).expect("the whole export");
    assert_eq!((counts.resources, counts.items), (1, 1));
}

#[test]
fn a_known_field_of_another_wire_type_is_refused_an_unknown_field_is_not() {
    let mut span = Vec::new();
    put_varint_field(&mut span, 5, 7);
    let export = |span: &[u8]| field(1, &field(2, &field(2, span)));
    assert!(check(Signal::Traces, &export(&span)).is_err());
    span.clear();
    put_varint_field(&mut span, 5000, 7);
    assert!(check(Signal::Traces, &export(&span)).is_ok());
}

#[test]
fn a_view_says_what_the_independent_reader_says() {
    let value = |value| Some(AnyValue { value: Some(value) });
    let attribute = |key: &str, v| KeyValue { key: key.into(), value: value(v), key_strindex: 0 };
    let span = Span {
        trace_id: vec![1; 16],
        span_id: vec![2; 8],
        parent_span_id: vec![3; 8],
        name: "tools/call weather".into(),
        kind: 3,
        start_time_unix_nano: 5,
        end_time_unix_nano: 9,
        flags: 0x101,
        attributes: vec![
            attribute("mcp.method.name", Value::StringValue("tools/call".into())),
            attribute("n", Value::IntValue(-1)),
        ],
        status: Some(Status { code: 2, message: "failed".into() }),
        ..Span::default()
    };
    let export = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            scope_spans: vec![ScopeSpans { spans: vec![span], ..ScopeSpans::default() }],
            ..ResourceSpans::default()
        }],
    }
    .encode_to_vec();
    let resource = resource_spans(&export).next().expect("a resource");
    let view = resource.scopes().next().and_then(|scope| scope.spans().next()).expect("a span");
    assert_eq!((view.trace_id(), view.span_id()), (&[1u8; 16][..], &[2u8; 8][..]));
    assert_eq!((view.parent_span_id(), view.kind()), (&[3u8; 8][..], 3));
    assert_eq!((view.start(), view.end(), view.flags()), (5, 9, Some(0x101)));
    assert_eq!((view.status_code(), view.status_message().as_str()), (2, Some("failed")));
    assert_eq!(view.name(), "tools/call weather");
    assert_eq!(&export[view.offset..view.offset + view.bytes.len()], view.bytes);
    let attributes: Vec<_> = view.attributes().collect();
    assert_eq!(attributes[0].key, "mcp.method.name");
    assert_eq!(attributes[0].value.as_str(), Some("tools/call"));
    assert!(matches!(attributes[1].value, ValueRef::Int(-1)));
}

#[test]
fn split_messages_are_merged_and_interleaved_lists_keep_their_order() {
    let attribute = |key: &str| [field(1, key.as_bytes()), field(2, &field(1, b"v"))].concat();
    let keys = |attributes: Vec<mcp_verdict::wire::scan::Attr<'_>>| -> Vec<String> {
        attributes.iter().map(|attr| attr.key.to_string()).collect()
    };
    let event = |name: &str| field(11, &field(2, name.as_bytes()));
    let span = [
        field(9, &attribute("a")),
        event("first"),
        field(5, b"old name"),
        field(9, &attribute("b")),
        event("second"),
        field(5, b"new name"),
        field(9, &attribute("b")),
    ]
    .concat();
    let scope = [field(1, &field(1, b"s")), field(2, &span), field(1, &field(2, b"7"))].concat();
    let resource = [
        field(1, &field(1, &attribute("x"))),
        field(2, &scope),
        field(3, b"url"),
        field(1, &field(1, &attribute("y"))),
    ]
    .concat();
    let export = field(1, &resource);
    let resource = resource_spans(&export).next().expect("a resource");
    assert_eq!(keys(resource.attributes().collect()), ["x", "y"]);
    assert_eq!(resource.schema_url(), "url");
    let origin = [
        field(1, &field(1, &attribute("x"))),
        field(3, b"url"),
        field(1, &field(1, &attribute("y"))),
    ];
    assert_eq!(resource.origin(), origin.concat());
    let scope = resource.scopes().next().expect("a scope");
    assert_eq!((scope.name().as_str(), scope.version().as_str()), (Some("s"), Some("7")));
    let span = scope.spans().next().expect("a span");
    assert_eq!(span.name(), "new name");
    assert_eq!(keys(span.attributes().collect()), ["a", "b", "b"]);
    let names: Vec<_> = span.events().map(|event| event.name.to_string()).collect();
    assert_eq!(names, ["first", "second"]);
}

#[test]
fn text_that_is_not_utf8_passes_and_is_no_text() {
    let attribute = [field(1, b"k"), field(2, &field(1, b"\xff"))].concat();
    let span = [field(5, b"name \xff"), field(9, &attribute)].concat();
    let export = field(1, &field(2, &field(2, &span)));
    assert!(check(Signal::Traces, &export).is_ok());
    let scopes = resource_spans(&export).flat_map(|resource| resource.scopes());
    let span = scopes.flat_map(|scope| scope.spans()).next().expect("a span");
    assert_eq!(span.name().as_str(), None);
    assert_eq!(span.name().lossy(), "name \u{fffd}");
    let value = span.attributes().next().expect("an attribute").value;
    assert!(matches!(value, ValueRef::NotUtf8(b"\xff")));
}

#[test]
fn groups_are_skipped_when_they_are_balanced() {
    // Field 2000 as a group: tag 2000 << 3 | 3, a varint field in it, tag 2000 << 3 | 4.
    let balanced = [0x83, 0x7d, 0x08, 0x01, 0x84, 0x7d];
    assert!(check(Signal::Traces, &balanced).is_ok());
    assert!(check(Signal::Traces, &balanced[..4]).is_err());
    assert!(check(Signal::Traces, &balanced[4..]).is_err());
    assert!(check(Signal::Traces, &[0x83, 0x7d].repeat(100_000)).is_err());
}
