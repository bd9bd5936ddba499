//! What error names, codes and texts of SDKs and HTTP stacks mean, as one table.
//!
//! Promises: a text that quotes a code inside a tool's own result is never read here (the caller
//! passes only error channels); numbers are HTTP statuses only in HTTP's own forms.

use crate::model::fact::{Failure, Fault};

/// Fragments of error types and texts in lower case, most telling first; the first that is found
/// names the failure.
const WORDS: &[(&str, Failure)] = &[
    // Version and capability.
    ("unsupported protocol version", Failure::UnsupportedVersion),
    ("protocol version is not supported", Failure::UnsupportedVersion),
    ("protocol version not supported", Failure::UnsupportedVersion),
    ("unsupportedprotocolversion", Failure::UnsupportedVersion),
    ("missing required client capability", Failure::MissingCapability),
    ("missingrequiredclientcapability", Failure::MissingCapability),
    // A session the server does not know.
    ("session not found", Failure::SessionExpired),
    ("session terminated", Failure::SessionExpired),
    ("session expired", Failure::SessionExpired),
    ("session has expired", Failure::SessionExpired),
    ("unknown session", Failure::SessionExpired),
    ("invalid session id", Failure::SessionExpired),
    // Authority.
    ("insufficient_scope", Failure::InsufficientScope),
    ("invalid_token", Failure::InvalidToken),
    ("unauthorizederror", Failure::InvalidToken),
    // Gone before an answer.
    ("client_disconnected", Failure::ClientDisconnected),
    ("clientdisconnect", Failure::ClientDisconnected),
    ("client disconnected", Failure::ClientDisconnected),
    // TLS.
    ("certificate", Failure::Tls),
    ("cert_", Failure::Tls),
    ("_cert", Failure::Tls),
    ("unable_to_verify_leaf", Failure::Tls),
    ("x509:", Failure::Tls),
    ("sslhandshake", Failure::Tls),
    ("sslexception", Failure::Tls),
    ("sslerror", Failure::Tls),
    ("ssl:", Failure::Tls),
    ("tls handshake", Failure::Tls),
    ("handshake failure", Failure::Tls),
    ("err_tls", Failure::Tls),
    // Never connected.
    ("econnrefused", Failure::NotConnected),
    ("connection refused", Failure::NotConnected),
    ("connectionrefused", Failure::NotConnected),
    ("connecterror", Failure::NotConnected),
    ("connecttimeout", Failure::NotConnected),
    ("connect_timeout", Failure::NotConnected),
    ("connection attempts failed", Failure::NotConnected),
    ("enotfound", Failure::NotConnected),
    ("eai_again", Failure::NotConnected),
    ("gaierror", Failure::NotConnected),
    ("getaddrinfo", Failure::NotConnected),
    ("name or service not known", Failure::NotConnected),
    ("no such host", Failure::NotConnected),
    ("ehostunreach", Failure::NotConnected),
    ("enetunreach", Failure::NotConnected),
    ("no route to host", Failure::NotConnected),
    ("network is unreachable", Failure::NotConnected),
    ("client is not connected", Failure::NotConnected),
    ("not connected", Failure::NotConnected),
    // Waited in vain.
    ("timeout", Failure::Timeout),
    ("timed out", Failure::Timeout),
    ("time out", Failure::Timeout),
    ("etimedout", Failure::Timeout),
    ("deadline_exceeded", Failure::Timeout),
    ("deadline exceeded", Failure::Timeout),
    ("deadlineexceeded", Failure::Timeout),
    // Broke after sending.
    ("econnreset", Failure::ConnectionLost),
    ("epipe", Failure::ConnectionLost),
    ("und_err_socket", Failure::ConnectionLost),
    ("connection reset", Failure::ConnectionLost),
    ("connectionreset", Failure::ConnectionLost),
    ("connection closed", Failure::ConnectionLost),
    ("connectionclosed", Failure::ConnectionLost),
    ("connection lost before", Failure::ConnectionLost),
    // Undici's words for every network failure before an answer, refused or reset.
    ("fetch failed", Failure::ConnectionLost),
    ("socket hang up", Failure::ConnectionLost),
    ("broken pipe", Failure::ConnectionLost),
    ("brokenpipe", Failure::ConnectionLost),
    ("remoteprotocolerror", Failure::ConnectionLost),
    ("readerror", Failure::ConnectionLost),
    ("brokenresourceerror", Failure::ConnectionLost),
    ("closedresourceerror", Failure::ConnectionLost),
    ("endofstream", Failure::ConnectionLost),
    ("unexpected eof", Failure::ConnectionLost),
    ("peer closed connection", Failure::ConnectionLost),
    // Called off.
    ("cancellederror", Failure::Cancelled),
    ("canceled", Failure::Cancelled),
    ("cancelled", Failure::Cancelled),
    ("aborterror", Failure::Cancelled),
    ("aborted", Failure::Cancelled),
];

/// Error types by which a caller says that it refused its own arguments.
const REFUSALS: &[&str] = &[
    "inputvalidationerror",
    "validationerror",
    "invalidargumentserror",
    "invalidargumenterror",
    "invalidtoolinputerror",
    "ai_invalidtoolinputerror",
    "zoderror",
    "valibotexception",
    "jsonschemavalidationerror",
    "argumenterror",
    "illegalargumentexception",
];

