//! A half or notification while a dialect is being read: conventions fill it, a dialect corrects
//! it, evidence attributes have the last word.

use super::content;
use super::conventions as key;
use super::item::{Bag, Item, text};
use crate::model::fact::*;
use crate::model::ids::{Digest16, MILLI, Name, Nanos, SpanId, SpanRef};
use crate::model::rare::Rare;
use crate::model::words::{TaskStatus, Transport};

/// What a record stands for, before its method decides between request and notification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    Message,
    /// The start of a request that has not ended.
    Start,
    /// A connection: holds a session together, is no request.
    Connection,
    /// Says something of the request above it, is none itself.
    Supplement,
    /// Says how a tool ended, whatever the tool is: of the request below it, if there is one.
    Tool,
}

/// Where a draft stands, when that is not where its record stands: a request that is only events of
/// a connection's span, a pending record of a span to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    pub at: SpanRef,
    pub parent: Option<SpanId>,
    pub start: Nanos,
    pub end: Nanos,
}

/// What only notifications say.
#[derive(Clone, Default)]
pub struct Note {
    pub cancelled_request_id: Option<Name>,
    pub progress: Option<Progress>,
}

#[derive(Clone)]
pub struct Draft {
    pub shape: Shape,
    pub half: HalfFact,
    pub note: Note,
    pub place: Option<Place>,
}

/// A half that says nothing but its method.
pub fn blank(method: &str) -> HalfFact {
    HalfFact {
        end: End::Unknown,
        direction: key::direction(method),
        method: Name::new(method),
        tool: None,
        request_id: None,
        session: None,
        version: None,
        transport: None,
        server_address: None,
        server_name: None,
        rank: Rank::Wire,
        answer: Answer::default(),
        call: Rare::default(),
        list: None,
        negotiation: None,
    }
}

impl Draft {
    pub fn blank(method: &str) -> Self {
        Self { shape: Shape::Message, half: blank(method), note: Note::default(), place: None }
    }

    /// What the conventions say of a record with this method; errors and contents are not read yet.
    pub fn of(item: &Item<'_>, method: &str) -> Self {
        let attributes = &item.attributes;
        let mut draft = Self::blank(method);
        let half = &mut draft.half;
        half.end = end_of_kind(item.kind);
        half.tool = tool(item, method);
        half.request_id = attributes.text(key::REQUEST_ID).and_then(|id| Name::some(&id));
        half.version = attributes.text(key::VERSION).and_then(|version| Name::some(&version));
        half.session =
            attributes.text(key::SESSION).and_then(|id| Some((Name::some(&id)?, Provenance::Wire)));
        half.transport = transport(attributes);
        if half.end != End::Answering {
            half.server_address = address(attributes);
        }
        half.server_name = attributes.text(key::SERVER_NAME).and_then(|name| Name::some(&name));
        half.call.agent_name = attributes.text(&[key::AGENT_NAME]).and_then(|n| Name::some(&n));
        draft.note = note(attributes);
        draft
    }

    pub fn is_call(&self) -> bool {
        self.half.method.as_str() == "tools/call"
    }

