//! `otlp_http`: POST of protobuf or JSON.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use reqwest::redirect::{self, Policy};
use reqwest::{Response, Url};

use super::{Fault, USER_AGENT, tls};
use crate::export::batch::Batch;
use crate::export::outcome::{self, Attempt, Outcome};
use crate::export::settings::{Encoding, Otlp};
use crate::wire::inflate::{Coding, deflate};
use crate::wire::{Signal, json};

pub struct Http {
    client: reqwest::Client,
    urls: [Url; 4],
    headers: HeaderMap,
    encoding: Encoding,
    coding: Coding,
    pub max_batch_size: usize,
}

/// Bytes of the longest answer that is read.
const LONGEST_ANSWER: usize = 1 << 20;

impl Http {
    pub fn new(otlp: &Otlp, encoding: Encoding) -> Result<Self, Fault> {
        let urls = Signal::ALL.map(|signal| url(otlp, signal));
        let [Ok(traces), Ok(logs), Ok(metrics), Ok(profiles)] = urls else {
            return Err(Fault("endpoint is not a URL such as http://127.0.0.1:4318".into()));
        };
        let coding = super::coding(otlp.compression);
        let mut headers = super::grpc::configured(otlp)?;
        let media_type = match encoding {
            Encoding::Proto => "application/x-protobuf",
            Encoding::Json => "application/json",
        };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        if coding != Coding::Identity {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
        }
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::config(&otlp.tls, &[b"h2", b"http/1.1"])?)
            .user_agent(USER_AGENT)
            .timeout(otlp.timeout)
            .redirect(Policy::custom(follow))
            .build()
            .map_err(|error| Fault(error.to_string()))?;
        Ok(Http {
            client,
            urls: [traces, logs, metrics, profiles],
            headers,
            encoding,
            coding,
            max_batch_size: otlp.max_batch_size,
        })
    }

    /// What received bytes would have to be in to leave as they are.
    pub fn coding(&self) -> Coding {
        match self.encoding {
            Encoding::Proto => self.coding,
            Encoding::Json => Coding::Identity,
        }
    }

    pub async fn send(&self, signal: Signal, batch: &Batch) -> Attempt {
        let Some(body) = self.body(signal, batch) else {
            return Outcome::Unfit("unreadable").into();
        };
        let url = self.urls[signal as usize].clone();
        let request = self.client.post(url).headers(self.headers.clone()).body(body);
        match request.send().await {
            Ok(response) => read(response).await,
            Err(error) => lost(error),
        }
    }

    fn body(&self, signal: Signal, batch: &Batch) -> Option<Bytes> {
        if self.encoding == Encoding::Proto {
            return batch.encode(self.coding).ok().map(|parts| crate::export::batch::join(&parts));
        }
        let text = json::from_protobuf(signal, &batch.plain().ok()?);
        match self.coding {
            Coding::Identity => Some(Bytes::from(text)),
            coding => Some(Bytes::from(deflate(coding, &text).ok()?.into_owned())),
        }
    }
}

async fn read(mut response: Response) -> Attempt {
    let status = response.status();
    if !status.is_success() {
        let (headers, now) = (response.headers(), crate::clock::system());
        return outcome::of_http(status.as_u16(), headers, now).into();
    }
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= LONGEST_ANSWER => {
                body.extend_from_slice(&chunk);
            }
            Ok(Some(_)) | Ok(None) => break,
            Err(error) => return lost(error),
        }
    }
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    match kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("application/json")) {
        true => outcome::accepted_json(&body).into(),
        false => outcome::accepted(&body).into(),
    }
}

/// No answer, or half of one.
fn lost(error: reqwest::Error) -> Attempt {
    let reason = match () {
        () if error.is_timeout() => "timeout",
        () if error.is_connect() => "unreachable",
        // The backend sends us in circles, or elsewhere: that does not end by trying again.
        () if error.is_redirect() => return Outcome::Refused("http_3xx").into(),
        () => "connection_lost",
    };
    Attempt::broken(reason, &error.without_url())
}

fn url(otlp: &Otlp, signal: Signal) -> Result<Url, ()> {
    let own = otlp.signal_endpoints.iter().find(|(of, _)| *of == signal);
    if let Some((_, whole)) = own {
        return Url::parse(whole).map_err(drop);
    }
    let path = match signal {
        Signal::Traces => "/v1/traces",
        Signal::Logs => "/v1/logs",
        Signal::Metrics => "/v1/metrics",
        Signal::Profiles => "/v1development/profiles",
    };
    Url::parse(&format!("{}{path}", otlp.endpoint.trim_end_matches('/'))).map_err(drop)
}

/// Headers may hold keys: they go to no other host, and from TLS to no plaintext.
fn follow(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let next = attempt.url();
    let safe = attempt.previous().first().is_some_and(|first| {
        first.host_str() == next.host_str()
            && first.port_or_known_default() == next.port_or_known_default()
            && !(first.scheme() == "https" && next.scheme() != "https")
    });
    match safe && attempt.previous().len() <= 5 {
        true => attempt.follow(),
        false => attempt.stop(),
    }
}
