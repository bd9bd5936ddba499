//! OTLP/JSON in: the rules of the protocol and what must be refused.

use mcp_verdict::wire::Signal;
use mcp_verdict::wire::json::{Converted, JsonError, Limits, to_protobuf};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

const LIMITS: Limits = Limits { max_bytes: 1 << 20 };

fn traces(json: &str) -> Result<Converted, JsonError> {
    to_protobuf(Signal::Traces, json.as_bytes(), LIMITS)
}

/// An export around the JSON of its spans.
fn export(spans: &str) -> String {
    format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}]}}]}}"#)
}

fn spans(json: &str) -> Vec<Span> {
    let bytes = traces(json).expect("a readable document").bytes;
    let export = ExportTraceServiceRequest::decode(bytes.as_slice()).expect("readable protobuf");
    export
        .resource_spans
        .into_iter()
        .flat_map(|resource| resource.scope_spans)
        .flat_map(|scope| scope.spans)
        .collect()
}

fn reason(json: &str) -> String {
    traces(json).expect_err("a refusal").to_string()
}

const IDS: &str = r#""traceId":"5B8EFFF798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174""#;

#[test]
fn numbers_keep_their_exact_value() {
    let max = i64::MIN.to_string();
    let json = export(&format!(
        r#"{{{IDS},"startTimeUnixNano":1795996800000000001,"endTimeUnixNano":"1795996800000000004",
        "attributes":[{{"key":"a","value":{{"intValue":"25"}}}},
        {{"key":"b","value":{{"intValue":9007199254740993}}}},
        {{"key":"c","value":{{"intValue":"{max}"}}}},
        {{"key":"d","value":{{"doubleValue":0.1}}}}]}}"#
    ));
    let span = spans(&json).remove(0);
    assert_eq!(span.start_time_unix_nano, 1_795_996_800_000_000_001);
    assert_eq!(span.end_time_unix_nano, 1_795_996_800_000_000_004);
    assert_eq!(span.trace_id[..4], [0x5b, 0x8e, 0xff, 0xf7]);
    let values: Vec<_> = span.attributes.into_iter().filter_map(|attr| attr.value?.value).collect();
    let expected = [
        Value::IntValue(25),
        Value::IntValue(9_007_199_254_740_993),
        Value::IntValue(i64::MIN),
        Value::DoubleValue(0.1),
    ];
    assert_eq!(values, expected);
}

#[test]
fn enum_names_are_refused_and_the_error_says_what_to_write() {
    let json = export(&format!(r#"{{{IDS},"kind":"SPAN_KIND_SERVER"}}"#));
    let reason = reason(&json);
    assert!(reason.contains("`kind` is an enum and must be an integer"), "{reason}");
    assert!(!reason.contains("SPAN_KIND_SERVER"), "{reason}");
}

#[test]
fn an_id_that_is_none_costs_its_span_and_no_other() {
    let base64 = r#"{"traceId":"W47/95gDgQPSabYzgT/GDA==","name":"lost"}"#;
    let short = r#"{"spanId":"abcd","links":[{"traceId":"00"}],"name":"lost"}"#;
    let json = export(&format!(r#"{{{IDS},"name":"a"}},{base64},{short},{{{IDS},"name":"b"}}"#));
    let converted = traces(&json).expect("a readable document");
    assert_eq!(converted.rejected, 2);
    assert_eq!(converted.message, "`traceId` must be 32 hexadecimal digits, not base64");
    let names: Vec<_> = spans(&json).into_iter().map(|span| span.name).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn unknown_keys_and_nulls_are_ignored_at_every_level() {
    let extra = r#""extra":{"a":[1,{"b":null}]}"#;
    let json = format!(
        r#"{{{extra},"resourceSpans":[{{{extra},"resource":{{{extra},"attributes":null}},
        "scopeSpans":[{{{extra},"scope":{{{extra}}},"spans":[{{{extra},{IDS},"name":"a",
        "parentSpanId":null,"events":null,"status":{{{extra},"code":2}},"flags":null,
        "attributes":[{{{extra},"key":"k","value":{{{extra},"boolValue":true}}}}]}}]}}]}}]}}"#
    );
    let span = spans(&json).remove(0);
    assert_eq!((span.name.as_str(), span.status.map(|s| s.code)), ("a", Some(2)));
    assert_eq!(span.attributes.len(), 1);
}

