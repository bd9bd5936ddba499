//! What attempts say of each other, and the summary over all.

use super::build::*;
use crate::judge::operation::{Attempt, finish};
use crate::judge::summary::summary;
use crate::model::case::Case;
use crate::model::fact::Failure;
use crate::model::ids::{Digest16, SpanId};
use crate::model::policy::Policy;
use crate::model::record::Verdict;
use crate::model::words::*;

fn finished(cases: Vec<Case>) -> Vec<Verdict> {
    let cases: Vec<Case> = cases.into_iter().enumerate().map(numbered).collect();
    let attempts: Vec<Attempt> = cases
        .iter()
        .map(|case| Attempt {
            exchange: &case.exchange,
            ending: crate::judge::ending(&case.exchange, &case.scope),
            verdict: judged(case),
        })
        .collect();
    finish(&attempts, &Policy::default().retry_budget)
}

/// One after the other, each with spans of its own.
fn numbered((at, case): (usize, Case)) -> Case {
    case.with(|c| {
        let later = at as u64 * 10_000;
        for half in c.exchange.asking.iter_mut().chain(c.exchange.answering.iter_mut()) {
            half.at.span = SpanId([half.at.span.0[0] + 10 * at as u8; 8]);
            half.start += ms(later) - ms(0);
            half.end += ms(later) - ms(0);
        }
    })
}

fn said(cases: Vec<Case>) -> Vec<String> {
    let line = |verdict: &Verdict| {
        let codes: Vec<&str> = verdict.findings.iter().map(|f| f.code.as_str()).collect();
        format!(
            "{} {} {} [{}]",
            verdict.state,
            word(verdict.reason),
            verdict.lifecycle,
            codes.join(" ")
        )
    };
    finished(cases).iter().map(line).collect()
}

fn keyed(case: Case) -> Case {
    case.with(|c| c.exchange.operation_key = Some(Digest16([7; 16])))
}

fn green(case: Case) -> Case {
    case.flagged(false).effect(Effect::Confirmed, 3_000).outcome(
        OutcomeStatus::Verified,
        OutcomeMethod::Query,
        3_100,
    )
}

fn round() -> Case {
    call().modern().served().asks(|a| a.result_type = Some(ResultType::InputRequired))
}

#[test]
fn superseding() {
    let lost = || call().fails(Failure::Timeout);
    let superseded = "healthy superseded superseded []";
    let rows: Vec<(&str, Vec<Case>, Vec<&str>)> = vec![
        (
            "with a key the answered attempt speaks for the lost one",
            vec![keyed(lost()), green(keyed(call()))],
            vec![superseded, "healthy - complete []"],
        ),
        (
            "broken after sending too",
            vec![keyed(call().http(502)), green(keyed(call()))],
            vec![superseded, "healthy - complete []"],
        ),
        (
            "without a key the lost one stands",
            vec![lost(), green(call())],
            vec!["effect_unknown timeout lost []", "healthy - complete []"],
        ),
        (
            "cancelled and refused ones stand",
            vec![
                keyed(call().fails(Failure::Cancelled)),
                keyed(call().http(503)),
                green(keyed(call())),
            ],
            vec![
                "effect_unknown cancelled cancelled []",
                "unreachable http_503 complete []",
                "healthy - complete []",
            ],
        ),
        (
            "a refusal answers for nobody",
            vec![keyed(lost()), keyed(call().code(-32602))],
            vec!["effect_unknown timeout lost []", "protocol_error invalid_params complete []"],
        ),
        (
            "input rounds",
            vec![round(), round(), call().modern().flagged(false)],
            vec![
                "unverified superseded superseded []",
                "unverified superseded superseded []",
                "unverified unobserved_outcome complete []",
            ],
        ),
        (
            "the last round waits",
            vec![round(), round()],
            vec!["working superseded superseded []", "working awaiting_input awaiting_input []"],
        ),
        (
            "a probe that found a legacy server",
            vec![
                call().method("server/discover").modern().code(-32601),
                call().method("initialize").served(),
            ],
            vec![superseded, "healthy - complete []"],
        ),
        (
            "a probe that was answered",
            vec![
                call().method("server/discover").modern().served(),
                call().method("initialize").served(),
            ],
            vec!["healthy - complete []", "healthy - complete []"],
        ),
    ];
    for (name, cases, want) in rows {
        assert_eq!(said(cases), want, "{name}");
    }
}

