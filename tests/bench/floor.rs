//! The floor: a `tonic` server that takes each body as bytes, sends it on over one channel, and answers
//! when the next hop has. Nothing that looks at a gRPC message can cost less.

use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes};
use tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::{BoxFuture, Service, http};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};

use crate::client::TRACES;
use crate::{Failure, runtime};

/// Serves on PORT and sends on to SINK until it is killed; with `gzip` it inflates and compresses again.
pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let (port, sink, gzip) = match arguments {
        [port, sink] => (port.parse()?, sink.parse::<u16>()?, false),
        [port, sink, coding] if coding == "gzip" => (port.parse()?, sink.parse()?, true),
        _ => return Err("--forward PORT SINK [gzip]".into()),
    };
    runtime()?.block_on(async {
        let channel = Endpoint::from_shared(format!("http://127.0.0.1:{sink}"))?
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(8 << 20)
            .connect_lazy();
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
        let server = tonic::transport::Server::builder()
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(8 << 20)
            .add_service(Forwarder { channel, gzip });
        Ok(server.serve(address).await?)
    })
}

/// A codec whose message is the bytes of the message.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
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

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

#[derive(Clone)]
struct Forwarder {
    channel: Channel,
    gzip: bool,
}

impl tonic::server::NamedService for Forwarder {
    const NAME: &'static str = "opentelemetry.proto.collector.trace.v1.TraceService";
}

impl tonic::server::UnaryService<Bytes> for Forwarder {
    type Response = Bytes;
    type Future = BoxFuture<Response<Bytes>, Status>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let Self { channel, gzip } = self.clone();
        Box::pin(async move {
            let mut next = tonic::client::Grpc::new(channel)
                .max_decoding_message_size(usize::MAX)
                .max_encoding_message_size(usize::MAX);
            if gzip {
                next = next.send_compressed(CompressionEncoding::Gzip);
            }
            next.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
            let path = http::uri::PathAndQuery::from_static(TRACES);
            next.unary(Request::new(request.into_inner()), path, Raw).await
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
            let mut grpc = tonic::server::Grpc::new(Raw)
                .accept_compressed(CompressionEncoding::Gzip)
                .max_decoding_message_size(usize::MAX);
            Ok(grpc.unary(service, request).await)
        })
    }
}
