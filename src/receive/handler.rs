//! Requests that are no exports: gathered here, capped and counted as an export's are, answered by
//! whoever the port was opened for.

use std::pin::Pin;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use hyper::body::{Body, Incoming};

use super::body::{Gather, gather};
use super::{Answer, Door, Refusal};

/// Answers whole requests. Whoever comes has already shown that it may.
pub trait Handler: Send + Sync + 'static {
    fn answer(&self, request: Request<Bytes>) -> Answering<'_>;
}

/// The answer of a [`Handler`].
pub type Answering<'a> = Pin<Box<dyn Future<Output = Response<Answer>> + Send + 'a>>;

/// Bytes of one request's body.
pub const MOST: usize = 1 << 20;

/// Admits a request, gathers its body and has it answered.
///
/// # Errors
/// When it may not come in, is too large, or stops coming.
pub async fn ask(
    door: &Door,
    handler: &dyn Handler,
    head: Parts,
    body: &mut Incoming,
) -> Result<Response<Answer>, Refusal> {
    door.admit()?;
    door.gate.check(&head.headers).await?;
    let too_large = Refusal::TooLarge { setting: "the limit of a request", limit: MOST };
    if body.size_hint().lower() > MOST as u64 {
        return Err(too_large);
    }
    let mut share = door.budget.share();
    let how = Gather {
        share: &mut share,
        limit: MOST,
        setting: "the limit of a request",
        silence: door.limits.silence,
        announced: None,
    };
    let gathered = gather(body, how).await?;
    let answer = handler.answer(Request::from_parts(head, gathered)).await;
    drop(share);
    Ok(answer)
}

/// Headers for whatever a browser may be made to load: nothing is cached, framed, sniffed or read
/// by another site.
pub fn harden(headers: &mut HeaderMap) {
    const HEADERS: [(&str, &str); 6] = [
        ("cache-control", "no-store"),
        ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
        ("cross-origin-resource-policy", "same-origin"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
    ];
    for (name, value) in HEADERS {
        let name = HeaderName::from_static(name);
        // A page with scripts of its own brings its own policy.
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}
