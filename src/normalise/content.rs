//! What contents say: arguments, results and listings, read in memory and reduced to hashes, flags
//! and definitions. Nothing of their text leaves this module but names.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::item::parse;
use crate::catalog::projection::read_definition;
use crate::model::fact::{Arguments, Definitions, Structured};
use crate::model::ids::{Digest16, Name};
use crate::model::words::{ResultType, TaskStatus};

/// Argument names that are hashed; a call with more is known to be incomplete.
const MAX_NAMES: usize = 128;

/// Tools that are read from one listing.
const MAX_TOOLS: usize = 2048;

/// Structured content larger than this as text is not kept for comparison.
const MAX_STRUCTURED: usize = 64 * 1024;

/// JSON with sorted members and one spelling of numbers, to be hashed, not shown.
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut keys: Vec<&String> = members.keys().collect();
            keys.sort();
            out.push('{');
            for key in keys {
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(&members[key], out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < 9e15 => {
                out.push_str(&(float as i64).to_string());
            }
            _ => out.push_str(&number.to_string()),
        },
        Value::Null | Value::Bool(_) | Value::String(_) => out.push_str(&value.to_string()),
    }
}

/// Arguments as a digest and hashed names. Null stands for no arguments at all.
pub fn arguments(value: &Value) -> Option<Arguments> {
    match value {
        Value::Object(members) => Some(named_arguments(members, true)),
        Value::Null => Some(named_arguments(&Map::new(), true)),
        // A bare value (single-argument tools of some frameworks): comparable, names unknown.
        other => Some(Arguments {
            digest: Digest16::of(&[canonical(other).as_bytes()]),
            names: Vec::new(),
            complete: false,
        }),
    }
}

/// As [`arguments`], from members that may not be all there are.
pub fn named_arguments(members: &Map<String, Value>, complete: bool) -> Arguments {
    let names: BTreeSet<u64> = members.keys().map(|name| Arguments::name_hash(name)).collect();
    let complete = complete && names.len() <= MAX_NAMES;
    let text: Vec<String> = members
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let parts: Vec<&[u8]> = text.iter().map(|member| member.as_bytes()).collect();
    Arguments {
        digest: Digest16::of(&parts),
        names: names.into_iter().take(MAX_NAMES).collect(),
        complete,
    }
}

/// What a JSON-RPC answer or a result says.
#[derive(Default)]
pub struct Said {
    /// There is a result, whatever it says.
    pub result: bool,
    pub is_error: Option<bool>,
    /// The result has the form of a tool's: a list of content items.
    pub content: bool,
    /// Digest of what the tool gave, where all of it is there.
    pub given: Option<Digest16>,
    pub structured: Option<Arc<Structured>>,
    /// The text begins like an error.
    pub error_text: bool,
    pub result_type: Option<ResultType>,
    pub request_state: Option<Digest16>,
    pub task_id: Option<Name>,
    pub task_status: Option<TaskStatus>,
    /// JSON-RPC error code of the envelope.
    pub code: Option<i64>,
    pub version: Option<String>,
    pub capabilities: Option<Vec<Name>>,
    pub server_name: Option<Name>,
}

/// Reads an answer: a bare result, an envelope, a batch of one, or content items alone.
pub fn answer(value: &Value) -> Said {
    match value {
        Value::Object(members) => {
            if let Some(error) = members.get("error").and_then(Value::as_object)
                && let Some(code) = error.get("code").and_then(Value::as_i64)
            {
                return Said { code: Some(code), ..Said::default() };
            }
            match members.get("result") {
                Some(inner) if !members.contains_key("content") => {
                    let mut said = answer(&unwrap_text(inner));
                    said.result = true;
                    // Some instrumentations put the flag beside the result.
                    said.is_error = said.is_error.or_else(|| error_flag(members));
                    said
                }
                _ => result(members),
            }
        }
        Value::Array(items) => Said {
            result: true,
            given: given(items, None),
            error_text: items.first().is_some_and(begins_like_an_error),
            ..Said::default()
        },
        Value::Null => Said::default(),
        other => Said {
            result: true,
            error_text: other.as_str().is_some_and(is_error_text),
            ..Said::default()
        },
    }
}

fn unwrap_text(value: &Value) -> std::borrow::Cow<'_, Value> {
    match value.as_str().and_then(parse) {
        Some(parsed) => std::borrow::Cow::Owned(parsed),
        None => std::borrow::Cow::Borrowed(value),
    }
}

fn error_flag(members: &Map<String, Value>) -> Option<bool> {
    ["isError", "is_error"].iter().find_map(|key| members.get(*key)?.as_bool())
}

