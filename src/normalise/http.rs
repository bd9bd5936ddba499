//! The HTTP side of a span or log record, old conventions and new.

use super::conventions as key;
use super::errors;
use super::item::{Item, text};
use crate::model::fact::{Fault, Http, Signal};

/// Paths that serve authorization, never MCP.
const AUTHORIZATION_PATHS: &[&str] = &["/token", "/register", "/authorize"];

/// The HTTP part of an item; `None` where it has none.
pub fn read(item: &Item<'_>) -> Option<Http> {
    let method = item.attributes.text(key::HTTP_METHOD);
    let status = status(item);
    if method.is_none() && status.is_none() {
        return None;
    }
    let post = match method.as_deref() {
        Some(method) => method.eq_ignore_ascii_case("POST"),
        // A log record names a status and seldom a method; a span says it in its name.
        None if item.signal == Signal::Log => true,
        None => item.name.starts_with("POST"),
    };
    let path = item.attributes.text(key::HTTP_PATH);
    let carries = post && !path.as_deref().is_some_and(serves_authorization);
    Some(Http { status: status.unwrap_or(0), carries, fault: fault(item) })
}

/// The status in keys made for it; int or text.
pub fn status(item: &Item<'_>) -> Option<u16> {
    let number = item.attributes.int(key::HTTP_STATUS)?;
    u16::try_from(number).ok().filter(|status| (100..600).contains(status))
}

fn serves_authorization(url: &str) -> bool {
    let url = url.split(['?', '#']).next().unwrap_or(url);
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => url,
    };
    path.contains("/.well-known/")
        || AUTHORIZATION_PATHS.iter().any(|end| path.trim_end_matches('/').ends_with(end))
}

/// How the exchange broke: from the error type, the exception, the status text.
fn fault(item: &Item<'_>) -> Option<Fault> {
    let error_type = item.attributes.text(key::ERROR_TYPE);
    let named = error_type.as_deref().and_then(errors::fault);
    let from_exceptions = || {
        item.exceptions().find_map(|event| {
            ["exception.type", "exception.message"]
                .iter()
                .find_map(|k| errors::fault(&text(event.attributes.get(k)?)?))
        })
    };
    let failed = item.failed() || error_type.is_some();
    named.or_else(from_exceptions).or_else(|| errors::fault(&item.message).filter(|_| failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorization_is_not_mcp() {
        for (url, want) in [
            ("http://h:1/mcp", false),
            ("/mcp", false),
            ("https://h/.well-known/oauth-protected-resource/mcp", true),
            ("https://h/oauth/token?x=1", true),
            ("/register/", true),
            ("/tokens", false),
            ("https://h", false),
        ] {
            assert_eq!(serves_authorization(url), want, "{url}");
        }
    }
}
