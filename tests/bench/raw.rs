//! gRPC without messages: request bodies stay the bytes they are, on both ends.
//!
//! The sink, the load generator and the bare forwarder all use this, so that none of them costs more
//! than the transport does.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::{BoxFuture, Service, http};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};

/// `Export` of the trace service, the one call that load is made of.
pub const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// The services that an exporter may call, in the order of their index in [`Raw`].
const SERVICES: [&str; 3] = [
    "opentelemetry.proto.collector.trace.v1.TraceService",
    "opentelemetry.proto.collector.logs.v1.LogsService",
    "opentelemetry.proto.collector.metrics.v1.MetricsService",
];

/// A codec whose message is the bytes of the message.
#[derive(Clone, Copy, Default)]
pub struct RawCodec;

impl Codec for RawCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(item);
        Ok(())
    }
}

impl Decoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// A connection that is made when it is first used.
pub fn connect(port: u16) -> Result<Channel, tonic::transport::Error> {
    Ok(Endpoint::from_shared(format!("http://127.0.0.1:{port}"))?
        .initial_stream_window_size(4 << 20)
        .initial_connection_window_size(8 << 20)
        .connect_lazy())
}

/// One export over a connection.
pub async fn export(channel: &Channel, path: &'static str, body: Bytes) -> Result<Bytes, Status> {
    let mut grpc = tonic::client::Grpc::new(channel.clone())
        .max_decoding_message_size(usize::MAX)
        .max_encoding_message_size(usize::MAX);
    grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let path = http::uri::PathAndQuery::from_static(path);
    grpc.unary(Request::new(body), path, RawCodec).await.map(Response::into_inner)
}

/// What is done with the body of an export; `signal` is an index of the services above.
pub trait Receive: Send + Sync + 'static {
    fn receive(&self, signal: usize, body: Bytes) -> BoxFuture<Bytes, Status>;
}

/// One OTLP service that hands each body to a receiver.
pub struct Raw<const SIGNAL: usize>(pub Arc<dyn Receive>);

impl<const SIGNAL: usize> Clone for Raw<SIGNAL> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<const SIGNAL: usize> tonic::server::NamedService for Raw<SIGNAL> {
    const NAME: &'static str = SERVICES[SIGNAL];
}

impl<const SIGNAL: usize> tonic::server::UnaryService<Bytes> for Raw<SIGNAL> {
    type Response = Bytes;
    type Future = BoxFuture<Response<Bytes>, Status>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let answer = self.0.receive(SIGNAL, request.into_inner());
        Box::pin(async move { answer.await.map(Response::new) })
    }
}

impl<const SIGNAL: usize> Service<http::Request<tonic::body::Body>> for Raw<SIGNAL> {
    type Response = http::Response<tonic::body::Body>;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(RawCodec).max_decoding_message_size(usize::MAX);
            Ok(grpc.unary(service, request).await)
        })
    }
}

/// Serves traces, logs and metrics on a port of loopback until the task is dropped.
pub async fn serve(port: u16, receiver: Arc<dyn Receive>) -> Result<(), tonic::transport::Error> {
    tonic::transport::Server::builder()
        .initial_stream_window_size(4 << 20)
        .initial_connection_window_size(8 << 20)
        .add_service(Raw::<0>(receiver.clone()))
        .add_service(Raw::<1>(receiver.clone()))
        .add_service(Raw::<2>(receiver))
        .serve(std::net::SocketAddr::from(([127, 0, 0, 1], port)))
        .await
}
