//! Tool definitions out of the JSON in which programs hand them around.
//!
//! Promises: total; whatever is not a tool is counted, never guessed at.

use super::projection::read_definition;
use crate::model::digest::Definition;
use serde_json::{Map, Value};

/// What a text said about tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// The tools in the order of the text; the same name may stand twice.
    pub tools: Vec<Definition>,
    /// The `nextCursor` of the last page, where one was left.
    pub next_cursor: Option<String>,
    /// How many pages there were.
    pub pages: usize,
    /// Entries that are not tool definitions.
    pub unreadable: usize,
}

/// Why a text holds no listing. Carries no content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAListing {
    /// Not JSON, nested deeper than 128, or a number outside the range of a double.
    NotJson {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// JSON, but neither a `tools` array nor anything that holds one.
    NoTools,
    /// A JSON-RPC response that carries an error instead of a result.
    ErrorAnswer,
}

impl std::fmt::Display for NotAListing {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotAListing::NotJson { line, column } => write!(
                out,
                "line {line}, column {column}: not JSON that can be read (nested at most 128 deep, \
                 numbers within the range of a double, no lone surrogates)"
            ),
            NotAListing::NoTools => write!(
                out,
                "no tools in it; expected the answer of `tools/list`: {{\"tools\": [...]}}, the \
                 JSON-RPC response around it, or the bare array"
            ),
            NotAListing::ErrorAnswer => {
                write!(out, "the answer is a JSON-RPC error; list the tools again")
            }
        }
    }
}

/// The tools in `text`: a bare array, a `tools/list` result, a JSON-RPC response, a batch or a
/// sequence of those (pages), or definitions as a model was offered them.
///
/// # Errors
/// [`NotAListing`] where no such thing is found.
pub fn read_listing(text: &str) -> Result<Listing, NotAListing> {
    let mut listing = Listing::default();
    for page in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        let page = page.map_err(|error| NotAListing::NotJson {
            line: error.line().max(1),
            column: error.column().max(1),
        })?;
        add_page(&mut listing, &page, 0)?;
    }
    if listing.pages == 0 { Err(NotAListing::NoTools) } else { Ok(listing) }
}

/// The tools in `text`, for callers that need nothing else.
///
/// # Errors
/// As [`read_listing`].
pub fn tools_from_json(text: &str) -> Result<Vec<Definition>, NotAListing> {
    read_listing(text).map(|listing| listing.tools)
}

fn add_page(listing: &mut Listing, page: &Value, depth: usize) -> Result<(), NotAListing> {
    match page {
        Value::Array(items) if depth < 2 && items.iter().any(is_page) => {
            items.iter().try_for_each(|item| add_page(listing, item, depth + 1))
        }
        Value::Array(items) => {
            add_tools(listing, items);
            listing.next_cursor = None;
            Ok(())
        }
        Value::Object(members) => add_object(listing, members, depth),
        _ => Err(NotAListing::NoTools),
    }
}

fn add_object(
    listing: &mut Listing,
    members: &Map<String, Value>,
    depth: usize,
) -> Result<(), NotAListing> {
    if let Some(Value::Array(tools)) = members.get("tools") {
        add_tools(listing, tools);
        listing.next_cursor =
            members.get("nextCursor").and_then(Value::as_str).map(ToOwned::to_owned);
        return Ok(());
    }
    if let Some(result) = members.get("result").filter(|_| depth < 4) {
        return add_page(listing, result, depth + 1);
    }
    Err(if members.contains_key("error") { NotAListing::ErrorAnswer } else { NotAListing::NoTools })
}

fn add_tools(listing: &mut Listing, tools: &[Value]) {
    listing.pages += 1;
    for tool in tools {
        // Some instrumentations put each definition into the array as a text of its own.
        let parsed = tool.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        match read_definition(parsed.as_ref().unwrap_or(tool)) {
            Ok(definition) => listing.tools.push(definition),
            Err(_) => listing.unreadable += 1,
        }
    }
}

fn is_page(value: &Value) -> bool {
    let Some(members) = value.as_object() else { return false };
    !members.contains_key("name")
        && (members.get("tools").is_some_and(Value::is_array) || members.contains_key("result"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: &str = r#"{"name":"t","inputSchema":{"type":"object"}}"#;

    #[test]
    fn every_form_is_read() {
        for (text, pages, cursor) in [
            (format!("[{TOOL}]"), 1, None),
            (format!(r#"{{"tools":[{TOOL}],"nextCursor":"c"}}"#), 1, Some("c")),
            (format!(r#"{{"tools":[{TOOL}],"nextCursor":""}}"#), 1, Some("")),
            (format!(r#"{{"tools":[{TOOL}],"nextCursor":null}}"#), 1, None),
            (format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{TOOL}]}}}}"#), 1, None),
            (
                format!(
                    r#"[{{"id":1,"result":{{"tools":[{TOOL}],"nextCursor":"c"}}}},
                {{"id":2,"result":{{"tools":[]}}}}]"#
                ),
                2,
                None,
            ),
            (format!("{{\"tools\":[{TOOL}],\"nextCursor\":\"c\"}}\n{{\"tools\":[]}}\n"), 2, None),
            (format!("[{}]", serde_json::Value::from(TOOL)), 1, None),
        ] {
            let listing = read_listing(&text).unwrap();
            assert_eq!(listing.tools.len(), 1, "{text}");
            assert_eq!(listing.pages, pages, "{text}");
            assert_eq!(listing.next_cursor.as_deref(), cursor, "{text}");
        }
    }

    #[test]
    fn what_is_not_a_tool_is_counted() {
        let listing = read_listing(r#"[1, null, "x", {}, {"name": 5}, {"name": "t"}]"#).unwrap();
        assert_eq!((listing.tools.len(), listing.unreadable), (1, 5));
    }

    #[test]
    fn what_is_not_a_listing_is_refused_with_its_place() {
        let refuse = |text: &str| read_listing(text).unwrap_err();
        assert_eq!(refuse(""), NotAListing::NoTools);
        assert_eq!(refuse("5"), NotAListing::NoTools);
        assert_eq!(refuse(r#"{"tools": 1}"#), NotAListing::NoTools);
        assert_eq!(refuse(r#"{"error": {"code": -32601}}"#), NotAListing::ErrorAnswer);
        assert_eq!(refuse("[\n1e999]"), NotAListing::NotJson { line: 2, column: 5 });
        assert!(matches!(refuse(r#"["\ud800"]"#), NotAListing::NotJson { .. }));
        assert!(matches!(refuse(&"[".repeat(100_000)), NotAListing::NotJson { .. }));
    }
}
