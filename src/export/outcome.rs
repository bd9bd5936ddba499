//! What an attempt ended with: one table for gRPC and one for HTTP, and the answers' details.

use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::HeaderMap;

use crate::wire::fields::{Fields, WireValue};

/// The end of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Final, also where some items were rejected.
    Accepted { rejected: u64, warned: bool },
    /// To be tried again, not before `after` where the backend said so.
    Again { reason: Reason, after: Option<Duration> },
    /// Final, whatever the request holds.
    Refused(Reason),
    /// Final for what the request holds: parts of it may be taken.
    Unfit(Reason),
    /// The backend does not take this signal at all.
    Unsupported(Reason),
}

/// One attempt: how it ended, and why in words for people where the reason is not enough.
#[derive(Debug)]
pub struct Attempt {
    pub outcome: Outcome,
    pub detail: Option<String>,
}

impl From<Outcome> for Attempt {
    fn from(outcome: Outcome) -> Self {
        Attempt { outcome, detail: None }
    }
}

impl Attempt {
    /// Nothing was answered, because of an error.
    pub fn broken(reason: Reason, error: &(dyn std::error::Error + 'static)) -> Self {
        let outcome = Outcome::Again { reason, after: None };
        Attempt { outcome, detail: Some(innermost(error)) }
    }
}

/// Whether nobody answered in time: less may be answered sooner.
pub fn is_late(reason: Reason) -> bool {
    matches!(reason, "timeout" | "grpc_deadline_exceeded" | "http_504")
}

/// Characters of an error that are worth a line.
const WORDS: usize = 200;

/// What an error comes from. Those around it only name layers of libraries, and some a URL.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    let told = error.to_string();
    if told.contains("InvalidContentType") {
        return "what listens there speaks no TLS: write http:// instead of https://".into();
    }
    told.chars().filter(|c| !c.is_control()).take(WORDS).collect()
}

/// A word for metrics and logs: `grpc_<code>`, `http_<status>`, or one of ours.
pub type Reason = &'static str;

macro_rules! grpc_codes {
    ($($code:literal $name:literal $how:ident),* $(,)?) => {
        /// By status code; RESOURCE_EXHAUSTED is decided by its details.
        pub fn of_grpc(code: i32, details: Option<&[u8]>) -> Outcome {
            match code {
                $($code => Outcome::$how(concat!("grpc_", $name), details),)*
                _ => Outcome::Refused("grpc_unknown"),
            }
        }
    };
}

#[allow(non_snake_case)]
impl Outcome {
    fn Retry(reason: Reason, details: Option<&[u8]>) -> Self {
        Outcome::Again { reason, after: details.and_then(retry_delay) }
    }

    fn IfTold(reason: Reason, details: Option<&[u8]>) -> Self {
        match details.and_then(retry_delay) {
            Some(after) => Outcome::Again { reason, after: Some(after) },
            // Too large for the backend: less of it may not be.
            None => Outcome::Unfit(reason),
        }
    }

    fn Content(reason: Reason, _: Option<&[u8]>) -> Self {
        Outcome::Unfit(reason)
    }

    fn Final(reason: Reason, _: Option<&[u8]>) -> Self {
        Outcome::Refused(reason)
    }

    fn NotThere(reason: Reason, _: Option<&[u8]>) -> Self {
        Outcome::Unsupported(reason)
    }
}

grpc_codes! {
    1 "cancelled" Retry, 2 "unknown" Content, 3 "invalid_argument" Content,
    4 "deadline_exceeded" Retry, 5 "not_found" Final, 6 "already_exists" Final,
    7 "permission_denied" Final, 8 "resource_exhausted" IfTold, 9 "failed_precondition" Content,
    10 "aborted" Retry, 11 "out_of_range" Retry, 12 "unimplemented" NotThere,
    13 "internal" Content, 14 "unavailable" Retry, 15 "data_loss" Retry,
    16 "unauthenticated" Final,
}

/// What gRPC says of an HTTP status without a gRPC one, from a proxy or a server of another kind.
pub fn grpc_code_of_http(status: u16) -> i32 {
    match status {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502 | 503 | 504 => 14,
        _ => 2,
    }
}

