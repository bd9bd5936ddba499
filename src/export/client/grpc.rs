//! `otlp`: the gRPC method `Export`, on raw bytes over tonic's channel.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_TYPE, TE};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Limited};
use hyper_util::client::proxy::matcher::Matcher;
use tonic::transport::{Channel, Endpoint};
use tower::{Service, ServiceExt};

use super::connect::Connector;
use super::{Fault, USER_AGENT, tls};
use crate::export::batch::Batch;
use crate::export::outcome::{self, Attempt, Outcome};
use crate::export::settings::{Auth, Otlp};
use crate::wire::Signal;
use crate::wire::inflate::Coding;

pub struct Grpc {
    channel: Channel,
    headers: HeaderMap,
    pub coding: Coding,
    pub max_batch_size: usize,
    timeout: Duration,
}

/// Bytes of the longest answer that is read.
const LONGEST_ANSWER: usize = 1 << 20;

impl Grpc {
    pub fn new(otlp: &Otlp) -> Result<Self, Fault> {
        Ok(Grpc {
            channel: channel(otlp)?,
            headers: headers(otlp)?,
            coding: super::coding(otlp.compression),
            max_batch_size: otlp.max_batch_size,
            timeout: otlp.timeout,
        })
    }

    pub async fn send(&self, signal: Signal, batch: &Batch) -> Attempt {
        let Ok(parts) = batch.encode(self.coding) else {
            return Outcome::Unfit("unreadable").into();
        };
        let request = self.request(signal, parts);
        match tokio::time::timeout(self.timeout, self.call(request)).await {
            Ok(attempt) => attempt,
            Err(_) => Outcome::Again { reason: "timeout", after: None }.into(),
        }
    }

    fn request(&self, signal: Signal, parts: Vec<Bytes>) -> Request<tonic::body::Body> {
        let length: usize = parts.iter().map(Bytes::len).sum();
        let mut prefix = BytesMut::with_capacity(5);
        prefix.put_u8(u8::from(self.coding != Coding::Identity));
        prefix.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
        let mut frames: VecDeque<Bytes> = [prefix.freeze()].into();
        frames.extend(parts.into_iter().filter(|part| !part.is_empty()));
        let mut request = Request::new(tonic::body::Body::new(Frames { frames }));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = Uri::from(PathAndQuery::from_static(path(signal)));
        *request.headers_mut() = self.headers.clone();
        request
    }

    async fn call(&self, request: Request<tonic::body::Body>) -> Attempt {
        let mut channel = self.channel.clone();
        let ready = match channel.ready().await {
            Ok(ready) => ready,
            Err(error) => return Attempt::broken("unreachable", &error),
        };
        match ready.call(request).await {
            Ok(response) => read(response).await.into(),
            Err(error) => Attempt::broken("unreachable", &error),
        }
    }
}

fn path(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        Signal::Profiles => {
            "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
        }
    }
}

async fn read(response: Response<tonic::body::Body>) -> Outcome {
    let broken = Outcome::Again { reason: "connection_lost", after: None };
    let (head, body) = response.into_parts();
    if head.headers.contains_key("grpc-status") {
        return status(&head.headers, &[]);
    }
    let Ok(body) = Limited::new(body, LONGEST_ANSWER).collect().await else { return broken };
    match body.trailers().cloned() {
        Some(trailers) if trailers.contains_key("grpc-status") => {
            status(&trailers, &body.to_bytes())
        }
        _ if head.status.is_success() => broken,
        _ => outcome::of_grpc(outcome::grpc_code_of_http(head.status.as_u16()), None),
    }
}

fn status(headers: &HeaderMap, body: &[u8]) -> Outcome {
    let code = headers.get("grpc-status").and_then(|value| value.to_str().ok()?.parse().ok());
    match code {
        Some(0) => outcome::accepted(message(body)),
        Some(code) => outcome::of_grpc(code, outcome::details(headers).as_deref()),
        None => Outcome::Refused("grpc_unknown"),
    }
}

/// The one message behind its prefix; a compressed one was not asked for and is not read.
fn message(body: &[u8]) -> &[u8] {
    match body.split_at_checked(5) {
        Some(([0, ..], message)) => message,
        _ => &[],
    }
}

fn channel(otlp: &Otlp) -> Result<Channel, Fault> {
    let wrong = |_| Fault("endpoint is not a URL such as http://127.0.0.1:4317".into());
    let origin: Uri = otlp.endpoint.parse().map_err(wrong)?;
    let secure = origin.scheme_str() == Some("https");
    let tls = match secure {
        true => Some(Arc::new(tls::config(&otlp.tls, &[b"h2"])?)),
        false => None,
    };
    let proxies = Arc::new(Matcher::from_env());
    let connector = Connector { endpoint: origin.clone(), tls, proxies };
    // The connector decides about TLS; the channel only names whom it speaks to.
    let authority = origin.authority().map(|authority| authority.as_str()).unwrap_or_default();
    let endpoint = Endpoint::from_shared(format!("http://{authority}"))
        .and_then(|endpoint| endpoint.user_agent(USER_AGENT))
        .map_err(|error| Fault(error.to_string()))?
        .origin(origin)
        .connect_timeout(otlp.timeout)
        .http2_keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20))
        .buffer_size(256);
    Ok(endpoint.connect_with_connector_lazy(connector))
}

fn headers(otlp: &Otlp) -> Result<HeaderMap, Fault> {
    let mut headers = configured(otlp)?;
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(TE, HeaderValue::from_static("trailers"));
    let coding = super::coding(otlp.compression);
    if coding != Coding::Identity {
        headers.insert("grpc-encoding", HeaderValue::from_static(coding.name()));
    }
    let timeout = format!("{}m", otlp.timeout.as_millis().min(99_999_999));
    headers.insert("grpc-timeout", HeaderValue::from_str(&timeout).expect("digits"));
    Ok(headers)
}

/// `headers` and `auth`.
pub(super) fn configured(otlp: &Otlp) -> Result<HeaderMap, Fault> {
    let mut headers = HeaderMap::new();
    for (name, value) in &otlp.headers {
        let wrong =
            || Fault(format!("headers: {name} is not a header name with a printable value"));
        let key: HeaderName = name.parse().map_err(|_| wrong())?;
        headers.append(key, sensitive(&value.0).ok_or_else(wrong)?);
    }
    let credentials = match &otlp.auth {
        Auth::None => return Ok(headers),
        Auth::Bearer { token_file } => {
            let token = std::fs::read_to_string(token_file);
            let token = token.map_err(|error| Fault::file(token_file, error))?;
            format!("Bearer {}", token.trim())
        }
    };
    let value = sensitive(&credentials);
    let value = value.ok_or_else(|| Fault("auth: the credentials are not printable".into()))?;
    headers.insert(AUTHORIZATION, value);
    Ok(headers)
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// A request body of ready buffers.
struct Frames {
    frames: VecDeque<Bytes>,
}

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.frames.pop_front().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.frames.iter().map(|frame| frame.len() as u64).sum())
    }
}
