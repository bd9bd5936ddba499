//! Findings that one case alone shows (judgment.md §7), as a table of rules. Those that joining
//! found arrive on the exchange and are merged; those of an operation are [`super::operation`]'s.

use super::capabilities::outside_capabilities;
use super::clocks;
use super::seen::{Seen, Standing};
use super::witness::{Note, Witness};
use crate::model::attributes::CALL_CONTRACT_DIGEST;
use crate::model::case::{Ending, Half};
use crate::model::digest::Digest;
use crate::model::fact::{Answer, Direction, End, Failure};
use crate::model::findings::{Code, Detail, Finding};
use crate::model::ids::{Name, Nanos, SpanId, sane};
use crate::model::words::{Blame, Confidence, ContractStatus, Strength};

/// No verdict carries more.
pub const CAP: usize = 64;

pub struct Rule {
    pub code: Code,
    find: fn(&Seen) -> Option<Finding>,
}

const fn rule(code: Code, find: fn(&Seen) -> Option<Finding>) -> Rule {
    Rule { code, find }
}

/// In the order of the registry.
pub const RULES: [Rule; 18] = [
    rule(Code::ProgressAfterCompletion, progress_after_completion),
    rule(Code::ProgressNotIncreasing, progress_not_increasing),
    rule(Code::LateResultDiscarded, late_result_discarded),
    rule(Code::ResponseLost, |s| (s.given() && s.lost()).then(|| plain(s, Code::ResponseLost))),
    rule(Code::SessionExpired, session_expired),
    rule(Code::CapabilityNotNegotiated, capability_not_negotiated),
    rule(Code::ContractDrift, contract_drift),
    rule(Code::ArgumentNotInContract, argument_not_in_contract),
    rule(Code::UnknownTool, unknown_tool),
    rule(Code::OutputSchemaMismatch, output_schema_mismatch),
    rule(Code::ErrorChannelMismatch, error_channel_mismatch),
    rule(Code::ResultTextContradictsFlag, result_text_contradicts_flag),
    rule(Code::ViewsDisagree, views_disagree),
    rule(Code::InputRequiredNeverResumed, input_required_never_resumed),
    rule(Code::TaskNeverFinished, task_never_finished),
    rule(Code::StreamOutlivesRequest, stream_outlives_request),
    rule(Code::DigestSchemeMismatch, digest_scheme_mismatch),
    rule(Code::RefusedLocally, refused_locally),
];

/// All findings of the verdict: sorted, without repeats, at most [`CAP`].
pub fn findings(seen: &Seen, w: &mut impl Witness) -> Vec<Finding> {
    let mut found = seen.case.exchange.findings.clone();
    found.extend(RULES.iter().filter_map(|rule| (rule.find)(seen)));
    let found = merged(found);
    for finding in &found {
        w.note(Note::Finding { code: finding.code, when: finding.code.row().when });
    }
    found
}

/// Sorted by code, blame, detail; without repeats; capped.
pub(super) fn merged(mut found: Vec<Finding>) -> Vec<Finding> {
    found.sort_unstable();
    found.dedup();
    found.truncate(CAP);
    found
}

fn plain(seen: &Seen, code: Code) -> Finding {
    Finding::new(code, seen.case.exchange.spans())
}

/// `None` for a half that has not ended, or whose end nobody can believe.
fn end_of(half: Option<&Half>) -> Option<Nanos> {
    half.filter(|half| half.ended && sane(half.end)).map(|half| half.end)
}

fn with_spans(seen: &Seen, code: Code, more: &[SpanId]) -> Finding {
    let mut spans = seen.case.exchange.spans();
    spans.extend(more);
    Finding::new(code, spans).detail(Detail::Count(more.len() as u64))
}

