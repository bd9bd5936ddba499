//! gRPC without messages, by `tonic`: bodies stay the bytes they are.

use bytes::{Buf, BufMut, Bytes};
use tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};

/// `Export` of the trace service, the one call that most load is made of.
pub const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

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

/// One export over a connection, compressed where a coding is named.
pub async fn export(
    channel: &Channel,
    path: &'static str,
    body: Bytes,
    coding: Option<CompressionEncoding>,
) -> Result<Bytes, Status> {
    let mut grpc = tonic::client::Grpc::new(channel.clone())
        .max_decoding_message_size(usize::MAX)
        .max_encoding_message_size(usize::MAX);
    if let Some(coding) = coding {
        grpc = grpc.send_compressed(coding).accept_compressed(coding);
    }
    grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let path = http::uri::PathAndQuery::from_static(path);
    grpc.unary(Request::new(body), path, RawCodec).await.map(Response::into_inner)
}
