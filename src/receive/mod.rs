//! OTLP in: gRPC and HTTP, plain or TLS, to checked protobuf bytes.
//!
//! Promises: bodies are capped before and after inflating and counted while they arrive, so that a
//! slow or silent client holds no memory; what cannot be read is refused before it is promised; an
//! error becomes a status in one table. Nothing here decodes a request into objects.

mod answer;
mod auth;
mod body;
mod budget;
mod connection;
mod content;
mod cors;
mod counters;
mod decode;
mod flow;
mod grpc;
mod handler;
mod http1;
mod listen;
mod page;
mod refusal;
pub mod settings;
mod tls;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

pub use answer::Answer;
pub use auth::{AuthError, Gate};
pub use counters::Counters;
pub use flow::{Beginning, Conversation, Said};
pub use handler::{Answering, Handler, harden};
pub use listen::{Beside, ListenError, Receivers, Who, bind};
pub use page::Page;
pub use refusal::{Refusal, Row};
pub use settings::Settings;
pub use tls::TlsError;

use crate::wire::Signal;
use crate::wire::inflate::Coding;

/// A readable export.
#[derive(Clone, Debug)]
pub struct Received {
    pub signal: Signal,
    /// The protobuf as it came, in its coding; converted from JSON where it came so.
    pub wire: Bytes,
    pub coding: Coding,
    /// The same without its coding.
    pub plain: Bytes,
    /// Spans, log records, data points or samples.
    pub items: usize,
    /// Items that were left out because they cannot be told in OTLP, and why.
    pub rejected: u64,
    pub message: String,
}

/// What takes exports. It answers when they are as safe as was promised.
pub trait Intake: Send + Sync + 'static {
    fn take(&self, export: Received) -> Taking<'_>;
}

/// The answer of an [`Intake`].
pub type Taking<'a> = Pin<Box<dyn Future<Output = Result<(), Refusal>> + Send + 'a>>;

/// What the connections of a door share: who may enter, how much, until when.
#[derive(Clone)]
pub(crate) struct Door {
    pub gate: Gate,
    pub budget: budget::Budget,
    pub limits: settings::Limits,
    pub counters: Counters,
    pub stopping: tokio::sync::watch::Receiver<bool>,
}

impl Door {
    /// Whether new requests are taken at all.
    fn admit(&self) -> Result<(), Refusal> {
        if *self.stopping.borrow() { Err(Refusal::Stopping) } else { Ok(()) }
    }
}

/// What the OTLP ports share.
pub(crate) struct Shared {
    pub intake: Arc<dyn Intake>,
    pub door: Door,
}

impl Shared {
    /// Hands an export on and counts what became of it.
    async fn take(&self, transport: counters::Transport, export: Received) -> Result<(), Refusal> {
        let (signal, items) = (export.signal, export.items);
        // Nothing to forward is a success by itself.
        let taken = match items == 0 && export.plain.is_empty() {
            true => Ok(()),
            false => self.intake.take(export).await,
        };
        match &taken {
            Ok(()) => self.door.counters.accepted(transport, signal, items),
            Err(_) => self.door.counters.refused_items(transport, signal, items),
        }
        taken
    }
}

/// The gRPC method of a signal's service.
pub fn grpc_path(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        Signal::Profiles => {
            "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
        }
    }
}

/// The HTTP path of a signal.
pub fn http_path(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "/v1/traces",
        Signal::Logs => "/v1/logs",
        Signal::Metrics => "/v1/metrics",
        Signal::Profiles => "/v1development/profiles",
    }
}

fn signal_of(path: &str, of: fn(Signal) -> &'static str) -> Option<Signal> {
    Signal::ALL.into_iter().find(|signal| of(*signal) == path)
}