/// By the sender's clock: after its own half; without one, after the client's end plus the skew,
/// and only where the client had an answer by then.
fn progress_after_completion(seen: &Seen) -> Option<Finding> {
    let x = &seen.case.exchange;
    let answered =
        matches!(seen.ending, Ending::Result { .. } | Ending::Error { .. } | Ending::InputRequired);
    let completed = match end_of(x.answering.as_ref()) {
        Some(end) if seen.ending != Ending::Task => end,
        None if answered && x.answering.is_none() => {
            end_of(x.asking.as_ref())?.saturating_add(seen.case.clock_skew)
        }
        _ => return None,
    };
    let late: Vec<SpanId> = x
        .progress
        .iter()
        .filter(|seen| sane(seen.at) && seen.at > completed)
        .map(|seen| seen.span)
        .collect();
    (!late.is_empty()).then(|| with_spans(seen, Code::ProgressAfterCompletion, &late))
}

fn progress_not_increasing(seen: &Seen) -> Option<Finding> {
    let mut best = f64::NEG_INFINITY;
    let mut bad = Vec::new();
    for progress in &seen.case.exchange.progress {
        match progress.value {
            Some(value) if value > best => best = value,
            Some(_) => bad.push(progress.span),
            None => {}
        }
    }
    (!bad.is_empty()).then(|| with_spans(seen, Code::ProgressNotIncreasing, &bad))
}

/// The server's own result, later than the caller's giving up by more than clocks may differ.
fn late_result_discarded(seen: &Seen) -> Option<Finding> {
    let x = &seen.case.exchange;
    if !matches!(seen.standing, Standing::Ended(Ending::TimedOut | Ending::Cancelled)) {
        return None;
    }
    let answering = x.answering.as_ref()?;
    let own = answering.answer.failure.is_none() && super::ending::own_answer(&answering.answer);
    let finished = end_of(Some(answering)).filter(|_| own)?;
    let gave_up = end_of(x.asking.as_ref()).or_else(|| x.cancel.map(|cancel| cancel.at))?;
    (finished > gave_up.saturating_add(seen.case.clock_skew))
        .then(|| plain(seen, Code::LateResultDiscarded))
}

fn session_expired(seen: &Seen) -> Option<Finding> {
    (seen.ending == Ending::SessionExpired).then(|| plain(seen, Code::SessionExpired))
}

/// Blame is the asking side's; the rule is a `must` from 2025-06-18 on.
fn capability_not_negotiated(seen: &Seen) -> Option<Finding> {
    let x = &seen.case.exchange;
    let capability = outside_capabilities(x, &seen.case.scope)?;
    let version = x.version.as_ref().or(seen.case.scope.version.as_ref());
    let strength = match since(version, "2025-06-18") {
        true => Strength::Must,
        false => Strength::Should,
    };
    let blame = match x.direction {
        Direction::ServerToClient => Blame::Server,
        _ => Blame::Client,
    };
    let detail = Detail::Key(Name::new(capability));
    let finding = plain(seen, Code::CapabilityNotNegotiated).blame(blame).strength(strength);
    Some(finding.detail(detail))
}

/// Versions are dates: their order is that of their text.
fn since(version: Option<&Name>, first: &str) -> bool {
    version.is_some_and(|version| version.as_str() >= first)
}

fn contract_drift(seen: &Seen) -> Option<Finding> {
    let contract = &seen.case.catalog.contract;
    if !seen.is_call() || contract.status != Some(ContractStatus::Drifted) {
        return None;
    }
    let mut finding = plain(seen, Code::ContractDrift);
    if contract.confidence == Some(Confidence::Weak) {
        finding = finding.weak();
    }
    let pointers: Vec<&str> = contract.pointers.iter().map(Name::as_str).collect();
    Some(match Name::some(&pointers.join(" ")) {
        Some(pointers) => finding.detail(Detail::Pointer(pointers)),
        None => finding,
    })
}

fn argument_not_in_contract(seen: &Seen) -> Option<Finding> {
    let unknown = seen.case.catalog.unknown_arguments as u64;
    (seen.is_call() && unknown > 0)
        .then(|| plain(seen, Code::ArgumentNotInContract).detail(Detail::Count(unknown)))
}

fn unknown_tool(seen: &Seen) -> Option<Finding> {
    let unlisted = seen.is_call() && seen.case.catalog.tool_listed == Some(false);
    unlisted.then(|| plain(seen, Code::UnknownTool))
}