    pub fn shaped(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    /// Marks the session id as made up by the instrumentation.
    pub fn synthetic_session(&mut self) {
        if let Some((_, provenance)) = &mut self.half.session {
            *provenance = Provenance::Synthetic;
        }
    }

    pub fn list(&mut self) -> &mut ListFacts {
        self.half.list.get_or_insert_with(Box::default)
    }

    pub fn negotiation(&mut self) -> &mut Negotiation {
        self.half.negotiation.get_or_insert_with(Box::default)
    }

    /// Arguments as JSON, or text that holds them.
    pub fn take_arguments(&mut self, value: &serde_json::Value) {
        self.half.call.arguments = content::arguments(value);
    }

    /// The parameters of a request: tool, arguments, cursor, token, version.
    pub fn take_params(&mut self, params: &serde_json::Value) {
        let text = |name: &str| params.get(name).and_then(serde_json::Value::as_str);
        match self.half.method.as_str() {
            "tools/call" => {
                if let Some(name) = text("name") {
                    self.half.tool = Name::some(name);
                }
                if let Some(arguments) = params.get("arguments") {
                    self.take_arguments(arguments);
                }
                let state = text("requestState");
                self.half.call.request_state = state.map(|s| Digest16::of(&[s.as_bytes()]));
            }
            "tools/list" => self.list().cursor = text("cursor").map(content::cursor),
            "initialize" => {
                let version = text("protocolVersion").and_then(Name::some);
                let capabilities = params.get("capabilities").map(content::capabilities);
                let negotiation = self.negotiation();
                negotiation.requested_version = version;
                negotiation.client_capabilities = capabilities;
            }
            "notifications/cancelled" => {
                self.note.cancelled_request_id = params.get("requestId").and_then(scalar);
            }
            "notifications/progress" => self.note.progress = progress_in(params),
            _ => {}
        }
        if matches!(self.half.method.as_str(), "tasks/get" | "tasks/result" | "tasks/cancel") {
            self.half.call.task_id = text("taskId").and_then(Name::some);
        }
        self.take_meta(params);
    }

    fn take_meta(&mut self, params: &serde_json::Value) {
        let meta = params.get("_meta").or_else(|| params.get("meta"));
        let Some(meta) = meta else { return };
        self.half.call.progress_token = meta.get("progressToken").and_then(scalar);
        let version = meta.get("io.modelcontextprotocol/protocolVersion");
        if let Some(version) = version.and_then(serde_json::Value::as_str) {
            self.half.version = Name::some(version);
        }
    }

    /// An answer as JSON: a result, an envelope, or content items alone.
    pub fn take_answer(&mut self, value: &serde_json::Value) {
        let said = content::answer(value);
        let answer = &mut self.half.answer;
        answer.result_seen |= said.result;
        // A result that leaves the flag out says false: that is the protocol's default.
        let flag = said.is_error.or(said.content.then_some(false));
        answer.error_text |= said.error_text;
        if self.half.method.as_str() == "tools/call" {
            answer.is_error = flag.or(answer.is_error);
            answer.result = said.given.or(answer.result);
        }
        answer.result_type = said.result_type.or(answer.result_type);
        answer.code = said.code.or(answer.code);
        let call = &mut self.half.call;
        call.structured = said.structured.or(call.structured.take());
        call.next_request_state = said.request_state.or(call.next_request_state);
        call.task_id = said.task_id.or(call.task_id.take());
        call.task_status = said.task_status.or(call.task_status);
        self.half.server_name = said.server_name.or(self.half.server_name.take());
        match self.half.method.as_str() {
            "tools/list" => self.take_page(value),
            "initialize" | "server/discover" => {
                if let Some(version) = &said.version {
                    self.half.version = Name::some(version);
                }
                if said.capabilities.is_some() {
                    self.negotiation().server_capabilities = said.capabilities;
                }
            }
            _ => {}
        }
    }

    /// An answer of which only the form says to what: the flag counts where there is content.
    pub fn take_result_of_any(&mut self, value: &serde_json::Value) {
        let said = content::answer(value);
        self.half.answer.result_seen |= said.result;
        self.half.answer.code = said.code;
        self.half.answer.is_error = said.is_error.or(said.content.then_some(false));
        self.half.answer.error_text |= said.error_text;
        self.half.answer.result = said.given;
        self.half.call.structured = said.structured;
        self.take_page(value);
    }

    fn take_page(&mut self, value: &serde_json::Value) {
        let Some(page) = content::page(value) else { return };
        let list = self.list();
        list.definitions = Some(page.definitions);
        list.next_cursor = page.next_cursor.or(list.next_cursor);
        list.ttl = page.ttl_ms.map(|ms| ms.saturating_mul(MILLI));
    }
}

fn progress_in(params: &serde_json::Value) -> Option<Progress> {
    Some(Progress {
        token: params.get("progressToken").and_then(scalar)?,
        value: params.get("progress").and_then(serde_json::Value::as_f64),
        total: params.get("total").and_then(serde_json::Value::as_f64),
    })
}

/// A JSON string or number as a name.
pub fn scalar(value: &serde_json::Value) -> Option<Name> {
    match value {
        serde_json::Value::String(text) => Name::some(text),
        serde_json::Value::Number(number) => Name::some(&number.to_string()),
        _ => None,
    }
}

pub fn end_of_kind(kind: u8) -> End {
    match kind {
        2 => End::Answering,
        3 => End::Asking,
        _ => End::Unknown,
    }
}

fn tool(item: &Item<'_>, method: &str) -> Option<Name> {
    if method != "tools/call" {
        return None;
    }
    if let Some(tool) = item.attributes.text(key::TOOL) {
        return Name::some(&tool);
    }
    let (_, rest) = item.name.split_once("tools/call ")?;
    Name::some(rest.trim())
}

fn transport(attributes: &Bag<'_>) -> Option<Transport> {
    for keys in key::TRANSPORT {
        let Some(value) = attributes.get(keys).and_then(text) else { continue };
        let value = value.to_ascii_lowercase();
        if value == "pipe" || value.contains("stdio") {
            return Some(Transport::Stdio);
        }
        if value == "tcp" || value == "quic" || value.contains("http") || value.contains("sse") {
            return Some(Transport::Http);
        }
    }
    None
}

fn address(attributes: &Bag<'_>) -> Option<Name> {
    let host = attributes.text(&["server.address"])?;
    match attributes.int(&["server.port"]) {
        Some(port) => Name::some(&format!("{host}:{port}")),
        None => Name::some(&host),
    }
}

fn note(attributes: &Bag<'_>) -> Note {
    let progress = attributes.text(key::PROGRESS_TOKEN).and_then(|token| {
        let number =
            |keys: &[&str]| keys.iter().find_map(|k| super::item::number(attributes.get(k)?));
        Some(Progress {
            token: Name::some(&token)?,
            value: number(key::PROGRESS_VALUE),
            total: number(key::PROGRESS_TOTAL),
        })
    });
    let cancelled = attributes.text(key::CANCELLED_ID);
    Note { cancelled_request_id: cancelled.and_then(|id| Name::some(&id)), progress }
}

/// What the notification of a draft says.
pub fn notification(draft: Draft) -> Notification {
    let half = draft.half;
    Notification {
        end: half.end,
        session: half.session,
        version: half.version,
        cancelled_request_id: draft.note.cancelled_request_id,
        progress: draft.note.progress,
        task_id: half.call.task_id.clone(),
        task_status: half.call.task_status.or(task_of(&half.method)),
        subscribed: half.negotiation.and_then(|n| n.subscribed),
        auth_context: half.call.auth_context,
        method: half.method,
    }
}

/// A notification whose very name is a status.
fn task_of(method: &str) -> Option<TaskStatus> {
    TaskStatus::parse(method.strip_prefix("notifications/tasks/")?)
}
