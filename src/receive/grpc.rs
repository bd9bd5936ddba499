//! The unary gRPC method `Export` of the four OTLP services, on raw bytes; other services beside
//! them are handed on.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::{BufMut, Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Either;
use hyper::body::Incoming;
use tokio::sync::Semaphore;

use super::answer::{self, Answer};
use super::body::{Gather, gather};
use super::content::{self, Form};
use super::counters::Transport;
use super::decode::{Raw, decode};
use super::flow::{self, Flow};
use super::handler;
use super::listen::{Beside, Who};
use super::{Refusal, Shared, grpc_path, signal_of};
use crate::wire::inflate::Coding;

/// The prefix of a gRPC message: a flag and four bytes of length.
const PREFIX: usize = 5;

/// What the gRPC port needs.
pub struct Port {
    pub shared: Arc<Shared>,
    pub limit: usize,
    pub max_streams: u32,
    /// Services beside OTLP.
    pub beside: Vec<Beside>,
    /// For those of their answers that go on.
    pub places: Arc<Semaphore>,
}

/// Whole answers, and those that go on.
pub type Sent = Either<Answer, Flow>;

/// Answers one request; errors become a status, never a broken stream.
pub async fn answer(port: &Port, request: Request<Incoming>) -> Response<Sent> {
    if request.method() != Method::POST || !content::is_grpc(request.headers()) {
        return not_grpc().map(Either::Left);
    }
    let limit = port.shared.door.limits.header_size;
    if header_size(request.headers()) > limit {
        let refusal = Refusal::HeadersTooLarge { limit };
        port.shared.door.counters.refused(Transport::Grpc, &refusal);
        return refused(&refusal).map(Either::Left);
    }
    let path = request.uri().path();
    let beside = port.beside.iter().find(|beside| path.starts_with(beside.prefix));
    let answered = match beside.map(|beside| &beside.who) {
        Some(Who::Streaming(handler)) => {
            let (door, places) = (&port.shared.door, &port.places);
            flow::converse(door, places, &**handler, request).await.map(|a| a.map(Either::Right))
        }
        Some(Who::AtOnce(handler)) => {
            let (head, mut body) = request.into_parts();
            let asked = handler::ask(&port.shared.door, &**handler, head, &mut body).await;
            asked.map(|answer| answer.map(Either::Left))
        }
        None => {
            let exported = export(port, request).await;
            if let Err(refusal) = &exported {
                port.shared.door.counters.refused(Transport::Grpc, refusal);
            }
            exported.map(|message| success(&message).map(Either::Left))
        }
    };
    answered.unwrap_or_else(|refusal| refused(&refusal).map(Either::Left))
}

/// As HTTP/2 counts: 32 bytes for each field beside its name and value.
fn header_size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum()
}

async fn export(port: &Port, request: Request<Incoming>) -> Result<Vec<u8>, Refusal> {
    let (head, mut body) = request.into_parts();
    let (shared, limit) = (&*port.shared, port.limit);
    let signal = signal_of(head.uri.path(), grpc_path).ok_or(Refusal::UnknownPath)?;
    shared.door.admit()?;
    shared.door.gate.check(&head.headers).await?;
    let coding = content::message_coding(&head.headers)?;
    let mut share = shared.door.budget.share();
    let how = Gather {
        share: &mut share,
        limit: limit.saturating_add(PREFIX),
        setting: SETTING,
        silence: shared.door.limits.silence,
        announced: Some((PREFIX, &|prefix| whole_length(prefix, limit))),
    };
    let gathered = gather(&mut body, how).await.map_err(more_than_announced)?;
    let (message, coding) = unwrap(gathered, coding)?;
    let raw = Raw {
        signal,
        form: Form::Protobuf,
        coding,
        body: message,
        limit: (SETTING, limit),
        max_ratio: shared.door.limits.inflate_ratio,
    };
    let (received, share) = decode(raw, share).await?;
    let success = answer::success(&received, Form::Protobuf);
    shared.take(Transport::Grpc, received).await?;
    drop(share);
    Ok(success)
}

const SETTING: &str = "receivers.otlp.protocols.grpc.max_recv_msg_size";

