//! The Rust SDK: one span for a connection, every message an event with Debug text. Each request
//! that it received becomes a half of its own, named by the span and the request's id.

use std::collections::BTreeMap;

use crate::model::fact::{End, Failure, Progress};
use crate::model::ids::{Digest16, Name, SpanId, SpanRef};
use crate::model::words::ResultType;
use crate::normalise::content;
use crate::normalise::draft::{Draft, Place, Shape};
use crate::normalise::item::{Event, Item};

/// Request types by their Debug names.
const REQUESTS: &[(&str, &str)] = &[
    ("InitializeRequest", "initialize"),
    ("DiscoverRequest", "server/discover"),
    ("PingRequest", "ping"),
    ("ListToolsRequest", "tools/list"),
    ("CallToolRequest", "tools/call"),
    ("ListResourcesRequest", "resources/list"),
    ("ListResourceTemplatesRequest", "resources/templates/list"),
    ("ReadResourceRequest", "resources/read"),
    ("SubscribeRequest", "resources/subscribe"),
    ("UnsubscribeRequest", "resources/unsubscribe"),
    ("ListPromptsRequest", "prompts/list"),
    ("GetPromptRequest", "prompts/get"),
    ("CompleteRequest", "completion/complete"),
    ("SetLevelRequest", "logging/setLevel"),
    ("CreateMessageRequest", "sampling/createMessage"),
    ("CreateElicitationRequest", "elicitation/create"),
    ("ListRootsRequest", "roots/list"),
];

const NOTIFICATIONS: &[(&str, &str)] = &[
    ("InitializedNotification", "notifications/initialized"),
    ("CancelledNotification", "notifications/cancelled"),
    ("ProgressNotification", "notifications/progress"),
    ("ToolListChangedNotification", "notifications/tools/list_changed"),
    ("ResourceListChangedNotification", "notifications/resources/list_changed"),
    ("ResourceUpdatedNotification", "notifications/resources/updated"),
    ("PromptListChangedNotification", "notifications/prompts/list_changed"),
    ("RootsListChangedNotification", "notifications/roots/list_changed"),
    ("LoggingMessageNotification", "notifications/message"),
];

pub fn read(item: &Item<'_>) -> Option<Vec<Draft>> {
    if item.name != "serve_inner" || !item.events.iter().any(|event| is_ours(event)) {
        return None;
    }
    let version = version(item);
    let mut requests: BTreeMap<String, Draft> = BTreeMap::new();
    let mut out = vec![connection(item, version.clone())];
    for (index, event) in item.events.iter().enumerate() {
        let id = event.attributes.text(&["id"]).map(|id| id.into_owned());
        match (&*event.name, id) {
            ("received request", Some(id)) => {
                if let Some(draft) = request(item, event, &id, version.clone()) {
                    // A client of the modern era may use an id again once it was answered.
                    out.extend(requests.insert(id, draft));
                }
            }
            ("received notification", _) => {
                out.extend(notification(item, event, index, version.clone()));
            }
            ("cancelled", Some(id)) => match requests.get_mut(&id) {
                Some(draft) => cancel(draft, event),
                None => out.push(gave_up(item, event, index, &id, version.clone())),
            },
            (_, Some(id)) => {
                if let Some(draft) = requests.get_mut(&id) {
                    respond(draft, event);
                }
            }
            (_, None) => {}
        }
    }
    out.extend(requests.into_values());
    Some(out)
}

fn is_ours(event: &Event<'_>) -> bool {
    matches!(
        &*event.name,
        "received request"
            | "received notification"
            | "serve finished"
            | "response message"
            | "response error"
            | "cancelled"
    ) || event.name.starts_with("Service initialized as ")
}

/// The negotiated version, from the greeting that either side logs.
fn version(item: &Item<'_>) -> Option<Name> {
    let greeting = item.events.iter().find(|e| e.name.starts_with("Service initialized as "))?;
    let peer = greeting.attributes.text(&["peer_info"])?;
    Name::some(quoted(&peer, "ProtocolVersion(\"")?)
}

/// The text between `before` and the next quotation mark.
fn quoted<'t>(text: &'t str, before: &str) -> Option<&'t str> {
    let tail = &text[text.find(before)? + before.len()..];
    tail.split('"').next()
}

fn connection(item: &Item<'_>, version: Option<Name>) -> Draft {
    let mut draft = Draft::of(item, "initialize").shaped(Shape::Connection);
    draft.half.version = version;
    let role = |name: &str| item.events.iter().any(|event| event.name == name);
    draft.half.end =
        match (role("Service initialized as server"), role("Service initialized as client")) {
            (true, false) => End::Answering,
            (false, true) => End::Asking,
            _ => End::Unknown,
        };
    draft.half.answer.result_seen = draft.half.version.is_some();
    draft
}

/// A name for a message that has no span of its own: stable, and different for each.
fn place(item: &Item<'_>, part: &str, event: &Event<'_>) -> Place {
    let time = event.time.to_le_bytes();
    let digest = Digest16::of(&[b"rmcp", &item.at.span.0, part.as_bytes(), &time]);
    let mut span = [0; 8];
    span.copy_from_slice(&digest.0[..8]);
    Place {
        at: SpanRef { trace: item.at.trace, span: SpanId(span) },
        parent: None,
        start: event.time,
        end: item.end.max(event.time),
    }
}

fn typed<'t>(table: &[(&str, &'t str)], text: &str) -> Option<&'t str> {
    let name = text.split(['(', ' ']).next()?;
    table.iter().find(|(rust, _)| *rust == name).map(|(_, method)| *method)
}

