//! Attribute keys by concept, each list in order of preference: the OpenTelemetry conventions
//! first, then what other instrumentations write. Every reader of a key goes through here, so that
//! a key has one meaning.

pub const METHOD: &[&str] = &["mcp.method.name", "mcp.method", "mcp_method"];

pub const SESSION: &[&str] = &["mcp.session.id", "mcp.session_id", "mcp_session_id"];

pub const REQUEST_ID: &[&str] = &[
    "jsonrpc.request.id",
    "mcp.request.id",
    "rpc.jsonrpc.request_id",
    "apollo.mcp.request_id",
    "mcp.request_id",
];

pub const VERSION: &[&str] =
    &["mcp.protocol.version", "mcp.protocol_version", "mcp.backend.protocol.version"];

pub const TOOL: &[&str] = &[
    "gen_ai.tool.name",
    "mcp.tool.name",
    "tool.name",
    "tool_name",
    "ai.toolCall.name",
    "apollo.mcp.tool_name",
    "spring.ai.tool.definition.name",
    "mastra.mcp_server_request.target_name",
];

pub const ARGUMENTS: &[&str] = &[
    "gen_ai.tool.call.arguments",
    "mcp.tool.arguments",
    "ai.toolCall.args",
    "apollo.mcp.tool_arguments",
    "spring.ai.tool.call.arguments",
];

/// One attribute an argument: the rest of the key is its name.
pub const ARGUMENT_PREFIX: &str = "mcp.request.argument.";

pub const RESULT: &[&str] = &[
    "gen_ai.tool.call.result",
    "mcp.tool.result",
    "ai.toolCall.result",
    "apollo.mcp.tool_result",
    "spring.ai.tool.call.result",
];

pub const IS_ERROR: &[&str] = &["mcp.tool.result.is_error", "mcp.tool.is_error"];

pub const SUCCESS: &[&str] = &["mcp.tool.success", "upstream.response.success"];

pub const ERROR_TYPE: &[&str] = &["error.type"];

pub const ERROR_MESSAGE: &[&str] =
    &["error.message", "mcp.error.message", "rpc.jsonrpc.error_message"];

/// JSON-RPC codes in keys made for them.
pub const CODE: &[&str] = &["rpc.response.status_code", "rpc.jsonrpc.error_code", "mcp.error.code"];

/// Codes of any kind: JSON-RPC, HTTP or a library's word.
pub const ERROR_CODE: &[&str] = &["error.code", "mcp.tool.error_code"];

pub const HTTP_STATUS: &[&str] = &["http.response.status_code", "http.status_code", "http.status"];

pub const HTTP_METHOD: &[&str] = &["http.request.method", "http.method"];

pub const HTTP_PATH: &[&str] =
    &["url.path", "http.target", "http.path", "url.full", "http.url", "http.route"];

pub const TRANSPORT: &[&str] =
    &["network.transport", "mcp.transport", "contextforge.transport", "target.transport_type"];

pub const SERVER_NAME: &[&str] = &[
    "mcp.server.name",
    "fastmcp.server.name",
    "mastra.mcp_tool_call.server_name",
    "target.workload_name",
    "mcp.backend.name",
    "mcp.target",
];

pub const CANCELLED_ID: &[&str] = &["mcp.cancelled.request_id"];

pub const PROGRESS_TOKEN: &[&str] =
    &["mcp.progress.token", "mcp.notifications.progress.token", "mcp.progress_token"];

pub const PROGRESS_VALUE: &[&str] = &["mcp.progress.current", "mcp.notifications.progress"];

pub const PROGRESS_TOTAL: &[&str] = &["mcp.progress.total"];

/// What a model was offered.
pub const MODEL_TOOLS: &[&str] = &["gen_ai.tool.definitions", "ai.prompt.tools"];

pub const OPERATION: &str = "gen_ai.operation.name";

pub const AGENT_NAME: &str = "gen_ai.agent.name";

/// A record of this era's first version or later has no session on the wire (judgment.md §2).
pub const FIRST_MODERN: &str = "2026-07-28";

/// Keys that make a span MCP's, whatever it is called.
pub const MCP_PREFIXES: &[&str] = &["mcp.", "mcp_", "apollo.mcp."];

/// Methods that a client sends to a server.
const CLIENT_METHODS: &[&str] = &[
    "initialize",
    "server/discover",
    "tools/",
    "resources/",
    "prompts/",
    "completion/",
    "logging/",
    "subscriptions/",
    "tasks/",
];

/// Methods that a server sends to a client (before 2026-07-28).
const SERVER_METHODS: &[&str] = &["sampling/", "elicitation/", "roots/"];

use crate::model::fact::Direction;

fn among(method: &str, list: &[&str]) -> bool {
    list.iter().any(|known| match known.ends_with('/') {
        true => method.starts_with(known) && method.len() > known.len(),
        false => method == *known,
    })
}

/// Who sends requests of this method.
pub fn direction(method: &str) -> Direction {
    if among(method, CLIENT_METHODS) {
        Direction::ClientToServer
    } else if among(method, SERVER_METHODS) {
        Direction::ServerToClient
    } else {
        Direction::Either
    }
}

/// Whether the text is a method that MCP knows, so that a name may be read as one.
pub fn is_method(text: &str) -> bool {
    text == "ping"
        || is_notification(text)
        || among(text, CLIENT_METHODS)
        || among(text, SERVER_METHODS)
}

pub fn is_notification(method: &str) -> bool {
    method.starts_with("notifications/")
}

/// A span name that begins with a method: the method and what follows it (a tool, a prompt).
pub fn method_in_name(name: &str) -> Option<(&str, Option<&str>)> {
    let (first, rest) = match name.split_once(' ') {
        Some((first, rest)) => (first, Some(rest.trim())),
        None => (name, None),
    };
    is_method(first).then(|| (first, rest.filter(|rest| !rest.is_empty())))
}

/// Whether a version is of the modern era. Versions are dates, which order as text.
pub fn is_modern(version: &str) -> bool {
    let date = version.len() >= 10 && version.as_bytes()[..4].iter().all(u8::is_ascii_digit);
    date && version >= FIRST_MODERN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_and_their_directions() {
        for (method, known, want) in [
            ("tools/call", true, Direction::ClientToServer),
            ("sampling/createMessage", true, Direction::ServerToClient),
            ("ping", true, Direction::Either),
            ("tools/", false, Direction::Either),
            ("no/such", false, Direction::Either),
        ] {
            assert_eq!((is_method(method), direction(method)), (known, want), "{method}");
        }
        assert_eq!(method_in_name("tools/call add"), Some(("tools/call", Some("add"))));
        assert_eq!(method_in_name("initialize"), Some(("initialize", None)));
        assert_eq!(method_in_name("call add"), None);
    }

    #[test]
    fn eras() {
        assert!(is_modern("2026-07-28") && is_modern("2027-01-01"));
        assert!(!is_modern("2025-11-25") && !is_modern("unknown") && !is_modern(""));
    }
}