fn result(members: &Map<String, Value>) -> Said {
    let text = |keys: &[&str]| keys.iter().find_map(|key| members.get(*key)?.as_str());
    let task = members.get("task").and_then(Value::as_object);
    let in_task = |key: &str| task.and_then(|task| task.get(key)).and_then(Value::as_str);
    let structured = members.get("structuredContent").or(members.get("structured_content"));
    let content = members.get("content").and_then(Value::as_array);
    Said {
        result: true,
        is_error: error_flag(members),
        content: content.is_some(),
        given: content.and_then(|items| given(items, structured)),
        structured: structured.and_then(keep_structured),
        error_text: content.and_then(|c| c.first()).is_some_and(begins_like_an_error),
        result_type: text(&["resultType", "result_type"]).and_then(ResultType::parse),
        request_state: text(&["requestState"]).map(|state| Digest16::of(&[state.as_bytes()])),
        task_id: text(&["taskId"]).or_else(|| in_task("taskId")).and_then(Name::some),
        task_status: text(&["status"])
            .filter(|_| members.contains_key("taskId"))
            .or_else(|| in_task("status"))
            .and_then(TaskStatus::parse),
        version: text(&["protocolVersion"]).map(str::to_owned),
        capabilities: members.get("capabilities").map(capabilities),
        server_name: server_name(members),
        ..Said::default()
    }
}

fn server_name(members: &Map<String, Value>) -> Option<Name> {
    let meta = members.get("_meta").or(members.get("meta")).and_then(Value::as_object);
    let info = members
        .get("serverInfo")
        .or_else(|| meta?.get("io.modelcontextprotocol/serverInfo"))?
        .as_object()?;
    Name::some(info.get("name")?.as_str()?)
}

/// Digest of a tool's content items and structured content. Members that say nothing, and what a
/// library adds of its own (`_meta`), are left out; a list of anything else has none.
fn given(items: &[Value], structured: Option<&Value>) -> Option<Digest16> {
    let told = |(name, value): &(&String, &Value)| {
        !value.is_null() && !matches!(name.as_str(), "_meta" | "meta")
    };
    let mut texts = Vec::new();
    for item in items {
        let members = item.as_object().filter(|item| item.contains_key("type"))?;
        let told = members.iter().filter(told).map(|(name, value)| (name.clone(), value.clone()));
        texts.push(canonical(&Value::Object(told.collect())));
    }
    let structured = structured.filter(|value| !value.is_null());
    texts.push(structured.map(canonical).unwrap_or_default());
    let parts: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
    (!items.is_empty() || structured.is_some()).then(|| Digest16::of(&parts))
}

fn keep_structured(value: &Value) -> Option<Arc<Structured>> {
    if value.is_null() || value.to_string().len() > MAX_STRUCTURED {
        return None;
    }
    Some(Arc::new(Structured(value.clone())))
}

fn begins_like_an_error(item: &Value) -> bool {
    match item {
        Value::String(text) => is_error_text(text),
        Value::Object(item) => item.get("text").and_then(Value::as_str).is_some_and(is_error_text),
        _ => false,
    }
}

/// Beginnings that only errors have.
const ERROR_BEGINNINGS: &[&str] = &[
    "error:",
    "error calling",
    "error executing",
    "error while",
    "error during",
    "error in ",
    "error processing",
    "error fetching",
    "an error occurred",
    "exception:",
    "traceback (most recent call last)",
    "fatal:",
    "failed to ",
    "failure:",
    "permission denied",
    "access denied",
    "unauthorized",
    "forbidden",
    "internal server error",
    "input validation error",
    "mcp error ",
];

fn is_error_text(text: &str) -> bool {
    let head: String = text.trim_start().chars().take(64).flat_map(char::to_lowercase).collect();
    ERROR_BEGINNINGS.iter().any(|beginning| head.starts_with(beginning))
}

/// Capabilities as their dotted paths: `tools`, `tools.listChanged`. False members are left out.
pub fn capabilities(value: &Value) -> Vec<Name> {
    let mut names = BTreeSet::new();
    for (group, members) in value.as_object().into_iter().flatten() {
        if members.is_null() || *members == Value::Bool(false) {
            continue;
        }
        names.insert(Name::new(group));
        for (member, on) in members.as_object().into_iter().flatten() {
            if !on.is_null() && *on != Value::Bool(false) {
                names.insert(Name::new(&format!("{group}.{member}")));
            }
        }
    }
    names.into_iter().take(256).collect()
}