fn request(item: &Item<'_>, event: &Event<'_>, id: &str, version: Option<Name>) -> Option<Draft> {
    let text = event.attributes.text(&["request"])?;
    let custom = || quoted(&text, "method: \"").filter(|_| text.starts_with("CustomRequest"));
    let mut draft = Draft::blank(typed(REQUESTS, &text).or_else(custom)?);
    draft.half.end = End::Answering;
    draft.half.request_id = Name::some(id);
    draft.half.version = version;
    draft.place = Some(place(item, id, event));
    if draft.is_call() {
        draft.half.tool = quoted(&text, "name: \"").and_then(Name::some);
        if let Some((_, arguments)) = text.split_once("arguments: ") {
            let end = arguments.rfind(", input_responses").unwrap_or(arguments.len());
            // Debug text: equal calls look equal, names are not read out of it.
            draft.half.call.arguments = content::arguments(&arguments[..end].into());
        }
    }
    if draft.half.method.as_str() == "tools/list" {
        let cursor = quoted(&text, "cursor: Some(\"").map(content::cursor);
        draft.list().cursor = cursor;
    }
    Some(draft)
}

fn end_at(draft: &mut Draft, event: &Event<'_>) {
    if let Some(place) = &mut draft.place {
        place.end = event.time.max(place.start);
    }
}

fn cancel(draft: &mut Draft, event: &Event<'_>) {
    draft.half.answer.failure = Some(Failure::Cancelled);
    end_at(draft, event);
}

fn respond(draft: &mut Draft, event: &Event<'_>) {
    // A response to a request that was called off is dropped, and says so after itself.
    if draft.half.answer.failure == Some(Failure::Cancelled) {
        return;
    }
    match &*event.name {
        "response message" => {
            let text = event.attributes.text(&["result"]).unwrap_or_default();
            result(draft, &text);
        }
        "response error" => {
            let text = event.attributes.text(&["error"]).unwrap_or_default();
            let code = text.split_once("ErrorCode(").and_then(|(_, tail)| tail.split(')').next());
            draft.half.answer.code = code.and_then(|code| code.parse().ok());
            if draft.half.answer.code.is_none() {
                draft.half.answer.failure = Some(Failure::Unnamed);
            }
        }
        _ => return,
    }
    end_at(draft, event);
}

fn result(draft: &mut Draft, text: &str) {
    let answer = &mut draft.half.answer;
    answer.result_seen = true;
    if draft.half.method.as_str() == "tools/call" {
        // The last one: what stands before it may be content.
        let flag = text.rsplit_once("is_error: ").map(|(_, tail)| tail);
        answer.is_error = match flag {
            Some(tail) if tail.starts_with("Some(true)") => Some(true),
            Some(tail) if tail.starts_with("Some(false)") || tail.starts_with("None") => {
                Some(false)
            }
            _ => None,
        };
        answer.result_type = match () {
            () if text.contains("InputRequired") => Some(ResultType::InputRequired),
            () if text.starts_with("CreateTaskResult") => Some(ResultType::Task),
            () => None,
        };
    }
    if draft.half.method.as_str() == "tools/list"
        && let Some((_, tail)) = text.split_once("next_cursor: ")
    {
        let cursor = quoted(tail, "Some(\"").filter(|_| tail.starts_with("Some(\""));
        draft.list().next_cursor = Some(cursor.map(content::cursor));
    }
}

fn notification(
    item: &Item<'_>,
    event: &Event<'_>,
    index: usize,
    version: Option<Name>,
) -> Option<Draft> {
    let text = event.attributes.text(&["notification"])?;
    let mut draft = Draft::blank(typed(NOTIFICATIONS, &text)?);
    draft.half.end = End::Answering;
    draft.half.version = version;
    let mut place = place(item, &format!("notification {index}"), event);
    place.end = place.start;
    draft.place = Some(place);
    match draft.half.method.as_str() {
        "notifications/cancelled" => {
            draft.note.cancelled_request_id = id_in(&text, "request_id: ");
        }
        "notifications/progress" => {
            draft.note.progress = id_in(&text, "progress_token: ").map(|token| Progress {
                token,
                value: number_after(&text, " progress: "),
                total: number_after(&text, "total: Some("),
            });
        }
        _ => {}
    }
    Some(draft)
}

/// An id as Debug writes it: `Number(13)` or `String("a")`, in any wrapping.
fn id_in(text: &str, before: &str) -> Option<Name> {
    let tail = &text[text.find(before)? + before.len()..];
    let tail = tail.trim_start_matches("Some(").trim_start_matches("ProgressToken(");
    if let Some(number) = tail.strip_prefix("Number(") {
        return Name::some(number.split(')').next()?);
    }
    Name::some(quoted(tail, "String(\"").filter(|_| tail.starts_with("String("))?)
}

fn number_after(text: &str, before: &str) -> Option<f64> {
    let tail = &text[text.find(before)? + before.len()..];
    tail.split([',', ')', ' ']).next()?.parse().ok().filter(|number: &f64| number.is_finite())
}

/// This side cancelled a request of its own, of which nothing else is recorded.
fn gave_up(
    item: &Item<'_>,
    event: &Event<'_>,
    index: usize,
    id: &str,
    version: Option<Name>,
) -> Draft {
    let mut draft = Draft::blank("notifications/cancelled");
    draft.half.end = End::Asking;
    draft.half.version = version;
    draft.note.cancelled_request_id = Name::some(id);
    let mut place = place(item, &format!("cancelled {index}"), event);
    place.end = place.start;
    draft.place = Some(place);
    draft
}