macro_rules! http_statuses {
    ($($status:literal)*) => {
        fn http_reason(status: u16) -> Reason {
            match status {
                $($status => concat!("http_", $status),)*
                300..=399 => "http_3xx",
                400..=499 => "http_4xx",
                500..=599 => "http_5xx",
                _ => "http_other",
            }
        }
    };
}

http_statuses! { 400 401 403 404 405 408 413 415 422 429 500 501 502 503 504 }

/// By HTTP status other than success.
pub fn of_http(status: u16, headers: &HeaderMap, now: SystemTime) -> Outcome {
    let reason = http_reason(status);
    match status {
        429 | 502 | 503 | 504 => Outcome::Again { reason, after: retry_after(headers, now) },
        404 => Outcome::Unsupported(reason),
        400 | 413 | 422 | 500 => Outcome::Unfit(reason),
        _ => Outcome::Refused(reason),
    }
}

/// Longest wait that a backend can ask for.
const LONGEST: Duration = Duration::from_secs(3600);

/// `Retry-After`, in seconds or as a date.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(http::header::RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match value.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(value).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(wait.min(LONGEST))
}

/// The bytes of `grpc-status-details-bin`: base64, padded or not.
pub fn details(headers: &HeaderMap) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
    engine.decode(headers.get("grpc-status-details-bin")?.as_bytes()).ok()
}

/// The delay of a `google.rpc.RetryInfo` among the details of a `google.rpc.Status`; zero where it
/// names none.
fn retry_delay(status: &[u8]) -> Option<Duration> {
    let details = bodies(status, 3);
    details.into_iter().find_map(|any| {
        let kind = bodies(any, 1);
        let is_retry = kind.last().is_some_and(|url| url.ends_with(b"google.rpc.RetryInfo"));
        is_retry.then(|| {
            let info = bodies(any, 2).last().copied().unwrap_or_default();
            let delay = bodies(info, 1).last().copied().unwrap_or_default();
            let seconds = integer(delay, 1).min(LONGEST.as_secs());
            Duration::new(seconds, integer(delay, 2).min(999_999_999) as u32).min(LONGEST)
        })
    })
}

fn bodies(message: &[u8], number: u32) -> Vec<&[u8]> {
    let fields = Fields::new(message).flatten().filter(|field| field.number == number);
    fields
        .filter_map(|field| match field.value {
            WireValue::Bytes(body) => Some(body),
            _ => None,
        })
        .collect()
}

fn integer(message: &[u8], number: u32) -> u64 {
    let fields = Fields::new(message).flatten().filter(|field| field.number == number);
    fields.last().map_or(0, |field| field.value.integer())
}

/// `partial_success` of an `Export…ServiceResponse` in protobuf.
pub fn accepted(response: &[u8]) -> Outcome {
    let partial = bodies(response, 1).last().copied().unwrap_or_default();
    // A negative count is nobody's count.
    let rejected = u64::try_from(integer(partial, 1) as i64).unwrap_or(0);
    let warned = bodies(partial, 2).last().is_some_and(|text| !text.is_empty());
    Outcome::Accepted { rejected, warned }
}