/// A page of tools as its answer shows it.
pub struct Page {
    pub definitions: Arc<Definitions>,
    /// `None`: nothing said of a cursor. `Some(None)`: it is known that there is none.
    pub next_cursor: Option<Option<Digest16>>,
    pub ttl_ms: Option<u64>,
}

/// Digest by which cursors are compared.
pub fn cursor(text: &str) -> Digest16 {
    Digest16::of(&[b"cursor", text.as_bytes()])
}

/// Reads a `tools/list` result (in an envelope or not) or a bare array of tools. `None` where there
/// are no tools to be seen.
pub fn page(value: &Value) -> Option<Page> {
    match value {
        Value::Object(members) => match members.get("tools").and_then(Value::as_array) {
            Some(tools) => Some(Page {
                definitions: definitions(tools),
                next_cursor: Some(match members.get("nextCursor") {
                    Some(Value::String(text)) => Some(cursor(text)),
                    _ => None,
                }),
                ttl_ms: members.get("ttlMs").and_then(Value::as_u64),
            }),
            None => page(&unwrap_text(members.get("result")?)),
        },
        Value::Array(tools) => {
            let definitions = definitions(tools);
            (!definitions.tools.is_empty() || tools.is_empty()).then_some(Page {
                definitions,
                next_cursor: None,
                ttl_ms: None,
            })
        }
        _ => None,
    }
}

/// Tool definitions out of a list; what is none is passed over.
pub fn definitions(tools: &[Value]) -> Arc<Definitions> {
    let read = |tool: &Value| read_definition(&unwrap_text(tool)).ok();
    Arc::new(Definitions::new(tools.iter().take(MAX_TOOLS).filter_map(read).collect()))
}

/// The flag at the end of a result's Python text: what stands before it is a tool's own.
pub fn flag_in_repr(text: &str) -> Option<bool> {
    if !text.contains("content=[") {
        return None;
    }
    let tail = ["isError=", "is_error="].iter().find_map(|key| Some(text.rsplit_once(key)?.1))?;
    match tail {
        _ if tail.starts_with("True") => Some(true),
        _ if tail.starts_with("False") => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_compare_by_meaning() {
        let digest = |value: Value| arguments(&value).map(|a| (a.digest, a.names));
        assert_eq!(digest(json!({"a": 1, "b": 2})), digest(json!({"b": 2.0, "a": 1})));
        assert_eq!(digest(json!(null)), digest(json!({})));
        assert_ne!(digest(json!({"a": 1})), digest(json!({"a": 2})));
        assert!(!arguments(&json!("Oslo")).expect("a bare value").complete);
    }

    #[test]
    fn answers_in_every_wrapping() {
        let result = json!({"content": [{"type": "text", "text": "division by zero"}],
                            "isError": true});
        for value in [
            result.clone(),
            json!({"jsonrpc": "2.0", "id": 1, "result": result}),
            json!({"result": result.to_string()}),
            json!({"result": "x", "is_error": true}),
        ] {
            let said = answer(&value);
            assert_eq!((said.result, said.is_error), (true, Some(true)), "{value}");
        }
        let said = answer(&json!({"error": {"code": -32601, "message": "no"}}));
        assert_eq!((said.result, said.code), (false, Some(-32601)));
        assert!(answer(&json!({"content": [{"text": "Error calling tool: no"}]})).error_text);
        assert!(!answer(&json!({"content": [{"text": "Error rate is 2 %"}]})).error_text);
    }

    #[test]
    fn pages_know_their_cursor() {
        let tool = json!({"name": "t", "inputSchema": {"type": "object"}});
        let next = |value: Value| page(&value).map(|p| (p.definitions.tools.len(), p.next_cursor));
        assert_eq!(next(json!({"tools": [tool]})), Some((1, Some(None))));
        assert_eq!(next(json!({"tools": [tool], "nextCursor": null})), Some((1, Some(None))));
        let cursor = Some(Some(Some(cursor("p2"))));
        let shown = next(json!({"result": {"tools": [tool], "nextCursor": "p2"}}));
        assert_eq!(shown.map(|p| p.1), cursor);
        assert_eq!(next(json!([tool, "noise"])), Some((1, None)));
        assert_eq!(next(json!(["noise"])), None);
        assert_eq!(next(json!({"content": []})), None);
    }

    #[test]
    fn capabilities_are_dotted_paths() {
        let value = json!({"tools": {"listChanged": true}, "prompts": {"listChanged": false},
                           "logging": null});
        let names: Vec<String> = capabilities(&value).iter().map(Name::to_string).collect();
        assert_eq!(names, ["prompts", "tools", "tools.listChanged"]);
    }
}
