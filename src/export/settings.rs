//! What is configured about exporting, resolved to plain values. Sizes are bytes.

use std::path::PathBuf;
use std::time::Duration;

use crate::wire::Signal;

/// One entry of `exporters`, with the signals that `service` gives it.
#[derive(Clone, Debug)]
pub struct Exporter {
    /// Its key under `exporters`, e.g. `otlp/eu`.
    pub name: String,
    pub signals: Vec<Signal>,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub enum Kind {
    /// `otlp`: gRPC.
    Grpc(Otlp),
    /// `otlp_http`.
    Http(Otlp, Encoding),
    File(File),
    Console(Show),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Proto,
    Json,
}

/// `exporters.otlp` and `exporters.otlp_http`.
#[derive(Clone, Debug)]
pub struct Otlp {
    /// Base URL; `http://` is plaintext. `otlp_http` appends `/v1/<signal>`.
    pub endpoint: String,
    /// Whole URLs for single signals, from `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` and its like.
    pub signal_endpoints: Vec<(Signal, String)>,
    pub compression: Compression,
    pub headers: Vec<(String, Secret)>,
    /// Of one attempt.
    pub timeout: Duration,
    /// Of one request, before compression.
    pub max_batch_size: usize,
    pub tls: Tls,
    pub auth: Auth,
    pub retry: Retry,
}

/// A value that is never printed.
#[derive(Clone)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(secret)")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Compression {
    #[default]
    None,
    Gzip,
    Zstd,
}

#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// Authorities to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    pub insecure_skip_verify: bool,
}

#[derive(Clone, Debug, Default)]
pub enum Auth {
    #[default]
    None,
    Bearer {
        token_file: PathBuf,
    },
}

/// `retry_on_failure`.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// `false`: what fails once is dropped.
    pub enabled: bool,
    pub initial_interval: Duration,
    pub max_interval: Duration,
    /// Zero: for ever.
    pub max_elapsed_time: Duration,
}

/// `exporters.file`: OTLP JSON lines.
#[derive(Clone, Debug)]
pub struct File {
    pub path: PathBuf,
    /// A file is closed and renamed before it would grow beyond this. Zero: never.
    pub max_bytes: u64,
    /// Renamed files that are kept.
    pub max_backups: usize,
}

/// `exporters.console.show`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    Verdicts,
    Spans,
}

impl Default for Otlp {
    fn default() -> Self {
        Otlp {
            endpoint: "http://127.0.0.1:4317".into(),
            signal_endpoints: Vec::new(),
            compression: Compression::None,
            headers: Vec::new(),
            timeout: Duration::from_secs(10),
            max_batch_size: 4 << 20,
            tls: Tls::default(),
            auth: Auth::None,
            retry: Retry::default(),
        }
    }
}

impl Default for Retry {
    fn default() -> Self {
        Retry {
            enabled: true,
            initial_interval: Duration::from_secs(1),
            max_interval: Duration::from_secs(30),
            max_elapsed_time: Duration::ZERO,
        }
    }
}
