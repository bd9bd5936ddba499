//! Ports: bound together or not at all, with sentences that name the key to change.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, watch};

use super::budget::Budget;
use super::connection::{Protocol, serve};
use super::cors::Cors;
use super::settings::{Settings, Tls};
use super::tls::Certificates;
use super::{AuthError, Counters, Gate, Intake, Shared, TlsError, http1};

/// Why the receivers did not start.
#[derive(Debug)]
pub enum ListenError {
    /// `key` is the setting to change.
    Bind {
        key: &'static str,
        endpoint: String,
        error: std::io::Error,
    },
    /// Beyond loopback without authentication.
    Exposed {
        key: &'static str,
        endpoint: String,
    },
    Tls {
        key: &'static str,
        error: TlsError,
    },
    Auth(AuthError),
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenError::Bind { key, endpoint, error } => {
                write!(f, "{key}: cannot listen on {endpoint}: {error}")?;
                match error.kind() {
                    std::io::ErrorKind::AddrInUse => {
                        write!(f, "; stop what uses the port or set another one")
                    }
                    _ => Ok(()),
                }
            }
            ListenError::Exposed { key, endpoint } => write!(
                f,
                "{key}: {endpoint} can be reached from other machines and nobody has to \
                 authenticate: set receivers.otlp.auth or tls.client_ca_file, listen on \
                 127.0.0.1, or say receivers.otlp.allow_insecure: true"
            ),
            ListenError::Tls { key, error } => write!(f, "{key}: {error}"),
            ListenError::Auth(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ListenError {}

/// Binds `host:port`, all of whose addresses are loopback unless `exposed` is allowed.
///
/// # Errors
/// Names `key` when the port is taken, cannot be bound, or is exposed.
pub async fn bind(
    key: &'static str,
    endpoint: &str,
    exposed: bool,
) -> Result<TcpListener, ListenError> {
    let failed = |error| ListenError::Bind { key, endpoint: endpoint.into(), error };
    let addresses: Vec<SocketAddr> =
        tokio::net::lookup_host(endpoint).await.map_err(failed)?.collect();
    if !exposed && !addresses.iter().all(|address| address.ip().is_loopback()) {
        return Err(ListenError::Exposed { key, endpoint: endpoint.into() });
    }
    TcpListener::bind(&addresses[..]).await.map_err(failed)
}

/// Running receivers.
pub struct Receivers {
    pub grpc: Option<SocketAddr>,
    pub http: Option<SocketAddr>,
    gate: Gate,
    certificates: Vec<Arc<Certificates>>,
    stop: watch::Sender<bool>,
    /// Ends when the last connection has.
    alive: mpsc::Receiver<()>,
}

const GRPC: &str = "receivers.otlp.protocols.grpc.endpoint";
const HTTP: &str = "receivers.otlp.protocols.http.endpoint";
const GRPC_ALPN: &[&[u8]] = &[b"h2"];
const HTTP_ALPN: &[&[u8]] = &[b"h2", b"http/1.1"];

struct Port {
    listener: TcpListener,
    protocol: Protocol,
    certificates: Option<Arc<Certificates>>,
}

impl Receivers {
    /// Opens the configured ports and serves them.
    ///
    /// # Errors
    /// When a port, a certificate or the credentials cannot be used; nothing is open then.
    pub async fn start(
        settings: &Settings,
        counters: Counters,
        intake: Arc<dyn Intake>,
    ) -> Result<Self, ListenError> {
        let gate = Gate::open(&settings.auth).map_err(ListenError::Auth)?;
        let ports = ports(settings, &gate).await?;
        let (stop, stopping) = watch::channel(false);
        let shared = Arc::new(Shared {
            intake,
            gate: gate.clone(),
            budget: Budget::new(settings.limits.in_flight),
            limits: settings.limits,
            counters,
            stopping,
        });
        let (keep, alive) = mpsc::channel(1);
        let mut running =
            Receivers { grpc: None, http: None, gate, certificates: Vec::new(), stop, alive };
        let connections = Arc::new(Semaphore::new(settings.limits.connections));
        for port in ports {
            running.open(port, &shared, &connections, keep.clone());
        }
        Ok(running)
    }

    fn open(
        &mut self,
        port: Port,
        shared: &Arc<Shared>,
        connections: &Arc<Semaphore>,
        keep: mpsc::Sender<()>,
    ) {
        let address = port.listener.local_addr().ok();
        match port.protocol {
            Protocol::Grpc { .. } => self.grpc = address,
            Protocol::Http(_) => self.http = address,
        }
        if let Some(certificates) = &port.certificates {
            self.certificates.push(certificates.clone());
            tokio::spawn(certificates.clone().keep_fresh());
        }
        tokio::spawn(accept(port, shared.clone(), connections.clone(), keep));
    }

    /// Reads credentials and certificates again; what cannot be read stays as it is.
    ///
    /// # Errors
    /// A sentence a file that was not taken.
    pub fn reload(&self) -> Result<(), Vec<String>> {
        let mut faults = Vec::new();
        faults.extend(self.gate.reload().err().map(|error| error.to_string()));
        for certificates in &self.certificates {
            faults.extend(certificates.reload().err().map(|error| error.to_string()));
        }
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    /// Takes nothing new, and waits until the requests that had begun are answered, at most so
    /// long.
    pub async fn stop(mut self, patience: Duration) {
        self.stop.send_replace(true);
        let _ = tokio::time::timeout(patience, self.alive.recv()).await;
    }
}

async fn ports(settings: &Settings, gate: &Gate) -> Result<Vec<Port>, ListenError> {
    let mut ports = Vec::new();
    let exposed = |tls: &Option<Tls>| {
        let mutual = tls.as_ref().is_some_and(|tls| tls.client_ca_file.is_some());
        settings.allow_insecure || !gate.is_open() || mutual
    };
    if let Some(grpc) = &settings.grpc {
        let protocol = Protocol::Grpc {
            limit: grpc.max_recv_msg_size,
            max_streams: grpc.max_concurrent_streams,
        };
        let certificates = open_tls(GRPC, &grpc.tls, GRPC_ALPN)?;
        let listener = bind(GRPC, &grpc.endpoint, exposed(&grpc.tls)).await?;
        ports.push(Port { listener, protocol, certificates });
    }
    if let Some(http) = &settings.http {
        let cors = Cors::new(&http.allowed_origins);
        let limit = http.max_request_body_size;
        let protocol = Protocol::Http(Arc::new(http1::Port { limit, cors }));
        let certificates = open_tls(HTTP, &http.tls, HTTP_ALPN)?;
        let listener = bind(HTTP, &http.endpoint, exposed(&http.tls)).await?;
        ports.push(Port { listener, protocol, certificates });
    }
    Ok(ports)
}

fn open_tls(
    key: &'static str,
    tls: &Option<Tls>,
    protocols: &'static [&'static [u8]],
) -> Result<Option<Arc<Certificates>>, ListenError> {
    let open = |tls: &Tls| Certificates::open(tls, protocols).map(Arc::new);
    tls.as_ref().map(open).transpose().map_err(|error| ListenError::Tls { key, error })
}

async fn accept(
    port: Port,
    shared: Arc<Shared>,
    connections: Arc<Semaphore>,
    keep: mpsc::Sender<()>,
) {
    let mut stopping = shared.stopping.clone();
    loop {
        let accepted = tokio::select! {
            accepted = port.listener.accept() => accepted,
            _ = stopping.wait_for(|stop| *stop) => return,
        };
        let Ok((stream, _)) = accepted else {
            // Out of file descriptors, or a peer that left: neither is helped by haste.
            shared.counters.refused_connection("accept");
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(permit) = connections.clone().try_acquire_owned() else {
            shared.counters.refused_connection("limit");
            continue;
        };
        let serving =
            serve(stream, port.protocol.clone(), port.certificates.clone(), shared.clone());
        let keep = keep.clone();
        tokio::spawn(async move {
            serving.await;
            drop((permit, keep));
        });
    }
}