fn output_schema_mismatch(seen: &Seen) -> Option<Finding> {
    seen.output_mismatch().then(|| plain(seen, Code::OutputSchemaMismatch))
}

/// An unknown tool answered as `isError`, or a known tool's arguments refused as -32602 where they
/// are the tool's to refuse (from 2025-11-25 on).
fn error_channel_mismatch(seen: &Seen) -> Option<Finding> {
    let version = seen.case.exchange.version.as_ref().or(seen.case.scope.version.as_ref());
    let wrong = match seen.case.catalog.tool_listed {
        Some(false) => seen.ending == Ending::Result { is_error: Some(true) },
        Some(true) => {
            seen.ending == Ending::Error { code: Some(-32602) } && since(version, "2025-11-25")
        }
        None => false,
    };
    (seen.is_call() && wrong).then(|| plain(seen, Code::ErrorChannelMismatch))
}

fn result_text_contradicts_flag(seen: &Seen) -> Option<Finding> {
    let contradicts = |half: &Half| half.answer.error_text && half.answer.is_error == Some(false);
    let x = &seen.case.exchange;
    x.halves().any(contradicts).then(|| plain(seen, Code::ResultTextContradictsFlag))
}

/// What one half says of the result, where it says anything: enough to compare two halves.
fn told(answer: &Answer) -> Option<(Option<bool>, Option<i64>)> {
    let told = answer.is_error.is_some() || answer.code.is_some();
    told.then_some(match answer.is_error {
        Some(is_error) => (Some(is_error), None),
        None => (None, answer.code),
    })
}

/// Two results for one request. A caller that gave up, or whose connection broke, reports none.
fn views_disagree(seen: &Seen) -> Option<Finding> {
    let x = &seen.case.exchange;
    let (asking, answering) = (&x.asking.as_ref()?.answer, &x.answering.as_ref()?.answer);
    if seen.lost() || matches!(seen.ending, Ending::Unauthorized { .. } | Ending::NotSent { .. }) {
        return None;
    }
    let disagree = match (told(asking), told(answering)) {
        (Some(left), Some(right)) => left != right,
        // The caller's SDK raised over an answer that the server gave as a result.
        (Some((None, Some(_))), None) => answering.result_seen && answering.failure.is_none(),
        (None, Some((Some(false), _))) => asking.failure == Some(Failure::Unnamed),
        _ => false,
    };
    disagree.then(|| plain(seen, Code::ViewsDisagree))
}

fn input_required_never_resumed(seen: &Seen) -> Option<Finding> {
    (seen.standing == Standing::Abandoned).then(|| plain(seen, Code::InputRequiredNeverResumed))
}

fn task_never_finished(seen: &Seen) -> Option<Finding> {
    let due = clocks::task_due(&seen.case.exchange, &seen.case.operation);
    let silent =
        seen.standing == Standing::TaskRunning && due.is_some_and(|at| seen.case.now >= at);
    silent.then(|| plain(seen, Code::TaskNeverFinished))
}

fn stream_outlives_request(seen: &Seen) -> Option<Finding> {
    let x = &seen.case.exchange;
    let http = x.http.filter(|http| http.by == End::Asking && sane(http.end))?;
    let end = end_of(x.asking.as_ref())?;
    (http.end > end.saturating_add(seen.case.clock_skew))
        .then(|| plain(seen, Code::StreamOutlivesRequest))
}

/// On the verdict for the call's own attribute; listings have theirs on the session record.
fn digest_scheme_mismatch(seen: &Seen) -> Option<Finding> {
    let foreign = |half: &Half| matches!(half.call.contract, Some(Digest::Foreign(_)));
    let x = &seen.case.exchange;
    let detail = Detail::Key(Name::new(CALL_CONTRACT_DIGEST));
    x.halves().any(foreign).then(|| plain(seen, Code::DigestSchemeMismatch).detail(detail))
}

fn refused_locally(seen: &Seen) -> Option<Finding> {
    (seen.ending == Ending::RefusedLocally).then(|| plain(seen, Code::RefusedLocally))
}
