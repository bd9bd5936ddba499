//! Plays recordings through the real ports, with clients that know nothing of this program: the
//! generated OTLP gRPC client, and plain HTTP with JSON.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_client::LogsServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use prost::Message;
use serde_json::Value as Json;
use tonic::transport::Channel;

use crate::receive::http_path;
use crate::wire::{Signal, json};

/// Connections to the two ports.
pub struct Player {
    grpc: Channel,
    http: Client<HttpConnector, Full<Bytes>>,
    http_address: SocketAddr,
}

/// Which port an export goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Port {
    Grpc,
    Http,
}

impl Player {
    /// # Errors
    /// When nobody listens.
    pub async fn connect(grpc: SocketAddr, http: SocketAddr) -> Result<Self, String> {
        let endpoint = Channel::from_shared(format!("http://{grpc}"));
        let endpoint = endpoint.map_err(|error| error.to_string())?;
        let channel = endpoint.connect().await.map_err(|error| format!("{grpc}: {error}"))?;
        let client = Client::builder(TokioExecutor::new()).build_http();
        Ok(Self { grpc: channel, http: client, http_address: http })
    }

    /// Sends one export and waits for its answer.
    ///
    /// # Errors
    /// When it was refused.
    pub async fn send(&self, port: Port, signal: Signal, document: &Json) -> Result<(), String> {
        match port {
            Port::Grpc => self.send_grpc(signal, document).await,
            Port::Http => self.send_http(signal, document).await,
        }
    }

    async fn send_grpc(&self, signal: Signal, document: &Json) -> Result<(), String> {
        let bytes = protobuf(signal, document)?;
        let channel = self.grpc.clone();
        let unreadable = |error: prost::DecodeError| error.to_string();
        let answer = match signal {
            Signal::Logs => {
                let request = ExportLogsServiceRequest::decode(&*bytes).map_err(unreadable)?;
                LogsServiceClient::new(channel).export(request).await.map(|_| ())
            }
            _ => {
                let request = ExportTraceServiceRequest::decode(&*bytes).map_err(unreadable)?;
                TraceServiceClient::new(channel).export(request).await.map(|_| ())
            }
        };
        answer.map_err(|status| format!("{:?}: {}", status.code(), status.message()))
    }

    async fn send_http(&self, signal: Signal, document: &Json) -> Result<(), String> {
        let request =
            http::Request::post(format!("http://{}{}", self.http_address, http_path(signal)))
                .header(http::header::CONTENT_TYPE, "application/json")
                .body(Full::new(Bytes::from(document.to_string())))
                .map_err(|error| error.to_string())?;
        let answer = self.http.request(request).await.map_err(|error| error.to_string())?;
        match answer.status().is_success() {
            true => Ok(()),
            false => Err(format!("HTTP {}", answer.status())),
        }
    }
}

/// The export in protobuf.
pub fn protobuf(signal: Signal, document: &Json) -> Result<Vec<u8>, String> {
    let limits = json::Limits { max_bytes: 64 << 20 };
    let text = document.to_string();
    json::to_protobuf(signal, text.as_bytes(), limits)
        .map(|converted| converted.bytes)
        .map_err(|error| error.to_string())
}
