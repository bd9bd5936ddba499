//! Evidence attributes (`mcp_evidence.*`, judgment.md §3(c)) on spans, events and log records.

use std::borrow::Cow;

use super::draft::Draft;
use super::item::{self, Bag};
use super::{content, time};
use crate::model::attributes as key;
use crate::model::digest::Digest;
use crate::model::fact::*;
use crate::model::ids::{Digest16, MILLI, Name, Nanos};
use crate::model::words::*;
use crate::wire::scan::ValueRef;

/// Most tools of a `list.tools` attribute that are kept.
const MAX_TOOLS: usize = 4096;

/// Most members of a list of capabilities.
const MAX_NAMES: usize = 256;

pub fn speaks(bag: &Bag<'_>) -> bool {
    bag.0.iter().any(|(name, _)| name.starts_with(key::EVIDENCE_PREFIX))
}

fn name(bag: &Bag<'_>, key: &str) -> Option<Name> {
    bag.text(&[key]).and_then(|text| Name::some(&text))
}

/// A value of which only equality matters; an empty text is a value.
fn opaque(bag: &Bag<'_>, key: &str) -> Option<Digest16> {
    let text = item::text(bag.get(key)?)?;
    Some(Digest16::of(&[text.as_bytes()]))
}

fn names(bag: &Bag<'_>, key: &str) -> Option<Vec<Name>> {
    let texts = item::texts(bag.get(key)?)?;
    Some(texts.iter().take(MAX_NAMES).filter_map(|text| Name::some(text)).collect())
}

fn word<T>(bag: &Bag<'_>, key: &str, parse: fn(&str) -> Option<T>) -> Option<T> {
    bag.text(&[key]).and_then(|text| parse(text.trim()))
}

fn millis(bag: &Bag<'_>, key: &str) -> Option<Nanos> {
    let number = item::number(bag.get(key)?)?;
    (number >= 0.0).then_some(((number.min(9e15)) as u64).saturating_mul(MILLI))
}

fn set<T>(slot: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *slot = value;
    }
}

/// Writes what the bag says of the request into the draft; it has the last word.
pub fn apply(bag: &Bag<'_>, draft: &mut Draft) {
    if !speaks(bag) {
        return;
    }
    session(bag, draft);
    list(bag, draft);
    call(bag, draft);
    call_context(bag, &mut draft.half.call);
    if let Some(progress) = progress(bag) {
        draft.note.progress = Some(progress);
    }
    set(&mut draft.note.cancelled_request_id, name(bag, key::CALL_CANCELLED_REQUEST_ID));
}

/// The progress that a notification carries.
pub fn progress(bag: &Bag<'_>) -> Option<Progress> {
    let number = |key: &str| item::number(bag.get(key)?);
    Some(Progress {
        token: name(bag, key::PROGRESS_TOKEN)?,
        value: number(key::PROGRESS_VALUE),
        total: number(key::PROGRESS_TOTAL),
    })
}

fn session(bag: &Bag<'_>, draft: &mut Draft) {
    set(&mut draft.half.server_name, name(bag, key::SESSION_SERVER_NAME));
    set(&mut draft.half.call.auth_context, opaque(bag, key::SESSION_AUTH_CONTEXT));
    let said = Negotiation {
        requested_version: name(bag, key::SESSION_REQUESTED_VERSION),
        client_capabilities: names(bag, key::SESSION_CLIENT_CAPABILITIES),
        server_capabilities: names(bag, key::SESSION_SERVER_CAPABILITIES),
        subscribed: names(bag, key::SESSION_SUBSCRIBED),
    };
    if said != Negotiation::default() {
        let negotiation = draft.negotiation();
        set(&mut negotiation.requested_version, said.requested_version);
        set(&mut negotiation.client_capabilities, said.client_capabilities);
        set(&mut negotiation.server_capabilities, said.server_capabilities);
        set(&mut negotiation.subscribed, said.subscribed);
    }
}

