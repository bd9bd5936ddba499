//! OpenLIT: methods as Python names, payloads in a mixture of JSON and Python text, a server side
//! that records the registration of handlers and not requests.

use crate::model::fact::End;
use crate::model::ids::Name;
use crate::normalise::draft::{Draft, scalar};
use crate::normalise::item::Item;
use crate::normalise::{answer, conventions as key, item::parse};

pub fn read(item: &Item<'_>) -> Option<Vec<Draft>> {
    if !item.scope.starts_with("openlit.instrumentation.mcp") {
        return None;
    }
    Some(message(item).into_iter().collect())
}

fn message(item: &Item<'_>) -> Option<Draft> {
    let named = item.name.strip_prefix("mcp ")?;
    if named == "server/send_notification" {
        return notification(item);
    }
    let (method, _) = key::method_in_name(named)?;
    let request = item.attributes.text(&["mcp.request.payload"]);
    let response = item.attributes.text(&["mcp.response.payload"]);
    // A handler that is registered has neither payload: no request ran.
    if request.is_none() && response.is_none() && method != "initialize" {
        return None;
    }
    let mut draft = Draft::of(item, method);
    draft.half.end = End::Asking;
    // It says stdio over HTTP as well.
    draft.half.transport = None;
    draft.half.version = None;
    if let Some(payload) = request.as_deref() {
        take_payload(payload, &mut draft);
    }
    if let Some(payload) = response.as_deref() {
        draft.half.answer.result_seen = true;
        match parse(payload) {
            Some(json) => draft.take_answer(&json),
            None => {
                if draft.is_call() {
                    draft.half.answer.is_error = flag_in_text(payload);
                }
            }
        }
    }
    answer::read(item, &mut draft);
    Some(draft)
}

fn take_payload(payload: &str, draft: &mut Draft) {
    let Some(json) = parse(payload) else { return };
    if draft.is_call() {
        // Positional arguments of the Python call: the tool's name, then its arguments.
        let list = json.get("args").and_then(serde_json::Value::as_array);
        let at = |index: usize| list.and_then(|list| list.get(index));
        let name = json.get("name").or_else(|| at(0)).and_then(serde_json::Value::as_str);
        draft.half.tool = draft.half.tool.take().or_else(|| Name::some(name?));
        if let Some(arguments) = json.get("arguments").or_else(|| at(1)) {
            draft.take_arguments(arguments);
        }
    }
    draft.half.request_id = json.get("id").and_then(scalar);
}

/// `isError` in JSON or Python text; the last one, since what stands before may be content.
fn flag_in_text(text: &str) -> Option<bool> {
    let lower = text.to_ascii_lowercase();
    let at = lower.rfind("iserror").map(|at| at + "iserror".len())?;
    let tail = lower[at..].trim_start_matches(['"', '\'', ':', '=', ' ', '\\']);
    match tail {
        tail if tail.starts_with("true") => Some(true),
        tail if tail.starts_with("false") => Some(false),
        _ => None,
    }
}

fn notification(item: &Item<'_>) -> Option<Draft> {
    let payload = item.attributes.text(&["mcp.request.payload"])?;
    let at = payload.find("notifications/")?;
    let end = payload[at..]
        .find(|c: char| !(c.is_ascii_alphanumeric() || "/_".contains(c)))
        .map_or(payload.len(), |length| at + length);
    let mut draft = Draft::of(item, &payload[at..end]);
    draft.half.end = End::Asking;
    Some(draft)
}
