//! What the byte layer costs a span, beside decoding and encoding with `prost` in the same run.
//!
//! `cargo test --release --test it wire::cost -- --ignored --nocapture`

use std::hint::black_box;
use std::time::Instant;

use mcp_verdict::wire::Signal;
use mcp_verdict::wire::encode::NewAttr;
use mcp_verdict::wire::json::{Limits, from_protobuf, to_protobuf};
use mcp_verdict::wire::regroup::{Part, regroup, remove_items};
use mcp_verdict::wire::scan::{check, resource_spans};
use mcp_verdict::wire::splice::{Edit, enrich};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message;

const SPANS: usize = 512;

fn pair(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.into(), value: Some(AnyValue { value: Some(value) }), key_strindex: 0 }
}

/// A batch as an SDK sends it: 512 MCP client spans of ten attributes.
fn batch() -> ExportTraceServiceRequest {
    let text = |text: &str| Value::StringValue(text.into());
    let span = |index: usize| Span {
        trace_id: (index as u128).to_be_bytes().to_vec(),
        span_id: (index as u64 + 1).to_be_bytes().to_vec(),
        parent_span_id: vec![7; 8],
        name: "tools/call get_weather".into(),
        kind: 3,
        flags: 257,
        start_time_unix_nano: 1_795_996_800_000_000_000 + index as u64,
        end_time_unix_nano: 1_795_996_800_050_000_000 + index as u64,
        attributes: vec![
            pair("mcp.method.name", text("tools/call")),
            pair("mcp.protocol.version", text("2025-11-25")),
            pair("mcp.session.id", text("8c1f2d6e4b7a49d0")),
            pair("jsonrpc.request.id", text("17")),
            pair("gen_ai.tool.name", text("get_weather")),
            pair("gen_ai.operation.name", text("execute_tool")),
            pair("network.transport", text("tcp")),
            pair("server.address", text("weather.example.com")),
            pair("server.port", Value::IntValue(8443)),
            pair("http.response.status_code", Value::IntValue(200)),
        ],
        status: Some(Status { code: 1, message: String::new() }),
        ..Span::default()
    };
    let spans = (0..SPANS).map(span).collect();
    let scope = ScopeSpans { spans, ..ScopeSpans::default() };
    let resource = ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() };
    ExportTraceServiceRequest { resource_spans: vec![resource] }
}

/// The least of many runs, in nanoseconds a span.
fn cost(what: &str, mut work: impl FnMut()) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..200 {
        let start = Instant::now();
        work();
        least = least.min(start.elapsed().as_nanos() as f64 / SPANS as f64);
    }
    println!("{what:<44} {least:8.0} ns a span");
    least
}

fn walk(export: &[u8]) -> usize {
    let scopes = resource_spans(export).flat_map(|resource| resource.scopes());
    let spans = scopes.flat_map(|scope| scope.spans());
    spans.map(|span| span.attributes().filter(|a| a.key == "mcp.method.name").count()).sum()
}

fn enriched(export: &[u8], add: &[NewAttr<'_>]) -> Vec<u8> {
    let edit = Edit { add, replace_prefix: Some("mcp_verdict."), redact: None };
    let mut scopes = Vec::new();
    for resource in resource_spans(export) {
        for scope in resource.scopes() {
            let spans: Vec<_> = scope.items().map(|(span, _)| enrich(span, &edit)).collect();
            scopes.push((resource.origin(), scope.origin(), spans));
        }
    }
    let parts: Vec<_> = scopes
        .iter()
        .flat_map(|(resource, scope, spans)| {
            spans.iter().map(move |item| Part { resource, scope, item })
        })
        .collect();
    regroup(&parts)
}

#[test]
#[ignore = "measures; run it in release"]
fn a_span() {
    let batch = batch();
    let export = batch.encode_to_vec();
    println!("{} bytes a span", export.len() / SPANS);
    let add = [
        NewAttr::new("mcp_verdict.state", "healthy"),
        NewAttr::new("mcp_verdict.chain.id", "5b8efff798038103d269b633813fc60c"),
    ];
    let decode = || ExportTraceServiceRequest::decode(export.as_slice()).expect("readable");
    cost("check", || {
        black_box(check(Signal::Traces, &export)).expect("readable");
    });
    let views = || resource_spans(&export).flat_map(|r| r.scopes()).flat_map(|s| s.spans());
    cost("views, one pass", || {
        black_box(views().map(|span| span.start()).fold(0, u64::wrapping_add));
    });
    cost("views and every attribute", || drop(black_box(walk(&export).to_string())));
    let scan = cost("check, views and every attribute", || {
        black_box(check(Signal::Traces, &export)).expect("readable");
        black_box(walk(&export));
    });
    let prost = cost("prost: decode", || drop(black_box(decode())));
    let splice = cost("enrich and regroup every span", || drop(black_box(enriched(&export, &add))));
    cost("remove every other span", || {
        drop(black_box(remove_items(&export, |index| index % 2 == 0)));
    });
    let again = cost("prost: decode and encode", || drop(black_box(decode().encode_to_vec())));
    let json = from_protobuf(Signal::Traces, &export);
    let limits = Limits { max_bytes: 1 << 24 };
    let read = cost("JSON to protobuf", || {
        drop(black_box(to_protobuf(Signal::Traces, &json, limits)));
    });
    let serde = cost("serde: JSON to prost types", || {
        drop(black_box(serde_json::from_slice::<ExportTraceServiceRequest>(&json)));
    });
    cost("protobuf to JSON", || drop(black_box(from_protobuf(Signal::Traces, &export))));
    cost("serde: prost types to JSON", || drop(black_box(serde_json::to_vec(&batch))));
    println!(
        "ours to theirs: scan {:.2}, splice {:.2}, JSON {:.2}",
        scan / prost,
        splice / again,
        read / serde
    );
    assert!(prost > 0.0 && serde > 0.0, "a run that measured nothing");
}
