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
use super::flow::{self, Conversation};
use super::handler::Handler;
use super::settings::{Limits, Settings, Tls};
use super::tls::Certificates;
use super::{AuthError, Counters, Door, Gate, Intake, Shared, TlsError, grpc, http1};

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
                 authenticate: configure `auth` or `tls.client_ca_file`, listen on 127.0.0.1, or \
                 write `allow_insecure: true` beside it"
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
    serving: Serving,
}

const GRPC: &str = "receivers.otlp.protocols.grpc.endpoint";
const HTTP: &str = "receivers.otlp.protocols.http.endpoint";
const AUTH: &str = "receivers.otlp.auth";
const GRPC_ALPN: &[&[u8]] = &[b"h2"];
const HTTP_ALPN: &[&[u8]] = &[b"h2", b"http/1.1"];

/// What answers beside the OTLP services on the gRPC port.
#[derive(Clone)]
pub struct Beside {
    /// Its paths begin so; the first that fits is asked.
    pub prefix: &'static str,
    pub who: Who,
}

/// Who answers: at once, or as a stream.
#[derive(Clone)]
pub enum Who {
    AtOnce(Arc<dyn Handler>),
    Streaming(Arc<dyn Conversation>),
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
        beside: Vec<Beside>,
    ) -> Result<Self, ListenError> {
        let gate = Gate::open(AUTH, &settings.auth).map_err(ListenError::Auth)?;
        let (serving, door, keep) = Serving::new(gate, settings.limits, counters);
        let shared = Arc::new(Shared { intake, door: door.clone() });
        let ports = ports(settings, &shared, beside).await?;
        let mut running = Receivers { grpc: None, http: None, serving };
        let door = Arc::new(door);
        for Port { listener, protocol, certificates } in ports {
            let address = listener.local_addr().ok();
            match protocol {
                Protocol::Grpc(_) => running.grpc = address,
                _ => running.http = address,
            }
            running.serving.open(listener, protocol, certificates, door.clone(), &keep);
        }
        Ok(running)
    }

    /// Reads credentials and certificates again; what cannot be read stays as it is.
    ///
    /// # Errors
    /// A sentence a file that was not taken.
    pub fn reload(&self) -> Result<(), Vec<String>> {
        self.serving.reload()
    }

    /// Takes nothing new, and waits until the requests that had begun are answered, at most so
    /// long.
    pub async fn stop(self, patience: Duration) {
        self.serving.stop(patience).await;
    }
}

/// Ports that open and close together, under one gate.
pub struct Serving {
    gate: Gate,
    certificates: Vec<Arc<Certificates>>,
    connections: Arc<Semaphore>,
    stop: watch::Sender<bool>,
    /// Ends when the last connection has.
    alive: mpsc::Receiver<()>,
}

impl Serving {
    /// Nothing open yet; the door that connections come through, and what each of them keeps.
    pub fn new(gate: Gate, limits: Limits, counters: Counters) -> (Self, Door, mpsc::Sender<()>) {
        let (stop, stopping) = watch::channel(false);
        let (keep, alive) = mpsc::channel(1);
        let connections = Arc::new(Semaphore::new(limits.connections));
        let budget = Budget::new(limits.in_flight);
        let door = Door { gate: gate.clone(), budget, limits, counters, stopping };
        (Serving { gate, certificates: Vec::new(), connections, stop, alive }, door, keep)
    }

    /// Serves one more port.
    pub fn open(
        &mut self,
        listener: TcpListener,
        protocol: Protocol,
        certificates: Option<Arc<Certificates>>,
        door: Arc<Door>,
        keep: &mpsc::Sender<()>,
    ) {
        if let Some(certificates) = &certificates {
            self.certificates.push(certificates.clone());
            tokio::spawn(certificates.clone().keep_fresh());
        }
        let port = Port { listener, protocol, certificates };
        tokio::spawn(accept(port, door, self.connections.clone(), keep.clone()));
    }

    /// Reads credentials and certificates again.
    pub fn reload(&self) -> Result<(), Vec<String>> {
        let mut faults = Vec::new();
        faults.extend(self.gate.reload().err().map(|error| error.to_string()));
        for certificates in &self.certificates {
            faults.extend(certificates.reload().err().map(|error| error.to_string()));
        }
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    /// Takes nothing new, and waits for what had begun, at most so long.
    pub async fn stop(mut self, patience: Duration) {
        self.stop.send_replace(true);
        let _ = tokio::time::timeout(patience, self.alive.recv()).await;
    }
}

struct Port {
    listener: TcpListener,
    protocol: Protocol,
    certificates: Option<Arc<Certificates>>,
}

async fn ports(
    settings: &Settings,
    shared: &Arc<Shared>,
    beside: Vec<Beside>,
) -> Result<Vec<Port>, ListenError> {
    let mut ports = Vec::new();
    let exposed = |tls: &Option<Tls>| {
        let mutual = tls.as_ref().is_some_and(|tls| tls.client_ca_file.is_some());
        settings.allow_insecure || !shared.door.gate.is_open() || mutual
    };
    if let Some(grpc) = &settings.grpc {
        let protocol = Protocol::Grpc(Arc::new(grpc::Port {
            shared: shared.clone(),
            limit: grpc.max_recv_msg_size,
            max_streams: grpc.max_concurrent_streams,
            beside,
            places: flow::places(),
        }));
        let certificates = open_tls(GRPC, &grpc.tls, GRPC_ALPN)?;
        let listener = bind(GRPC, &grpc.endpoint, exposed(&grpc.tls)).await?;
        ports.push(Port { listener, protocol, certificates });
    }
    if let Some(http) = &settings.http {
        let cors = Cors::new(&http.allowed_origins);
        let (shared, limit) = (shared.clone(), http.max_request_body_size);
        let protocol = Protocol::Http(Arc::new(http1::Port { shared, limit, cors }));
        let certificates = open_tls(HTTP, &http.tls, HTTP_ALPN)?;
        let listener = bind(HTTP, &http.endpoint, exposed(&http.tls)).await?;
        ports.push(Port { listener, protocol, certificates });
    }
    Ok(ports)
}

/// The certificates of a port, where it has any; `key` is the setting of the port.
pub fn open_tls(
    key: &'static str,
    tls: &Option<Tls>,
    protocols: &'static [&'static [u8]],
) -> Result<Option<Arc<Certificates>>, ListenError> {
    let open = |tls: &Tls| Certificates::open(tls, protocols).map(Arc::new);
    tls.as_ref().map(open).transpose().map_err(|error| ListenError::Tls { key, error })
}

async fn accept(port: Port, door: Arc<Door>, connections: Arc<Semaphore>, keep: mpsc::Sender<()>) {
    let mut stopping = door.stopping.clone();
    loop {
        let accepted = tokio::select! {
            accepted = port.listener.accept() => accepted,
            _ = stopping.wait_for(|stop| *stop) => return,
        };
        let Ok((stream, _)) = accepted else {
            // Out of file descriptors, or a peer that left: neither is helped by haste.
            door.counters.refused_connection("accept");
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(permit) = connections.clone().try_acquire_owned() else {
            door.counters.refused_connection("limit");
            continue;
        };
        let serving = serve(stream, port.protocol.clone(), port.certificates.clone(), door.clone());
        let keep = keep.clone();
        tokio::spawn(async move {
            serving.await;
            drop((permit, keep));
        });
    }
}
