//! The checked configuration as plain values. Nobody behind this point reads text.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::mistake::Mistake;
pub use crate::emit::redaction::Plan;
pub use crate::emit::{Enrich, Redact, Which};
use crate::model::ids::Nanos;
use crate::model::policy::Policy;
use crate::model::words::vocabulary;

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub receivers: Receivers,
    pub policy: Policy,
    pub emit: Emit,
    /// The lockfile of contracts.
    pub lockfile: PathBuf,
    pub limits: Limits,
    pub storage: Storage,
    /// In the order of the file. Never empty: with nothing configured, the console.
    pub exporters: Vec<Exporter>,
    pub service: Service,
    /// What can be run with and is probably not meant, in reading order.
    pub warnings: Vec<Mistake>,
    /// Files that hold nothing: they change nothing, and may be cut off.
    pub empty_files: Vec<PathBuf>,
}

/// `None`: not listened on. At least one is there.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Receivers {
    pub grpc: Option<Grpc>,
    pub http: Option<Http>,
    pub auth: Auth,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Grpc {
    pub endpoint: String,
    pub max_recv_msg_size: u64,
    pub max_concurrent_streams: u32,
    pub tls: Option<ServerTls>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Http {
    pub endpoint: String,
    pub max_request_body_size: u64,
    /// Globs.
    pub allowed_origins: Vec<String>,
    pub tls: Option<ServerTls>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ServerTls {
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    pub client_ca_file: Option<PathBuf>,
    pub reload_interval: Nanos,
}

/// How clients of a listener prove who they are; both empty means that nobody must.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Auth {
    pub bearer_token_file: Option<PathBuf>,
    pub htpasswd_file: Option<PathBuf>,
}

impl Auth {
    pub fn required(&self) -> bool {
        self.bearer_token_file.is_some() || self.htpasswd_file.is_some()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Emit {
    pub events: Which,
    pub spans: Which,
    pub enrich: Enrich,
    pub redaction: Plan,
}

/// Bytes where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub memory: u64,
    /// Distinct values of one label of one metric.
    pub label_values: u64,
    pub in_flight: u64,
    pub held_spans: u64,
    /// Number of chains alive.
    pub chains: u64,
    /// Number of scopes alive.
    pub scopes: u64,
    /// Revisions of verdicts that can be asked for.
    pub remembered: u64,
    pub findings_per_chain: u64,
    pub evidence_per_chain: u64,
    pub connections: u64,
    pub header_size: u64,
    /// Inflated bytes for each compressed one.
    pub inflate_ratio: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    pub directory: PathBuf,
    pub ack: Ack,
    pub sync: SyncMode,
    pub sync_interval: Nanos,
    pub max_size: u64,
}

vocabulary!(
    /// When an export is answered.
    Ack { Durable = "durable", Queued = "queued" }
);
vocabulary!(
    /// When the log is made to reach the disk.
    SyncMode { Always = "always", Interval = "interval", Never = "never" }
);

#[derive(Clone, Debug, PartialEq)]
pub struct Exporter {
    /// As in the file: `otlp`, `otlp/eu`.
    pub name: String,
    pub kind: ExporterKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExporterKind {
    Otlp(Client),
    OtlpHttp { client: Client, encoding: Encoding, endpoints: SignalEndpoints },
    File { path: PathBuf, max_megabytes: u64, max_backups: u64 },
    Console { show: Show },
}

vocabulary!(Encoding { Proto = "proto", Json = "json" });
vocabulary!(
    /// What the console prints.
    Show { Verdicts = "verdicts", Spans = "spans" }
);
vocabulary!(Compression { None = "none", Gzip = "gzip", Zstd = "zstd" });

/// Whole URLs for single signals, where the environment names them (`…_TRACES_ENDPOINT`); without
/// one, `/v1/<signal>` is put behind the client's endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SignalEndpoints {
    pub traces: Option<String>,
    pub logs: Option<String>,
    pub metrics: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    /// Absolute: `http://…` or `https://…`.
    pub endpoint: String,
    pub compression: Compression,
    pub headers: BTreeMap<String, Secret>,
    pub timeout: Nanos,
    pub max_batch_size: u64,
    pub tls: ClientTls,
    pub retry: Retry,
    pub bearer_token_file: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ClientTls {
    pub ca_file: Option<PathBuf>,
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    pub insecure_skip_verify: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    pub enabled: bool,
    pub initial_interval: Nanos,
    pub max_interval: Nanos,
    /// 0: never give up.
    pub max_elapsed_time: Nanos,
}

/// A value that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Indices into `Settings::exporters`, by signal.
    pub traces: Vec<usize>,
    pub logs: Vec<usize>,
    pub metrics: Vec<usize>,
    pub profiles: Vec<usize>,
    pub shutdown_timeout: Nanos,
    pub level: Level,
    pub metrics_endpoint: String,
    pub health_endpoint: String,
    pub page: Page,
    /// `service.name` and attributes of our own telemetry.
    pub service_name: String,
    pub resource_attributes: BTreeMap<String, String>,
}

vocabulary!(Level {
    Error = "error", Warn = "warn", Info = "info", Debug = "debug", Trace = "trace",
});

#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    pub endpoint: String,
    pub auth: Auth,
    pub tls: Option<ServerTls>,
}
