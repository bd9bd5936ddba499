//! What the exporters count, under the Collector's names.

use std::sync::Arc;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};

use crate::wire::Signal;

/// Instruments of the exporters.
#[derive(Clone)]
pub struct Counters {
    sent: [Counter<u64>; 4],
    failed: [Counter<u64>; 4],
    retries: Counter<u64>,
}

impl Counters {
    pub fn new(meter: &Meter) -> Self {
        let each = |stem: &str, says: &'static str| {
            Signal::ALL.map(|signal| {
                let name = format!("otelcol_exporter_{stem}_{}", signal.items());
                meter.u64_counter(name).with_description(says).build()
            })
        };
        Counters {
            sent: each("sent", "Items that the backend took."),
            failed: each("send_failed", "Items dropped, by reason."),
            retries: meter
                .u64_counter("otelcol_exporter_retries")
                .with_description("Attempts that will be repeated, by reason.")
                .build(),
        }
    }

    /// The instruments of one lane.
    pub fn lane(&self, exporter: &str, signal: Signal) -> LaneCounters {
        LaneCounters {
            sent: self.sent[signal as usize].clone(),
            failed: self.failed[signal as usize].clone(),
            retries: self.retries.clone(),
            exporter: Arc::from(exporter),
        }
    }
}

/// Instruments of one exporter and signal.
#[derive(Clone)]
pub struct LaneCounters {
    sent: Counter<u64>,
    failed: Counter<u64>,
    retries: Counter<u64>,
    exporter: Arc<str>,
}

impl LaneCounters {
    fn exporter(&self) -> KeyValue {
        KeyValue::new("exporter", self.exporter.clone())
    }

    pub fn sent(&self, items: usize) {
        self.sent.add(items as u64, &[self.exporter()]);
    }

    pub fn failed(&self, reason: &'static str, items: usize) {
        self.failed.add(items as u64, &[self.exporter(), KeyValue::new("reason", reason)]);
    }

    pub fn retried(&self, reason: &'static str) {
        self.retries.add(1, &[self.exporter(), KeyValue::new("reason", reason)]);
    }
}
