//! Properties over arbitrary cases: judgement is total, missing evidence is never green, and
//! nothing is said of what lies behind a broken rung.

use proptest::option::of;
use proptest::prelude::*;

use super::build::*;
use crate::judge::operation::{Attempt, finish};
use crate::judge::{clocks, ending};
use crate::model::case::*;
use crate::model::digest::Digest;
use crate::model::fact::*;
use crate::model::ids::{Digest16, Name, Nanos, SpanId};
use crate::model::policy::Policy;
use crate::model::record::Verdict;
use crate::model::words::*;

fn one_of<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    proptest::sample::select(all)
}

/// Believable times, and those that nobody can believe.
fn time() -> impl Strategy<Value = Nanos> {
    prop_oneof![8 => (0u64..2_000_000).prop_map(ms), 1 => Just(0), 1 => Just(u64::MAX)]
}

const FAILURES: &[Failure] = &[
    Failure::Timeout,
    Failure::Cancelled,
    Failure::ClientDisconnected,
    Failure::NotConnected,
    Failure::Tls,
    Failure::ConnectionLost,
    Failure::SessionExpired,
    Failure::InvalidToken,
    Failure::InsufficientScope,
    Failure::Forbidden,
    Failure::UnsupportedVersion,
    Failure::MissingCapability,
    Failure::RefusedLocally,
    Failure::HandlerRaised,
    Failure::Unnamed,
];
const CODES: &[i64] = &[
    -32700,
    -32600,
    -32601,
    -32602,
    -32603,
    -32000,
    -32001,
    -32002,
    -32003,
    -32004,
    -32020,
    -32021,
    -32022,
    -32042,
    7,
    i64::MIN,
];
const STATUSES: &[u16] =
    &[200, 202, 301, 400, 401, 403, 404, 405, 408, 429, 500, 502, 503, 504, 999, u16::MAX];
const FAULTS: &[Fault] =
    &[Fault::NotConnected, Fault::Tls, Fault::Lost, Fault::Timeout, Fault::Cancelled];
const ENDS: &[End] = &[End::Asking, End::Answering, End::Unknown];
const METHODS: &[&str] = &[
    "tools/call",
    "tools/call",
    "tools/call",
    "tools/list",
    "initialize",
    "server/discover",
    "subscriptions/listen",
    "tasks/get",
    "sampling/createMessage",
    "",
];
const VERSIONS: &[&str] = &["", "2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28", "zz"];
const REDS: &[Reason] = &[Reason::ContractDrift, Reason::ContractUnpinned];

prop_compose! {
    fn answer()(
        is_error in of(any::<bool>()),
        result_seen in any::<bool>(),
        code in of(one_of(CODES)),
        http_status in of(one_of(STATUSES)),
        failure in of(one_of(FAILURES)),
        result_type in of(one_of(ResultType::ALL)),
        error_text in any::<bool>(),
    ) -> Answer {
        Answer {
            is_error,
            result_seen,
            code,
            http_status,
            failure,
            result_type,
            error_text,
            result: None,
        }
    }
}

prop_compose! {
    fn any_half(number: u8)(
        start in time(),
        end in time(),
        ended in any::<bool>(),
        answer in answer(),
        deadline in of(any::<u64>()),
        foreign in any::<bool>(),
    ) -> Half {
        let mut half = half(number, 0, 0);
        (half.start, half.end, half.ended, half.answer) = (start, end, ended, answer);
        half.call.deadline = deadline;
        half.call.contract = foreign.then(|| Digest::Foreign(Name::new("x")));
        half
    }
}

prop_compose! {
    fn exchange()(
        asking in of(any_half(1)),
        answering in of(any_half(2)),
        method in one_of(METHODS),
        era in one_of(Era::ALL),
        version in one_of(VERSIONS),
        session in any::<bool>(),
        http in of((of(one_of(STATUSES)), of(one_of(FAULTS)), time(), one_of(ENDS))),
        cancel in of((time(), one_of(ENDS))),
        progress in prop::collection::vec((time(), of(any::<f64>())), 0..4),
        read_only in of(any::<bool>()),
        idempotent in of(any::<bool>()),
        clocks in (any::<u64>(), any::<u64>()),
    ) -> Exchange {
        let mut x = call().exchange;
        (x.asking, x.answering, x.era) = (asking, answering, era);
        (x.method, x.version) = (Name::new(method), Name::some(version));
        x.session_id = session.then(|| Name::new("s1"));
        x.http = http.map(|(status, fault, end, by)| {
            HttpSeen { status: status.unwrap_or(0), fault, end, by }
        });
        x.cancel = cancel.map(|(at, by)| CancelSeen { at, by });
        let seen = |(at, value)| ProgressSeen { at, value, span: SpanId([9; 8]) };
        x.progress = progress.into_iter().map(seen).collect();
        (x.read_only, x.idempotent) = (read_only, idempotent);
        (x.deadline, x.inactivity) = clocks;
        x
    }
}

prop_compose! {
    fn evidence()(
        effects in prop::collection::vec((one_of(Effect::ALL), time()), 0..3),
        outcomes in prop::collection::vec(
            (one_of(OutcomeStatus::ALL), of(one_of(OutcomeMethod::ALL)), time()), 0..3),
    ) -> (Vec<EffectFact>, Vec<OutcomeFact>) {
        let from = Origin::Attribute;
        let effect = |(status, time)| EffectFact { status, time, from };
        let outcome = |(status, method, time)| OutcomeFact { status, method, time, from };
        (
            effects.into_iter().map(effect).collect(),
            outcomes.into_iter().map(outcome).collect(),
        )
    }
}

