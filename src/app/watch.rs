//! What the running program tells of itself: gauges, and whether its parts move.

use std::sync::Arc;

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;

use super::Core;
use super::judging::Judging;
use crate::emit;
use crate::export::{self, Backlog, Outbox};
use crate::log::{self, Log};
use crate::telemetry::health::{Health, Report, STILL};
use crate::telemetry::registry;

impl Core {
    /// Gauges that are looked at when metrics are read.
    pub(super) fn observe(&self) {
        let meter = self.meters.meter();
        let gauge = |name: &'static str, value: Box<dyn Fn() -> u64 + Send + Sync>| {
            meter.u64_observable_gauge(name).with_callback(move |o| o.observe(value(), &[])).build()
        };
        let (log, hold, judging) = (&self.log, &self.hold, &self.judging);
        let of = self.outputs.clone();
        gauge(registry::OUTPUTS_WAITING, Box::new(move || of.waiting() as u64));
        let of = log.clone();
        gauge(registry::STORAGE_BYTES, Box::new(move || of.usage().bytes));
        let of = log.clone();
        gauge(registry::STORAGE_PENDING, Box::new(move || of.usage().pending_bytes));
        let of = log.clone();
        gauge(registry::STORAGE_RECORDS, Box::new(move || of.usage().records));
        let of = hold.clone();
        gauge(registry::HELD_BYTES, Box::new(move || of.bytes() as u64));
        let of = judging.clone();
        gauge(registry::ENGINE_QUEUE, Box::new(move || of.waiting() as u64));
        let of = judging.clone();
        gauge(emit::metrics::OPEN_REQUESTS.name, Box::new(move || of.open_requests()));
        observe_lanes(&meter, &self.outbox);
        observe_damage(&meter, &self.log);
    }

    /// What `/readyz` and `/livez` ask.
    pub(super) fn health(&self) -> Health {
        let health = Health::default();
        let of = self.outbox.clone();
        health.add(move || of.lanes().iter().map(|lane| lane_report(lane)).collect());
        let of = self.pipeline.clone();
        health.add(move || vec![storage_report(&of.log.usage(), of.backlog)]);
        let of = self.judging.clone();
        health.add(move || vec![engine_report(&of)]);
        let of = self.outputs.clone();
        health.add(move || vec![Report::moving("outputs", of.refused())]);
        health
    }
}

fn lane_report(lane: &export::Lane) -> Report {
    let part = format!("exporter/{}/{}", lane.exporter, lane.signal.name());
    match lane.still() {
        Some(still) if still >= STILL => {
            let seconds = still.as_secs();
            Report::not_ready(part, format!("nothing moved for {seconds} s: {}", plight(lane)))
        }
        _ => Report::ok(part),
    }
}

/// Where a lane sends, why it does not, and what waits for it.
pub fn plight(lane: &export::Lane) -> String {
    let cause = lane.trouble().map_or_else(|| "no answer yet".into(), |trouble| trouble.cause);
    let Backlog { exports, bytes } = lane.waits();
    format!("{}: {cause}; {exports} exports of {bytes} bytes wait for it", lane.place)
}

fn storage_report(usage: &log::Usage, backlog: Option<u64>) -> Report {
    let full = |bytes: u64, limit: u64| bytes.saturating_mul(100) >= limit.saturating_mul(98);
    let behind = backlog.is_some_and(|most| full(usage.pending_bytes, most));
    match full(usage.bytes, usage.limit) || behind {
        true => Report::not_ready("storage", "full: exports are refused until some are sent"),
        false => Report::ok("storage"),
    }
}

fn engine_report(judging: &Judging) -> Report {
    match judging.ended() {
        true => Report::dead("engine", "it has ended: nothing is judged any more"),
        false => Report::moving("engine", Some(judging.still())),
    }
}

fn observe_damage(meter: &Meter, log: &Arc<dyn Log>) {
    let of = log.clone();
    let counter = meter.u64_observable_counter(registry::STORAGE_DAMAGED);
    counter
        .with_callback(move |observer| {
            for (kind, count) in of.damaged() {
                observer.observe(count, &[KeyValue::new("kind", kind)]);
            }
        })
        .build();
}

fn observe_lanes(meter: &Meter, outbox: &Arc<Outbox>) {
    let labels = |lane: &export::Lane| {
        let signal = KeyValue::new("signal", lane.signal.name());
        [KeyValue::new("exporter", lane.exporter.clone()), signal]
    };
    let of = outbox.clone();
    let size = meter.u64_observable_gauge(registry::EXPORTER_QUEUE);
    size.with_callback(move |observer| {
        for lane in of.lanes() {
            observer.observe(lane.waits().exports as u64, &labels(lane));
        }
    })
    .build();
    let of = outbox.clone();
    let bytes = meter.u64_observable_gauge(registry::EXPORTER_BYTES);
    bytes
        .with_callback(move |observer| {
            for lane in of.lanes() {
                for (place, backlog) in ["memory", "storage"].into_iter().zip(lane.backlog()) {
                    let [exporter, signal] = labels(lane);
                    let labels = [exporter, signal, KeyValue::new("place", place)];
                    observer.observe(backlog.bytes as u64, &labels);
                }
            }
        })
        .build();
}
