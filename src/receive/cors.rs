//! CORS for browsers that export: off unless origins are configured.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
    VARY,
};
use http::{HeaderMap, HeaderValue, Method};

/// `cors.allowed_origins`.
#[derive(Clone, Debug, Default)]
pub struct Cors {
    origins: Vec<String>,
}

impl Cors {
    pub fn new(origins: &[String]) -> Self {
        Cors { origins: origins.to_vec() }
    }

    fn allowed<'h>(&self, headers: &'h HeaderMap) -> Option<&'h HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        let text = origin.to_str().ok()?;
        self.origins.iter().any(|pattern| matches(pattern, text)).then_some(origin)
    }

    /// Headers of the answer to a request from an allowed origin; none for any other.
    pub fn answer(&self, request: &HeaderMap) -> HeaderMap {
        let mut out = HeaderMap::new();
        if let Some(origin) = self.allowed(request) {
            out.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            out.insert(VARY, HeaderValue::from_static("origin"));
        }
        out
    }

    /// Headers of the answer to a preflight; `None` where this is none.
    pub fn preflight(&self, method: &Method, request: &HeaderMap) -> Option<HeaderMap> {
        let asks = request.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if *method != Method::OPTIONS || !asks || self.origins.is_empty() {
            return None;
        }
        let mut out = self.answer(request);
        if !out.is_empty() {
            out.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST"));
            out.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("7200"));
            if let Some(wanted) = request.get(ACCESS_CONTROL_REQUEST_HEADERS) {
                out.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
            }
        }
        Some(out)
    }
}

/// Equal, or equal around the one `*` of the pattern.
fn matches(pattern: &str, origin: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern.eq_ignore_ascii_case(origin),
        Some((head, tail)) => {
            origin.len() >= head.len() + tail.len()
                && origin.starts_with(head)
                && origin.ends_with(tail)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins() {
        assert!(matches("*", "http://a.example"));
        assert!(matches("https://*.example.com", "https://a.example.com"));
        assert!(!matches("https://*.example.com", "https://example.com"));
        assert!(!matches("http://a.example", "http://b.example"));
    }

    #[test]
    fn nothing_is_said_unless_configured() {
        let request: HeaderMap = [
            (ORIGIN, HeaderValue::from_static("http://a.example")),
            (ACCESS_CONTROL_REQUEST_METHOD, HeaderValue::from_static("POST")),
        ]
        .into_iter()
        .collect();
        assert!(Cors::default().answer(&request).is_empty());
        assert_eq!(Cors::default().preflight(&Method::OPTIONS, &request), None);
        let cors = Cors::new(&["http://a.example".into()]);
        let told = cors.preflight(&Method::OPTIONS, &request).unwrap();
        assert_eq!(told[ACCESS_CONTROL_ALLOW_ORIGIN], "http://a.example");
    }
}
