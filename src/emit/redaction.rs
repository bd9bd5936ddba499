//! Redaction of forwarded telemetry, as configured: content (arguments, results, messages, tool
//! definitions) and `mcp_evidence.list.definitions`, each kept, digested or dropped.

use sha2::{Digest, Sha256};

use crate::emit::Redact;
use crate::model::attributes::LIST_DEFINITIONS;
use crate::wire::scan::{Attrs, ValueRef};
use crate::wire::splice::{Place, Redaction};

/// What is configured under `redaction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    pub content: Redact,
    pub definitions: Redact,
}

/// Keys that hold content, in the conventions and in the dialects.
const CONTENT: &[&str] = &[
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result",
    "gen_ai.tool.definitions",
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.system_instructions",
    "gen_ai.prompt",
    "gen_ai.completion",
    "gen_ai.event.content",
    "mcp.tool.arguments",
    "mcp.tool.result",
    "mcp.request.value",
    "mcp.response.value",
    "apollo.mcp.tool_arguments",
    "apollo.mcp.tool_result",
    "spring.ai.tool.call.arguments",
    "spring.ai.tool.call.result",
    "ai.toolCall.args",
    "ai.toolCall.result",
    "ai.prompt",
    "ai.response.text",
    "input.value",
    "output.value",
    "traceloop.entity.input",
    "traceloop.entity.output",
    "tool_arguments",
    "tool_response",
    "all_messages_events",
    "pydantic_ai.all_messages",
    "final_result",
    "request_data",
    "response_data",
];

/// Families of such keys.
const CONTENT_PREFIXES: &[&str] = &[
    "mcp.request.argument.",
    "gen_ai.prompt.",
    "gen_ai.completion.",
    "llm.input_messages.",
    "llm.output_messages.",
    "llm.tools.",
    "ai.prompt.",
];

/// Members by which a log record's body is a message of a model or a tool.
const MESSAGE_MEMBERS: &[&str] =
    &["content", "message", "messages", "tool_calls", "arguments", "result", "role"];

impl Plan {
    /// Whether the plan leaves everything as it came.
    pub fn keeps_all(self) -> bool {
        self.content == Redact::Keep && self.definitions == Redact::Keep
    }

    /// What becomes of one value.
    pub fn decide(self, place: Place<'_>, value: &ValueRef<'_>) -> Redaction {
        let action = match place {
            Place::Attribute(LIST_DEFINITIONS) => self.definitions,
            Place::Attribute(key) if is_content(key) => self.content,
            Place::Body if is_message(value) => self.content,
            Place::Attribute(_) | Place::Body => Redact::Keep,
        };
        match action {
            Redact::Keep => Redaction::Keep,
            Redact::Drop => Redaction::Drop,
            Redact::Digest => Redaction::Replace(digest(value)),
        }
    }
}

/// Whether an attribute holds arguments, results, messages or tool definitions.
pub fn is_content(key: &str) -> bool {
    CONTENT.contains(&key) || CONTENT_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

fn is_message(body: &ValueRef<'_>) -> bool {
    let ValueRef::KvList(members) = body else { return false };
    members.clone().any(|member| MESSAGE_MEMBERS.contains(&&*member.key.lossy()))
}

/// `sha256:<hex>` over the text of a string, else over a canonical walk of the value.
fn digest(value: &ValueRef<'_>) -> String {
    let mut hash = Sha256::new();
    match value {
        ValueRef::Str(text) => hash.update(text.as_bytes()),
        ValueRef::NotUtf8(bytes) | ValueRef::Bytes(bytes) => hash.update(bytes),
        other => walk(&mut hash, other, 0),
    }
    let hex: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// The scan refuses messages nested deeper than this; what is below is not looked at.
const MAX_DEPTH: usize = 100;

fn walk(hash: &mut Sha256, value: &ValueRef<'_>, depth: usize) {
    let mut put = |tag: &[u8], bytes: &[u8]| {
        hash.update(tag);
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    match value {
        ValueRef::Str(text) => put(b"s", text.as_bytes()),
        ValueRef::NotUtf8(bytes) => put(b"s", bytes),
        ValueRef::Bytes(bytes) => put(b"y", bytes),
        ValueRef::Bool(value) => put(b"b", &[u8::from(*value)]),
        ValueRef::Int(value) => put(b"i", &value.to_be_bytes()),
        ValueRef::Double(value) => put(b"d", &value.to_bits().to_be_bytes()),
        ValueRef::Empty => put(b"e", &[]),
        ValueRef::Array(_) | ValueRef::KvList(_) if depth >= MAX_DEPTH => put(b"x", &[]),
        ValueRef::Array(items) => {
            put(b"[", &[]);
            items.clone().for_each(|item| walk(hash, &item, depth + 1));
            hash.update(b"]");
        }
        ValueRef::KvList(members) => {
            put(b"{", &[]);
            walk_members(hash, members.clone(), depth);
            hash.update(b"}");
        }
    }
}

fn walk_members(hash: &mut Sha256, members: Attrs<'_>, depth: usize) {
    for member in members {
        hash.update((member.key.as_bytes().len() as u64).to_be_bytes());
        hash.update(member.key.as_bytes());
        walk(hash, &member.value, depth + 1);
    }
}
