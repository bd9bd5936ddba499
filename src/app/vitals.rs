//! How the process does, as one JSON object: what health checks say, and the counts of
//! `/metrics` that are the pipeline's own.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use crate::emit::metrics;
use crate::page::Vitals;
use crate::receive::Receivers;
use crate::telemetry::health::Health;
use crate::telemetry::{Meters, registry};

/// Where OTLP is received, once it is.
#[derive(Default)]
pub struct Doors {
    pub grpc: OnceLock<String>,
    pub http: OnceLock<String>,
}

impl Doors {
    pub fn open(&self, receivers: &Receivers) {
        let say = |place: &OnceLock<String>, address: Option<SocketAddr>| {
            let address = address.map(|address| address.to_string());
            address.is_none_or(|address| place.set(address).is_ok())
        };
        // Said once, when the program has started.
        let _ = (say(&self.grpc, receivers.grpc), say(&self.http, receivers.http));
    }
}

/// What `GET /v1/health` answers.
pub fn vitals(health: Health, meters: Arc<Meters>, doors: Arc<Doors>) -> Vitals {
    let known: Vec<Known> = rows().collect();
    Arc::new(move || {
        let answer = health.ask();
        json!({
            "status": answer.status,
            "version": env!("CARGO_PKG_VERSION"),
            "parts": answer.parts,
            "receives": {"grpc": doors.grpc.get(), "http": doors.http.get()},
            "metrics": values(&meters, &known),
        })
    })
}

/// A metric by its name on Prometheus, and what it tells.
struct Known {
    name: String,
    says: &'static str,
}

fn rows() -> impl Iterator<Item = Known> {
    let own = registry::PROCESS_METRICS.iter().map(|row| (row.name, row.says));
    let judged = [metrics::OPEN_REQUESTS, metrics::EVICTED, metrics::LATE_FACTS];
    own.chain(judged.map(|row| (row.name, row.says)))
        .map(|(name, says)| Known { name: name.replace('.', "_"), says })
}

fn values(meters: &Meters, known: &[Known]) -> Vec<Value> {
    let row = |name: &str| {
        let plain = name.strip_suffix("_total").unwrap_or(name);
        known.iter().find(|row| row.name == plain || row.name == name)
    };
    let samples = meters.samples(&|name| row(name).is_some());
    let told = samples.into_iter().map(|sample| {
        let labels: serde_json::Map<String, Value> =
            sample.labels.into_iter().map(|(key, value)| (key, value.into())).collect();
        let says = row(&sample.name).map(|row| row.says);
        json!({"name": sample.name, "labels": labels, "value": sample.value, "says": says})
    });
    told.collect()
}
