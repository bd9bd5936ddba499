//! Our own metrics leave through the exporters that everything else leaves through.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{MetricExporter, WithHttpConfig};

use crate::export::{Outbox, Parcel};
use crate::wire::inflate::Coding;
use crate::wire::{Signal, scan};

/// A transport of `opentelemetry-otlp` that ends in the outbox. Until there is one, nothing leaves.
#[derive(Clone, Default)]
pub struct OwnMetrics {
    outbox: Arc<OnceLock<Arc<Outbox>>>,
}

impl std::fmt::Debug for OwnMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OwnMetrics")
    }
}

impl OwnMetrics {
    /// From now on metrics go here.
    pub fn connect(&self, outbox: Arc<Outbox>) {
        // It is connected once, where the parts are put together.
        let _ = self.outbox.set(outbox);
    }

    /// The exporter to register.
    ///
    /// # Errors
    /// When it cannot be built.
    pub fn exporter(&self) -> Result<MetricExporter, String> {
        MetricExporter::builder()
            .with_http()
            .with_http_client(self.clone())
            .build()
            .map_err(|error| error.to_string())
    }

    fn push(&self, bytes: Bytes) {
        let Some(outbox) = self.outbox.get() else { return };
        let items = scan::check(Signal::Metrics, &bytes).map_or(0, |counts| counts.items);
        outbox.push_own(&Parcel {
            signal: Signal::Metrics,
            plain_length: bytes.len(),
            bytes,
            coding: Coding::Identity,
            items,
            dues: [].into(),
        });
    }
}

#[async_trait::async_trait]
impl HttpClient for OwnMetrics {
    async fn send_bytes(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, HttpError> {
        self.push(request.into_body());
        Ok(http::Response::new(Bytes::new()))
    }
}