fn list(bag: &Bag<'_>, draft: &mut Draft) {
    let cursor = |key: &str| Some(content::cursor(&item::text(bag.get(key)?)?));
    let next = match (cursor(key::LIST_NEXT_CURSOR), bag.flag(&[key::LIST_LAST_PAGE])) {
        (Some(cursor), _) => Some(Some(cursor)),
        (None, Some(true)) => Some(None),
        // More pages follow under a cursor that nobody recorded: it equals no other.
        (None, Some(false)) => Some(Some(Digest16::of(&[b"unrecorded cursor"]))),
        (None, None) => None,
    };
    let digest = |key: &str| Digest::parse(&bag.text(&[key])?);
    let definitions = bag.get(key::LIST_DEFINITIONS).and_then(item::json);
    let said = ListFacts {
        cursor: cursor(key::LIST_CURSOR),
        headless: false,
        next_cursor: next,
        ttl: millis(bag, key::LIST_TTL_MS),
        tools: tools(bag),
        discovered: digest(key::REGISTRY_DISCOVERED_DIGEST),
        installed: digest(key::REGISTRY_INSTALLED_DIGEST),
        tool_count: bag.int(&[key::REGISTRY_TOOL_COUNT]).and_then(|n| u64::try_from(n).ok()),
        definitions: definitions.and_then(|v| content::page(&v)).map(|page| page.definitions),
    };
    if said == ListFacts::default() {
        return;
    }
    let list = draft.list();
    set(&mut list.cursor, said.cursor);
    set(&mut list.next_cursor, said.next_cursor);
    set(&mut list.ttl, said.ttl);
    set(&mut list.discovered, said.discovered);
    set(&mut list.installed, said.installed);
    set(&mut list.tool_count, said.tool_count);
    set(&mut list.definitions, said.definitions);
    if !said.tools.is_empty() {
        list.tools = said.tools;
    }
}

/// `name=digest` of each tool; names may hold `=`, digests do not.
fn tools(bag: &Bag<'_>) -> Vec<(Name, Digest)> {
    let texts = bag.get(key::LIST_TOOLS).and_then(item::texts).unwrap_or_default();
    let pair = |text: &String| {
        let (name, digest) = text.rsplit_once('=')?;
        Some((Name::some(name)?, Digest::parse(digest)?))
    };
    texts.iter().take(MAX_TOOLS).filter_map(pair).collect()
}

fn call(bag: &Bag<'_>, draft: &mut Draft) {
    let half = &mut draft.half;
    if let Some(flag) = bag.flag(&[key::CALL_IS_ERROR]) {
        half.answer.is_error = Some(flag);
        half.answer.result_seen = true;
        half.answer.failure = None;
    }
    let result_type = word(bag, key::CALL_RESULT_TYPE, ResultType::parse);
    if result_type.is_some() {
        half.answer.result_type = result_type;
        half.answer.result_seen = true;
    }
    match bag.text(&[key::AUTH_ERROR]).as_deref() {
        Some("invalid_token") => half.answer.failure = Some(Failure::InvalidToken),
        Some("insufficient_scope") => half.answer.failure = Some(Failure::InsufficientScope),
        Some(_) => half.answer.failure = Some(Failure::Forbidden),
        None => {}
    }
    let call = &mut half.call;
    set(&mut call.read_only, bag.flag(&[key::CALL_READ_ONLY]));
    set(&mut call.idempotent, bag.flag(&[key::CALL_IDEMPOTENT]));
    set(&mut call.deadline, millis(bag, key::CALL_DEADLINE_MS));
    set(&mut call.inactivity, millis(bag, key::CALL_INACTIVITY_MS));
    set(&mut call.progress_token, name(bag, key::CALL_PROGRESS_TOKEN));
    set(&mut call.request_state, opaque(bag, key::CALL_REQUEST_STATE));
    set(&mut call.next_request_state, opaque(bag, key::CALL_NEXT_REQUEST_STATE));
    let contract = bag.text(&[key::CALL_CONTRACT_DIGEST]).and_then(|text| Digest::parse(&text));
    set(&mut call.contract, contract);
}

