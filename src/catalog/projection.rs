//! Tool definitions: read from any form in which they are met, projected by `mcp-tool/1`.
//!
//! Promises: reading is total and never panics; two definitions that differ only in key order,
//! spelling of numbers, `icons`, `_meta`, unknown or null members have the same digest.

use super::digest::{canonical_text, text_digest, utf16_order, value_digest};
use crate::model::digest::{Definition, Digest, Projection};
use crate::model::ids::Name;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The members of a tool that make up its contract, in canonical order.
pub const MEMBERS: [&str; 7] =
    ["annotations", "description", "execution", "inputSchema", "name", "outputSchema", "title"];

/// How deep a definition may nest. A reader of JSON text stops at 128; this leaves room for what
/// stands around a definition, and bounds every recursion over one.
const MAX_DEPTH: usize = 120;

/// The largest magnitude up to which every integer survives a reader that knows only doubles.
const SAFE_INTEGER: u64 = 1 << 53;

/// Why something is not a tool definition. Carries no content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotATool {
    /// Not a JSON object.
    NotAnObject,
    /// No `name`, or one that is not a string.
    NoName,
    /// The definition cannot be brought into canonical form.
    NotCanonical,
}

/// Reads an MCP `Tool`, or what a model was offered (`{"type":"function",…}` flat or nested,
/// `parameters` or `input_schema` for the input schema).
///
/// # Errors
/// [`NotATool`] where there is no object with a string `name`.
pub fn read_definition(tool: &Value) -> Result<Definition, NotATool> {
    let tool = tool.as_object().ok_or(NotATool::NotAnObject)?;
    let (body, offered) = match tool.get("function").and_then(Value::as_object) {
        Some(function) => (function, true),
        None => (tool, tool.get("type").and_then(Value::as_str).is_some_and(is_offer)),
    };
    let name = body.get("name").and_then(Value::as_str).ok_or(NotATool::NoName)?;
    if !nests_within(body.values(), MAX_DEPTH) {
        return Err(NotATool::NotCanonical);
    }
    let projected = project(body, offered);
    let text = canonical_text(&projected).ok_or(NotATool::NotCanonical)?;
    Ok(Definition {
        name: Name::new(name),
        digest: projected.get("inputSchema").map(|_| text_digest(&text)),
        unsafe_number: unsafe_number(&projected).is_some(),
        projected: Arc::new(Projection::new(name, text)),
    })
}

/// The digest of each member of a projection that is present.
pub fn member_digests(members: &Value) -> BTreeMap<&'static str, Digest> {
    let present = MEMBERS.into_iter().filter_map(|member| {
        let digest = value_digest(members.get(member)?)?;
        Some((member, digest))
    });
    present.collect()
}

/// The digest over name, description and input schema alone: what a model is shown of a tool, so
/// that a server's listing and `gen_ai.tool.definitions` can be compared. An empty description
/// counts as none, for frameworks fill it in. `None` without an input schema.
pub fn offer_digest(tool: &Definition) -> Option<Digest> {
    tool.digest.as_ref()?;
    let mut offer = tool.projected.value();
    offer.as_object_mut()?.retain(|member, value| {
        ["name", "description", "inputSchema"].contains(&member.as_str())
            && value.as_str() != Some("")
    });
    value_digest(&offer)
}

/// The digest of the whole registry: the projections in UTF-16 order of their names, ties by tool
/// digest. `None` where a definition has no digest; an empty registry has one.
pub fn registry_digest(tools: &[Definition]) -> Option<Digest> {
    let mut keyed = Vec::with_capacity(tools.len());
    for tool in tools {
        let digest = tool.digest.as_ref()?;
        keyed.push((full_name(tool), digest, tool.projected.text()));
    }
    keyed.sort_by(|a, b| utf16_order(a.0, b.0).then(a.1.cmp(b.1)));
    let texts: Vec<&str> = keyed.iter().map(|(_, _, text)| *text).collect();
    Some(text_digest(&format!("[{}]", texts.join(","))))
}

/// The tool's name as the server gave it, neither capped nor escaped.
pub fn full_name(tool: &Definition) -> &str {
    tool.projected.name()
}

/// The names that stand more than once in one listing, sorted (`duplicate_tool_name`).
pub fn duplicate_names(tools: &[Definition]) -> Vec<&str> {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for tool in tools {
        *count.entry(full_name(tool)).or_default() += 1;
    }
    count.into_iter().filter(|(_, times)| *times > 1).map(|(name, _)| name).collect()
}

fn is_offer(kind: &str) -> bool {
    matches!(kind, "function" | "custom" | "tool" | "extension")
}

fn nests_within<'a>(mut values: impl Iterator<Item = &'a Value>, depth: usize) -> bool {
    values.all(|value| match value {
        Value::Array(items) => depth > 0 && nests_within(items.iter(), depth - 1),
        Value::Object(members) => depth > 0 && nests_within(members.values(), depth - 1),
        _ => true,
    })
}

fn project(tool: &Map<String, Value>, offered: bool) -> Value {
    let mut projection = Map::new();
    for member in MEMBERS {
        if let Some(value) = tool.get(member).filter(|value| !value.is_null()) {
            projection.insert(member.to_owned(), value.clone());
        }
    }
    if offered && !projection.contains_key("inputSchema") {
        let schema = tool.get("parameters").or_else(|| tool.get("input_schema"));
        if let Some(schema) = schema.filter(|schema| !schema.is_null()) {
            projection.insert("inputSchema".to_owned(), schema.clone());
        }
    }
    Value::Object(projection)
}

