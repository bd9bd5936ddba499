//! What is configured about receiving, resolved to plain values. Sizes are bytes.

use std::path::PathBuf;
use std::time::Duration;

/// `receivers.otlp`. A protocol that is absent does not listen.
#[derive(Clone, Debug)]
pub struct Settings {
    pub grpc: Option<Grpc>,
    pub http: Option<Http>,
    pub auth: Auth,
    /// Without authentication only loopback addresses may be bound, unless this says otherwise.
    pub allow_insecure: bool,
    pub limits: Limits,
}

/// `receivers.otlp.protocols.grpc`.
#[derive(Clone, Debug)]
pub struct Grpc {
    /// `host:port`.
    pub endpoint: String,
    pub max_recv_msg_size: usize,
    pub max_concurrent_streams: u32,
    pub tls: Option<Tls>,
}

/// `receivers.otlp.protocols.http`.
#[derive(Clone, Debug)]
pub struct Http {
    /// `host:port`.
    pub endpoint: String,
    pub max_request_body_size: usize,
    /// `cors.allowed_origins`: exact origins, `*`, or with one `*` inside. Empty: no CORS.
    pub allowed_origins: Vec<String>,
    pub tls: Option<Tls>,
}

/// A port that takes no exports.
#[derive(Clone, Debug)]
pub struct Listener {
    /// `host:port`.
    pub endpoint: String,
    pub auth: Auth,
    pub tls: Option<Tls>,
    /// As for the receivers.
    pub allow_insecure: bool,
}

/// `tls` of a receiver. The files are read again every `reload_interval`.
#[derive(Clone, Debug)]
pub struct Tls {
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    /// Clients must show a certificate that one of these signed.
    pub client_ca_file: Option<PathBuf>,
    pub reload_interval: Duration,
}

/// `receivers.otlp.auth`.
#[derive(Clone, Debug, Default)]
pub enum Auth {
    #[default]
    None,
    Bearer {
        token_file: PathBuf,
    },
    Basic {
        htpasswd_file: PathBuf,
    },
}

/// `processors.mcp_verdict.limits`, the part that receiving keeps.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of request bodies, compressed and inflated, that may be held at one time.
    pub in_flight: usize,
    /// Open connections of both protocols together.
    pub connections: usize,
    /// Bytes of one request's headers.
    pub header_size: usize,
    /// Bytes that may come out for each compressed byte, beyond the first MiB.
    pub inflate_ratio: usize,
    /// Longest silence in the middle of a request body, and of a TLS handshake.
    pub silence: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            in_flight: 64 << 20,
            connections: 4096,
            header_size: 32 << 10,
            inflate_ratio: 1000,
            silence: Duration::from_secs(30),
        }
    }
}

pub const DEFAULT_MESSAGE_SIZE: usize = 16 << 20;

impl Default for Grpc {
    fn default() -> Self {
        Grpc {
            endpoint: "127.0.0.1:4317".into(),
            max_recv_msg_size: DEFAULT_MESSAGE_SIZE,
            max_concurrent_streams: 1024,
            tls: None,
        }
    }
}

impl Default for Http {
    fn default() -> Self {
        Http {
            endpoint: "127.0.0.1:4318".into(),
            max_request_body_size: DEFAULT_MESSAGE_SIZE,
            allowed_origins: Vec::new(),
            tls: None,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            grpc: Some(Grpc::default()),
            http: Some(Http::default()),
            auth: Auth::None,
            allow_insecure: false,
            limits: Limits::default(),
        }
    }
}