prop_compose! {
    fn task()(
        status in one_of(TaskStatus::ALL),
        at in time(),
        is_error in of(any::<bool>()),
        code in of(one_of(CODES)),
        result_seen in any::<bool>(),
    ) -> TaskSeen {
        TaskSeen { status, at, is_error, code, result_seen }
    }
}

prop_compose! {
    fn any_case()(
        exchange in exchange(),
        (effects, outcomes) in evidence(),
        now in time(),
        flags in any::<[bool; 7]>(),
        convergence in of(one_of(Convergence::ALL)),
        red in of(one_of(REDS)),
        task in of(task()),
        run_ended in of(time()),
        requires in prop::sample::subsequence(Layer::ALL.to_vec(), 0..=5),
        key in any::<bool>(),
    ) -> Case {
        let mut case = call();
        (case.exchange, case.now, case.requires) = (exchange, now, requires);
        (case.exchange.effects, case.exchange.outcomes) = (effects, outcomes);
        case.exchange.operation_key = key.then_some(Digest16([7; 16]));
        let scope = &mut case.scope;
        [scope.negotiated, scope.negotiation_failed, scope.answered_before, scope.answered_ever,
            case.catalog.output_mismatch, case.operation.resumed, _] = flags;
        scope.server_capabilities = flags[6].then(Default::default);
        case.catalog.convergence = convergence;
        case.catalog.contract.red = red;
        (case.operation.task, case.operation.run_ended) = (task, run_ended);
        case
    }
}

fn green(rung: Rung) -> bool {
    matches!(rung, Rung::Passed | Rung::NotApplicable)
}

/// Rungs behind the first failed one are all `unobserved`.
fn quiet_behind_the_break(rungs: &[Rung]) -> bool {
    let mut behind = rungs.iter().skip_while(|rung| **rung != Rung::Failed).skip(1);
    behind.all(|rung| *rung == Rung::Unobserved)
}

fn health_rungs(verdict: &Verdict) -> Vec<Rung> {
    Layer::ALL.iter().map(|layer| verdict.layers.get(*layer)).collect()
}

fn failure_rungs(verdict: &Verdict) -> Vec<Rung> {
    FailureLayer::ALL.iter().map(|layer| verdict.failure_layers.get(*layer)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn every_case_has_a_verdict_that_keeps_the_principles(case in any_case()) {
        let verdict = judged(&case);
        let first = FailureLayer::ALL
            .iter()
            .find(|layer| verdict.failure_layers.get(**layer) == Rung::Failed);
        prop_assert_eq!(first, verdict.first_failed_layer.as_ref());
        prop_assert!(quiet_behind_the_break(&health_rungs(&verdict)));
        prop_assert!(quiet_behind_the_break(&failure_rungs(&verdict)));
        prop_assert_eq!(
            verdict.operator.failure.map(|failure| failure.layer),
            verdict.first_failed_layer
        );
        if verdict.state == State::Healthy {
            prop_assert!(case.requires.iter().all(|layer| green(verdict.layers.get(*layer))));
            prop_assert_eq!(verdict.reason, None);
        } else {
            prop_assert!(verdict.reason.is_some(), "{} without a reason", verdict.state);
        }
        let somebody = verdict.owner != Owner::None;
        let calm = [State::Working, State::Cancelled, State::Healthy].contains(&verdict.state);
        prop_assert_eq!(somebody, !calm);
        let wait = verdict.next_step == NextStep::Wait;
        prop_assert_eq!(wait, verdict.state == State::Working);
    }

    /// The order in which facts are held does not matter.
    #[test]
    fn a_verdict_is_a_function_of_a_set(case in any_case()) {
        let mut turned = case.clone();
        turned.exchange.effects.reverse();
        turned.exchange.outcomes.reverse();
        prop_assert_eq!(judged(&case), judged(&turned));
    }

    /// No evidence at all can be taken away and make a verdict greener.
    #[test]
    fn without_outcome_and_effect_no_call_is_healthy(case in any_case()) {
        let mut bare = case;
        bare.exchange.effects.clear();
        bare.exchange.outcomes.clear();
        bare.requires = Layer::ALL.to_vec();
        let verdict = judged(&bare);
        prop_assert!(!bare.exchange.is_call() || verdict.state != State::Healthy);
    }

    /// Time alone changes nothing before the timer says so, nor after it.
    #[test]
    fn due_is_the_only_moment(case in any_case()) {
        let ending = ending(&case.exchange, &case.scope);
        let due = clocks::due(&case.exchange, ending, &case.operation);
        let at = |now: Nanos| { let mut c = case.clone(); c.now = now; judged(&c) };
        match due {
            None => prop_assert_eq!(at(0), at(u64::MAX)),
            Some(due) => {
                prop_assert_eq!(at(due), at(u64::MAX));
                prop_assert_eq!(at(0), at(due.saturating_sub(1)));
            }
        }
    }

    #[test]
    fn operations_are_total(cases in prop::collection::vec(any_case(), 0..5)) {
        let attempts: Vec<Attempt> = cases
            .iter()
            .map(|case| Attempt {
                exchange: &case.exchange,
                ending: ending(&case.exchange, &case.scope),
                verdict: judged(case),
            })
            .collect();
        let done = finish(&attempts, &Policy::default().retry_budget);
        prop_assert_eq!(done.len(), attempts.len());
        for (own, verdict) in attempts.iter().zip(&done) {
            let superseded = verdict.lifecycle == Lifecycle::Superseded;
            prop_assert_eq!(verdict.reason == Some(Reason::Superseded), superseded);
            prop_assert!(superseded || verdict.state == own.verdict.state);
        }
        prop_assert!(done.last().is_none_or(|last| last.lifecycle != Lifecycle::Superseded));
    }
}
