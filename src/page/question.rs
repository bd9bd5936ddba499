//! Questions as they come over HTTP, and answers as they go.
//!
//! Promises: an error says what is wrong and what to write instead, and repeats nothing of what was
//! sent.

use serde_json::{Map, Value, json};

use super::check::{Held, Question, auth_context};
use crate::catalog::check::Answer;
use crate::catalog::grade::Change;
use crate::catalog::projection::{full_name, read_definition};
use crate::model::digest::Digest;
use crate::model::ids::{Digest16, Name};
use crate::model::policy::Context;

/// What cannot be answered, in a sentence for whoever asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong(pub String);

fn wrong<T>(says: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong(says.into()))
}

const KEYS: [&str; 6] = ["server", "tool", "digest", "definition", "auth_context", "client"];

/// Reads `{"server", "tool", "digest" or "definition", "auth_context"?, "client"?}`.
///
/// # Errors
/// Where it is not that.
pub fn read(body: &[u8]) -> Result<Question, Wrong> {
    let body: Value = serde_json::from_slice(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Wrong(format!("line {line}, column {column}: not JSON that can be read"))
    })?;
    let Value::Object(members) = body else {
        return wrong("send an object: {\"server\", \"tool\", \"digest\" or \"definition\"}");
    };
    if members.keys().any(|key| !KEYS.contains(&key.as_str())) {
        return wrong(format!("there is an unknown key; the known ones are {}", KEYS.join(", ")));
    }
    let must = |key| match text(&members, key)? {
        Some(text) if !text.is_empty() => Ok(text),
        _ => wrong(format!("`{key}` is missing or empty")),
    };
    Question::of(Raw {
        server: must("server")?,
        tool: must("tool")?,
        auth_context: text(&members, "auth_context")?,
        client: text(&members, "client")?,
        digest: text(&members, "digest")?,
        definition: members.get("definition").filter(|value| !value.is_null()).cloned(),
    })
}

fn text(members: &Map<String, Value>, key: &str) -> Result<Option<String>, Wrong> {
    match members.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => wrong(format!("`{key}` is not a text")),
    }
}

/// The parts of a question as they were sent, by either protocol.
pub struct Raw {
    pub server: String,
    pub tool: String,
    pub auth_context: Option<String>,
    pub client: Option<String>,
    pub digest: Option<String>,
    /// An object, or its JSON as a text.
    pub definition: Option<Value>,
}

impl Question {
    /// # Errors
    /// Where a part cannot be read, or two contradict each other.
    pub fn of(raw: Raw) -> Result<Self, Wrong> {
        let context = match (&raw.auth_context, &raw.client) {
            (Some(_), Some(_)) => return wrong("send `auth_context` or `client`, not both"),
            (Some(auth), None) => Some(auth_context(auth)),
            (None, Some(client)) => Some(client_context(client)?),
            (None, None) => None,
        };
        let held = match (&raw.digest, raw.definition) {
            (Some(_), Some(_)) => return wrong("send `digest` or `definition`, not both"),
            (Some(digest), None) => match Digest::parse(digest) {
                Some(digest) => Held::Digest(digest),
                None => {
                    return wrong("`digest` is none; send mcp-tool/1:sha256:<64 hex digits>");
                }
            },
            (None, Some(definition)) => definition_of(&raw.tool, definition)?,
            (None, None) => Held::Nothing,
        };
        if raw.server.is_empty() || raw.tool.is_empty() {
            return wrong("`server` or `tool` is missing or empty");
        }
        Ok(Question { server: raw.server, tool: raw.tool, context, held })
    }
}

fn client_context(text: &str) -> Result<Context, Wrong> {
    match Digest16::parse(text) {
        Some(client) => Ok(Context::Client(Some(client))),
        None => wrong("`client` is the 32 hex digits by which a lockfile names a client instance"),
    }
}

fn definition_of(tool: &str, definition: Value) -> Result<Held, Wrong> {
    let parsed = match &definition {
        Value::String(text) => serde_json::from_str(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            Wrong(format!("`definition`, line {line}, column {column}: not JSON"))
        })?,
        _ => definition,
    };
    let Ok(read) = read_definition(&parsed) else {
        return wrong("`definition` is no MCP tool: an object with at least a `name`");
    };
    if full_name(&read) != tool {
        return wrong("`definition` is of another tool than `tool` names");
    }
    Ok(Held::Definition(Box::new(read)))
}

/// The answer as JSON.
pub fn answered(question: &Question, answer: &Answer) -> Value {
    let changes = answer.drift.as_ref().map_or(&[][..], |drift| &drift.changes);
    json!({
        "answer": word(answer),
        "reason": answer.reason.as_str(),
        "expected_digest": answer.expected.as_ref().map(Digest::to_string),
        "held_digest": question.held.digest().map(Digest::to_string),
        "grade": answer.drift.as_ref().map(|drift| drift.grade.as_str()),
        "changes": changes.iter().map(change).collect::<Vec<_>>(),
        "omitted": answer.drift.as_ref().map_or(0, |drift| drift.omitted),
    })
}

/// `proceed` or `halt`.
pub fn word(answer: &Answer) -> &'static str {
    if answer.proceed { "proceed" } else { "halt" }
}

fn change(change: &Change) -> Value {
    json!({
        "pointer": Name::new(&change.pointer).as_str(),
        "kind": change.kind.as_str(),
        "grade": change.grade.as_str(),
        "old_digest": change.old.as_ref().map(Digest::to_string),
        "new_digest": change.new.as_ref().map(Digest::to_string),
    })
}
