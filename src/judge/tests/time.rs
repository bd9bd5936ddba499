//! The two clocks, the engine's timer, and the choice among conflicting facts.

use super::build::*;
use crate::model::case::Case;
use crate::model::ids::SECOND;
use crate::model::words::*;

#[test]
fn the_two_clocks() {
    let open = |deadline: u64, inactivity: u64| {
        call().open().with(|c| {
            c.exchange.deadline = deadline * SECOND;
            c.exchange.inactivity = inactivity * SECOND;
        })
    };
    let alive = |case: Case| (1..=6).fold(case, |c, n| c.progress(1_000 + n * 20_000, n as f64));
    check(
        vec![
            ("inside", open(300, 30).now(20_000), "working in_progress - open"),
            ("silent", open(300, 30).now(31_000), "effect_unknown inactive - expired"),
            ("kept alive", alive(open(300, 30)).now(121_000), "working in_progress - open"),
            (
                "the deadline never moves",
                alive(open(100, 30)).now(121_000),
                "effect_unknown deadline_exceeded - expired",
            ),
            (
                "progress after the window closed revives nothing",
                open(300, 30).progress(45_000, 1.0).now(50_000),
                "effect_unknown inactive - expired",
            ),
            (
                "a value that does not rise is no life",
                open(300, 30).progress(21_000, 1.0).progress(41_000, 1.0).now(60_000),
                "effect_unknown inactive - expired",
            ),
            (
                "a reader",
                open(300, 30).read_only().now(40_000),
                "tool_failed inactive execution expired",
            ),
            (
                "a listing",
                open(300, 30).method("tools/list").now(40_000),
                "unreachable inactive transport expired",
            ),
            (
                "a subscription has neither",
                open(300, 30).method("subscriptions/listen").now(9_000_000),
                "working in_progress - open",
            ),
            (
                "an unbelievable start runs no clock",
                open(300, 30)
                    .with(|c| {
                        if let Some(half) = &mut c.exchange.asking {
                            half.start = 0
                        }
                    })
                    .now(9_000_000),
                "working in_progress - open",
            ),
            (
                "a person may take long",
                call()
                    .modern()
                    .asks(|a| a.result_type = Some(ResultType::InputRequired))
                    .now(9_000_000),
                "working awaiting_input - awaiting_input",
            ),
            (
                "unless the call stated its own deadline",
                call()
                    .modern()
                    .asks(|a| a.result_type = Some(ResultType::InputRequired))
                    .with(|c| {
                        if let Some(half) = &mut c.exchange.asking {
                            half.call.deadline = Some(10 * SECOND)
                        }
                    })
                    .now(12_000),
                "cancelled input_required_never_resumed - expired",
            ),
            (
                "a task may take long",
                call().task(TaskStatus::Working, None, None).now(9_000_000),
                "working task_running - open",
            ),
        ],
        line,
    );
}

/// The timer of the engine: one nanosecond before it nothing has changed, at it everything has.
#[test]
fn due_is_the_moment_at_which_the_verdict_changes() {
    let cases = [
        call().open(),
        call().open().progress(21_000, 1.0),
        call().task(TaskStatus::Working, None, None),
        call().asks(|a| a.result_type = Some(ResultType::InputRequired)).with(|c| {
            if let Some(half) = &mut c.exchange.asking {
                half.call.deadline = Some(10 * SECOND)
            }
        }),
    ];
    for case in cases {
        let ending = crate::judge::ending(&case.exchange, &case.scope);
        let due = crate::judge::clocks::due(&case.exchange, ending, &case.operation).unwrap();
        let at = |now| judged(&case.clone().with(|c| c.now = now));
        assert!(at(case.now).same_as(&at(due - 1)), "before {due}");
        assert!(!at(due - 1).same_as(&at(due)), "at {due}");
        assert!(at(due).same_as(&at(due + 3600 * SECOND)), "after {due}");
    }
    let done = call().flagged(false);
    let ending = crate::judge::ending(&done.exchange, &done.scope);
    assert_eq!(crate::judge::clocks::due(&done.exchange, ending, &done.operation), None);
}

#[test]
fn conflicting_facts() {
    use OutcomeMethod::{LlmJudge, Query};
    use OutcomeStatus::{Failed, Missing, Verified};
    let done = || call().flagged(false);
    check(
        vec![
            (
                "a check beats a later opinion",
                done().outcome(Verified, Query, 3_000).outcome(Failed, LlmJudge, 9_000),
                "- verified query",
            ),
            (
                "the newest check",
                done().outcome(Missing, Query, 3_000).outcome(Verified, Query, 9_000),
                "- verified query",
            ),
            (
                "the worst of one moment",
                done().outcome(Verified, Query, 3_000).outcome(Failed, Query, 3_000),
                "- failed query",
            ),
            (
                "the newest effect",
                done().effect(Effect::Absent, 3_000).effect(Effect::Confirmed, 9_000),
                "confirmed - -",
            ),
            (
                "absent first in one moment",
                done().effect(Effect::Confirmed, 3_000).effect(Effect::Absent, 3_000),
                "absent - -",
            ),
        ],
        |v| format!("{} {} {}", word(v.effect), word(v.outcome.status), word(v.outcome.method)),
    );
    check(
        vec![
            (
                "a newer check proves the effect",
                done().effect(Effect::Absent, 3_000).outcome(Verified, Query, 9_000),
                "healthy - - complete",
            ),
            (
                "an older one does not",
                done().effect(Effect::Absent, 9_000).outcome(Verified, Query, 3_000),
                "false_success effect_absent outcome complete",
            ),
        ],
        line,
    );
}
