//! What is asked of the running program: the live page, the check before a call, what was judged,
//! over HTTP on a port of its own and over gRPC beside OTLP.
//!
//! Promises: answers come from published copies and delay no judgement; nothing can be changed by
//! asking; answers hold ids, names, digests, codes and times, no content.

mod assets;
pub mod board;
pub mod check;
pub mod contracts;
pub mod coverage;
pub mod evidence;
mod grpc;
mod http;
pub mod listing;
pub mod openapi;
pub mod overview;
pub mod question;
pub mod recent;
mod schemas;
mod text;
pub mod timeline;

use std::net::IpAddr;
use std::sync::Arc;

use ::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use axum::Router;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::json;
use tower::ServiceExt;

use crate::model::ids::Digest16;
use crate::proto::GetHealthResponse;
use crate::receive::{Answer, Answering, Handler, harden};

pub use board::Board;
pub use grpc::services;
pub use grpc::watch::watch;

/// How the process does, asked for by each question for it.
pub trait Pulse: Send + Sync + 'static {
    /// Its parts and its counts. It takes a while: not on a thread that receives.
    fn whole(&self) -> GetHealthResponse;
    /// Whether it is ready, and whether it is alive, as the health port answers.
    fn standing(&self) -> Standing;
}

/// Whether the process is ready for more, and whether waiting helps where it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub ready: bool,
    pub alive: bool,
}

pub type Vitals = Arc<dyn Pulse>;

/// The page and the HTTP API as the port's handler.
pub struct Http {
    router: Router,
    /// Whether only programs of this machine may come, by nothing but the address they come to.
    local: bool,
}

impl Http {
    /// `local`: the port is on loopback and asks for no credentials.
    pub fn new(board: Arc<Board>, vitals: Vitals, local: bool) -> Self {
        Http { router: http::router(board, vitals), local }
    }

    async fn ask(&self, request: Request<Bytes>) -> Response<Answer> {
        if self.local && !is_local(&request) {
            return misdirected();
        }
        let reads = *request.method() == Method::GET;
        let known = request.headers().get(header::IF_NONE_MATCH).filter(|_| reads).cloned();
        let Ok(response) = self.router.clone().oneshot(request.map(Full::new)).await;
        let mut response = whole(response).await;
        if reads && response.status() == StatusCode::OK {
            name(&mut response, known.as_ref());
        }
        harden(response.headers_mut());
        response
    }
}

/// Names an answer by its bytes, and leaves them out for who has them.
fn name(response: &mut Response<Answer>, known: Option<&HeaderValue>) {
    let digest = Digest16::plain(&[&response.body().data]);
    let Ok(tag) = HeaderValue::from_str(&format!("\"{digest}\"")) else { return };
    if known == Some(&tag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.body_mut().data = Bytes::new();
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    response.headers_mut().insert(header::ETAG, tag);
}

impl Handler for Http {
    fn answer(&self, request: Request<Bytes>) -> Answering<'_> {
        Box::pin(self.ask(request))
    }
}

/// A site whose name was pointed at this machine still sends its own name.
fn is_local(request: &Request<Bytes>) -> bool {
    let host = request.headers().get(header::HOST).and_then(|value| value.to_str().ok());
    let host =
        host.map(|host| host.parse().ok()).unwrap_or_else(|| request.uri().authority().cloned());
    let Some(host) = host else { return false };
    let name = host.host().trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn misdirected() -> Response<Answer> {
    let says = "ask by the address of this machine: 127.0.0.1";
    let says = json!({"code": 7, "reason": "misdirected", "message": says}).to_string();
    let mut response = Response::new(Answer { data: says.into(), trailers: None });
    *response.status_mut() = StatusCode::MISDIRECTED_REQUEST;
    harden(response.headers_mut());
    response
}

/// Gathers an answer of ours, which is never long.
async fn whole<B>(response: Response<B>) -> Response<Answer>
where
    B: ::http_body::Body<Data = Bytes>,
{
    let (head, body) = response.into_parts();
    let gathered = body.collect().await.ok();
    let trailers = gathered.as_ref().and_then(|body| body.trailers()).cloned();
    let data = gathered.map(|body| body.to_bytes()).unwrap_or_default();
    let trailers: Option<HeaderMap> = trailers;
    Response::from_parts(head, Answer { data, trailers })
}
