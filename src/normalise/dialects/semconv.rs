//! The OpenTelemetry MCP conventions, and everybody who writes their keys: SDKs of their own
//! accord, middlewares, gateways.

use crate::model::attributes::EVIDENCE_PREFIX;
use crate::normalise::draft::Draft;
use crate::normalise::item::Item;
use crate::normalise::{answer, content, conventions as key};

pub fn read(item: &Item<'_>) -> Option<Vec<Draft>> {
    let method = method(item)?;
    Some(vec![request(item, &method)])
}

/// A record with this method, read by the conventions alone.
pub fn request(item: &Item<'_>, method: &str) -> Draft {
    let mut draft = Draft::of(item, method);
    contents(item, &mut draft);
    answer::read(item, &mut draft);
    draft
}

/// The method by its key; else by the span's name, where the scope or an MCP attribute says that
/// the span is MCP's. A name alone is nothing.
fn method(item: &Item<'_>) -> Option<String> {
    if let Some(method) = item.attributes.text(key::METHOD) {
        return Some(method.into_owned());
    }
    let name = item.name.strip_prefix("mcp.").unwrap_or(&item.name);
    let (method, rest) = key::method_in_name(name)?;
    let attribute = item.attributes.speaks(key::MCP_PREFIXES)
        || item.attributes.speaks(&[EVIDENCE_PREFIX])
        || item.attributes.has("jsonrpc.request.id");
    let scope = names_mcp(item.scope);
    // Middlewares of the Go SDK leave the method out of tool calls.
    let tool = item.attributes.text(&["gen_ai.tool.name"]);
    let called = method == "tools/call" && tool.is_some() && rest == tool.as_deref();
    (attribute || scope || called).then(|| method.to_owned())
}

/// Whether an instrumentation scope calls itself MCP's: `mcp` as a word of its name.
pub fn names_mcp(scope: &str) -> bool {
    let lower = scope.to_ascii_lowercase();
    lower.contains("modelcontextprotocol")
        || lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "mcp")
}

/// Arguments, results and listings under the conventions' keys.
pub fn contents(item: &Item<'_>, draft: &mut Draft) {
    if draft.is_call() {
        if let Some(value) = item.attributes.json(key::ARGUMENTS) {
            draft.take_arguments(&value);
        } else {
            spread_arguments(item, draft);
        }
    }
    if let Some(value) = item.attributes.json(key::RESULT) {
        draft.take_answer(&value);
    }
}

/// One attribute an argument.
fn spread_arguments(item: &Item<'_>, draft: &mut Draft) {
    let members: serde_json::Map<String, serde_json::Value> = item
        .attributes
        .under(key::ARGUMENT_PREFIX)
        .filter_map(|(name, value)| Some((name.to_owned(), crate::normalise::item::json(value)?)))
        .collect();
    if !members.is_empty() {
        draft.half.call.arguments = Some(content::named_arguments(&members, true));
    }
}