/// The pointer of the first integer beyond 2^53 (`unsafe_number`).
///
/// By value, as RFC 8785 sees numbers: `1e20` and `100000000000000000000` are one number.
pub fn unsafe_number(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => is_unsafe(number).then(String::new),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(at, item)| Some(format!("/{at}{}", unsafe_number(item)?))),
        Value::Object(members) => members
            .iter()
            .find_map(|(key, item)| Some(format!("/{}{}", escape(key), unsafe_number(item)?))),
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}

fn is_unsafe(number: &serde_json::Number) -> bool {
    if let Some(integer) = number.as_i64() {
        return integer.unsigned_abs() > SAFE_INTEGER;
    }
    match number.as_u64() {
        Some(integer) => integer > SAFE_INTEGER,
        // A double beyond 2^53 has no fraction any more.
        None => number.as_f64().is_some_and(|double| double.abs() > 9_007_199_254_740_992.0),
    }
}

/// One reference token of a JSON pointer (RFC 6901).
pub fn escape(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::listing::tools_from_json;
    use serde_json::json;

    const TICKETS: &str = r#"[{"name": "create_ticket", "description": "Open a ticket.",
        "inputSchema": {"type": "object", "properties": {"title": {"type": "string"}},
        "required": ["title"]}}, {"name": "close_ticket", "description": "Close a ticket.",
        "inputSchema": {"type": "object"}}]"#;

    fn digest(tool: Value) -> Option<Digest> {
        read_definition(&tool).unwrap().digest
    }

    fn registry(text: &str) -> String {
        registry_digest(&tools_from_json(text).unwrap()).unwrap().to_string()
    }

    #[test]
    fn published_registry_digests_come_out() {
        let want = "mcp-tool/1:sha256:\
                    ab59445dfeb6f5922d9956e1b814a79556dcdccb5ff1ab30eb301e933df3e0aa";
        assert_eq!(registry(TICKETS), want);
    }

    #[test]
    fn order_icons_meta_null_and_spelling_do_not_count() {
        let plain = json!({"name": "t", "inputSchema": {"type": "object", "maxProperties": 1}});
        let other = r#"{"inputSchema": {"maxProperties": 1.0e0, "type": "object"}, "title": null,
            "icons": [{"src": "x"}], "_meta": {"a": 1}, "unknown": true, "name": "\u0074"}"#;
        assert_eq!(digest(plain.clone()), digest(serde_json::from_str(other).unwrap()));
        for (member, value) in [
            ("title", json!("T")),
            ("description", json!("")),
            ("outputSchema", json!({})),
            ("annotations", json!({"readOnlyHint": true})),
            ("execution", json!({"taskSupport": "optional"})),
        ] {
            let mut changed = plain.clone();
            changed[member] = value;
            assert_ne!(digest(plain.clone()), digest(changed), "{member}");
        }
    }

    #[test]
    fn registry_order_is_that_of_utf16_and_ties_go_by_digest() {
        let tool =
            |name: &str, text: &str| json!({"name": name, "description": text, "inputSchema": {}});
        let listing = [tool("\u{fb33}", ""), tool("\u{1F600}", ""), tool("a", "1"), tool("a", "2")];
        let mut backwards = listing.to_vec();
        backwards.reverse();
        let text = |tools: &[Value]| Value::Array(tools.to_vec()).to_string();
        assert_eq!(registry(&text(&listing)), registry(&text(&backwards)));
        assert_eq!(duplicate_names(&tools_from_json(&text(&listing)).unwrap()), ["a"]);
    }

    #[test]
    fn without_an_input_schema_there_is_no_digest() {
        let tools = tools_from_json(r#"[{"name": "a", "inputSchema": null}]"#).unwrap();
        assert_eq!(tools[0].digest, None);
        assert_eq!(registry_digest(&tools), None);
        assert_eq!(offer_digest(&tools[0]), None);
        assert!(registry_digest(&[]).is_some());
    }

    #[test]
    fn integers_beyond_two_to_the_53_are_found_by_pointer() {
        let at = |number: &str| {
            let text = format!(r#"{{"name": "t", "inputSchema": {{"a/b": [0, {number}]}}}}"#);
            let tool: Value = serde_json::from_str(&text).unwrap();
            let found = unsafe_number(&tool);
            assert_eq!(read_definition(&tool).unwrap().unsafe_number, found.is_some());
            found
        };
        for number in [
            "9007199254740993",
            "-9007199254740993",
            "18446744073709551615",
            "100000000000000000000",
            "1e300",
        ] {
            assert_eq!(at(number).as_deref(), Some("/inputSchema/a~1b/1"), "{number}");
        }
        for number in ["9007199254740992", "-9007199254740992", "0.1", "1e15"] {
            assert_eq!(at(number), None, "{number}");
        }
    }

    #[test]
    fn what_a_model_was_offered_compares_with_what_the_server_listed() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let listed = json!({"name": "t", "title": "T", "description": "d", "inputSchema": schema});
        let listed = read_definition(&listed).unwrap();
        for offered in [
            json!({"type": "function", "name": "t", "description": "d", "parameters": schema}),
            json!({"type": "function",
                "function": {"name": "t", "description": "d", "parameters": schema}}),
            json!({"type": "custom", "name": "t", "description": "d", "input_schema": schema}),
        ] {
            let offered = read_definition(&offered).unwrap();
            assert_eq!(offer_digest(&offered), offer_digest(&listed));
        }
        let parameters_are_no_schema = json!({"name": "t", "parameters": schema});
        assert_eq!(digest(parameters_are_no_schema), None);
    }

    #[test]
    fn what_nests_too_deep_is_refused() {
        let mut deep = json!({});
        for _ in 0..500 {
            deep = json!({ "not": deep });
        }
        let tool = json!({"name": "t", "inputSchema": deep});
        assert_eq!(read_definition(&tool), Err(NotATool::NotCanonical));
    }
}
