//! The floor: a `tonic` server that takes each body as bytes, sends it on over one channel, and answers
//! when the next hop has. Nothing that looks at a gRPC message can cost less.

use std::task::{Context, Poll};

use bytes::Bytes;
use tonic::codec::CompressionEncoding;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use crate::raw::{RawCodec, TRACES, connect, export};
use crate::{Failure, runtime};

/// Serves on PORT and sends on to SINK until it is killed; with `gzip` it inflates and compresses again.
pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let (port, sink, coding) = match arguments {
        [port, sink] => (port, sink, None),
        [port, sink, coding] if coding == "gzip" => (port, sink, Some(CompressionEncoding::Gzip)),
        _ => return Err("--forward PORT SINK [gzip]".into()),
    };
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port.parse()?));
    let sink = sink.parse()?;
    runtime()?.block_on(async {
        let server = tonic::transport::Server::builder()
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(8 << 20)
            .add_service(Forwarder { channel: connect(sink)?, coding });
        Ok(server.serve(address).await?)
    })
}

#[derive(Clone)]
struct Forwarder {
    channel: Channel,
    coding: Option<CompressionEncoding>,
}

impl tonic::server::NamedService for Forwarder {
    const NAME: &'static str = "opentelemetry.proto.collector.trace.v1.TraceService";
}

impl tonic::server::UnaryService<Bytes> for Forwarder {
    type Response = Bytes;
    type Future = BoxFuture<Response<Bytes>, Status>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let Self { channel, coding } = self.clone();
        Box::pin(async move {
            let body = request.into_inner();
            export(&channel, TRACES, body, coding).await.map(Response::new)
        })
    }
}

impl Service<http::Request<tonic::body::Body>> for Forwarder {
    type Response = http::Response<tonic::body::Body>;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(RawCodec)
                .accept_compressed(CompressionEncoding::Gzip)
                .max_decoding_message_size(usize::MAX);
            Ok(grpc.unary(service, request).await)
        })
    }
}
