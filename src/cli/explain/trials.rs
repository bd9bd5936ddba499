//! What would change a verdict: each piece of evidence of the registry is added to the recorded
//! span that would have carried it, the whole input is judged again, and what moved is kept. So
//! every printed change is true by construction.

use serde::Serialize;

use crate::coverage::{Attributes, Recording, Trial, Value};
use crate::engine::Explained;
use crate::model::attributes::{self as key, EVIDENCE, Form};
use crate::model::ids::{Digest16, SpanId, SpanRef, TraceId};
use crate::model::record::Verdict;
use crate::model::words::*;

/// Attributes that were not recorded, where they would stand, and what they make of the verdict.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Change {
    pub trace_id: TraceId,
    pub span_id: SpanId,
    pub attributes: Vec<(&'static str, Value)>,
    pub state: State,
    pub reason: Option<Reason>,
    pub first_failed_layer: Option<FailureLayer>,
}

/// The span that would carry the evidence.
#[derive(Clone, Copy)]
enum Spot {
    Request,
    Listing,
    Negotiation,
}

/// Every change of one piece of evidence that moves the state, the reason or the first failed
/// layer: what would have made it healthy first, then in the order of the registry.
pub fn changes(recording: &Recording, explained: &Explained) -> Vec<Change> {
    let mut found: Vec<Change> = Vec::new();
    for row in EVIDENCE {
        for (spot, attributes) in candidates(row.key, row.form, &explained.verdict) {
            let change = try_out(recording, explained, spot, attributes);
            found.extend(change.filter(|change| !found.contains(change)));
        }
    }
    found.sort_by_key(|change| std::cmp::Reverse(change.state));
    found
}

fn try_out(
    recording: &Recording,
    explained: &Explained,
    spot: Spot,
    attributes: Attributes,
) -> Option<Change> {
    let request = explained.verdict.operator.span;
    let at = match spot {
        Spot::Request => request,
        Spot::Listing => explained.listing?,
        Spot::Negotiation => explained.negotiation?,
    };
    let verdict = judge_with(recording, at, &attributes, explained.verdict.id)?;
    let same = moved(&verdict) == moved(&explained.verdict);
    (!same).then_some(Change {
        trace_id: at.trace,
        span_id: at.span,
        attributes,
        state: verdict.state,
        reason: verdict.reason,
        first_failed_layer: verdict.first_failed_layer,
    })
}

fn moved(verdict: &Verdict) -> (State, Option<Reason>, Option<FailureLayer>) {
    (verdict.state, verdict.reason, verdict.first_failed_layer)
}

/// The chain's verdict when the span at `at` carries these attributes too.
fn judge_with(
    recording: &Recording,
    at: SpanRef,
    attributes: &Attributes,
    chain: Digest16,
) -> Option<Verdict> {
    let trial = Trial { attributes: [(at, attributes.clone())].into(), ..Trial::default() };
    recording.verdicts(&trial).find(|verdict| verdict.id == chain)
}

/// Values worth trying for a key of the registry. Keys whose value only means something beside
/// another record (cursors, tokens, ids, times of facts) have none.
fn candidates(row: &'static str, form: Form, verdict: &Verdict) -> Vec<(Spot, Attributes)> {
    let texts = |spot: Spot, words: &[&str]| {
        words.iter().map(|word| (spot, vec![(row, text(word))])).collect::<Vec<_>>()
    };
    match row {
        key::OUTCOME_STATUS => outcomes(),
        key::EFFECT_STATUS => texts(Spot::Request, &words(Effect::ALL, Effect::as_str)),
        key::CALL_RESULT_TYPE => texts(Spot::Request, &words(ResultType::ALL, ResultType::as_str)),
        key::TASK_STATUS => texts(Spot::Request, &words(TaskStatus::ALL, TaskStatus::as_str)),
        key::AUTH_ERROR => texts(Spot::Request, &["invalid_token", "insufficient_scope"]),
        key::CALL_DEADLINE_MS | key::CALL_INACTIVITY_MS => {
            [1, DAY_MS].map(|millis| (Spot::Request, vec![(row, Value::Int(millis))])).into()
        }
        key::SESSION_REQUESTED_VERSION => {
            let version = verdict.protocol_version.as_deref().unwrap_or("2025-11-25");
            texts(Spot::Negotiation, &[version])
        }
        key::SESSION_SERVER_CAPABILITIES => {
            let listed = Value::Texts(vec!["tools.listChanged".to_string()]);
            vec![(Spot::Negotiation, vec![(row, listed)])]
        }
        key::REGISTRY_INSTALLED_DIGEST => installed(),
        key::REGISTRY_DISCOVERED_DIGEST => {
            vec![(Spot::Listing, vec![(row, digest('0'))])]
        }
        _ if form == Form::Bool => {
            let spot = if row == key::LIST_LAST_PAGE { Spot::Listing } else { Spot::Request };
            [true, false].map(|value| (spot, vec![(row, Value::Bool(value))])).into()
        }
        _ => Vec::new(),
    }
}

const DAY_MS: i64 = 24 * 3600 * 1000;

fn text(text: &str) -> Value {
    Value::Text(text.to_string())
}

fn words<T: Copy>(all: &[T], as_str: fn(T) -> &'static str) -> Vec<&'static str> {
    all.iter().map(|word| as_str(*word)).collect()
}

/// A check says how it was made: without a method it is an opinion.
fn outcomes() -> Vec<(Spot, Attributes)> {
    let method = || (key::OUTCOME_METHOD, text(OutcomeMethod::Query.as_str()));
    let all = OutcomeStatus::ALL.iter();
    all.map(|status| (Spot::Request, vec![(key::OUTCOME_STATUS, text(status.as_str())), method()]))
        .collect()
}

/// What is installed is what was discovered: on the last page of a listing.
fn installed() -> Vec<(Spot, Attributes)> {
    let page = |installed: char| {
        vec![
            (key::LIST_LAST_PAGE, Value::Bool(true)),
            (key::REGISTRY_DISCOVERED_DIGEST, digest('0')),
            (key::REGISTRY_INSTALLED_DIGEST, digest(installed)),
        ]
    };
    vec![(Spot::Listing, page('0')), (Spot::Listing, page('1'))]
}

fn digest(digit: char) -> Value {
    Value::Text(format!("mcp-tool/1:sha256:{}", digit.to_string().repeat(64)))
}
