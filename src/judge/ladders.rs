//! The two ladders of a request (judgment.md §5). Each rung is one function over what was seen;
//! behind the first failed rung everything is taken back to `unobserved`.

use super::seen::{Seen, Standing};
use crate::model::case::Ending;
use crate::model::record::{FailureLayers, Layers};
use crate::model::words::*;

/// `session` → `catalog` → `request` → `effect` → `outcome`.
pub fn health(seen: &Seen) -> Layers {
    let rungs = behind_first_failed([
        seen.session.rung,
        catalog(seen),
        request(seen),
        effect(seen),
        outcome(seen, seen.outcome_failed() && seen.succeeded()),
    ]);
    let [session, catalog, request, effect, outcome] = rungs;
    Layers { session, catalog, request, effect, outcome }
}

/// `transport` → `protocol` → `authority` → `execution` → `outcome`.
pub fn failure(seen: &Seen) -> FailureLayers {
    let wrong = (seen.outcome_failed() || seen.effect_absent()) && seen.succeeded();
    let rungs = behind_first_failed([
        transport(seen),
        protocol(seen),
        authority(seen),
        execution(seen),
        outcome(seen, wrong && seen.is_call()),
    ]);
    let [transport, protocol, authority, execution, outcome] = rungs;
    FailureLayers { transport, protocol, authority, execution, outcome }
}

pub fn first_failed(layers: &FailureLayers) -> Option<FailureLayer> {
    FailureLayer::ALL.iter().copied().find(|layer| layers.get(*layer) == Rung::Failed)
}

/// Nobody looks behind a broken rung, not even where there is nothing to see.
fn behind_first_failed(mut rungs: [Rung; 5]) -> [Rung; 5] {
    if let Some(failed) = rungs.iter().position(|rung| *rung == Rung::Failed) {
        rungs[failed + 1..].fill(Rung::Unobserved);
    }
    rungs
}

fn catalog(seen: &Seen) -> Rung {
    if !seen.is_call() {
        return Rung::NotApplicable;
    }
    match seen.case.catalog.convergence {
        _ if seen.catalog_failed() => Rung::Failed,
        Some(Convergence::Converged) => Rung::Passed,
        _ => Rung::Unobserved,
    }
}

fn request(seen: &Seen) -> Rung {
    match seen.standing {
        _ if seen.given() => Rung::Passed,
        _ if seen.waiting() => Rung::Pending,
        _ if seen.execution_failed() || seen.nameless() => Rung::Failed,
        Standing::Ended(ending) => match ending {
            Ending::Result { is_error: Some(false) } => Rung::Passed,
            Ending::Result { .. } => match !seen.is_call() || answer_by_outcome(seen) {
                true => Rung::Passed,
                false => Rung::Unobserved,
            },
            Ending::Error { .. }
            | Ending::Unauthorized { .. }
            | Ending::NotSent { .. }
            | Ending::Incompatible { .. }
            | Ending::SessionExpired
            | Ending::RefusedLocally => Rung::Failed,
            Ending::Lost { .. } | Ending::TimedOut if transport_lost(seen) => Rung::Failed,
            _ => Rung::Unobserved,
        },
        Standing::RanOut(_) if transport_lost(seen) => Rung::Failed,
        _ => Rung::Unobserved,
    }
}

/// `isError` was not observable, but somebody looked at what came of it.
fn answer_by_outcome(seen: &Seen) -> bool {
    seen.verified() || seen.outcome_failed()
}

fn effect(seen: &Seen) -> Rung {
    match seen.effect() {
        _ if !seen.effect_possible() => Rung::NotApplicable,
        Some(Effect::Confirmed) => Rung::Passed,
        Some(Effect::Absent) if seen.succeeded() => Rung::Failed,
        _ => Rung::Unobserved,
    }
}

