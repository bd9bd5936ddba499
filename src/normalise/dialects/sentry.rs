//! Sentry's JavaScript SDK, server side: the conventions' methods under kind INTERNAL, its own keys
//! for requests and results, status texts instead of codes.

use super::semconv;
use crate::model::fact::{End, Failure};
use crate::normalise::conventions as key;
use crate::normalise::draft::Draft;
use crate::normalise::item::Item;

pub fn read(item: &Item<'_>) -> Option<Vec<Draft>> {
    if !item.scope.starts_with("@sentry/") {
        return None;
    }
    let method = item.attributes.text(key::METHOD)?;
    let mut draft = semconv::request(item, &method);
    draft.half.end = match item.attributes.text(&["sentry.op"]) {
        Some(op) if op.contains("notification.server_to_client") => End::Asking,
        _ => End::Answering,
    };
    // Names of arguments are written in lower case: comparable among themselves, not with a schema.
    if let Some(arguments) = &mut draft.half.call.arguments {
        arguments.names.clear();
        arguments.complete = false;
    }
    let answer = &mut draft.half.answer;
    let shows_result = item.attributes.speaks(&["mcp.tool.result.", "mcp.prompt.result."]);
    if shows_result {
        answer.result_seen = true;
        // The flag is recorded where the result carries it; its default is false.
        if draft.half.method.as_str() == "tools/call" && answer.is_error.is_none() {
            answer.is_error = Some(false);
        }
    }
    // Pending requests end with their connection, long after the caller may have given up.
    if item.failed() && item.message == "cancelled" {
        answer.failure = Some(Failure::Cancelled);
    }
    // The tracer's word for a JSON-RPC error, whatever its code; a tool's own error has a result.
    if item.failed() && item.message == "internal_error" && !shows_result {
        answer.failure = Some(Failure::Protocol);
    }
    Some(vec![draft])
}
