//! Counts of verdicts, with bounded label values.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};

use super::Meters;
use super::exemplars::{Exemplar, Exemplars};
use crate::emit::metrics::{self, Kind, Sample};

/// Instruments for everything in the registry of verdict metrics.
#[derive(Clone)]
pub struct VerdictMeters {
    counters: Arc<BTreeMap<&'static str, Counter<u64>>>,
    duration: Histogram<f64>,
    labels: Arc<Labels>,
    standing: Arc<Mutex<Standing>>,
    exemplars: Exemplars,
}

/// Incidents that stand, by their labels; 0 for those that once stood.
type Standing = HashMap<Vec<KeyValue>, u64>;

/// Series of incidents; what goes beyond shares one.
const SERIES: usize = 5_000;

impl VerdictMeters {
    /// `label_values`: distinct values of one label of one metric.
    pub fn new(meters: &Meters, label_values: usize) -> Self {
        let meter = &meters.meter();
        let counters = metrics::METRICS.iter().filter(|metric| metric.kind == Kind::Counter);
        let counters = counters.map(|metric| {
            let counter = meter.u64_counter(metric.name).with_description(metric.says).build();
            // Without labels its only series is known: it begins at 0, not at the first event.
            if metric.labels.is_empty() {
                counter.add(0, &[]);
            }
            (metric.name, counter)
        });
        let duration = meter
            .f64_histogram(metrics::JUDGE_DURATION.name)
            .with_unit(metrics::JUDGE_DURATION.unit)
            .with_description(metrics::JUDGE_DURATION.says)
            .with_boundaries(vec![0.0001, 0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 5.0])
            .build();
        let standing = Arc::<Mutex<Standing>>::default();
        observe_standing(meter, standing.clone());
        VerdictMeters {
            counters: Arc::new(counters.collect()),
            duration,
            labels: Arc::new(Labels { most: label_values, seen: Mutex::default() }),
            standing,
            exemplars: meters.exemplars.clone(),
        }
    }

    /// Adds one sample, and remembers where it came from.
    pub fn record(&self, sample: &Sample, from: Exemplar) {
        let labels = self.labels.bounded(sample);
        if let Some(counter) = self.counters.get(sample.metric) {
            counter.add(sample.by, &labels);
            self.exemplars.put(sample.metric, labels, from);
        }
    }

    /// From now on these stand.
    pub fn standing(&self, samples: impl Iterator<Item = Sample>) {
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        standing.values_mut().for_each(|count| *count = 0);
        for sample in samples {
            let mut labels = self.labels.bounded(&sample);
            if standing.len() >= SERIES && !standing.contains_key(&labels) {
                labels = overflow();
            }
            *standing.entry(labels).or_default() += sample.by;
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

fn observe_standing(meter: &Meter, standing: Arc<Mutex<Standing>>) {
    let gauge = meter.u64_observable_gauge(metrics::INCIDENTS_ACTIVE.name);
    gauge
        .with_description(metrics::INCIDENTS_ACTIVE.says)
        .with_callback(move |observer| {
            let standing = standing.lock().unwrap_or_else(PoisonError::into_inner);
            standing.iter().for_each(|(labels, count)| observer.observe(*count, labels));
        })
        .build();
}

fn overflow() -> Vec<KeyValue> {
    vec![KeyValue::new("otel.metric.overflow", "true")]
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
                    return overflow();
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

    #[test]
    fn an_incident_that_stands_no_longer_counts_zero() {
        let none = None::<opentelemetry_otlp::MetricExporter>;
        let meters = crate::telemetry::Meters::new(&[], none).unwrap();
        let verdicts = VerdictMeters::new(&meters, 100);
        let name = "mcp_verdict_incidents_active";
        let count = || {
            let all = meters.samples(&|metric| metric == name);
            all.into_iter().map(|sample| sample.value).collect::<Vec<_>>()
        };
        let sample = || Sample {
            metric: metrics::INCIDENTS_ACTIVE.name,
            labels: vec![("status", "open".into())],
            by: 1,
        };
        verdicts.standing([sample(), sample()].into_iter());
        assert_eq!(count(), [2.0]);
        verdicts.standing(std::iter::empty());
        assert_eq!(count(), [0.0]);
        assert_eq!(meters.samples(&|metric| metric == "mcp_verdict_attempts_total").len(), 1);
    }
}
