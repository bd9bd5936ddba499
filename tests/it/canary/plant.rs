//! Puts a canary into content: every text of a recording that is no name, id, version or code.

use serde_json::{Map, Value, json};

/// What must never be seen again. Lower case and one word, so that no spelling hides it.
pub const CANARY: &str = "qzcanaryqz";

/// How a text is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// The canary stands beside and inside the text, which keeps its meaning.
    Beside,
    /// The canary is all there is.
    Instead,
}

/// Keys whose values are names, ids, versions or codes: they may be printed, or judging reads them.
/// Whatever is not here is content.
const NAMED: &[&str] = &[
    // Who, and which library.
    "service",
    "service.name",
    "service.instance.id",
    "service.namespace",
    "service.version",
    "telemetry.sdk.language",
    "telemetry.sdk.name",
    "telemetry.sdk.version",
    "runtime-id",
    "agent.name",
    "agent_name",
    "gen_ai.agent.name",
    "gen_ai.conversation.id",
    "mcp.client.name",
    "mcp.server.name",
    "fastmcp.server.name",
    "server.address",
    "session.server_name",
    // What was asked.
    "mcp.method.name",
    "rpc.method",
    "rpc.system",
    "gen_ai.operation.name",
    "gen_ai.tool.name",
    "mcp.tool.name",
    "tool.name",
    "traceloop.entity.name",
    "fastmcp.component.key",
    "resource.name",
    // By which id, session and version.
    "jsonrpc.request.id",
    "mcp.request.id",
    "mcp.cancelled.request_id",
    "mcp.progress.token",
    "mcp.session.id",
    "mcp.protocol.version",
    "id",
    // What span it is, in the words of its dialect.
    "component",
    "_dd.integration",
    "operation.name",
    "span.type",
    "openinference.span.kind",
    "traceloop.span.kind",
    "sentry.op",
    "sentry.origin",
    "mcp.transport",
    "network.transport",
    "network.protocol.name",
    "http.method",
    "http.request.method",
    "http.request.header.mcp_method",
    "http.request.header.mcp_name",
    "http.request.header.mcp_protocol_version",
    "http.request.header.mcp_session_id",
    "level",
    "target",
    // How it ended, in codes.
    "error.type",
    "error.code",
    "exception.type",
    "http.status_code",
    "rpc.response.status_code",
    "quit_reason",
];

/// Evidence attributes are names and codes but for these.
const EVIDENCE: &str = "mcp_evidence.";
const EVIDENCE_CONTENT: &[&str] = &[
    "mcp_evidence.list.definitions",
    "mcp_evidence.list.cursor",
    "mcp_evidence.list.next_cursor",
    "mcp_evidence.call.request_state",
    "mcp_evidence.session.auth_context",
    "mcp_evidence.effect.key",
    "mcp_evidence.operation.key",
];

/// The kinds of content, each with what its keys hold. The first that fits is it.
pub const KINDS: &[(&str, &[&str])] = &[
    ("bodies", &["body"]),
    ("status messages", &["status"]),
    ("arguments", &["argument", "input", "request", "param"]),
    ("results", &["result", "output", "response"]),
    ("definitions", &["definition", "description", "schema"]),
    ("errors", &["exception", "error", "stack", "reason", "cause"]),
    ("headers and addresses", &["header", "url", "user_agent", "http", "address", "host"]),
    ("messages", &["message", "msg", "prompt", "note"]),
    ("keys and cursors", &["mcp_evidence"]),
    ("everything else", &[""]),
];

/// Members of MCP's and JSON-RPC's own objects that are names, ids and codes.
const NAMED_MEMBERS: &[&str] = &[
    "jsonrpc",
    "method",
    "id",
    "name",
    "type",
    "role",
    "protocolVersion",
    "requestId",
    "progressToken",
    "taskId",
    "status",
    "resultType",
    "serverInfo",
    "clientInfo",
];

/// Members, and endings of keys, below which every name is the user's too.
const OPEN: &[&str] = &["arguments", "structuredContent", "content", "text", "value", "query"];

pub struct Plant {
    /// One of [`KINDS`]; `None` is all of them.
    pub kind: Option<&'static str>,
    pub how: How,
    /// Texts changed so far.
    pub planted: u64,
}

