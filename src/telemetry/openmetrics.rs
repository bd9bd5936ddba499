//! The text of `/metrics` for a scraper that reads OpenMetrics 1.0: the same numbers, and for
//! counts of verdicts the trace, span and chain that the newest one came from.

use std::fmt::Write;

use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};

use super::exemplars::{BySeries, Exemplar};

pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Writes all families. Summaries, of which there are none here, are left out.
pub fn encode(families: &[MetricFamily], exemplars: &BySeries) -> String {
    let mut text = String::new();
    for family in families {
        let full = family.name();
        let (name, kind) = match family.get_field_type() {
            MetricType::COUNTER => (full.strip_suffix("_total").unwrap_or(full), "counter"),
            MetricType::GAUGE => (full, "gauge"),
            MetricType::HISTOGRAM => (full, "histogram"),
            MetricType::SUMMARY | MetricType::UNTYPED => continue,
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP {name} {}", escaped(family.help()));
        let _ = writeln!(text, "# TYPE {name} {kind}");
        for metric in family.get_metric() {
            let labels = metric.get_label();
            match family.get_field_type() {
                MetricType::COUNTER => {
                    line(&mut text, name, "_total", labels, None, metric.get_counter().value());
                    exemplar(&mut text, exemplars.get(&key(name, labels)));
                }
                MetricType::HISTOGRAM => histogram(&mut text, name, metric),
                _ => line(&mut text, name, "", labels, None, metric.get_gauge().value()),
            }
            if !text.ends_with('\n') {
                text.push('\n');
            }
        }
    }
    text.push_str("# EOF\n");
    text
}

fn key(name: &str, labels: &[LabelPair]) -> (String, Vec<(String, String)>) {
    let label = |pair: &LabelPair| (pair.name().to_owned(), pair.value().to_owned());
    let mut labels: Vec<_> = labels.iter().map(label).collect();
    labels.sort();
    (name.to_owned(), labels)
}

/// One sample, without the end of its line.
fn line(
    text: &mut String,
    name: &str,
    ending: &str,
    labels: &[LabelPair],
    le: Option<f64>,
    value: f64,
) {
    let label = |pair: &LabelPair| format!("{}=\"{}\"", pair.name(), escaped(pair.value()));
    let bound = le.map(|le| match le.is_infinite() {
        true => "le=\"+Inf\"".to_owned(),
        false => format!("le=\"{le:?}\""),
    });
    let labels: Vec<String> = labels.iter().map(label).chain(bound).collect();
    let _ = match labels.is_empty() {
        true => write!(text, "{name}{ending} {value}"),
        false => write!(text, "{name}{ending}{{{}}} {value}", labels.join(",")),
    };
}

/// At most 128 characters of names and values, which the format allows.
fn exemplar(text: &mut String, exemplar: Option<&Exemplar>) {
    let Some(Exemplar { at, chain, when }) = exemplar else { return };
    let _ = write!(text, " # {{trace_id=\"{}\",span_id=\"{}\"", at.trace, at.span);
    if let Some(chain) = chain {
        let _ = write!(text, ",chain_id=\"{chain}\"");
    }
    let _ = write!(text, "}} 1 {}.{:03}", when / 1_000_000_000, when / 1_000_000 % 1_000);
}

fn histogram(text: &mut String, name: &str, metric: &Metric) {
    let (labels, all) = (metric.get_label(), metric.get_histogram());
    let mut bucket = |le: f64, count: u64| {
        line(text, name, "_bucket", labels, Some(le), count as f64);
        text.push('\n');
    };
    let finite = all.get_bucket().iter().filter(|bucket| bucket.upper_bound().is_finite());
    finite.for_each(|le| bucket(le.upper_bound(), le.cumulative_count()));
    bucket(f64::INFINITY, all.get_sample_count());
    line(text, name, "_sum", labels, None, all.get_sample_sum());
    text.push('\n');
    line(text, name, "_count", labels, None, all.get_sample_count() as f64);
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use opentelemetry::KeyValue;

    use super::*;
    use crate::model::ids::{Digest16, SpanId, SpanRef, TraceId};
    use crate::telemetry::Meters;

    #[test]
    fn counters_gauges_and_histograms_with_the_newest_exemplar() {
        let meters = Meters::new(&[], None::<opentelemetry_otlp::MetricExporter>).unwrap();
        let meter = meters.meter();
        let labels = [KeyValue::new("tool", "say \"hi\""), KeyValue::new("server", "desk")];
        let calls = meter.u64_counter("a.calls").with_description("Calls.").build();
        calls.add(3, &labels);
        calls.add(1, &[]);
        meter.u64_gauge("b.size").build().record(7, &[]);
        let took = meter.f64_histogram("c.took").with_boundaries(vec![0.5, 1.0]).build();
        took.record(0.75, &[]);
        for span in [1, 2] {
            let at = SpanRef { trace: TraceId([0xab; 16]), span: SpanId([span; 8]) };
            let chain = Some(Digest16([0xcd; 16]));
            let exemplar = Exemplar { at, chain, when: 1_700_000_000_250_000_000 };
            meters.exemplars.put("a.calls", labels.to_vec(), exemplar);
        }
        let text = meters.openmetrics();
        let wanted = format!(
            "# HELP a_calls Calls.\n# TYPE a_calls counter\na_calls_total 1\n\
             a_calls_total{{server=\"desk\",tool=\"say \\\"hi\\\"\"}} 3 # \
             {{trace_id=\"{}\",span_id=\"{}\",chain_id=\"{}\"}} 1 1700000000.250\n",
            "ab".repeat(16),
            "02".repeat(8),
            "cd".repeat(16)
        );
        assert!(text.starts_with(&wanted), "{text}");
        let rest = "b_size 7\n# HELP c_took \n# TYPE c_took histogram\n\
             c_took_bucket{le=\"0.5\"} 0\nc_took_bucket{le=\"1.0\"} 1\n\
             c_took_bucket{le=\"+Inf\"} 1\nc_took_sum 0.75\nc_took_count 1\n# EOF\n";
        assert!(text.ends_with(rest), "{text}");
    }
}