#[test]
fn budgets() {
    let flagged = |cases: Vec<Case>| -> Vec<usize> {
        let over =
            |v: &Verdict| v.findings.iter().any(|f| f.code.as_str() == "retry_budget_exceeded");
        let done = finished(cases);
        (0..done.len()).filter(|at| over(&done[*at])).collect()
    };
    let refused = || keyed(call().http(503));
    assert_eq!(flagged(vec![refused(), refused(), refused(), refused(), refused()]), [4]);
    let denied = || keyed(call().http(401));
    assert_eq!(flagged(vec![denied(), denied(), denied()]), [2], "one retry of authority");
    let wrong = || keyed(call().code(-32602));
    assert_eq!(flagged(vec![wrong(), wrong()]), [1], "no retry of a refused contract");
    let probe = call().method("server/discover").modern().code(-32601);
    let init = || call().method("initialize").served();
    assert_eq!(flagged(vec![probe, init()]), [0usize; 0], "a probe is no attempt of initialize");
    let broken = || keyed(call().http(502));
    let all = vec![broken(), broken(), broken(), broken(), green(keyed(call()))];
    assert_eq!(flagged(all), [4], "counted before superseding");
}

#[test]
fn twice() {
    let twice = |cases: Vec<Case>| -> Vec<usize> {
        let dup = |v: &Verdict| v.findings.iter().any(|f| f.code.as_str() == "duplicate_execution");
        let done = finished(cases);
        (0..done.len()).filter(|at| dup(&done[*at])).collect()
    };
    let none = [0usize; 0];
    let gave_up = || call().fails(Failure::Timeout).answers(|a| a.is_error = Some(false));
    let idempotent = |case: Case| case.with(|c| c.exchange.idempotent = Some(true));
    assert_eq!(twice(vec![gave_up(), gave_up(), gave_up()]), [1, 2]);
    assert_eq!(twice(vec![gave_up().read_only(), gave_up().read_only()]), none);
    assert_eq!(twice(vec![idempotent(gave_up()), idempotent(gave_up())]), none);
    assert_eq!(twice(vec![call().fails(Failure::Timeout), call().flagged(false)]), none);
    assert_eq!(twice(vec![call().flagged(true), call().flagged(false)]), none);
    assert_eq!(twice(vec![call().code(-32602), call().flagged(false)]), none);
    assert_eq!(twice(vec![round(), round(), call().flagged(false)]), none);
    let receipt = call().fails(Failure::Timeout).effect(Effect::Confirmed, 3_000);
    assert_eq!(twice(vec![receipt, call().flagged(false)]), [1]);
    let absent = gave_up().effect(Effect::Absent, 3_000);
    assert_eq!(twice(vec![absent, call().flagged(false)]), none);
}

#[test]
fn counts() {
    let mut all = finished(vec![keyed(call().fails(Failure::Timeout)), green(keyed(call()))]);
    all.extend(finished(vec![call().flagged(true)]));
    all.push(judged(&call().method("tools/list").served()));
    let sum = summary(&all, 1);
    assert_eq!((sum.attempts, sum.protocol_success, sum.verified_success), (2, 2, 1));
    assert_eq!((sum.protocol_success_rate, sum.verified_success_rate), (Some(1.0), Some(0.5)));
    assert_eq!(sum.states, [(State::ToolFailed, 1), (State::Healthy, 1)].into());
    assert_eq!(sum.first_failed_layers, [(FailureLayer::Execution, 1)].into());
    assert_eq!(sum.incidents, 1);
    let none = summary(&[], 0);
    assert_eq!((none.attempts, none.protocol_success_rate), (0, None));
}

/// The eight calls of the failure ladder's article: 3 of 8 envelopes, 1 of 8 deliveries.
#[test]
fn eight_calls() {
    use crate::model::fact::Fault;
    let done = || call().flagged(false);
    let cases = [
        call().fault(Fault::NotConnected),
        call().http(503),
        call().code(-32601),
        call().http(401),
        call().http(403).fails(Failure::InsufficientScope),
        call().flagged(true),
        done().outcome(OutcomeStatus::Missing, OutcomeMethod::Query, 3_000),
        done().outcome(OutcomeStatus::Verified, OutcomeMethod::Query, 3_000),
    ];
    let verdicts: Vec<Verdict> = cases.iter().map(judged).collect();
    let sum = summary(&verdicts, 0);
    assert_eq!(sum.protocol_success_rate, Some(0.375));
    assert_eq!(sum.verified_success_rate, Some(0.125));
}

/// What is lost on its way, discarded or asked as an error code is no result that came.
#[test]
fn protocol_success_is_a_result_that_came() {
    let came = |case: Case| summary(&[judged(&case)], 0).protocol_success;
    assert_eq!(came(call().flagged(true)), 1);
    assert_eq!(came(round()), 1);
    assert_eq!(came(call().task(TaskStatus::Working, None, None)), 1);
    assert_eq!(came(call().code(-32042)), 0);
    assert_eq!(came(call().fails(Failure::Timeout).answers(|a| a.is_error = Some(false))), 0);
    assert_eq!(came(call().http(401)), 0);
    assert_eq!(came(call()), 0);
}
