//! OTLP/HTTP: `POST` of protobuf or JSON, answered in the request's encoding.

use std::sync::Arc;

use http::header::{ALLOW, CONTENT_TYPE, EXPECT, RETRY_AFTER, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::{Body, Incoming};

use super::answer::{self, Answer};
use super::body::{Gather, discard, gather};
use super::content::{self, Form};
use super::cors::Cors;
use super::counters::Transport;
use super::decode::{Raw, decode};
use super::{Refusal, Shared, http_path, signal_of};

/// What the HTTP port needs beside what all share.
pub struct Port {
    pub shared: Arc<Shared>,
    pub limit: usize,
    pub cors: Cors,
}

const SETTING: &str = "receivers.otlp.protocols.http.max_request_body_size";

/// Answers one request.
pub async fn answer(port: &Port, request: Request<Incoming>) -> Response<Answer> {
    let shared = &*port.shared;
    let (head, mut body) = request.into_parts();
    if let Some(headers) = port.cors.preflight(&head.method, &head.headers) {
        return respond(StatusCode::NO_CONTENT, headers, Vec::new());
    }
    let form = Form::of(&head.headers);
    let mut headers = port.cors.answer(&head.headers);
    match export(port, &head, &mut body).await {
        Ok(message) => {
            let form = form.unwrap_or(Form::Json);
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(form.media_type()));
            respond(StatusCode::OK, headers, message)
        }
        Err(refusal) => {
            shared.door.counters.refused(Transport::Http, &refusal);
            // Who waits for "100 Continue" has not sent the body and need not.
            if !head.headers.contains_key(EXPECT) {
                discard(body, 4 * port.limit).await;
            }
            refused(&refusal, form.unwrap_or(Form::Json), headers)
        }
    }
}

async fn export(port: &Port, head: &Parts, body: &mut Incoming) -> Result<Vec<u8>, Refusal> {
    let shared = &*port.shared;
    let signal = signal_of(head.uri.path(), http_path).ok_or(Refusal::UnknownPath)?;
    shared.door.admit()?;
    shared.door.gate.check(&head.headers).await?;
    if head.method != Method::POST {
        return Err(Refusal::Method);
    }
    let form = Form::of(&head.headers)?;
    let coding = content::coding(&head.headers)?;
    if body.size_hint().lower() > port.limit as u64 {
        return Err(Refusal::TooLarge { setting: SETTING, limit: port.limit });
    }
    let mut share = shared.door.budget.share();
    let how = Gather {
        share: &mut share,
        limit: port.limit,
        setting: SETTING,
        silence: shared.door.limits.silence,
        announced: None,
    };
    let gathered = gather(body, how).await?;
    let raw = Raw {
        signal,
        form,
        coding,
        body: gathered,
        limit: (SETTING, port.limit),
        max_ratio: shared.door.limits.inflate_ratio,
    };
    let (received, share) = decode(raw, share).await?;
    let success = answer::success(&received, form);
    shared.take(Transport::Http, received).await?;
    drop(share);
    Ok(success)
}

fn refused(refusal: &Refusal, form: Form, mut headers: HeaderMap) -> Response<Answer> {
    let row = refusal.row();
    let status = StatusCode::from_u16(row.http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(form.media_type()));
    if let Some(after) = row.again {
        // Whole seconds, rounded up: zero would be "at once".
        let seconds = after.as_secs_f64().ceil().max(1.0) as u64;
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    match refusal {
        Refusal::Method => {
            headers.insert(ALLOW, HeaderValue::from_static("POST"));
        }
        Refusal::Unauthenticated("Basic") => {
            let challenge = HeaderValue::from_static(r#"Basic realm="otlp""#);
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        Refusal::Unauthenticated(_) => {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        _ => {}
    }
    let body = match form {
        Form::Protobuf => refusal.protobuf(),
        Form::Json => refusal.json(),
    };
    respond(status, headers, body)
}

fn respond(status: StatusCode, headers: HeaderMap, body: Vec<u8>) -> Response<Answer> {
    let mut response = Response::new(Answer { data: body.into(), trailers: None });
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
