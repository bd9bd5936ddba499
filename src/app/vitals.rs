//! How the process does, as one answer: what health checks say, and the counts of
//! `/metrics` that are the pipeline's own.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use crate::emit::metrics;
use crate::page::{Pulse, Standing, Vitals};
use crate::proto::{GetHealthResponse, Metric, Part, Receives};
use crate::receive::Receivers;
use crate::telemetry::health::{Health, Report, Status};
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

/// What `GET /v1/health` and the health service answer from.
pub fn vitals(health: Health, meters: Arc<Meters>, doors: Arc<Doors>) -> Vitals {
    let known: Vec<Known> = rows().collect();
    Arc::new(Process { health, meters, doors, known })
}

struct Process {
    health: Health,
    meters: Arc<Meters>,
    doors: Arc<Doors>,
    known: Vec<Known>,
}

impl Pulse for Process {
    fn whole(&self) -> GetHealthResponse {
        let answer = self.health.ask();
        let door = |door: &OnceLock<String>| door.get().cloned();
        let receives = Receives { grpc: door(&self.doors.grpc), http: door(&self.doors.http) };
        GetHealthResponse {
            status: word(answer.status),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            parts: answer.parts.into_iter().map(part).collect(),
            receives: Some(receives),
            metrics: values(&self.meters, &self.known),
        }
    }

    fn standing(&self) -> Standing {
        let status = self.health.ask().status;
        Standing { ready: status == Status::Ok, alive: status != Status::Dead }
    }
}

fn word(status: Status) -> String {
    let word = match status {
        Status::Ok => "ok",
        Status::NotReady => "not_ready",
        Status::Dead => "dead",
    };
    word.to_owned()
}

fn part(report: Report) -> Part {
    Part { part: report.part, status: word(report.status), why: report.why }
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

fn values(meters: &Meters, known: &[Known]) -> Vec<Metric> {
    let row = |name: &str| {
        let plain = name.strip_suffix("_total").unwrap_or(name);
        known.iter().find(|row| row.name == plain || row.name == name)
    };
    let samples = meters.samples(&|name| row(name).is_some());
    let told = samples.into_iter().map(|sample| Metric {
        says: row(&sample.name).map(|row| row.says.to_owned()),
        name: sample.name,
        labels: sample.labels.into_iter().collect(),
        value: sample.value,
    });
    told.collect()
}