impl Plant {
    pub fn new(kind: Option<&'static str>, how: How) -> Self {
        Plant { kind, how, planted: 0 }
    }

    /// Changes a document of OTLP/JSON.
    pub fn document(&mut self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.document(item)),
            Value::Object(members) => self.members(members),
            _ => {}
        }
    }

    fn members(&mut self, members: &mut Map<String, Value>) {
        if let (Some(Value::String(key)), true) =
            (members.get("key"), members.contains_key("value"))
        {
            let key = key.clone();
            return self.attribute(&key, &mut members["value"]);
        }
        for (name, member) in members.iter_mut() {
            match (name.as_str(), member) {
                ("status", Value::Object(status)) => {
                    if let Some(message) = status.get_mut("message") {
                        self.any("status", message);
                    }
                }
                ("logRecords", Value::Array(records)) => {
                    for record in records.iter_mut().filter_map(Value::as_object_mut) {
                        let text = || json!({"stringValue": "a line of text"});
                        self.any("body", record.entry("body").or_insert_with(text));
                        self.members(record);
                    }
                }
                // Libraries sign with their names.
                ("scope", _) => {}
                (_, member) => self.document(member),
            }
        }
    }

    fn attribute(&mut self, key: &str, value: &mut Value) {
        let named =
            NAMED.contains(&key) || key.starts_with(EVIDENCE) && !EVIDENCE_CONTENT.contains(&key);
        if !named {
            self.any(key, value);
        }
    }

    /// An `AnyValue`, or a text that is not in one.
    fn any(&mut self, key: &str, value: &mut Value) {
        let kind = KINDS.iter().find(|(_, words)| words.iter().any(|word| key.contains(word)));
        if self.kind.is_some_and(|wanted| kind.is_none_or(|(kind, _)| *kind != wanted)) {
            return;
        }
        let open = OPEN.iter().any(|ending| key.ends_with(ending)) || key.contains(".argument.");
        match value {
            Value::String(text) => *text = self.text(text, open),
            Value::Object(members) => {
                for (name, member) in members.iter_mut() {
                    match (name.as_str(), member) {
                        ("stringValue", Value::String(text)) => *text = self.text(text, open),
                        ("arrayValue" | "kvlistValue" | "values" | "value", member) => {
                            self.any(key, member);
                        }
                        _ => {}
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.any(key, item)),
            _ => {}
        }
    }

    fn text(&mut self, text: &str, open: bool) -> String {
        if text.is_empty() {
            return String::new();
        }
        self.planted += 1;
        match serde_json::from_str::<Value>(text) {
            Ok(mut json @ (Value::Object(_) | Value::Array(_))) => {
                self.leaves(&mut json, open);
                json.to_string()
            }
            Ok(Value::String(inner)) => Value::String(self.plain(&inner)).to_string(),
            // Numbers and flags written as text stay readable.
            Ok(_) if self.how == How::Beside => text.to_owned(),
            _ => self.plain(text),
        }
    }

    /// The texts inside JSON, and below an open member one more of them.
    fn leaves(&self, json: &mut Value, open: bool) {
        match json {
            Value::String(text) => *text = self.plain(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.leaves(item, open)),
            Value::Object(members) => {
                for (name, member) in members.iter_mut() {
                    let named = !open && NAMED_MEMBERS.contains(&name.as_str());
                    if !named || member.is_array() {
                        self.leaves(member, open || OPEN.contains(&name.as_str()));
                    }
                }
                if open && self.how == How::Beside {
                    members.insert(format!("{CANARY}key"), CANARY.into());
                }
            }
            _ => {}
        }
    }

    fn plain(&self, text: &str) -> String {
        if self.how == How::Instead {
            return CANARY.to_owned();
        }
        // Inside what is quoted in a printed object, and at the end.
        let mut out = String::new();
        for (at, c) in text.char_indices() {
            out.push(c);
            let quoted = ["text='", "text: \"", "message: \"", "description='", "reason: Some(\""];
            if quoted.iter().any(|before| text[..at + c.len_utf8()].ends_with(before)) {
                out.push_str(CANARY);
            }
        }
        format!("{out} {CANARY}")
    }
}
