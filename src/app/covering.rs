//! Coverage as a gauge, looked at when metrics are read: a call pays nothing for it.

use std::sync::Arc;

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;

use crate::emit::metrics::COVERAGE;
use crate::model::words::Layer;
use crate::page::Board;
use crate::page::coverage::{Observed, observed};

/// `most`: tools with series of their own, the most called ones; the others share one.
pub fn observe(meter: &Meter, board: Arc<Board>, most: usize) {
    let gauge = meter.u64_observable_gauge(COVERAGE.name).with_description(COVERAGE.says);
    gauge
        .with_callback(move |observer| {
            let rows = observed(&board.recent());
            let (shown, rest) = rows.split_at(rows.len().min(most * Layer::ALL.len()));
            for row in shown {
                for (seen, count) in [("true", row.observed), ("false", row.unobserved)] {
                    observer.observe(count, &labels(row, seen));
                }
            }
            if !rest.is_empty() {
                let calls = rest.iter().map(|row| row.observed + row.unobserved).sum();
                observer.observe(calls, &[KeyValue::new("otel.metric.overflow", true)]);
            }
        })
        .build();
}

/// In the order of the registry.
fn labels(row: &Observed, seen: &'static str) -> [KeyValue; 4] {
    [
        KeyValue::new("layer", row.layer.as_str()),
        KeyValue::new("observed", seen),
        KeyValue::new("server", row.server.to_string()),
        KeyValue::new("tool", row.tool.clone()),
    ]
}
