//! One connection: handshake, requests, and its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::tls::Certificates;
use super::{Door, grpc, http1, page};

/// Which protocol a port speaks.
#[derive(Clone)]
pub enum Protocol {
    Grpc(Arc<grpc::Port>),
    Http(Arc<http1::Port>),
    Page(Arc<page::Port>),
}

/// Serves one connection until it ends, or until its requests ended after the stop.
pub async fn serve(
    stream: TcpStream,
    protocol: Protocol,
    certificates: Option<Arc<Certificates>>,
    door: Arc<Door>,
) {
    // Small answers must not wait for an acknowledgement; without the option they are only later.
    let _ = stream.set_nodelay(true);
    let Some(certificates) = certificates else {
        return speak(stream, protocol, door).await;
    };
    let handshake = certificates.acceptor().accept(stream);
    match tokio::time::timeout(door.limits.silence.min(HANDSHAKE), handshake).await {
        Ok(Ok(stream)) => speak(stream, protocol, door).await,
        Ok(Err(_)) => door.counters.refused_connection("tls"),
        Err(_) => door.counters.refused_connection("handshake_timeout"),
    }
}

const HANDSHAKE: Duration = Duration::from_secs(10);

async fn speak<S>(stream: S, protocol: Protocol, door: Arc<Door>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let builder = builder(&protocol, &door);
    let mut stopping = door.stopping.clone();
    let silence = door.limits.silence;
    let asked = Arc::new(AtomicBool::new(false));
    let service = Requests { protocol, asked: asked.clone() };
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    // How a peer ends its connection is its own affair; requests were answered and counted.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopping.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
        () = nothing_asked(&asked, silence) => connection.as_mut().graceful_shutdown(),
    }
    let _ = tokio::time::timeout(silence, connection).await;
}

/// Ends when a connection has asked nothing for so long since it was opened: it takes a place that
/// others want. One that has asked once may be silent, as exporters are between their batches.
async fn nothing_asked(asked: &AtomicBool, silence: Duration) {
    tokio::time::sleep(silence).await;
    if asked.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}

fn builder(protocol: &Protocol, door: &Door) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    let headers = door.limits.header_size;
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(door.limits.silence)
        .max_buf_size(headers.max(8192));
    // HTTP/2 answers what is over its own limit with 431, which a gRPC client takes for an unknown
    // fault: up to so many times the limit it is refused as gRPC refuses.
    let listed = match protocol {
        Protocol::Grpc(_) => headers.saturating_mul(4),
        Protocol::Http(_) | Protocol::Page(_) => headers,
    };
    let streams = match protocol {
        Protocol::Grpc(port) => port.max_streams,
        Protocol::Http(_) | Protocol::Page(_) => 256,
    };
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(listed).unwrap_or(u32::MAX))
        .max_concurrent_streams(streams)
        .initial_stream_window_size(256 << 10)
        .initial_connection_window_size(1 << 20)
        .max_frame_size(256 << 10)
        .keep_alive_interval(grpc::KEEP_ALIVE)
        .keep_alive_timeout(door.limits.silence);
    match protocol {
        Protocol::Grpc(_) => builder.http2_only(),
        Protocol::Http(_) | Protocol::Page(_) => builder,
    }
}

struct Requests {
    protocol: Protocol,
    /// Whether any request has come.
    asked: Arc<AtomicBool>,
}

type Answering = std::pin::Pin<
    Box<dyn Future<Output = Result<Response<grpc::Sent>, std::convert::Infallible>> + Send>,
>;

impl Service<Request<Incoming>> for Requests {
    type Response = Response<grpc::Sent>;
    type Error = std::convert::Infallible;
    type Future = Answering;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.asked.store(true, Ordering::Relaxed);
        let protocol = self.protocol.clone();
        Box::pin(async move {
            Ok(match protocol {
                Protocol::Grpc(port) => grpc::answer(&port, request).await,
                Protocol::Http(port) => http1::answer(&port, request).await.map(Either::Left),
                Protocol::Page(port) => page::answer(&port, request).await.map(Either::Left),
            })
        })
    }
}