fn call_context(bag: &Bag<'_>, call: &mut CallFacts) {
    set(&mut call.task_id, name(bag, key::CALL_TASK_ID));
    set(&mut call.task_status, word(bag, key::TASK_STATUS, TaskStatus::parse));
    let attempt = bag.int(&[key::OPERATION_ATTEMPT]).and_then(|n| u32::try_from(n).ok());
    set(&mut call.operation_attempt, attempt);
    set(&mut call.credential, name(bag, key::AUTH_CREDENTIAL));
    set(&mut call.required_scope, name(bag, key::AUTH_SCOPE));
    set(&mut call.resource, name(bag, key::AUTH_RESOURCE));
    set(&mut call.agent_run, name(bag, key::AGENT_RUN));
}

/// Effect and outcome facts of a bag, and the keys by which they find their request. `at` is the
/// time of the record or event that carries it.
pub fn read(bag: &Bag<'_>, at: Nanos) -> Evidence {
    let mut evidence = Evidence::default();
    if !speaks(bag) {
        return evidence;
    }
    let observed = |key: &str| bag.get(key).and_then(time::read);
    if let Some(status) = word(bag, key::EFFECT_STATUS, Effect::parse) {
        let time = observed(key::EFFECT_OBSERVED_AT).unwrap_or(at);
        evidence.effects.push(EffectFact { status, time, from: Origin::Attribute });
    }
    if let Some(status) = outcome(bag) {
        evidence.outcomes.push(OutcomeFact {
            status,
            method: word(bag, key::OUTCOME_METHOD, OutcomeMethod::parse),
            time: observed(key::OUTCOME_OBSERVED_AT).unwrap_or(at),
            from: Origin::Attribute,
        });
    }
    evidence.operation_key = operation_key(bag);
    evidence.agent_run = name(bag, key::AGENT_RUN);
    evidence
}

/// The stable key of the operation that a record belongs to.
pub fn operation_key(bag: &Bag<'_>) -> Option<Digest16> {
    opaque(bag, key::OPERATION_KEY)
}

/// The stated outcome; without a statement, equal digests verify and different ones fail.
fn outcome(bag: &Bag<'_>) -> Option<OutcomeStatus> {
    if let Some(status) = word(bag, key::OUTCOME_STATUS, OutcomeStatus::parse) {
        return Some(status);
    }
    let expected = bag.text(&[key::OUTCOME_EXPECTED])?;
    let observed = bag.text(&[key::OUTCOME_OBSERVED])?;
    Some(match expected == observed {
        true => OutcomeStatus::Verified,
        false => OutcomeStatus::Failed,
    })
}

/// Labels of an evaluation that leave no doubt.
const PASSED: &[&str] = &["pass", "passed", "correct", "success", "true", "verified"];
const FAILED: &[&str] = &["fail", "failed", "incorrect", "failure", "false"];

/// A `gen_ai.evaluation.result`: somebody's opinion of what a span did, a weak outcome.
pub fn evaluation(bag: &Bag<'_>, at: Nanos) -> Option<OutcomeFact> {
    let label = bag.text(&["gen_ai.evaluation.score.label"])?.to_ascii_lowercase();
    let status = if PASSED.contains(&label.as_str()) {
        OutcomeStatus::Verified
    } else if FAILED.contains(&label.as_str()) {
        OutcomeStatus::Failed
    } else {
        return None;
    };
    let method = Some(OutcomeMethod::LlmJudge);
    Some(OutcomeFact { status, method, time: at, from: Origin::Attribute })
}

/// Whether a value is there at all, to see that a key occurs twice with different ones.
pub fn comparable<'a>(value: &ValueRef<'a>) -> Cow<'a, str> {
    let text = item::text(value);
    text.or_else(|| Some(content::canonical(&item::json(value)?).into())).unwrap_or_default()
}
