//! What the receiver counts, under the Collector's names.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};

use super::Refusal;
use crate::wire::Signal;

/// Instruments of the receiver.
#[derive(Clone)]
pub struct Counters {
    accepted: [Counter<u64>; 4],
    refused: [Counter<u64>; 4],
    requests: Counter<u64>,
    connections: Counter<u64>,
}

/// Which protocol a request came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Grpc,
    Http,
}

impl Transport {
    pub fn name(self) -> &'static str {
        match self {
            Transport::Grpc => "grpc",
            Transport::Http => "http",
        }
    }
}

impl Counters {
    pub fn new(meter: &Meter) -> Self {
        let each = |stem: &str, says: &'static str| {
            Signal::ALL.map(|signal| {
                let name = format!("otelcol_receiver_{stem}_{}", signal.items());
                meter.u64_counter(name).with_description(says).build()
            })
        };
        Counters {
            accepted: each("accepted", "Items taken and promised to the sender."),
            refused: each("refused", "Items of readable exports that were not taken."),
            requests: meter
                .u64_counter("otelcol_receiver_requests")
                .with_description("Export requests by outcome.")
                .build(),
            connections: meter
                .u64_counter("otelcol_receiver_refused_connections")
                .with_description("Connections closed at once, by reason.")
                .build(),
        }
    }

    pub(crate) fn accepted(&self, transport: Transport, signal: Signal, items: usize) {
        let labels = labels(transport);
        self.accepted[signal as usize].add(items as u64, &labels);
        self.requests.add(1, &[labels[0].clone(), labels[1].clone(), outcome("success")]);
    }

    pub(crate) fn refused(&self, transport: Transport, refusal: &Refusal) {
        let [receiver, transport] = labels(transport);
        self.requests.add(1, &[receiver, transport, outcome(refusal.row().name)]);
    }

    pub(crate) fn refused_items(&self, transport: Transport, signal: Signal, items: usize) {
        self.refused[signal as usize].add(items as u64, &labels(transport));
    }

    pub(crate) fn refused_connection(&self, reason: &'static str) {
        self.connections.add(1, &[KeyValue::new("reason", reason)]);
    }
}

fn labels(transport: Transport) -> [KeyValue; 2] {
    [KeyValue::new("receiver", "otlp"), KeyValue::new("transport", transport.name())]
}

fn outcome(name: &'static str) -> KeyValue {
    KeyValue::new("outcome", name)
}