#[test]
fn exactly_one_document() {
    assert!(traces("{}").expect("an empty export").bytes.is_empty());
    for bad in ["", " ", "{} {}", "{}]", "[]", "null", "7", r#"{"resourceSpans":[{]}"#] {
        assert!(traces(bad).is_err(), "{bad:?} was taken");
    }
    assert!(reason(r#"{"resourceSpans": ["#).contains("ends before it is complete"));
}

#[test]
fn deep_nesting_is_refused_at_the_same_depth_as_in_protobuf() {
    let nested = |depth: usize| {
        let value = format!(
            "{}{}{}",
            r#"{"arrayValue":{"values":["#.repeat(depth),
            r#"{"stringValue":""}"#,
            "]}}".repeat(depth)
        );
        export(&format!(r#"{{{IDS},"attributes":[{{"key":"deep","value":{value}}}]}}"#))
    };
    assert_eq!(spans(&nested(47)).len(), 1);
    assert!(reason(&nested(48)).contains("nested more than 100 deep"));
    assert!(reason(&nested(200_000)).contains("nested more than 100 deep"));
}

#[test]
fn errors_hold_a_place_and_no_content() {
    let secret = "swordfish";
    for value in [
        format!(r#"{{"name":{{"{secret}":1}}}}"#),
        format!(r#"{{"startTimeUnixNano":"{secret}"}}"#),
        format!(r#"{{"attributes":"{secret}"}}"#),
        format!(r#"{{"attributes":["{secret}"]}}"#),
        format!(r#"{{"flags":"{secret}"}}"#),
        format!(r#"{{"status":"{secret}"}}"#),
        format!(r#"{{"{secret}"}}"#),
    ] {
        let reason = reason(&export(&value));
        assert!(!reason.contains(secret), "{reason}");
        assert!(reason.contains("line 1"), "{reason}");
    }
}

#[test]
fn the_limit_counts_protobuf_bytes() {
    let json = export(&format!(r#"{{{IDS},"name":"{}"}}"#, "n".repeat(300)));
    let error = to_protobuf(Signal::Traces, json.as_bytes(), Limits { max_bytes: 200 });
    assert!(error.expect_err("over the limit").too_large);
}

#[test]
fn an_unknown_key_may_nest_without_end() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let json = format!(r#"{{"unknown":{deep},"resourceSpans":[]}}"#);
    assert!(traces(&json).expect("a readable document").bytes.is_empty());
}

#[test]
fn text_that_json_can_write_and_utf8_cannot_becomes_a_replacement() {
    let json = export(&format!(r#"{{{IDS},"name":"a\ud800b"}}"#));
    let name = spans(&json).remove(0).name;
    assert!(name.starts_with('a') && name.ends_with('b') && name.contains('\u{fffd}'), "{name}");
}

#[test]
fn bytes_that_are_not_utf8_are_refused_where_they_stand() {
    let good = export(&format!("{{{IDS},\n\"name\":\"abc\"}}"));
    let place = good.find("abc").unwrap() + 1;
    let mut json = good.clone().into_bytes();
    json[place] = 0xff;
    let error = to_protobuf(Signal::Traces, &json, LIMITS).unwrap_err();
    let newline = good.find('\n').unwrap();
    assert_eq!((error.line, error.column), (2, place - newline), "{error}");
    assert!(error.reason.contains("UTF-8") && !error.too_large, "{error}");
    // Also where nobody looks at the value.
    let unknown = b"{\"unknown\":\"\xff\"}";
    assert!(to_protobuf(Signal::Traces, unknown, LIMITS).is_err());
}

#[test]
fn numbers_out_of_range_are_refused_not_rounded() {
    for value in [
        r#""startTimeUnixNano":18446744073709551616"#,
        r#""startTimeUnixNano":-1"#,
        r#""startTimeUnixNano":1.5"#,
        r#""startTimeUnixNano":"1e30""#,
        r#""kind":2147483648"#,
        r#""kind":true"#,
        r#""flags":4294967296"#,
        r#""attributes":[{"key":"k","value":{"intValue":"9223372036854775808"}}]"#,
        r#""attributes":[{"key":"k","value":{"intValue":9223372036854775808}}]"#,
        r#""attributes":[{"key":"k","value":{"boolValue":1}}]"#,
        r#""attributes":[{"key":"k","value":{"bytesValue":"?"}}]"#,
        r#""attributes":[{"key":"k","value":{"doubleValue":"inf"}}]"#,
    ] {
        let json = export(&format!("{{{IDS},{value}}}"));
        assert!(traces(&json).is_err(), "{value} was taken");
    }
}
