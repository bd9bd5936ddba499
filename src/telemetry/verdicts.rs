//! Counts of verdicts, with bounded label values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};

use crate::emit::metrics::{self, Kind, Sample};

/// Instruments for everything in the registry of verdict metrics.
#[derive(Clone)]
pub struct VerdictMeters {
    counters: Arc<BTreeMap<&'static str, Counter<u64>>>,
    duration: Histogram<f64>,
    labels: Arc<Labels>,
}

impl VerdictMeters {
    /// `label_values`: distinct values of one label of one metric.
    pub fn new(meter: &Meter, label_values: usize) -> Self {
        let counters = metrics::METRICS.iter().filter(|metric| metric.kind == Kind::Counter);
        let counters = counters.map(|metric| {
            let counter = meter.u64_counter(metric.name).with_description(metric.says).build();
            (metric.name, counter)
        });
        let duration = meter
            .f64_histogram(metrics::JUDGE_DURATION.name)
            .with_unit(metrics::JUDGE_DURATION.unit)
            .with_description(metrics::JUDGE_DURATION.says)
            .with_boundaries(vec![0.0001, 0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 5.0])
            .build();
        VerdictMeters {
            counters: Arc::new(counters.collect()),
            duration,
            labels: Arc::new(Labels { most: label_values, seen: Mutex::default() }),
        }
    }

    /// Adds one sample.
    pub fn record(&self, sample: &Sample) {
        let labels = self.labels.bounded(sample);
        if let Some(counter) = self.counters.get(sample.metric) {
            counter.add(sample.by, &labels);
        }
    }

    /// Something left at a limit.
    pub fn evicted(&self, reason: &'static str, count: u64) {
        if let Some(counter) = self.counters.get(metrics::EVICTED.name) {
            counter.add(count, &[KeyValue::new("reason", reason)]);
        }
    }

    /// Facts for chains that were forgotten.
    pub fn late(&self, count: u64) {
        if let Some(counter) = self.counters.get(metrics::LATE_FACTS.name) {
            counter.add(count, &[]);
        }
    }

    /// Nanoseconds that one round took.
    pub fn judged(&self, nanos: u64) {
        self.duration.record(nanos as f64 / 1e9, &[]);
    }
}

/// Which values each label of each metric has had.
struct Labels {
    most: usize,
    seen: Mutex<BTreeMap<(&'static str, &'static str), BTreeSet<String>>>,
}

impl Labels {
    /// The sample's labels, or the overflow label where one of them has too many values already.
    fn bounded(&self, sample: &Sample) -> Vec<KeyValue> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut labels = Vec::with_capacity(sample.labels.len());
        for (label, value) in &sample.labels {
            let values = seen.entry((sample.metric, *label)).or_default();
            if !values.contains(value.as_ref()) {
                if values.len() >= self.most {
                    return vec![KeyValue::new("otel.metric.overflow", "true")];
                }
                values.insert(value.to_string());
            }
            labels.push(KeyValue::new(*label, value.to_string()));
        }
        labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_beyond_the_bound_share_one_series() {
        let labels = Labels { most: 2, seen: Mutex::default() };
        let sample = |tool: &str| Sample {
            metric: "m",
            labels: vec![("tool", tool.to_owned().into())],
            by: 1,
        };
        let text = |tool| labels.bounded(&sample(tool))[0].key.to_string();
        assert_eq!(
            ["a", "b", "c", "a"].map(text),
            ["tool", "tool", "otel.metric.overflow", "tool"]
        );
    }
}
