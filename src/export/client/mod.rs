//! Where batches go: one attempt at a time, without retries.

mod connect;
mod console;
mod file;
mod grpc;
mod http;
mod tls;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use super::batch::Batch;
use super::outcome::Outcome;
use super::settings::{Compression, Exporter, Kind, Retry};
use crate::wire::Signal;
use crate::wire::inflate::Coding;

pub use tls::config as tls_config;

/// An exporter that can be sent to.
pub enum Client {
    Grpc(Box<grpc::Grpc>),
    Http(Box<http::Http>),
    File(file::File),
    Console(console::Console),
}

/// An exporter that cannot be built from its settings.
#[derive(Debug)]
pub struct ExporterError {
    /// Its key under `exporters`.
    pub name: String,
    pub why: String,
}

impl fmt::Display for ExporterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exporters.{}: {}", self.name, self.why)
    }
}

impl std::error::Error for ExporterError {}

/// What goes wrong while building, before it is known by which name.
pub struct Fault(pub String);

impl Fault {
    fn file(path: &Path, why: impl fmt::Display) -> Self {
        Fault(format!("{}: {why}", path.display()))
    }
}

impl Client {
    /// Builds a client; no connection is made yet.
    ///
    /// # Errors
    /// When the endpoint, a certificate, a token or a path cannot be used.
    pub fn new(exporter: &Exporter) -> Result<Self, ExporterError> {
        let built = match &exporter.kind {
            Kind::Grpc(otlp) => grpc::Grpc::new(otlp).map(|c| Client::Grpc(Box::new(c))),
            Kind::Http(otlp, encoding) => {
                http::Http::new(otlp, *encoding).map(|c| Client::Http(Box::new(c)))
            }
            Kind::File(file) => file::File::open(file).map(Client::File),
            Kind::Console(show) => Ok(Client::Console(console::Console::new(*show))),
        };
        built.map_err(|Fault(why)| ExporterError { name: exporter.name.clone(), why })
    }

    /// The coding that requests are sent in.
    pub fn coding(&self) -> Coding {
        match self {
            Client::Grpc(client) => client.coding,
            Client::Http(client) => client.coding(),
            Client::File(_) | Client::Console(_) => Coding::Identity,
        }
    }

    /// Bytes of the largest request, before compression.
    pub fn max_batch_size(&self) -> usize {
        match self {
            Client::Grpc(client) => client.max_batch_size,
            Client::Http(client) => client.max_batch_size,
            // One line each; large enough for whatever was received.
            Client::File(_) | Client::Console(_) => 64 << 20,
        }
    }

    /// One attempt.
    pub async fn send(&self, signal: Signal, batch: &Batch) -> Outcome {
        match self {
            Client::Grpc(client) => client.send(signal, batch).await,
            Client::Http(client) => client.send(signal, batch).await,
            Client::File(client) => client.send(signal, batch).await,
            Client::Console(client) => client.send(signal, batch).await,
        }
    }
}

/// How an exporter repeats; files and the console do so quickly and for ever.
pub fn retry(kind: &Kind) -> Retry {
    match kind {
        Kind::Grpc(otlp) | Kind::Http(otlp, _) => otlp.retry,
        Kind::File(_) | Kind::Console(_) => Retry {
            enabled: true,
            initial_interval: Duration::from_millis(100),
            max_interval: Duration::from_secs(5),
            max_elapsed_time: Duration::ZERO,
        },
    }
}

fn coding(compression: Compression) -> Coding {
    match compression {
        Compression::None => Coding::Identity,
        Compression::Gzip => Coding::Gzip,
        Compression::Zstd => Coding::Zstd,
    }
}

/// Our name towards backends.
const USER_AGENT: &str = concat!("mcp-verdict/", env!("CARGO_PKG_VERSION"));
