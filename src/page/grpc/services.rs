//! What answers gRPC beside the OTLP services: the API, and the standard services by which tools
//! find out about it, health checking and reflection.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tonic::body::Body;
use tonic_health::pb::health_server::HealthServer;
use tonic_reflection::server::Builder;
use tower::{Service, ServiceExt};

use super::super::{Board, Vitals, whole};
use super::Api;
use super::health::Checks;
use crate::proto::DESCRIPTORS;
use crate::proto::mcp_verdict_server::McpVerdictServer;
use crate::receive::{Answering, Beginning, Beside, Conversation, Handler, Who};

/// Bytes of one question: a definition may come with a check.
const A_QUESTION: usize = 1 << 20;
/// Names alone.
const A_NAME: usize = 16 << 10;

/// All of them, in the order in which paths are tried.
pub fn services(board: Arc<Board>, vitals: Vitals) -> Vec<Beside> {
    let health = HealthServer::new(Checks(vitals.clone())).max_decoding_message_size(A_NAME);
    let api = McpVerdictServer::new(Api { board, vitals }).max_decoding_message_size(A_QUESTION);
    let mut services = vec![
        streaming("/mcp_verdict.v1.McpVerdict/WatchVerdicts", api.clone()),
        at_once("/mcp_verdict.v1.McpVerdict/", api),
        streaming("/grpc.health.v1.Health/Watch", health.clone()),
        at_once("/grpc.health.v1.Health/", health),
    ];
    // Descriptors that cannot be read would be a fault of the build; a test asks for them.
    if let Ok(server) = described().build_v1() {
        let server = server.max_decoding_message_size(A_NAME);
        services.push(streaming("/grpc.reflection.v1.ServerReflection/", server));
    }
    if let Ok(server) = described().build_v1alpha() {
        let server = server.max_decoding_message_size(A_NAME);
        services.push(streaming("/grpc.reflection.v1alpha.ServerReflection/", server));
    }
    services
}

fn described() -> Builder<'static> {
    Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}

fn at_once<S>(prefix: &'static str, server: S) -> Beside
where
    AtOnce<S>: Handler,
{
    Beside { prefix, who: Who::AtOnce(Arc::new(AtOnce(server))) }
}

fn streaming<S>(prefix: &'static str, server: S) -> Beside
where
    Streaming<S>: Conversation,
{
    Beside { prefix, who: Who::Streaming(Arc::new(Streaming(server))) }
}

/// Answers whole questions.
struct AtOnce<S>(S);

impl<S> Handler for AtOnce<S>
where
    S: Service<Request<Full<Bytes>>, Response = Response<Body>, Error = std::convert::Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send,
{
    fn answer(&self, request: Request<Bytes>) -> Answering<'_> {
        let server = self.0.clone();
        Box::pin(async move {
            let Ok(response) = server.oneshot(request.map(Full::new)).await;
            let mut response = whole(response).await;
            blame_the_asker(response.headers_mut());
            response
        })
    }
}

/// Answers as long as somebody listens.
struct Streaming<S>(S);

impl<S> Conversation for Streaming<S>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = std::convert::Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send,
{
    fn begin(&self, request: Request<Incoming>) -> Beginning<'_> {
        let server = self.0.clone();
        Box::pin(async move {
            let Ok(mut response) = server.oneshot(request).await;
            blame_the_asker(response.headers_mut());
            response.map(|body| body.map_err(Into::into).boxed_unsync())
        })
    }
}

/// A message that cannot be read is told as a fault inside by the library; it is the asker's, as it
/// is for exports. Handlers here never fail inside.
fn blame_the_asker(headers: &mut HeaderMap) {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let unread = text("grpc-message").is_some_and(|says| says.contains("decode"));
    if text("grpc-status") == Some("13") && unread {
        headers.insert("grpc-status", HeaderValue::from_static("3"));
    }
}
