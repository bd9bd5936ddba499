//! Frameworks that put a span around a tool call. Most of their tools have nothing to do with MCP:
//! such a span is a call only where something on it says MCP, be it the form of the result. What
//! any of them says of how its tool ended counts for the call below it.

use serde_json::Value;

use super::semconv::names_mcp;
use crate::model::fact::{Answer, End, Rank};
use crate::model::ids::Name;
use crate::normalise::draft::{Draft, Shape};
use crate::normalise::item::Item;
use crate::normalise::{answer, content, conventions as key};

const ARGUMENTS: &[&str] =
    &["gen_ai.tool.call.arguments", "ai.toolCall.args", "input.value", "tool.arguments"];

const RESULT: &[&str] = &["gen_ai.tool.call.result", "ai.toolCall.result", "output.value"];

/// Types of content items in a tool's result.
const CONTENT_TYPES: &[&str] = &["text", "image", "audio", "resource", "resource_link"];

/// Methods of Python's tool objects that stand behind the tool's name.
const METHODS: &[&str] = &[".acall", ".__call__", ".call", ".forward"];

pub fn read(item: &Item<'_>) -> Option<Vec<Draft>> {
    let (tool, end) = tool_call(item)?;
    let result = item.attributes.json(RESULT);
    let mut draft = Draft::of(item, "tools/call");
    draft.half.end = end;
    draft.half.rank = Rank::Framework;
    draft.half.tool = draft.half.tool.take().or(tool);
    if let Some(flag) = item.attributes.text(RESULT).and_then(|text| content::flag_in_repr(&text)) {
        draft.half.answer.is_error = Some(flag);
        draft.half.answer.result_seen = true;
    }
    if !says_mcp(item, result.as_ref()) {
        failed(item, &mut draft);
        let tells = end != End::Answering && draft.half.answer != Answer::default();
        return tells.then(|| vec![draft.shaped(Shape::Tool)]);
    }
    if let Some(arguments) = item.attributes.json(ARGUMENTS) {
        draft.take_arguments(&arguments);
    }
    if let Some(result) = &result {
        draft.take_answer(result);
    }
    failed(item, &mut draft);
    Some(vec![draft])
}

/// Text that Strands puts before what was raised, where others' tools answered with an error.
const RAISED: &str = "Tool execution failed: ";

fn failed(item: &Item<'_>, draft: &mut Draft) {
    let error = item.attributes.text(key::ERROR_TYPE);
    let status = item.attributes.text(&["gen_ai.tool.status"]);
    let raised = item.message.starts_with(RAISED);
    if error.as_deref() == Some("MCP_TOOL_ERROR") || status.as_deref() == Some("error") && !raised {
        draft.half.answer.is_error = Some(true);
    }
    answer::read(item, draft);
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
    let name = METHODS.iter().find_map(|method| item.name.strip_suffix(method));
    let name = Name::some(name.unwrap_or(&item.name));
    (&*kind == "TOOL").then(|| (name, super::super::draft::end_of_kind(item.kind)))
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
