//! Any OTLP message, built with types that are not ours, and fields that nobody knows.

use mcp_verdict::wire::fields::{put_bytes_field, put_fixed32_field, put_varint_field};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList,
};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::summary_data_point::ValueAtQuantile;
use opentelemetry_proto::tonic::metrics::v1::{
    Exemplar, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram,
    HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary,
    SummaryDataPoint, exemplar, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Numbers without NaN, which equals nothing, itself included.
pub fn double() -> impl Strategy<Value = f64> {
    any::<f64>().prop_map(|value| if value.is_nan() { 0.5 } else { value })
}

fn value() -> impl Strategy<Value = AnyValue> {
    let leaf = prop_oneof![
        ".{0,12}".prop_map(Value::StringValue),
        any::<bool>().prop_map(Value::BoolValue),
        any::<i64>().prop_map(Value::IntValue),
        double().prop_map(Value::DoubleValue),
        vec(any::<u8>(), 0..9).prop_map(Value::BytesValue),
    ];
    let leaf = option::weighted(0.9, leaf).prop_map(|value| AnyValue { value });
    leaf.prop_recursive(3, 12, 3, |inner| {
        let pair = ("[a-c]{1,2}", option::of(inner.clone())).prop_map(|(key, value)| KeyValue {
            key,
            value,
            key_strindex: 0,
        });
        prop_oneof![
            vec(inner, 0..3).prop_map(|values| Value::ArrayValue(ArrayValue { values })),
            vec(pair, 0..3).prop_map(|values| Value::KvlistValue(KeyValueList { values })),
        ]
        .prop_map(|value| AnyValue { value: Some(value) })
    })
}

pub fn attributes() -> impl Strategy<Value = Vec<KeyValue>> {
    let key = prop_oneof!["mcp_verdict\\.[ab]", "gen_ai\\.[ab]", "[a-d]", ".{1,3}"];
    let pair = (key, option::weighted(0.9, value())).prop_map(|(key, value)| KeyValue {
        key,
        value,
        key_strindex: 0,
    });
    vec(pair, 0..5)
}

fn id(length: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![9 => vec(any::<u8>(), length), 1 => Just(Vec::new())]
}

prop_compose! {
    fn event()(
        time_unix_nano in any::<u64>(), name in ".{0,8}", attributes in attributes(),
        dropped_attributes_count in any::<u32>(),
    ) -> Event {
        Event { time_unix_nano, name, attributes, dropped_attributes_count }
    }
}

prop_compose! {
    fn link()(
        trace_id in id(16), span_id in id(8), trace_state in "[a-z=]{0,5}",
        attributes in attributes(), flags in any::<u32>(),
    ) -> Link {
        Link { trace_id, span_id, trace_state, attributes, flags, dropped_attributes_count: 0 }
    }
}

prop_compose! {
    pub fn span()(
        (trace_id, span_id, parent_span_id) in (id(16), id(8), id(8)),
        (trace_state, name) in ("[a-z=]{0,5}", ".{0,12}"),
        (flags, kind) in (any::<u32>(), -1i32..9),
        (start_time_unix_nano, end_time_unix_nano) in (any::<u64>(), any::<u64>()),
        attributes in attributes(),
        events in vec(event(), 0..3),
        links in vec(link(), 0..2),
        status in option::of((-1i32..4, ".{0,6}")),
        (dropped_attributes_count, dropped_events_count) in (any::<u32>(), any::<u32>()),
    ) -> Span {
        let status = status.map(|(code, message)| Status { code, message });
        Span {
            trace_id, span_id, parent_span_id, trace_state, name, flags, kind,
            start_time_unix_nano, end_time_unix_nano, attributes, events, links, status,
            dropped_attributes_count, dropped_events_count, dropped_links_count: 3,
        }
    }
}

/// Few different resources and scopes, so that origins meet again.
fn resource() -> impl Strategy<Value = Option<Resource>> {
    option::of(attributes().prop_map(|attributes| Resource {
        attributes: attributes.into_iter().take(1).collect(),
        dropped_attributes_count: 0,
        entity_refs: Vec::new(),
    }))
}

fn scope() -> impl Strategy<Value = Option<InstrumentationScope>> {
    option::of(("[ab]{0,1}", attributes()).prop_map(|(name, attributes)| InstrumentationScope {
        name,
        version: "1".into(),
        attributes: attributes.into_iter().take(1).collect(),
        dropped_attributes_count: 0,
    }))
}

pub fn traces() -> impl Strategy<Value = ExportTraceServiceRequest> {
    let scope = (scope(), vec(span(), 0..4), "u{0,1}")
        .prop_map(|(scope, spans, schema_url)| ScopeSpans { scope, spans, schema_url });
    let resource =
        (resource(), vec(scope, 0..3), "u{0,1}").prop_map(|(resource, scope_spans, schema_url)| {
            ResourceSpans { resource, scope_spans, schema_url }
        });
    vec(resource, 0..3).prop_map(|resource_spans| ExportTraceServiceRequest { resource_spans })
}

prop_compose! {
    pub fn record()(
        (time_unix_nano, observed_time_unix_nano) in (any::<u64>(), any::<u64>()),
        (severity_number, severity_text, event_name) in (-1i32..30, ".{0,4}", ".{0,4}"),
        body in option::of(value()),
        attributes in attributes(),
        (trace_id, span_id) in (id(16), id(8)),
        (flags, dropped_attributes_count) in (any::<u32>(), any::<u32>()),
    ) -> LogRecord {
        LogRecord {
            time_unix_nano, observed_time_unix_nano, severity_number, severity_text, event_name,
            body, attributes, trace_id, span_id, flags, dropped_attributes_count,
        }
    }
}

pub fn logs() -> impl Strategy<Value = ExportLogsServiceRequest> {
    let scope = (scope(), vec(record(), 0..4)).prop_map(|(scope, log_records)| ScopeLogs {
        scope,
        log_records,
        schema_url: String::new(),
    });
    let resource = (resource(), vec(scope, 0..3)).prop_map(|(resource, scope_logs)| ResourceLogs {
        resource,
        scope_logs,
        schema_url: "u".into(),
    });
    vec(resource, 0..3).prop_map(|resource_logs| ExportLogsServiceRequest { resource_logs })
}

prop_compose! {
    fn exemplar()(
        filtered_attributes in attributes(), time_unix_nano in any::<u64>(),
        (span_id, trace_id) in (id(8), id(16)), whole in any::<i64>(), fraction in double(),
        is_whole in any::<bool>(),
    ) -> Exemplar {
        let value = if is_whole { exemplar::Value::AsInt(whole) }
            else { exemplar::Value::AsDouble(fraction) };
        Exemplar { filtered_attributes, time_unix_nano, span_id, trace_id, value: Some(value) }
    }
}

prop_compose! {
    fn number_point()(
        attributes in attributes(), time_unix_nano in any::<u64>(),
        exemplars in vec(exemplar(), 0..2), flags in any::<u32>(),
        value in option::of(prop_oneof![
            any::<i64>().prop_map(number_data_point::Value::AsInt),
            double().prop_map(number_data_point::Value::AsDouble),
        ]),
    ) -> NumberDataPoint {
        NumberDataPoint {
            attributes, start_time_unix_nano: 1, time_unix_nano, exemplars, flags, value,
        }
    }
}

prop_compose! {
    fn histogram_point()(
        attributes in attributes(), count in any::<u64>(), sum in option::of(double()),
        bucket_counts in vec(any::<u64>(), 0..4), explicit_bounds in vec(double(), 0..4),
        (min, max) in (option::of(double()), option::of(double())),
        exemplars in vec(exemplar(), 0..2),
    ) -> HistogramDataPoint {
        HistogramDataPoint {
            attributes, start_time_unix_nano: 1, time_unix_nano: 2, count, sum, bucket_counts,
            explicit_bounds, exemplars, flags: 1, min, max,
        }
    }
}

prop_compose! {
    fn exponential_point()(
        count in any::<u64>(), sum in option::of(double()), scale in any::<i32>(),
        buckets in option::of((any::<i32>(), vec(any::<u64>(), 0..4))),
        zero_threshold in double(),
    ) -> ExponentialHistogramDataPoint {
        let positive = buckets.map(|(offset, bucket_counts)| Buckets { offset, bucket_counts });
        ExponentialHistogramDataPoint {
            count, sum, scale, positive, zero_threshold, zero_count: 7,
            negative: Some(Buckets::default()), max: Some(0.0),
            ..ExponentialHistogramDataPoint::default()
        }
    }
}

fn summary_point() -> impl Strategy<Value = SummaryDataPoint> {
    (double(), double(), any::<u64>()).prop_map(|(quantile, value, count)| SummaryDataPoint {
        quantile_values: vec![ValueAtQuantile { quantile, value }],
        count,
        sum: value,
        ..SummaryDataPoint::default()
    })
}

fn metric() -> impl Strategy<Value = Metric> {
    let points = || vec(number_point(), 0..3);
    let data = prop_oneof![
        points().prop_map(|data_points| Data::Gauge(Gauge { data_points })),
        points().prop_map(|data_points| Data::Sum(Sum {
            data_points,
            aggregation_temporality: 2,
            is_monotonic: true,
        })),
        vec(histogram_point(), 0..3).prop_map(|data_points| Data::Histogram(Histogram {
            data_points,
            aggregation_temporality: 1,
        })),
        vec(exponential_point(), 0..3).prop_map(|data_points| {
            Data::ExponentialHistogram(ExponentialHistogram {
                data_points,
                aggregation_temporality: 1,
            })
        }),
        vec(summary_point(), 0..3).prop_map(|data_points| Data::Summary(Summary { data_points })),
    ];
    (".{0,4}", option::of(data), attributes()).prop_map(|(name, data, metadata)| Metric {
        name,
        description: "d".into(),
        unit: String::new(),
        metadata,
        data,
    })
}

pub fn metrics() -> impl Strategy<Value = ExportMetricsServiceRequest> {
    let scope = (scope(), vec(metric(), 0..4)).prop_map(|(scope, metrics)| ScopeMetrics {
        scope,
        metrics,
        schema_url: String::new(),
    });
    let resource = (resource(), vec(scope, 0..3)).prop_map(|(resource, scope_metrics)| {
        ResourceMetrics { resource, scope_metrics, schema_url: String::new() }
    });
    vec(resource, 0..3)
        .prop_map(|resource_metrics| ExportMetricsServiceRequest { resource_metrics })
}

/// Fields under numbers that OTLP does not use, to stand before and behind the known ones.
pub fn unknown() -> impl Strategy<Value = Vec<u8>> {
    let field = (2000u32..2004, any::<u64>(), 0..3).prop_map(|(number, bits, wire)| {
        let mut out = Vec::new();
        match wire {
            0 => put_varint_field(&mut out, number, bits),
            1 => put_fixed32_field(&mut out, number, bits as u32),
            _ => put_bytes_field(&mut out, number, &bits.to_le_bytes()),
        }
        out
    });
    vec(field, 0..3).prop_map(|fields| fields.concat())
}
