//! The live page itself: one document, its styles and its modules, carried in the program.
//!
//! Promises: nothing comes from elsewhere; the policy that goes with each file lets a browser run
//! and load these files alone, and makes no text into markup.

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// Scripts, styles, data and pictures of this port alone, and no way from text to markup.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

macro_rules! files {
    ($($name:literal: $kind:ident),* $(,)?) => {
        /// Name below `/static/`, type, contents.
        const FILES: &[(&str, &str, &str)] =
            &[$(($name, $kind, include_str!(concat!("static/", $name)))),*];
    };
}

files! {
    "app.css": CSS, "icon.svg": SVG,
    "main.js": SCRIPT, "dom.js": SCRIPT, "api.js": SCRIPT, "words.js": SCRIPT, "live.js": SCRIPT,
    "chart.js": SCRIPT, "overview.js": SCRIPT, "chains.js": SCRIPT, "chain.js": SCRIPT,
    "ladder.js": SCRIPT, "contracts.js": SCRIPT, "sessions.js": SCRIPT, "incidents.js": SCRIPT,
    "pipeline.js": SCRIPT, "coverage.js": SCRIPT,
}

/// `GET /`
pub async fn document() -> Response {
    answer(HTML, include_str!("static/index.html"))
}

/// `GET /static/{name}`
pub async fn file(Path(name): Path<String>) -> Response {
    match FILES.iter().find(|(known, ..)| *known == name) {
        Some((_, kind, text)) => answer(kind, text),
        None => (StatusCode::NOT_FOUND, "no such file").into_response(),
    }
}

/// Kept by a browser, and asked for again each time: it is another after an upgrade.
fn answer(kind: &'static str, text: &'static str) -> Response {
    let headers =
        [(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache"), (CONTENT_SECURITY_POLICY, POLICY)];
    (headers, text).into_response()
}
