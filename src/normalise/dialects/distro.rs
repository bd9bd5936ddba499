//! The AWS distribution's MCP instrumentation: the conventions, with a version that is its SDK's
//! constant, results as Python text, and a status OK that means only that an answer went out.

use super::semconv;
use crate::model::fact::End;
use crate::normalise::draft::{Draft, Shape};
use crate::normalise::item::Item;
use crate::normalise::{answer, content, conventions as key};

pub fn read(item: &Item<'_>) -> Option<Vec<Draft>> {
    if !item.scope.starts_with("amazon.opentelemetry.distro.instrumentation.mcp") {
        return None;
    }
    if item.name == "mcp.session" {
        let mut draft = Draft::of(item, "initialize").shaped(Shape::Connection);
        draft.half.end = End::Asking;
        draft.half.version = None;
        answer::read(item, &mut draft);
        return Some(vec![draft]);
    }
    let named = item.name.strip_prefix("mcp ").and_then(key::method_in_name);
    let method = item
        .attributes
        .text(key::METHOD)
        .map(|method| method.into_owned())
        .or_else(|| Some(named?.0.to_owned()))?;
    let mut draft = semconv::request(item, &method);
    draft.half.version = None;
    if let Some(result) = item.attributes.text(&["gen_ai.tool.call.result"]) {
        draft.half.answer.result_seen = true;
        python_result(&result, &mut draft);
    }
    if draft.half.end == End::Asking && item.status == 1 {
        draft.half.answer.result_seen = true;
    }
    Some(vec![draft])
}

/// The flag at the end of a result's Python text: what stands before it is a tool's own.
fn python_result(text: &str, draft: &mut Draft) {
    let Some(flag) = content::flag_in_repr(text) else { return };
    if draft.is_call() {
        draft.half.answer.is_error = Some(flag);
        if flag {
            draft.half.answer.failure = None;
            draft.half.answer.code = None;
        }
    }
}
