//! One case, one verdict (judgment.md §5, 8): ladders, state, findings and the record around them.

use super::findings::findings;
use super::seen::{Seen, Standing};
use super::states::{self, Act, Facts};
use super::witness::{Note, Witness};
use super::{ending, ladders};
use crate::model::case::{Case, Ending, Exchange, Half};
use crate::model::ids::{Digest16, Nanos, sane};
use crate::model::record::{
    Contract, FailureLayers, FailureRow, Layers, OperatorRow, Outcome, Verdict,
};
use crate::model::words::*;

/// The conclusion on one request as its case has it: revision 1. What its operation's other
/// attempts add is [`super::operation`]'s; `owner_contact` and `merged_into` are the engine's.
pub fn verdict(case: &Case, ending: Ending, w: &mut impl Witness) -> Verdict {
    let seen = Seen::new(case, ending);
    let layers = ladders::health(&seen);
    let failure_layers = ladders::failure(&seen);
    let first_failed_layer = ladders::first_failed(&failure_layers);
    let facts = Facts { seen: &seen, layers: &layers };
    let (number, row) = states::state(&facts);
    let act = (row.act)(&facts);
    testify(&seen, &layers, &failure_layers, (number, row), w);
    let failure = first_failed_layer.map(|layer| {
        let Act { reason, owner, next_step, .. } = states::failure(&facts, layer);
        FailureRow { layer, reason, owner, next_step }
    });
    let x = &case.exchange;
    let primary = x.primary().map(|half| half.at).unwrap_or_default();
    Verdict {
        id: chain_id(x),
        revision: 1,
        supersedes: None,
        scope: case.scope_name.clone(),
        session_id: x.session_id.clone(),
        era: x.era,
        protocol_version: x.version.clone().or_else(|| case.scope.version.clone()),
        transport: x.transport,
        agent: x.agent.clone(),
        server: x.server.clone(),
        method: x.method.clone(),
        tool: x.tool.clone(),
        request_id: x.request_id.clone(),
        operation_id: case.operation.id.clone(),
        attempt: case.operation.attempt,
        state: row.state,
        reason: act.reason,
        lifecycle: lifecycle(&seen),
        layers,
        failure_layers,
        first_failed_layer,
        convergence: convergence(case),
        contract: contract(case),
        effect: seen.effect_fact.map(|fact| fact.status),
        outcome: outcome(&seen),
        confidence: if act.weak { Confidence::Weak } else { Confidence::Strong },
        findings: findings(&seen, w),
        next_step: act.next_step,
        owner: act.owner,
        retry: act.retry,
        trace_id: primary.recorded().then_some(primary.trace),
        client_span_id: x
            .asking
            .as_ref()
            .filter(|half| half.at.recorded())
            .map(|half| half.at.span),
        server_span_id: x.answering.as_ref().map(|half| half.at.span),
        start_time: x.start(),
        end_time: x.primary().filter(|half| half.ended && half.end != 0).map(|half| half.end),
        evidence_time: evidence_time(case),
        operator: operator(x, row.impact, failure),
    }
}

/// judgment.md §8: over the asking half; where only the answering one is known, over its trace and
/// the span above it, which is the asking half that nobody saw, else over its own.
pub fn chain_id(x: &Exchange) -> Digest16 {
    let (trace, span) = match (&x.asking, &x.answering) {
        (Some(half), _) => (half.at.trace, half.at.span),
        (None, Some(half)) => (half.at.trace, half.parent.unwrap_or(half.at.span)),
        (None, None) => Default::default(),
    };
    Digest16::plain(&[&trace.0, &span.0])
}

fn testify(
    seen: &Seen,
    layers: &Layers,
    failure: &FailureLayers,
    (number, row): (usize, &states::Row),
    w: &mut impl Witness,
) {
    let rule = ending::ruled(&seen.case.exchange, &seen.case.scope).1;
    w.note(Note::Ending { ending: seen.ending, rule: rule.id, says: rule.says });
    if let Some(fact) = seen.effect_fact {
        w.note(Note::Effect(fact.clone()));
    }
    if let Some(fact) = seen.outcome_fact {
        w.note(Note::Outcome(fact.clone()));
    }
    for layer in Layer::ALL.iter().copied() {
        w.note(Note::Health { layer, rung: layers.get(layer) });
    }
    for layer in FailureLayer::ALL.iter().copied() {
        w.note(Note::Failure { layer, rung: failure.get(layer) });
    }
    w.note(Note::Row { number, state: row.state, says: row.says });
}

/// How the exchange itself went, whatever the state says of it.
fn lifecycle(seen: &Seen) -> Lifecycle {
    let ending = match seen.standing {
        Standing::Running | Standing::TaskRunning => return Lifecycle::Open,
        Standing::AwaitingInput => return Lifecycle::AwaitingInput,
        Standing::RanOut(_) | Standing::Abandoned => return Lifecycle::Expired,
        Standing::TaskFailed => return Lifecycle::Complete,
        Standing::Ended(ending) => ending,
    };
    match ending {
        Ending::TimedOut if seen.case.exchange.cancel.is_some() => Lifecycle::Cancelled,
        Ending::Cancelled => Lifecycle::Cancelled,
        Ending::TimedOut | Ending::Lost { .. } | Ending::Unnamed => Lifecycle::Lost,
        Ending::NotSent { reason: Reason::ConnectionFailed | Reason::TlsFailed } => Lifecycle::Lost,
        Ending::Unobserved => Lifecycle::Partial,
        _ => Lifecycle::Complete,
    }
}

/// Methods other than `tools/call` have no catalog to be behind of.
fn convergence(case: &Case) -> Option<Convergence> {
    let seen = case.catalog.convergence.unwrap_or(Convergence::Unverifiable);
    case.exchange.is_call().then_some(seen)
}

fn contract(case: &Case) -> Contract {
    if !case.exchange.is_call() {
        return Contract::default();
    }
    let contract = &case.catalog.contract;
    Contract {
        status: Some(contract.status.unwrap_or(ContractStatus::Unknown)),
        digest: contract.digest.as_ref().map(|digest| digest.name()),
    }
}

fn outcome(seen: &Seen) -> Outcome {
    seen.outcome_fact
        .map(|fact| Outcome { status: Some(fact.status), method: fact.method })
        .unwrap_or_default()
}

/// The newest believable time of anything the verdict rests on.
fn evidence_time(case: &Case) -> Nanos {
    let x = &case.exchange;
    let mut times: Vec<Nanos> = Vec::new();
    times.extend(x.halves().flat_map(|half| [half.start, half.end]));
    times.extend(x.cancel.map(|cancel| cancel.at));
    times.extend(x.progress.iter().map(|progress| progress.at));
    times.extend(x.effects.iter().map(|fact| fact.time));
    times.extend(x.outcomes.iter().map(|fact| fact.time));
    times.extend(case.operation.task.as_ref().map(|task| task.at));
    times.extend(case.operation.run_ended);
    times.into_iter().filter(|time| sane(*time)).max().unwrap_or_else(|| x.start())
}

fn operator(x: &Exchange, impact: Impact, failure: Option<FailureRow>) -> OperatorRow {
    let span = x.primary().map(|half| half.at).unwrap_or_default();
    let scope = |half: &Half| half.call.required_scope.clone();
    let answering = x.answering.as_ref().map(|half| half.at);
    OperatorRow {
        impact: Some(impact),
        required_scope: x.halves().find_map(scope),
        agent_run: x.agent_run.clone(),
        owner_contact: None,
        merged_into: None,
        span,
        answering: answering.filter(|at| at.trace != span.trace),
        failure,
    }
}
