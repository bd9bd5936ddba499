//! Errors of the receiver: one table from reason to gRPC code, HTTP status and words, and the
//! `google.rpc.Status` that carries them.

use std::time::Duration;

use crate::wire::fields;

/// Why a request is not taken. Texts hold places and limits, never content.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    UnknownPath,
    Method,
    MediaType,
    /// A content coding that is none of identity, gzip, zstd.
    Coding,
    /// No or wrong credentials; the challenge to answer with.
    Unauthenticated(&'static str),
    /// Not a readable OTLP request.
    Malformed(String),
    /// gRPC framing that is none.
    Framing(&'static str),
    /// Compressed bytes that do not inflate.
    Inflate(&'static str),
    /// Over a size limit: which setting, and its bytes.
    TooLarge {
        setting: &'static str,
        limit: usize,
    },
    /// More header than may come, in bytes.
    HeadersTooLarge {
        limit: usize,
    },
    /// The body stopped coming.
    Silent(Duration),
    /// A bound is reached: come again.
    Overloaded {
        what: &'static str,
        after: Duration,
    },
    /// The process is ending: come again, to the next one.
    Stopping,
    /// Storage failed; nothing was accepted.
    Storage,
}

/// What a refusal becomes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Word in metrics (`error.type`).
    pub name: &'static str,
    /// Code of google.rpc.Code.
    pub code: u8,
    pub http: u16,
    /// When the sender may come again; `None`: this request never.
    pub again: Option<Duration>,
}

const INVALID_ARGUMENT: u8 = 3;
const DEADLINE_EXCEEDED: u8 = 4;
const RESOURCE_EXHAUSTED: u8 = 8;
const UNIMPLEMENTED: u8 = 12;
const INTERNAL: u8 = 13;
const UNAVAILABLE: u8 = 14;
const UNAUTHENTICATED: u8 = 16;

impl Refusal {
    /// The table.
    pub fn row(&self) -> Row {
        let row = |name, code, http| Row { name, code, http, again: None };
        let again = |row, after| Row { again: Some(after), ..row };
        match self {
            Refusal::UnknownPath => row("unknown_path", UNIMPLEMENTED, 404),
            Refusal::Method => row("method", UNIMPLEMENTED, 405),
            Refusal::MediaType => row("media_type", INVALID_ARGUMENT, 415),
            Refusal::Coding => row("coding", UNIMPLEMENTED, 415),
            Refusal::Unauthenticated(_) => row("unauthenticated", UNAUTHENTICATED, 401),
            Refusal::Malformed(_) => row("malformed", INVALID_ARGUMENT, 400),
            Refusal::Framing(_) => row("framing", INTERNAL, 400),
            Refusal::Inflate(_) => row("inflate", INVALID_ARGUMENT, 400),
            // Without RetryInfo, or clients would send it again for ever.
            Refusal::TooLarge { .. } => row("too_large", RESOURCE_EXHAUSTED, 413),
            Refusal::HeadersTooLarge { .. } => row("headers_too_large", RESOURCE_EXHAUSTED, 431),
            // Nothing is wrong with what was to come: a sender that stood still sends it again.
            Refusal::Silent(_) => {
                again(row("silent", DEADLINE_EXCEEDED, 503), Duration::from_secs(1))
            }
            Refusal::Overloaded { after, .. } => {
                again(row("overloaded", RESOURCE_EXHAUSTED, 429), *after)
            }
            Refusal::Stopping => again(row("stopping", UNAVAILABLE, 503), Duration::from_secs(1)),
            Refusal::Storage => again(row("storage", UNAVAILABLE, 503), Duration::from_secs(5)),
        }
    }

    /// One sentence for whoever runs the sender.
    pub fn text(&self) -> String {
        match self {
            Refusal::UnknownPath => "no such path: POST to /v1/traces, /v1/logs, /v1/metrics or \
                /v1development/profiles, or call Export of an OTLP service"
                .into(),
            Refusal::Method => "OTLP/HTTP exports are sent with POST".into(),
            Refusal::MediaType => {
                "send application/x-protobuf or application/json (over gRPC application/grpc)"
                    .into()
            }
            Refusal::Coding => "use one of the content codings identity, gzip and zstd".into(),
            Refusal::Unauthenticated(challenge) => {
                format!("send an authorization header ({challenge})")
            }
            Refusal::Malformed(why) => why.clone(),
            Refusal::Framing(why) => format!("not a gRPC message: {why}"),
            Refusal::Inflate(why) => format!("the compressed body cannot be read: {why}"),
            Refusal::TooLarge { setting, limit } => format!(
                "the request is larger than {setting}, {limit} bytes: send smaller batches or \
                 raise it"
            ),
            Refusal::HeadersTooLarge { limit } => format!(
                "the headers are larger than processors.mcp_verdict.limits.header_size, {limit} \
                 bytes: send fewer or raise it"
            ),
            Refusal::Silent(limit) => {
                format!("no byte of the body came for {} seconds", limit.as_secs())
            }
            Refusal::Overloaded { what, .. } => format!("{what} is full: send again later"),
            Refusal::Stopping => "shutting down: send again later".into(),
            Refusal::Storage => "the export could not be stored: send again later".into(),
        }
    }

    /// `google.rpc.Status` as protobuf.
    pub fn protobuf(&self) -> Vec<u8> {
        let row = self.row();
        let mut out = Vec::new();
        fields::put_varint_field(&mut out, 1, u64::from(row.code));
        fields::put_bytes_field(&mut out, 2, self.text().as_bytes());
        if let Some(after) = row.again {
            let detail = fields::open_message(&mut out, 3);
            fields::put_bytes_field(&mut out, 1, RETRY_INFO.as_bytes());
            let info = fields::open_message(&mut out, 2);
            let delay = fields::open_message(&mut out, 1);
            fields::put_varint_field(&mut out, 1, after.as_secs());
            fields::put_varint_field(&mut out, 2, u64::from(after.subsec_nanos()));
            for mark in [delay, info, detail] {
                fields::close_message(&mut out, mark);
            }
        }
        out
    }

    /// `google.rpc.Status` as JSON.
    pub fn json(&self) -> Vec<u8> {
        let row = self.row();
        let mut status = serde_json::json!({ "code": row.code, "message": self.text() });
        if let Some(after) = row.again {
            let delay = format!("{}s", after.as_secs_f64());
            status["details"] = serde_json::json!([{ "@type": RETRY_INFO, "retryDelay": delay }]);
        }
        status.to_string().into_bytes()
    }
}

const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_come_again_says_when() {
        let after = Duration::from_millis(1500);
        let full = Refusal::Overloaded { what: "the log", after };
        assert!(full.protobuf().windows(9).any(|w| w == b"RetryInfo"));
        assert!(String::from_utf8(full.json()).unwrap().contains(r#""retryDelay":"1.5s""#));
        let large = Refusal::TooLarge { setting: "max_recv_msg_size", limit: 5 };
        assert!(!large.protobuf().windows(9).any(|w| w == b"RetryInfo"));
        assert_eq!((large.row().code, large.row().http), (8, 413));
    }
}
