//! Frameworks that put a span around a tool call. Most of their tools have nothing to do with MCP:
//! such a span is a call only where something on it says MCP, be it the form of the result.

use serde_json::Value;

use super::semconv::names_mcp;
use crate::model::fact::{End, Rank};
use crate::model::ids::Name;
use crate::normalise::draft::Draft;
use crate::normalise::item::Item;
use crate::normalise::{answer, conventions as key};

const ARGUMENTS: &[&str] =
    &["gen_ai.tool.call.arguments", "ai.toolCall.args", "input.value", "tool.arguments"];

const RESULT: &[&str] = &["gen_ai.tool.call.result", "ai.toolCall.result", "output.value"];

/// Types of content items in a tool's result.
const CONTENT_TYPES: &[&str] = &["text", "image", "audio", "resource", "resource_link"];

pub fn read(item: &Item<'_>) -> Option<Vec<Draft>> {
    let (tool, end) = tool_call(item)?;
    let result = item.attributes.json(RESULT);
    if !says_mcp(item, result.as_ref()) {
        return None;
    }
    let mut draft = Draft::of(item, "tools/call");
    draft.half.end = end;
    draft.half.rank = Rank::Framework;
    draft.half.tool = draft.half.tool.take().or(tool);
    if let Some(arguments) = item.attributes.json(ARGUMENTS) {
        draft.take_arguments(&arguments);
    }
    if let Some(result) = &result {
        draft.take_answer(result);
    }
    let error = item.attributes.text(key::ERROR_TYPE);
    if error.as_deref() == Some("MCP_TOOL_ERROR") {
        draft.half.answer.is_error = Some(true);
    }
    answer::read(item, &mut draft);
    Some(vec![draft])
}

/// Whether a span executes a tool: its name where the span says it, and which end speaks.
fn tool_call(item: &Item<'_>) -> Option<(Option<Name>, End)> {
    let named = item.name.strip_prefix("execute_tool ").and_then(|tool| Name::some(tool.trim()));
    let operation = item.attributes.text(&[key::OPERATION]);
    if operation.as_deref() == Some("execute_tool") || item.name == "ai.toolCall" {
        return Some((named, End::Asking));
    }
    // Written by hand around calls and around handlers: the end is not said.
    let kind = item.attributes.text(&["openinference.span.kind"])?;
    (&*kind == "TOOL")
        .then(|| (Name::some(&item.name), super::super::draft::end_of_kind(item.kind)))
}

fn says_mcp(item: &Item<'_>, result: Option<&Value>) -> bool {
    let kind = item.attributes.text(&["gen_ai.tool.type"]).unwrap_or_default();
    let raised = || {
        item.exceptions().any(|event| {
            let name = event.attributes.text(&["exception.type"]).unwrap_or_default();
            name.to_ascii_lowercase().contains("mcp")
        })
    };
    kind.to_ascii_lowercase().contains("mcp")
        || item.attributes.speaks(key::MCP_PREFIXES)
        || names_mcp(item.scope)
        || result.is_some_and(is_tool_result)
        || raised()
}

/// Whether a value has the form of `CallToolResult`: a list of typed content items.
fn is_tool_result(value: &Value) -> bool {
    let Some(content) = value.get("content").and_then(Value::as_array) else { return false };
    let typed = |item: &Value| {
        item.get("type").and_then(Value::as_str).is_some_and(|kind| CONTENT_TYPES.contains(&kind))
    };
    let flagged = value.get("isError").is_some() || value.get("structuredContent").is_some();
    content.iter().all(typed) && (flagged || !content.is_empty())
}
