//! The backend: takes traces, logs and metrics over gRPC, inflates them, and enters what it got.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use http_body_util::{BodyExt, Full};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::NamedService;

use crate::frame::{PREFIX, inflated};
use crate::ledger::Ledger;

/// The services that an exporter may call, in the order of their index in [`Signal`].
const SERVICES: [&str; 3] = [
    "opentelemetry.proto.collector.trace.v1.TraceService",
    "opentelemetry.proto.collector.logs.v1.LogsService",
    "opentelemetry.proto.collector.metrics.v1.MetricsService",
];

pub struct Sink {
    /// Without one, what comes is thrown away.
    ledger: Option<Mutex<Ledger>>,
    /// Bytes of messages as they came, compressed where they were.
    bytes: AtomicU64,
    unreadable: AtomicU64,
}

impl Sink {
    pub fn new(ledger: Option<Ledger>) -> Arc<Self> {
        let (bytes, unreadable) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { ledger: ledger.map(Mutex::new), bytes, unreadable })
    }

    pub fn ledger(&self) -> Option<MutexGuard<'_, Ledger>> {
        Some(self.ledger.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn unreadable(&self) -> u64 {
        self.unreadable.load(Ordering::Relaxed)
    }

    /// Waits until all of the first so many exports is there, or nothing has come for so long.
    pub async fn complete(&self, exports: u64, patience: Duration) -> bool {
        let (mut seen, mut since) = (self.bytes(), Instant::now());
        loop {
            if self.ledger().is_none_or(|ledger| ledger.complete(exports)) {
                return true;
            }
            let bytes = self.bytes();
            if bytes != seen {
                (seen, since) = (bytes, Instant::now());
            } else if since.elapsed() > patience {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn take(&self, signal: usize, framed: &[u8], coding: Option<&str>, at: Instant) {
        self.bytes.fetch_add(framed.len().saturating_sub(PREFIX) as u64, Ordering::Relaxed);
        let Some(mut ledger) = self.ledger() else { return };
        match (inflated(framed, coding), signal) {
            (Some(message), 0) => ledger.traces(&message, at),
            (Some(message), 1) => ledger.logs(&message),
            (Some(_), _) => {}
            (None, _) => drop(self.unreadable.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Serves on a port of loopback until the task is dropped.
    pub async fn serve(self: Arc<Self>, port: u16) -> Result<(), tonic::transport::Error> {
        tonic::transport::Server::builder()
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(8 << 20)
            .add_service(Signal::<0>(self.clone()))
            .add_service(Signal::<1>(self.clone()))
            .add_service(Signal::<2>(self))
            .serve(std::net::SocketAddr::from(([127, 0, 0, 1], port)))
            .await
    }
}

/// One OTLP service.
#[derive(Clone)]
struct Signal<const INDEX: usize>(Arc<Sink>);

impl<const INDEX: usize> NamedService for Signal<INDEX> {
    const NAME: &'static str = SERVICES[INDEX];
}

impl<const INDEX: usize> Service<http::Request<Body>> for Signal<INDEX> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let sink = self.0.clone();
        Box::pin(async move {
            let coding = request.headers().get("grpc-encoding").and_then(|v| v.to_str().ok());
            let coding = coding.map(str::to_owned);
            // A body that breaks off was not taken: whatever it held has to come again.
            if let Ok(body) = request.into_body().collect().await {
                let at = Instant::now();
                let mut body = body.aggregate();
                let framed = body.copy_to_bytes(body.remaining());
                sink.take(INDEX, &framed, coding.as_deref(), at);
            }
            let mut trailers = http::HeaderMap::new();
            trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
            let empty = Full::new(Bytes::from_static(&[0; PREFIX]));
            let body = empty.with_trailers(std::future::ready(Some(Ok(trailers))));
            let mut answer = http::Response::new(Body::new(body));
            let kind = http::HeaderValue::from_static("application/grpc");
            answer.headers_mut().insert("content-type", kind);
            Ok(answer)
        })
    }
}