/// Bytes of prefix and message, by the prefix.
fn whole_length(prefix: &[u8], limit: usize) -> Result<usize, Refusal> {
    let length: [u8; 4] = prefix[1..PREFIX].try_into().expect("four bytes");
    let length = u32::from_be_bytes(length) as usize;
    if length > limit {
        return Err(Refusal::TooLarge { setting: SETTING, limit });
    }
    Ok(length + PREFIX)
}

/// The limit while gathering is the announced length: more is not too large, it is no message.
fn more_than_announced(refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::TooLarge { setting: SETTING, limit: 0..PREFIX } => {
            Refusal::Framing("the prefix is cut off")
        }
        other => other,
    }
}

/// The one message of the request, and its coding.
fn unwrap(gathered: Bytes, coding: Coding) -> Result<(Bytes, Coding), Refusal> {
    if gathered.len() < PREFIX {
        return Err(Refusal::Framing("there is no whole prefix"));
    }
    let announced = whole_length(&gathered, usize::MAX - PREFIX)?;
    if gathered.len() != announced {
        return Err(Refusal::Framing("the length in the prefix is not that of the message"));
    }
    let coding = match (gathered[0], coding) {
        (0, _) => Coding::Identity,
        (1, Coding::Identity) => return Err(Refusal::Framing("compressed, by no named coding")),
        (1, coding) => coding,
        _ => return Err(Refusal::Framing("an unknown flag")),
    };
    Ok((gathered.slice(PREFIX..), coding))
}

fn headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    let codings = HeaderValue::from_static("identity,gzip,zstd");
    headers.insert("grpc-accept-encoding", codings);
    headers
}

fn success(message: &[u8]) -> Response<Answer> {
    let mut data = BytesMut::with_capacity(PREFIX + message.len());
    data.put_u8(0);
    data.put_u32(message.len() as u32);
    data.put_slice(message);
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let mut response = Response::new(Answer { data: data.freeze(), trailers: Some(trailers) });
    *response.headers_mut() = headers();
    response
}

/// A status without a message: "trailers only", which are the headers.
fn refused(refusal: &Refusal) -> Response<Answer> {
    let mut response = Response::new(Answer::default());
    let mut headers = headers();
    headers.insert("grpc-status", HeaderValue::from(u16::from(refusal.row().code)));
    let text = percent_encoded(&refusal.text());
    headers.insert("grpc-message", HeaderValue::from_str(&text).expect("it is ASCII"));
    if refusal.row().again.is_some() {
        let details = STANDARD_NO_PAD.encode(refusal.protobuf());
        let details = HeaderValue::from_str(&details).expect("base64 is ASCII");
        headers.insert("grpc-status-details-bin", details);
    }
    *response.headers_mut() = headers;
    response
}

/// As gRPC writes messages in headers: printable ASCII but `%`.
fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// What a browser or a stray HTTP client gets on this port.
fn not_grpc() -> Response<Answer> {
    let mut response = refused(&Refusal::MediaType);
    *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    response
}

/// Settings of the HTTP/2 connections that carry gRPC.
pub const KEEP_ALIVE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_exactly_what_its_prefix_says() {
        let body = |bytes: &'static [u8]| Bytes::from_static(bytes);
        let ok = unwrap(body(b"\0\0\0\0\x02ab"), Coding::Gzip).unwrap();
        assert_eq!(ok, (body(b"ab"), Coding::Identity));
        let ok = unwrap(body(b"\x01\0\0\0\x02ab"), Coding::Gzip).unwrap();
        assert_eq!(ok.1, Coding::Gzip);
        for bad in [
            &b""[..],
            b"\0\0\0",
            b"\0\0\0\0\x03ab",
            b"\0\0\0\0\x01ab",
            b"\x02\0\0\0\x02ab",
            b"\x01\0\0\0\x02ab",
        ] {
            assert!(unwrap(Bytes::copy_from_slice(bad), Coding::Identity).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn messages_are_ascii() {
        assert_eq!(percent_encoded("50% é\n"), "50%25 %C3%A9%0A");
    }
}
