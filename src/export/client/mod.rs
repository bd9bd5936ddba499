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
use super::outcome::Attempt;
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
    pub async fn send(&self, signal: Signal, batch: &Batch) -> Attempt {
        match self {
            Client::Grpc(client) => client.send(signal, batch).await,
            Client::Http(client) => client.send(signal, batch).await,
            Client::File(client) => client.send(signal, batch).await,
            Client::Console(client) => client.send(signal, batch).await,
        }
    }
}

/// Where an exporter sends a signal, for people: of a URL scheme, host and port alone, since all
/// else of it may be a secret.
pub fn place(kind: &Kind, signal: Signal) -> String {
    let whole = match kind {
        Kind::Grpc(otlp) => &otlp.endpoint,
        Kind::Http(otlp, _) => {
            let own = otlp.signal_endpoints.iter().find(|(of, _)| *of == signal);
            own.map_or(&otlp.endpoint, |(_, url)| url)
        }
        Kind::File(file) => return file.path.display().to_string(),
        Kind::Console(_) => return "the standard output".into(),
    };
    let Ok(url) = reqwest::Url::parse(whole) else { return "its endpoint".into() };
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{host}{port}", url.scheme())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::settings::{Encoding, Otlp};

    #[test]
    fn of_a_url_only_what_is_no_secret_is_told() {
        let otlp = |endpoint: &str| Otlp { endpoint: endpoint.into(), ..Otlp::default() };
        for (endpoint, want) in [
            ("http://127.0.0.1:4317", "http://127.0.0.1:4317"),
            ("https://user:pass@otlp.example.com:443/key/x?api=y", "https://otlp.example.com"),
            ("https://user@[::1]:4318/", "https://[::1]:4318"),
            ("nonsense", "its endpoint"),
        ] {
            let kind = Kind::Http(otlp(endpoint), Encoding::Proto);
            assert_eq!(place(&kind, Signal::Traces), want);
            assert_eq!(place(&Kind::Grpc(otlp(endpoint)), Signal::Logs), want);
        }
        let signal_endpoints = vec![(Signal::Logs, "http://logs:1/secret".into())];
        let kind = Kind::Http(Otlp { signal_endpoints, ..otlp("http://all:2") }, Encoding::Proto);
        assert_eq!(place(&kind, Signal::Logs), "http://logs:1");
        assert_eq!(place(&kind, Signal::Traces), "http://all:2");
    }
}
