//! Answers that go on: gRPC streams beside the exports.
//!
//! Promises: who opens one has shown that it may; only so many are open at once; each ends with the
//! process, and after [`LONGEST`], so that a credential that was withdrawn reads no longer than
//! that. Who reads slowly holds one message.

use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::{Body, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::body::COME_BACK;
use super::{Door, Refusal};

/// Answers requests that may go on. Whoever comes has already shown that it may.
pub trait Conversation: Send + Sync + 'static {
    fn begin(&self, request: Request<Incoming>) -> Beginning<'_>;
}

/// The beginning of the answer of a [`Conversation`].
pub type Beginning<'a> = Pin<Box<dyn Future<Output = Response<Said>> + Send + 'a>>;
/// What is answered.
pub type Said = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// Streams that are open at once.
pub const MOST: usize = 128;
/// How long one goes on.
pub const LONGEST: Duration = Duration::from_secs(60 * 60);

/// Places for streams.
pub fn places() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MOST))
}

/// Admits a request and begins its answer.
///
/// # Errors
/// When it may not come in, when too many go on, and when its question does not come.
pub async fn converse(
    door: &Door,
    places: &Arc<Semaphore>,
    handler: &dyn Conversation,
    request: Request<Incoming>,
) -> Result<Response<Flow>, Refusal> {
    door.admit()?;
    door.gate.check(request.headers()).await?;
    let full = Refusal::Overloaded { what: "the number of streams", after: COME_BACK };
    let place = places.clone().try_acquire_owned().map_err(|_| full)?;
    let mut stopping = door.stopping.clone();
    let silence = door.limits.silence;
    let begun = tokio::select! {
        begun = handler.begin(request) => begun,
        _ = stopping.wait_for(|stop| *stop) => return Err(Refusal::Stopping),
        () = tokio::time::sleep(silence) => return Err(Refusal::Silent(silence)),
    };
    let end: Ending = Box::pin(async move {
        tokio::select! {
            _ = stopping.wait_for(|stop| *stop) => "shutting down: ask again later",
            () = tokio::time::sleep(LONGEST) => "an hour is over: ask again",
        }
    });
    Ok(begun.map(|said| Flow { said, end: Some(end), _place: place }))
}

type Ending = Pin<Box<dyn Future<Output = &'static str> + Send>>;

/// The body of an answer that goes on.
pub struct Flow {
    said: Said,
    /// `None` once it has ended.
    end: Option<Ending>,
    _place: OwnedSemaphorePermit,
}

impl Body for Flow {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(end) = &mut self.end else { return Poll::Ready(None) };
        if let Poll::Ready(says) = end.as_mut().poll(context) {
            self.end = None;
            return Poll::Ready(Some(Ok(Frame::trailers(unavailable(says)))));
        }
        match Pin::new(&mut self.said).poll_frame(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(Some(Ok(frame))),
            // A broken answer has a status all the same.
            Poll::Ready(Some(Err(_))) => {
                self.end = None;
                Poll::Ready(Some(Ok(Frame::trailers(unavailable("broken off: ask again")))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.end.is_none() || self.said.is_end_stream()
    }
}

/// The status that asks a client to come again.
fn unavailable(says: &'static str) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    let code = HeaderValue::from(u16::from(Refusal::Stopping.row().code));
    trailers.insert("grpc-status", code);
    trailers.insert("grpc-message", HeaderValue::from_static(says));
    trailers
}
