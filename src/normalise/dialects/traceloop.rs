//! Traceloop's OpenLLMetry, Python and TypeScript: `<method>.mcp`, `<tool>.tool`, contents in
//! `traceloop.entity.*`; in Python the request id and the answer stand on `ResponseStreamWriter`
//! spans below.

use super::semconv;
use crate::model::fact::End;
use crate::model::ids::Name;
use crate::normalise::answer;
use crate::normalise::draft::{Draft, Shape};
use crate::normalise::item::Item;

const SCOPES: &[&str] = &["@traceloop/instrumentation-mcp", "opentelemetry.instrumentation.mcp"];

pub fn read(item: &Item<'_>) -> Option<Vec<Draft>> {
    if !SCOPES.iter().any(|scope| item.scope.starts_with(scope)) {
        return None;
    }
    let draft = if item.name == "ResponseStreamWriter" {
        writer(item)
    } else if item.name == "mcp.client.session" {
        Some(connection(item))
    } else {
        message(item)
    };
    Some(draft.into_iter().collect())
}

fn connection(item: &Item<'_>) -> Draft {
    let mut draft = Draft::of(item, "initialize").shaped(Shape::Connection);
    draft.half.end = End::Asking;
    // Its status is OK even where the connect failed; only an error says something.
    answer::read(item, &mut draft);
    draft
}

fn message(item: &Item<'_>) -> Option<Draft> {
    let tool = item.name.strip_suffix(".tool");
    let method = match (tool, item.name.strip_suffix(".mcp")) {
        (Some(_), _) => "tools/call",
        (None, Some(method)) => method,
        (None, None) => return None,
    };
    let mut draft = Draft::of(item, method);
    // Methods other than calls are traced where they are sent; a tool's span stands on either side.
    if tool.is_none() {
        draft.half.end = End::Asking;
    } else if in_fastmcp_server(item) {
        draft.half.end = End::Answering;
    }
    if let Some(tool) = tool {
        let recorded = item.attributes.text(&["traceloop.entity.name"]);
        draft.half.tool = Name::some(recorded.as_deref().unwrap_or(tool));
    }
    if let Some(input) = item.attributes.json(&["traceloop.entity.input"]) {
        match tool {
            Some(_) => {
                if let Some(arguments) = input.get("arguments") {
                    draft.take_arguments(arguments);
                }
            }
            // Python writes the request around the parameters, TypeScript the parameters alone.
            None => draft.take_params(input.get("params").unwrap_or(&input)),
        }
    }
    if let Some(output) = item.attributes.json(&["traceloop.entity.output"]) {
        draft.take_answer(&output);
        // TypeScript leaves cursors out of the listing: only one that is written says something.
        if let Some(list) = &mut draft.half.list
            && output.get("nextCursor").is_none()
        {
            list.next_cursor = None;
        }
        // The flag is written only where it is true.
        let flag = &mut draft.half.answer.is_error;
        if tool.is_some() && flag.is_none() && !item.failed() {
            *flag = Some(false);
        }
    }
    semconv::contents(item, &mut draft);
    answer::read(item, &mut draft);
    Some(draft)
}

/// FastMCP's servers are instrumented below `mcp.server`, as a workflow named after the server.
fn in_fastmcp_server(item: &Item<'_>) -> bool {
    let workflow = item.attributes.text(&["traceloop.workflow.name"]);
    workflow.is_some_and(|name| name.ends_with(".mcp"))
}

/// A message on its way out: its id, and in a server its answer. The request is the one above.
fn writer(item: &Item<'_>) -> Option<Draft> {
    let mut draft = Draft::of(item, "").shaped(Shape::Supplement);
    draft.half.end = End::Unknown;
    let response = item.attributes.json(&["mcp.response.value"]);
    if let Some(response) = &response {
        draft.take_result_of_any(response);
        if let Some(list) = &mut draft.half.list {
            list.headless = true;
        }
    }
    (draft.half.request_id.is_some() || response.is_some()).then_some(draft)
}
