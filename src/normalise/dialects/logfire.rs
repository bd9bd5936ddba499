//! Pydantic Logfire's MCP instrumentation: whole JSON-RPC messages in `request` and `response`, the
//! sides told apart by the span's name, pending records before a span ends.

use super::semconv;
use crate::model::fact::End;
use crate::model::ids::SpanRef;
use crate::normalise::draft::{Draft, Place, Shape, scalar};
use crate::normalise::item::Item;
use crate::normalise::{answer, conventions as key};

pub fn read(item: &Item<'_>) -> Option<Vec<Draft>> {
    if item.scope != "logfire.mcp" {
        return None;
    }
    let request = item.attributes.json(&["request", "notification"]);
    let named = item.name.split_once(": ").and_then(|(_, rest)| key::method_in_name(rest));
    let method = item
        .attributes
        .text(&["rpc.method"])
        .map(|method| method.into_owned())
        .or_else(|| Some(request.as_ref()?.get("method")?.as_str()?.to_owned()))
        .or_else(|| Some(named?.0.to_owned()));
    let Some(method) = method else { return Some(Vec::new()) };
    let mut draft = Draft::of(item, &method);
    draft.half.end = match &*item.name {
        name if name.contains(" handle ") => End::Answering,
        _ => End::Asking,
    };
    if draft.is_call() && draft.half.tool.is_none() {
        draft.half.tool = named.and_then(|(_, tool)| crate::model::ids::Name::some(tool?));
    }
    if let Some(request) = &request {
        draft.half.request_id = request.get("id").and_then(scalar).or(draft.half.request_id);
        if let Some(params) = request.get("params") {
            draft.take_params(params);
        }
    }
    if let Some(response) = item.attributes.json(&["response"]) {
        draft.take_answer(&response);
    }
    semconv::contents(item, &mut draft);
    answer::read(item, &mut draft);
    Some(vec![pending(item, draft)])
}

/// A pending record hangs below the span that will come: it says that the span has begun.
fn pending(item: &Item<'_>, draft: Draft) -> Draft {
    let kind = item.attributes.text(&["logfire.span_type"]);
    let (Some("pending_span"), Some(real)) = (kind.as_deref(), item.parent) else { return draft };
    let parent = item.attributes.text(&["logfire.pending_parent_id"]).and_then(|id| span_id(&id));
    let place = Place {
        at: SpanRef { trace: item.at.trace, span: real },
        parent,
        start: item.start,
        end: item.start,
    };
    Draft { place: Some(place), ..draft.shaped(Shape::Start) }
}

fn span_id(hex: &str) -> Option<crate::model::ids::SpanId> {
    let number = u64::from_str_radix(hex, 16).ok().filter(|_| hex.len() == 16)?;
    crate::model::ids::SpanId::read(&number.to_be_bytes())
}
