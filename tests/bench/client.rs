//! One export over a connection, as gRPC or as HTTP with protobuf; the body goes as it is.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::transport::Channel;

use crate::Failure;
use crate::frame::{Packet, inflated};
use crate::raw::connect;

/// `Export` of the logs service.
pub const LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
/// Of an answer that rejects nothing; the empty message of a partial success takes two bytes.
const NOTHING_REJECTED: usize = 2;

/// A connection that is made when it is first used.
#[derive(Clone)]
pub enum Client {
    Grpc(Channel),
    Http(reqwest::Client, String),
}

/// What became of an export.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Taken,
    /// It may be sent again.
    Refused,
}

impl Client {
    pub fn grpc(port: u16) -> Result<Self, Failure> {
        Ok(Self::Grpc(connect(port)?))
    }

    pub fn http(port: u16) -> Self {
        Self::Http(reqwest::Client::new(), format!("http://127.0.0.1:{port}/v1/traces"))
    }

    /// An error is one of the harness or of the program under test, which then has no result.
    pub async fn export(&self, path: &'static str, packet: Packet) -> Result<Answer, Failure> {
        match self {
            Self::Grpc(channel) => grpc(channel.clone(), path, packet).await,
            Self::Http(client, url) => http(client, url, packet).await,
        }
    }
}

async fn grpc(mut channel: Channel, path: &'static str, packet: Packet) -> Result<Answer, Failure> {
    let request = http::Request::post(path)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-encoding", if packet.gzip { "gzip" } else { "identity" })
        .body(Body::new(Full::new(packet.framed)))?;
    std::future::poll_fn(|context| channel.poll_ready(context)).await?;
    let (head, body) = channel.call(request).await?.into_parts();
    let answer = body.collect().await?;
    let trailers = answer.trailers().cloned().unwrap_or_default();
    let status = trailers.get("grpc-status").or_else(|| head.headers.get("grpc-status"));
    match status.and_then(|status| status.to_str().ok()) {
        Some("0") => {
            let coding = head.headers.get("grpc-encoding").and_then(|coding| coding.to_str().ok());
            let framed = answer.to_bytes();
            taken(inflated(&framed, coding).ok_or("an answer that is no message")?.len())
        }
        // RESOURCE_EXHAUSTED, UNAVAILABLE
        Some("8" | "14") => Ok(Answer::Refused),
        other => Err(format!("an export was answered with gRPC status {other:?}").into()),
    }
}

async fn http(client: &reqwest::Client, url: &str, packet: Packet) -> Result<Answer, Failure> {
    let message: Bytes = packet.message();
    let mut request = client.post(url).header("content-type", "application/x-protobuf");
    if packet.gzip {
        request = request.header("content-encoding", "gzip");
    }
    let answer = request.body(message).send().await?;
    match answer.status().as_u16() {
        200 => taken(answer.bytes().await?.len()),
        429 | 503 => Ok(Answer::Refused),
        other => Err(format!("an export was answered with HTTP status {other}").into()),
    }
}

fn taken(answer: usize) -> Result<Answer, Failure> {
    match answer <= NOTHING_REJECTED {
        true => Ok(Answer::Taken),
        false => Err("an export was answered with a partial success".into()),
    }
}