/// The failure that an error type or text names; `None` where it names none.
pub fn named(text: &str) -> Option<Failure> {
    if text.is_empty() {
        return None;
    }
    // Long texts carry stacks and bodies; what names the failure stands in front.
    let head: String = text.chars().take(400).flat_map(char::to_lowercase).collect();
    WORDS.iter().find(|(word, _)| head.contains(word)).map(|(_, failure)| *failure)
}

/// Types by which SDKs raise the JSON-RPC error that a peer answered with.
const PROTOCOL_ERRORS: &[&str] = &["mcperror", "mcpexception", "jsonrpcerror", "rpc_error"];

/// Whether an error type stands for a JSON-RPC error.
pub fn is_protocol_error(error_type: &str) -> bool {
    let last = last_word(error_type);
    PROTOCOL_ERRORS.iter().any(|word| last.eq_ignore_ascii_case(word))
}

/// A type's own name, without what it lies in.
fn last_word(error_type: &str) -> &str {
    error_type.rsplit(['.', ':', '/']).next().unwrap_or(error_type)
}

/// Whether an error type says that arguments were refused by a local check.
pub fn is_refusal(error_type: &str) -> bool {
    let last = last_word(error_type);
    REFUSALS.iter().any(|word| last.eq_ignore_ascii_case(word))
}

/// How an HTTP exchange broke, from the same table.
pub fn fault(text: &str) -> Option<Fault> {
    Some(match named(text)? {
        Failure::NotConnected => Fault::NotConnected,
        Failure::Tls => Fault::Tls,
        Failure::ConnectionLost | Failure::ClientDisconnected => Fault::Lost,
        Failure::Timeout => Fault::Timeout,
        Failure::Cancelled => Fault::Cancelled,
        _ => return None,
    })
}

/// Phrases that stand before an HTTP status in error texts of HTTP clients.
const STATUS_PHRASES: &[&str] =
    &["client error '", "server error '", "(http ", "http ", "status code ", "status: ", "status "];

/// The HTTP status that an error text names in HTTP's own forms (`HTTP 503`, `Client error '401
/// Unauthorized'`, `status code 403`). Bare numbers and JSON-RPC codes are none.
pub fn http_status(text: &str) -> Option<u16> {
    let head: String = text.chars().take(400).flat_map(char::to_lowercase).collect();
    STATUS_PHRASES.iter().find_map(|phrase| {
        head.match_indices(phrase).find_map(|(at, _)| {
            let rest = head[at + phrase.len()..].trim_start_matches([':', '=', ' ']);
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            (digits == 3).then(|| status(&rest[..3])).flatten()
        })
    })
}

/// Three digits that are an HTTP status.
pub fn status(text: &str) -> Option<u16> {
    let three = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|status| three && (100..600).contains(status))
}

/// The code in `MCP error -32601: …`, the form in which SDKs put codes into texts.
pub fn code_in_text(text: &str) -> Option<i64> {
    let head: String = text.chars().take(400).flat_map(char::to_lowercase).collect();
    let at = head.find("mcp error ")? + "mcp error ".len();
    let rest = &head[at..];
    let end = rest.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok().filter(|code| *code < 0)
}

/// A JSON-RPC code that stands alone in an error type (`-32602`).
pub fn code_alone(text: &str) -> Option<i64> {
    text.trim().parse().ok().filter(|code: &i64| *code < 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_by_name() {
        for (text, want) in [
            ("TimeoutError: ", Some(Failure::Timeout)),
            ("Request timed out", Some(Failure::Timeout)),
            ("ECONNREFUSED", Some(Failure::NotConnected)),
            ("All connection attempts failed", Some(Failure::NotConnected)),
            ("Session not found", Some(Failure::SessionExpired)),
            ("McpError: Session terminated", Some(Failure::SessionExpired)),
            ("context_canceled", Some(Failure::Cancelled)),
            ("CancelledError: Cancelled via cancel scope", Some(Failure::Cancelled)),
            ("client_disconnected", Some(Failure::ClientDisconnected)),
            ("SSLError: CERTIFICATE_VERIFY_FAILED", Some(Failure::Tls)),
            ("ConnectTimeout", Some(Failure::NotConnected)),
            ("ReadTimeout", Some(Failure::Timeout)),
            ("division by zero", None),
            ("database connection lost", None),
            ("", None),
        ] {
            assert_eq!(named(text), want, "{text}");
        }
    }

    #[test]
    fn statuses_and_codes_in_texts() {
        let client_error = "HTTPStatusError: Client error '401 Unauthorized' for url 'http://x'";
        for (text, want) in [
            (client_error, Some(401)),
            ("Error POSTing to endpoint (HTTP 503): down", Some(503)),
            ("Request failed with status code 403", Some(403)),
            ("MCP error -32001: Request timed out", None),
            ("408", None),
            ("http://127.0.0.1:1829/mcp", None),
        ] {
            assert_eq!(http_status(text), want, "{text}");
        }
        assert_eq!(code_in_text("McpError: MCP error -32601: no"), Some(-32601));
        assert_eq!(code_in_text("error -32601"), None);
        assert_eq!(code_alone("-32602"), Some(-32602));
        assert_eq!(code_alone("503"), None);
        assert!(is_refusal("fastmcp.exceptions.ValidationError") && !is_refusal("ToolError"));
    }
}
