//! Answers: a body of at most one frame, with trailers where gRPC wants them.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use super::Received;
use super::content::Form;
use crate::wire::{Signal, fields};

/// The body of every answer. An empty data frame is never sent.
#[derive(Default)]
pub struct Answer {
    pub data: Bytes,
    pub trailers: Option<HeaderMap>,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = std::mem::take(&mut self.data);
        if !data.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_empty() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.len() as u64)
    }
}

/// The `Export…ServiceResponse` to an accepted export.
pub fn success(export: &Received, form: Form) -> Vec<u8> {
    match form {
        Form::Protobuf if export.rejected == 0 => Vec::new(),
        Form::Protobuf => {
            let mut out = Vec::new();
            let partial = fields::open_message(&mut out, 1);
            fields::put_varint_field(&mut out, 1, export.rejected);
            fields::put_bytes_field(&mut out, 2, export.message.as_bytes());
            fields::close_message(&mut out, partial);
            out
        }
        Form::Json if export.rejected == 0 => b"{}".to_vec(),
        Form::Json => {
            let count = match export.signal {
                Signal::Traces => "rejectedSpans",
                Signal::Logs => "rejectedLogRecords",
                Signal::Metrics => "rejectedDataPoints",
                Signal::Profiles => "rejectedProfiles",
            };
            let mut partial = serde_json::Map::new();
            partial.insert(count.into(), export.rejected.to_string().into());
            partial.insert("errorMessage".into(), export.message.clone().into());
            serde_json::json!({ "partialSuccess": partial }).to_string().into_bytes()
        }
    }
}
