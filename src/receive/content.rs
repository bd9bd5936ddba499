//! What a request's headers say of its body.

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};

use super::Refusal;
use crate::wire::inflate::Coding;

/// Encoding of an OTLP/HTTP body, and of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Protobuf,
    Json,
}

impl Form {
    pub fn media_type(self) -> &'static str {
        match self {
            Form::Protobuf => "application/x-protobuf",
            Form::Json => "application/json",
        }
    }

    /// From `content-type`; parameters and case do not matter.
    ///
    /// # Errors
    /// For any other media type, and none.
    pub fn of(headers: &HeaderMap) -> Result<Self, Refusal> {
        match media_type(headers).as_str() {
            "application/x-protobuf" => Ok(Form::Protobuf),
            "application/json" => Ok(Form::Json),
            _ => Err(Refusal::MediaType),
        }
    }
}

/// The media type in lower case, without parameters; empty where there is none or several.
fn media_type(headers: &HeaderMap) -> String {
    let mut all = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (all.next(), all.next()) else { return String::new() };
    let value = value.to_str().unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether this is a gRPC request with protobuf messages.
pub fn is_grpc(headers: &HeaderMap) -> bool {
    matches!(media_type(headers).as_str(), "application/grpc" | "application/grpc+proto")
}

/// The coding of an HTTP body.
///
/// # Errors
/// For an unknown coding, and for more than one.
pub fn coding(headers: &HeaderMap) -> Result<Coding, Refusal> {
    let mut found = Coding::Identity;
    let values = headers.get_all(CONTENT_ENCODING).iter();
    for value in values.flat_map(|value| value.to_str().unwrap_or("?").split(',')) {
        match (Coding::parse(value), found) {
            (Some(Coding::Identity), _) => {}
            (Some(coding), Coding::Identity) => found = coding,
            _ => return Err(Refusal::Coding),
        }
    }
    Ok(found)
}

/// The coding of compressed gRPC messages.
///
/// # Errors
/// For an unknown coding.
pub fn message_coding(headers: &HeaderMap) -> Result<Coding, Refusal> {
    let Some(value) = headers.get("grpc-encoding") else { return Ok(Coding::Identity) };
    value.to_str().ok().and_then(Coding::parse).ok_or(Refusal::Coding)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        let name = http::HeaderName::from_static(name);
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn media_types() {
        for (value, want) in [
            ("application/json; charset=utf-8", Ok(Form::Json)),
            ("Application/JSON", Ok(Form::Json)),
            ("application/x-protobuf;a=b", Ok(Form::Protobuf)),
            ("text/plain", Err(Refusal::MediaType)),
        ] {
            assert_eq!(Form::of(&headers("content-type", value)), want, "{value}");
        }
        assert_eq!(Form::of(&HeaderMap::new()), Err(Refusal::MediaType));
        assert!(is_grpc(&headers("content-type", "application/grpc+proto; x=y")));
        assert!(!is_grpc(&headers("content-type", "application/grpc+json")));
    }

    #[test]
    fn codings() {
        for (value, want) in [
            ("GZIP", Ok(Coding::Gzip)),
            ("identity", Ok(Coding::Identity)),
            ("identity, zstd", Ok(Coding::Zstd)),
            ("gzip, gzip", Err(Refusal::Coding)),
            ("br", Err(Refusal::Coding)),
        ] {
            assert_eq!(coding(&headers("content-encoding", value)), want, "{value}");
        }
    }
}
