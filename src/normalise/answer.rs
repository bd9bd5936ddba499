//! How a half ended, from the channels in which instrumentations say it: error keys, codes, status
//! text, exceptions. A tool's own `isError` beats them all, and a text that belongs to a tool's
//! result is never read as an error of the protocol or the transport.

use std::borrow::Cow;

use super::conventions as key;
use super::draft::Draft;
use super::errors;
use super::item::{Item, text};
use crate::model::fact::{End, Failure};

/// JSON-RPC codes that SDKs raise themselves for a lost connection or a timeout: their text may say
/// what really happened.
const LOCAL_CODES: &[i64] = &[-32000, -32001, 408];

/// How clients word a result that is an error: their own words, the tool's follow.
const TOOL_TEXTS: &[&str] = &["tool returned error result", "Failed to call a MCP tool: "];

/// Everything that an item says of its error, outside contents.
struct Channels<'i> {
    error_type: Option<Cow<'i, str>>,
    /// Status message, error message, exception messages.
    texts: Vec<Cow<'i, str>>,
    exception_types: Vec<Cow<'i, str>>,
    failed: bool,
}

impl<'i> Channels<'i> {
    fn of(item: &'i Item<'_>) -> Self {
        let error_type = item.attributes.text(key::ERROR_TYPE);
        let mut texts = Vec::new();
        if !item.message.is_empty() {
            texts.push(Cow::Borrowed(&*item.message));
        }
        texts.extend(item.attributes.text(key::ERROR_MESSAGE));
        texts.extend(item.attributes.get("error").and_then(text).filter(|t| is_prose(t)));
        let mut exception_types = Vec::new();
        for event in item.exceptions() {
            exception_types.extend(event.attributes.text(&["exception.type"]));
            texts.extend(event.attributes.text(&["exception.message"]));
        }
        let failed = item.failed()
            || error_type.is_some()
            || !exception_types.is_empty()
            || item.attributes.flag(&["error"]) == Some(true);
        Self { error_type, texts, exception_types, failed }
    }

    fn types(&self) -> impl Iterator<Item = &Cow<'i, str>> {
        self.error_type.iter().chain(&self.exception_types)
    }
}

fn is_prose(text: &str) -> bool {
    !matches!(text, "" | "true" | "false" | "0" | "1")
}

/// Reads flag, code, HTTP status and failure of a half whose contents were read before.
pub fn read(item: &Item<'_>, draft: &mut Draft) {
    let channels = Channels::of(item);
    let tool_failed = is_error(item, draft, &channels);
    let answer = &mut draft.half.answer;
    answer.is_error = tool_failed.or(answer.is_error);
    answer.http_status = super::http::status(item);
    if answer.is_error == Some(true) {
        return;
    }
    answer.code = code(item, &channels).or(answer.code);
    let status_named = channels.types().find_map(|name| errors::status(name));
    let code_status = item.attributes.text(key::ERROR_CODE).and_then(|code| errors::status(&code));
    let in_text = || channels.texts.iter().find_map(|text| errors::http_status(text));
    if answer.code.is_none() {
        let named = status_named.or(code_status);
        let asks = draft.half.end != End::Answering;
        answer.http_status = answer.http_status.or(named).or_else(|| in_text().filter(|_| asks));
    }
    if channels.failed {
        draft.half.answer.failure = failure(draft, &channels);
    }
}

/// `isError` from the keys that dialects have for it.
fn is_error(item: &Item<'_>, draft: &Draft, channels: &Channels<'_>) -> Option<bool> {
    if let Some(flag) = item.attributes.flag(key::IS_ERROR) {
        return Some(flag);
    }
    if let Some(success) = item.attributes.flag(key::SUCCESS) {
        return Some(!success);
    }
    let says_tool = channels.error_type.as_deref() == Some("tool_error")
        || channels.texts.iter().any(|text| TOOL_TEXTS.iter().any(|ours| text.starts_with(ours)));
    (says_tool && draft.is_call()).then_some(true)
}

fn code(item: &Item<'_>, channels: &Channels<'_>) -> Option<i64> {
    // Zero is RPC's OK where nothing failed; some SDKs send it as an error's code.
    let keyed = item.attributes.int(key::CODE).filter(|code| *code != 0 || channels.failed);
    keyed
        .or_else(|| channels.types().find_map(|name| errors::code_alone(name)))
        .or_else(|| item.attributes.text(key::ERROR_CODE).and_then(|c| errors::code_alone(&c)))
        .or_else(|| channels.texts.iter().find_map(|text| errors::code_in_text(text)))
}

fn failure(draft: &Draft, channels: &Channels<'_>) -> Option<Failure> {
    match draft.half.end {
        End::Answering => answering_failure(draft, channels),
        End::Asking | End::Unknown => asking_failure(draft, channels),
    }
}

/// A handler's own words (`connection reset`, `timed out`) speak of the tool's backend, never of
/// its caller: only types and the session's own texts name a failure here.
fn answering_failure(draft: &Draft, channels: &Channels<'_>) -> Option<Failure> {
    let by_type = channels.types().find_map(|name| errors::named(name)).filter(|failure| {
        matches!(
            failure,
            Failure::ClientDisconnected | Failure::Cancelled | Failure::SessionExpired
        )
    });
    let by_text =
        channels.texts.iter().find_map(|text| errors::named(text)).filter(|failure| {
            matches!(failure, Failure::SessionExpired | Failure::UnsupportedVersion)
        });
    let raised = channels.types().any(|name| name.parse::<i64>().is_err());
    let unnamed = match (draft.half.answer.code, raised) {
        (None, true) => Some(Failure::HandlerRaised),
        (None, false) => Some(Failure::Unnamed),
        (Some(_), _) => None,
    };
    by_type.or(by_text).or(unnamed)
}

fn asking_failure(draft: &Draft, channels: &Channels<'_>) -> Option<Failure> {
    let answer = &draft.half.answer;
    let named =
        channels.types().chain(&channels.texts).find_map(|text| errors::named(text)).filter(
            |failure| match answer.code {
                None => true,
                Some(code) if LOCAL_CODES.contains(&code) => true,
                // No code at all: so servers answer what was called off, and what they raised.
                Some(0) => *failure == Failure::Cancelled,
                // A peer's error: only what the protocol itself says of session and version counts.
                Some(_) => matches!(
                    failure,
                    Failure::SessionExpired
                        | Failure::UnsupportedVersion
                        | Failure::MissingCapability
                        | Failure::InvalidToken
                        | Failure::InsufficientScope
                ),
            },
        );
    let refused = || {
        let refuses = channels.types().any(|name| errors::is_refusal(name));
        (refuses && answer.code.is_none() && !answer.result_seen).then_some(Failure::RefusedLocally)
    };
    let silent = answer.code.is_none() && answer.http_status.is_none();
    let protocol = || {
        (silent && channels.types().any(|name| errors::is_protocol_error(name)))
            .then_some(Failure::Protocol)
    };
    named.or_else(refused).or_else(protocol).or(silent.then_some(Failure::Unnamed))
}
