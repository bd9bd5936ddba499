//! Wiring: which part feeds which, in what order they start and stop.
//!
//! Promises: ports open last and close first; what was accepted is delivered, or stays in the log,
//! or is counted as lost.

mod own_metrics;
mod pipeline;
pub mod process;
pub mod settings;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;

use crate::config::Settings;
use crate::export::{self, ExporterError, Outbox};
use crate::log::{self, Log, Memory};
use crate::receive::{self, ListenError, Receivers};
use crate::telemetry::health::{Health, Report};
use crate::telemetry::{self, Meters, registry};
use own_metrics::OwnMetrics;
use pipeline::Pipeline;

/// Why the program did not start.
#[derive(Debug)]
pub enum StartError {
    Listen(ListenError),
    Exporter(ExporterError),
    Telemetry(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Listen(error) => error.fmt(f),
            StartError::Exporter(error) => error.fmt(f),
            StartError::Telemetry(why) => write!(f, "service.telemetry: {why}"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<ListenError> for StartError {
    fn from(error: ListenError) -> Self {
        StartError::Listen(error)
    }
}

impl From<ExporterError> for StartError {
    fn from(error: ExporterError) -> Self {
        StartError::Exporter(error)
    }
}

/// The running program.
pub struct App {
    receivers: Receivers,
    outbox: Arc<Outbox>,
    log: Arc<dyn Log>,
    meters: Arc<Meters>,
    pub health: Health,
    pub metrics_address: Option<SocketAddr>,
    pub health_address: Option<SocketAddr>,
    shutdown_timeout: Duration,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Accepted exports that were neither delivered nor kept.
    pub lost: usize,
}

impl App {
    /// Starts every part, on the runtime of the caller.
    ///
    /// # Errors
    /// When a port, certificate, credential or exporter cannot be used; nothing is open then.
    pub async fn start(settings: &Settings) -> Result<Self, StartError> {
        let own_metrics = OwnMetrics::default();
        let telemetry = settings::telemetry(settings);
        let exporter = own_metrics.exporter().map_err(StartError::Telemetry)?;
        let meters = Meters::new(&telemetry.resource, Some(exporter));
        let meters = Arc::new(meters.map_err(StartError::Telemetry)?);
        let meter = meters.meter();
        let log = open_log(settings);
        let counters = export::Counters::new(&meter);
        let exporters = settings::exporters(settings);
        let outbox = Arc::new(Outbox::new(&exporters, log.clone(), &counters)?);
        own_metrics.connect(outbox.clone());
        outbox.start();
        observe(&meter, &log, &outbox);
        let health = health_of(&log, &outbox);
        let metrics_address = open_metrics(&telemetry, meters.clone()).await?;
        let health_address = open_health(&telemetry, health.clone()).await?;
        let pipeline = Arc::new(Pipeline::new(log.clone(), outbox.clone()));
        let received = receive::Counters::new(&meter);
        let receivers = Receivers::start(&settings::receive(settings), received, pipeline).await?;
        let shutdown_timeout = Duration::from_nanos(settings.service.shutdown_timeout);
        Ok(App {
            receivers,
            outbox,
            log,
            meters,
            health,
            metrics_address,
            health_address,
            shutdown_timeout,
        })
    }

    /// Where gRPC is received.
    pub fn grpc_address(&self) -> Option<SocketAddr> {
        self.receivers.grpc
    }

    /// Where HTTP is received.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.receivers.http
    }

    /// Reads again what can change: credentials and certificates.
    ///
    /// # Errors
    /// A sentence for each thing that stays as it was.
    pub fn reload(&self) -> Result<(), Vec<String>> {
        self.receivers.reload()
    }

    /// Ends inside `shutdown_timeout`: intake first, then what is owed.
    pub async fn stop(self) -> Ended {
        let deadline = tokio::time::Instant::now() + self.shutdown_timeout;
        let left = || deadline.saturating_duration_since(tokio::time::Instant::now());
        // Requests that had begun get a part of the time; the rest is for deliveries.
        self.receivers.stop(left() / 4).await;
        let meters = self.meters.clone();
        // The last push waits for its own thread: not on ours.
        let _ = tokio::task::spawn_blocking(move || meters.shutdown()).await;
        let owed = self.outbox.drain(left()).await;
        Ended { lost: if self.log.survives() { 0 } else { owed } }
    }
}

/// The log that `storage` asks for.
fn open_log(settings: &Settings) -> Arc<dyn Log> {
    let storage = settings::storage(settings);
    if storage.ack == log::settings::Ack::Durable {
        tracing::warn!(
            "storage.ack: durable is kept in memory by this version: what is not delivered when \
             the process is killed is lost"
        );
    }
    Arc::new(Memory::new(storage.max_size.min(storage.memory)))
}

/// Gauges that are looked at when metrics are read.
fn observe(meter: &Meter, log: &Arc<dyn Log>, outbox: &Arc<Outbox>) {
    let gauge = |name: &'static str| meter.u64_observable_gauge(name);
    let of = log.clone();
    gauge(registry::STORAGE_BYTES).with_callback(move |o| o.observe(of.usage().bytes, &[])).build();
    let of = log.clone();
    gauge(registry::STORAGE_RECORDS)
        .with_callback(move |o| o.observe(of.usage().records, &[]))
        .build();
    let of = outbox.clone();
    gauge("otelcol_exporter_queue_size")
        .with_callback(move |o| {
            for lane in of.lanes() {
                let labels = [
                    KeyValue::new("exporter", lane.exporter.clone()),
                    KeyValue::new("signal", lane.signal.name()),
                ];
                o.observe(lane.waiting() as u64, &labels);
            }
        })
        .build();
}

fn health_of(log: &Arc<dyn Log>, outbox: &Arc<Outbox>) -> Health {
    let health = Health::default();
    let of = outbox.clone();
    health.add(move || {
        let report = |lane: &Arc<export::Lane>| {
            Report::moving(
                format!("exporter/{}/{}", lane.exporter, lane.signal.name()),
                lane.still(),
            )
        };
        of.lanes().iter().map(report).collect()
    });
    let of = log.clone();
    health.add(move || {
        let usage = of.usage();
        let full = usage.bytes.saturating_mul(100) >= usage.limit.saturating_mul(98);
        vec![match full {
            true => Report::not_ready("storage", "full: exports are refused until some are sent"),
            false => Report::ok("storage"),
        }]
    });
    health
}

async fn open_metrics(
    telemetry: &telemetry::Settings,
    meters: Arc<Meters>,
) -> Result<Option<SocketAddr>, StartError> {
    let Some(endpoint) = &telemetry.metrics else { return Ok(None) };
    let listener = receive::bind("service.telemetry.metrics.endpoint", endpoint, true).await?;
    let address = listener.local_addr().ok();
    tokio::spawn(telemetry::serve::metrics(listener, meters));
    Ok(address)
}

async fn open_health(
    telemetry: &telemetry::Settings,
    health: Health,
) -> Result<Option<SocketAddr>, StartError> {
    let Some(endpoint) = &telemetry.health else { return Ok(None) };
    let listener = receive::bind("service.telemetry.health.endpoint", endpoint, true).await?;
    let address = listener.local_addr().ok();
    tokio::spawn(telemetry::serve::health(listener, health));
    Ok(address)
}
