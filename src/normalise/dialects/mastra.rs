//! Mastra: tool calls of agents and requests of servers under its own span types; the server's
//! address is a name from its configuration.

use crate::model::fact::{End, Rank};
use crate::model::ids::Name;
use crate::normalise::draft::Draft;
use crate::normalise::item::Item;
use crate::normalise::{answer, conventions as key};

pub fn read(item: &Item<'_>) -> Option<Vec<Draft>> {
    let kind = item.attributes.text(&["mastra.span.type"])?;
    let draft = match &*kind {
        "mcp_tool_call" => Some(tool_call(item)),
        "mcp_server_request" => server_request(item),
        _ => return None,
    };
    Some(draft.into_iter().collect())
}

fn tool_call(item: &Item<'_>) -> Draft {
    let mut draft = Draft::of(item, "tools/call");
    draft.half.end = End::Asking;
    draft.half.rank = Rank::Framework;
    draft.half.server_address = None;
    let named = item.name.strip_prefix("execute_tool ");
    draft.half.tool = draft.half.tool.take().or_else(|| Name::some(named?));
    let arguments = ["mastra.mcp_tool_call.input", "gen_ai.tool.call.arguments"];
    if let Some(arguments) = item.attributes.json(&arguments) {
        draft.take_arguments(&arguments);
    }
    let result = ["mastra.mcp_tool_call.output", "gen_ai.tool.call.result"];
    if let Some(result) = item.attributes.json(&result) {
        draft.take_answer(&result);
    }
    answer::read(item, &mut draft);
    draft
}

fn server_request(item: &Item<'_>) -> Option<Draft> {
    let method = item.attributes.text(key::METHOD)?;
    let mut draft = Draft::of(item, &method);
    draft.half.end = End::Answering;
    draft.half.server_address = None;
    if let Some(input) = item.attributes.json(&["mastra.mcp_server_request.input"]) {
        match draft.is_call() && input.get("arguments").is_none() {
            true => draft.take_arguments(&input),
            false => draft.take_params(&input),
        }
    }
    if let Some(output) = item.attributes.json(&["mastra.mcp_server_request.output"]) {
        draft.take_answer(&output);
    }
    answer::read(item, &mut draft);
    Some(draft)
}