/// The last rung of both ladders: `wrong` is what each of them calls a failed outcome.
fn outcome(seen: &Seen, wrong: bool) -> Rung {
    match seen.outcome() {
        _ if !seen.is_call() => Rung::NotApplicable,
        _ if wrong => Rung::Failed,
        Some(OutcomeStatus::Verified) => Rung::Passed,
        _ => Rung::Unobserved,
    }
}

/// The transport lost an answer where no effect is left to wonder about, or to a method that can
/// have none.
pub(super) fn transport_lost(seen: &Seen) -> bool {
    match seen.is_call() {
        true => seen.broken() && seen.harmless(),
        false => seen.broken() || seen.out_of_time(),
    }
}

fn transport(seen: &Seen) -> Rung {
    match seen.standing {
        Standing::Ended(Ending::NotSent { .. }) => Rung::Failed,
        _ if seen.given() => Rung::Passed,
        _ if seen.broken() || transport_lost(seen) => Rung::Failed,
        _ if arrived(seen) => Rung::Passed,
        Standing::Running => Rung::Pending,
        _ => Rung::Unobserved,
    }
}

/// The request reached a server, or HTTP answered for it.
fn arrived(seen: &Seen) -> bool {
    let x = &seen.case.exchange;
    let status = x.http.is_some_and(|http| http.status != 0)
        || x.halves().any(|half| half.answer.http_status.is_some());
    x.answering.is_some() || status || answered(seen)
}

/// A JSON-RPC answer came: a result, an error, a task, a question.
fn answered(seen: &Seen) -> bool {
    let ended = match seen.ending {
        Ending::Result { .. } | Ending::InputRequired | Ending::Task => true,
        Ending::Error { code } => code.is_some(),
        Ending::Incompatible { .. } | Ending::SessionExpired => true,
        _ => false,
    };
    ended || seen.standing == Standing::TaskFailed
}

fn protocol(seen: &Seen) -> Rung {
    match seen.standing {
        _ if seen.session.rung == Rung::Failed => Rung::Failed,
        _ if seen.nameless() => Rung::Failed,
        Standing::Ended(Ending::Error { .. } | Ending::RefusedLocally) => Rung::Failed,
        _ if result_seen(seen) => Rung::Passed,
        _ if seen.waiting() => Rung::Pending,
        _ => Rung::Unobserved,
    }
}

/// A result was seen, or a server half ended without an error. A question that came as -32042 is
/// neutral, no result.
fn result_seen(seen: &Seen) -> bool {
    let x = &seen.case.exchange;
    let served = x.answering.as_ref().is_some_and(|half| {
        half.ended && half.answer.failure.is_none() && half.answer.code.is_none()
    });
    let shown = |half: &crate::model::case::Half| {
        half.answer.is_error.is_some()
            || half.answer.result_type.is_some()
            || half.answer.result_seen && half.answer.failure.is_none()
    };
    match seen.ending {
        Ending::Result { .. } | Ending::InputRequired | Ending::Task => {
            served || x.halves().any(shown)
        }
        Ending::Unauthorized { .. } | Ending::NotSent { .. } => false,
        _ => served,
    }
}

fn authority(seen: &Seen) -> Rung {
    let x = &seen.case.exchange;
    let admitted = x.answering.is_some()
        || answered(seen)
        || seen.given()
        || x.http.is_some_and(|http| (200..400).contains(&http.status))
        || x.halves().any(|h| h.answer.http_status.is_some_and(|s| (200..400).contains(&s)));
    match seen.standing {
        Standing::Ended(Ending::Unauthorized { .. }) => Rung::Failed,
        _ if admitted => Rung::Passed,
        Standing::Running => Rung::Pending,
        _ => Rung::Unobserved,
    }
}

fn execution(seen: &Seen) -> Rung {
    match seen.result() {
        _ if !seen.is_call() => Rung::NotApplicable,
        _ if seen.execution_failed() => Rung::Failed,
        _ if seen.given() => Rung::Passed,
        _ if seen.waiting() => Rung::Pending,
        Some(Some(false)) => Rung::Passed,
        Some(None) if seen.verified() => Rung::Passed,
        _ => Rung::Unobserved,
    }
}