/// `partialSuccess` of a response in JSON; the count is a number or a string.
pub fn accepted_json(response: &[u8]) -> Outcome {
    let whole: serde_json::Value = serde_json::from_slice(response).unwrap_or_default();
    let partial = &whole["partialSuccess"];
    let keys = ["rejectedSpans", "rejectedLogRecords", "rejectedDataPoints", "rejectedProfiles"];
    let count = |key| match &partial[key] {
        serde_json::Value::Number(number) => number.as_u64(),
        serde_json::Value::String(text) => text.parse().ok(),
        _ => None,
    };
    let rejected = keys.into_iter().find_map(count).unwrap_or(0);
    let warned = partial["errorMessage"].as_str().is_some_and(|text| !text.is_empty());
    Outcome::Accepted { rejected, warned }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::fields::{close_message, open_message, put_bytes_field, put_varint_field};

    fn again(outcome: Outcome) -> bool {
        matches!(outcome, Outcome::Again { .. })
    }

    #[test]
    fn only_what_otlp_calls_retryable_is_tried_again() {
        let retried: Vec<i32> = (0..=17).filter(|code| again(of_grpc(*code, None))).collect();
        assert_eq!(retried, [1, 4, 10, 11, 14, 15]);
        let now = SystemTime::UNIX_EPOCH;
        let retried: Vec<u16> =
            (100..600).filter(|s| again(of_http(*s, &HeaderMap::new(), now))).collect();
        assert_eq!(retried, [429, 502, 503, 504]);
    }

    #[test]
    fn a_full_backend_is_tried_again_only_when_it_says_when() {
        let after = Duration::from_millis(1500);
        let mut told = Vec::new();
        let detail = open_message(&mut told, 3);
        put_bytes_field(&mut told, 1, b"type.googleapis.com/google.rpc.RetryInfo");
        let info = open_message(&mut told, 2);
        let delay = open_message(&mut told, 1);
        put_varint_field(&mut told, 1, 1);
        put_varint_field(&mut told, 2, 500_000_000);
        for mark in [delay, info, detail] {
            close_message(&mut told, mark);
        }
        let want = Outcome::Again { reason: "grpc_resource_exhausted", after: Some(after) };
        assert_eq!(of_grpc(8, Some(&told)), want);
        assert_eq!(of_grpc(8, Some(b"\x08\x08")), Outcome::Unfit("grpc_resource_exhausted"));
    }

    #[test]
    fn credentials_and_addresses_are_nothing_that_a_request_holds() {
        let unfit = |outcome| matches!(outcome, Outcome::Unfit(_));
        let codes: Vec<i32> = (0..=17).filter(|code| unfit(of_grpc(*code, None))).collect();
        assert_eq!(codes, [2, 3, 8, 9, 13]);
        let now = SystemTime::UNIX_EPOCH;
        let statuses: Vec<u16> =
            (100..600).filter(|s| unfit(of_http(*s, &HeaderMap::new(), now))).collect();
        assert_eq!(statuses, [400, 413, 422, 500]);
    }

    #[test]
    fn of_an_error_the_innermost_is_told() {
        #[derive(Debug)]
        struct Outer(std::io::Error);
        impl std::fmt::Display for Outer {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("http://user:secret@backend/ cannot be reached")
            }
        }
        impl std::error::Error for Outer {
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                Some(&self.0)
            }
        }
        let long = format!("refused\n{}", "x".repeat(1_000));
        let plain = innermost(&Outer(std::io::Error::other(
            "received corrupt message of type InvalidContentType",
        )));
        assert!(plain.contains("http://"), "{plain}");
        let told = innermost(&Outer(std::io::Error::other(long)));
        assert!(told.starts_with("refusedx") && told.len() == WORDS, "{told}");
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH;
        for (value, want) in [
            ("2", Some(2)),
            ("Thu, 01 Jan 1970 00:00:07 GMT", Some(7)),
            ("soon", None),
            ("999999999", Some(3600)),
        ] {
            let headers =
                HeaderMap::from_iter([(http::header::RETRY_AFTER, value.parse().unwrap())]);
            let want = want.map(Duration::from_secs);
            assert_eq!(retry_after(&headers, now), want, "{value}");
        }
    }

    #[test]
    fn partial_success_in_both_encodings() {
        let accepted_is = |rejected, warned| Outcome::Accepted { rejected, warned };
        for (proto, json, want) in [
            (&b""[..], &b"{}"[..], accepted_is(0, false)),
            (b"\x0a\0", br#"{"partialSuccess":{}}"#, accepted_is(0, false)),
            (
                b"\x0a\x05\x08\x03\x12\x01x",
                br#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"x"}}"#,
                accepted_is(3, true),
            ),
            (
                b"\x0a\x03\x12\x01x",
                br#"{"partialSuccess":{"rejectedSpans":0,"errorMessage":"x"}}"#,
                accepted_is(0, true),
            ),
        ] {
            assert_eq!((accepted(proto), accepted_json(json)), (want, want));
        }
    }
}
