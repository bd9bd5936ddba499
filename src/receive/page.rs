//! The page's port: HTTP under the rules of the receivers (authentication, TLS, limits, no exposure
//! without either), answered by a handler.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_TYPE, EXPECT, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;

use super::body::discard;
use super::connection::Protocol;
use super::handler::{self, Handler};
use super::listen::{ListenError, Serving, bind, open_tls};
use super::settings::{Limits, Listener};
use super::{Answer, Counters, Door, Gate, Refusal};

const ENDPOINT: &str = "service.telemetry.page.endpoint";
const AUTH: &str = "service.telemetry.page.auth";
const ALPN: &[&[u8]] = &[b"h2", b"http/1.1"];

/// The open port.
pub struct Page {
    pub address: Option<SocketAddr>,
    serving: Serving,
}

/// What the page's connections need.
pub struct Port {
    door: Door,
    handler: Arc<dyn Handler>,
}

impl Page {
    /// Opens the port and serves it.
    ///
    /// # Errors
    /// When the port, a certificate or the credentials cannot be used; nothing is open then.
    pub async fn start(
        settings: &Listener,
        limits: Limits,
        counters: Counters,
        handler: Arc<dyn Handler>,
    ) -> Result<Self, ListenError> {
        let gate = Gate::open(AUTH, &settings.auth).map_err(ListenError::Auth)?;
        let mutual = settings.tls.as_ref().is_some_and(|tls| tls.client_ca_file.is_some());
        let exposed = settings.allow_insecure || !gate.is_open() || mutual;
        let certificates = open_tls(ENDPOINT, &settings.tls, ALPN)?;
        let listener = bind(ENDPOINT, &settings.endpoint, exposed).await?;
        let address = listener.local_addr().ok();
        let (mut serving, door, keep) = Serving::new(gate, limits, counters);
        let protocol = Protocol::Page(Arc::new(Port { door: door.clone(), handler }));
        serving.open(listener, protocol, certificates, Arc::new(door), &keep);
        Ok(Page { address, serving })
    }

    /// Reads credentials and certificates again; what cannot be read stays as it is.
    ///
    /// # Errors
    /// A sentence a file that was not taken.
    pub fn reload(&self) -> Result<(), Vec<String>> {
        self.serving.reload()
    }

    /// Takes nothing new, and waits at most so long for what had begun.
    pub async fn stop(self, patience: Duration) {
        self.serving.stop(patience).await;
    }
}

/// Bytes of a refused body that are read on: an answer to a sender that still writes is lost with
/// its connection.
const DRAINED: usize = 64 << 20;

/// Answers one request.
pub async fn answer(port: &Port, request: Request<Incoming>) -> Response<Answer> {
    let (head, mut body) = request.into_parts();
    let waits = head.headers.contains_key(EXPECT);
    match handler::ask(&port.door, &*port.handler, head, &mut body).await {
        Ok(answer) => answer,
        Err(refusal) => {
            if !waits {
                discard(body, DRAINED).await;
            }
            refused(&refusal)
        }
    }
}

fn refused(refusal: &Refusal) -> Response<Answer> {
    let row = refusal.row();
    let mut says = serde_json::json!({
        "code": row.code, "reason": row.name, "message": refusal.text(),
    });
    if let Refusal::TooLarge { limit, .. } = refusal {
        says["limit"] = (*limit).into();
    }
    let mut response = Response::new(Answer { data: says.to_string().into(), trailers: None });
    *response.status_mut() =
        StatusCode::from_u16(row.http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(after) = row.again {
        headers.insert(RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)));
    }
    if let Refusal::Unauthenticated(challenge) = refusal {
        let challenge = match *challenge {
            "Basic" => r#"Basic realm="mcp-verdict""#,
            other => other,
        };
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    }
    super::handler::harden(headers);
    response
}
