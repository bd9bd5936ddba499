//! Findings: for each, a case that has it and one next to it that has not.

use super::build::*;
use crate::judge::findings::{CAP, RULES};
use crate::model::case::{Case, HttpSeen};
use crate::model::digest::Digest;
use crate::model::fact::{Direction, End, Failure};
use crate::model::findings::{Code, Finding};
use crate::model::ids::{Name, SECOND, SpanId};
use crate::model::record::Verdict;
use crate::model::words::*;

fn codes(verdict: &Verdict) -> String {
    let codes: Vec<&str> = verdict.findings.iter().map(|finding| finding.code.as_str()).collect();
    codes.join(" ")
}

fn ends(case: Case, at: u64) -> Case {
    case.with(|c| {
        if let Some(half) = &mut c.exchange.answering {
            half.end = ms(at)
        }
    })
}

fn listed(case: Case, listed: bool) -> Case {
    case.with(|c| c.catalog.tool_listed = Some(listed))
}

fn version(case: Case, version: &str) -> Case {
    case.with(|c| c.exchange.version = Name::some(version))
}

#[test]
fn progress() {
    let done = || call().flagged(false);
    check(
        vec![
            ("in time", done().progress(1_100, 1.0).progress(1_200, 2.0), ""),
            ("after the server's end", done().progress(1_399, 1.0), "progress_after_completion"),
            (
                "equal values",
                done().progress(1_100, 1.0).progress(1_200, 1.0),
                "progress_not_increasing",
            ),
            (
                "falling",
                done().progress(1_100, 2.0).progress(1_200, 1.0),
                "progress_not_increasing",
            ),
            (
                "no number is no value",
                done().progress(1_100, 1.0).progress(1_200, f64::NAN),
                "progress_not_increasing",
            ),
            (
                "without a server half, inside the skew",
                call().asks(|a| a.is_error = Some(false)).progress(1_600, 1.0),
                "",
            ),
            (
                "without a server half, beyond it",
                call().asks(|a| a.is_error = Some(false)).progress(1_700, 1.0),
                "progress_after_completion",
            ),
            (
                "a caller that gave up has no answer to be late for",
                call().fails(Failure::Timeout).progress(1_700, 1.0),
                "",
            ),
        ],
        codes,
    );
}

#[test]
fn lost_and_late() {
    let gave_up = |answer: bool| {
        call().fails(Failure::Timeout).answers(|a| a.is_error = answer.then_some(false))
    };
    let post = |end: u64| {
        call().flagged(false).with(|c| {
            let http = HttpSeen { status: 200, fault: None, end: ms(end), by: End::Asking };
            c.exchange.http = Some(http);
        })
    };
    check(
        vec![
            ("the server finished later", ends(gave_up(true), 9_000), "late_result_discarded"),
            ("inside the skew", ends(gave_up(true), 1_600), ""),
            ("the server merely ended", ends(gave_up(false), 9_000), ""),
            (
                "a receipt",
                call().fails(Failure::Timeout).effect(Effect::Confirmed, 9_000),
                "response_lost",
            ),
            ("no receipt", call().fails(Failure::Timeout), ""),
            ("an answer that came", call().flagged(false).effect(Effect::Confirmed, 9_000), ""),
            ("the POST goes on", post(3_400), "stream_outlives_request"),
            ("and ends with the call", post(1_500), ""),
            ("refused locally", call().fails(Failure::RefusedLocally), "refused_locally"),
            ("dead session", call().http(404), "session_expired"),
        ],
        codes,
    );
}

#[test]
fn contracts() {
    let drifted =
        |case: Case| case.with(|c| c.catalog.contract.status = Some(ContractStatus::Drifted));
    let done = || call().flagged(false);
    check(
        vec![
            ("drifted", drifted(done()), "contract_drift"),
            ("drifted, no call", drifted(done().method("prompts/get")), ""),
            (
                "arguments",
                done().with(|c| c.catalog.unknown_arguments = 2),
                "argument_not_in_contract",
            ),
            ("output", done().with(|c| c.catalog.output_mismatch = true), "output_schema_mismatch"),
            (
                "an isError result owes no output",
                call().flagged(true).with(|c| c.catalog.output_mismatch = true),
                "",
            ),
            ("unknown tool, as it should be", listed(call().code(-32602), false), "unknown_tool"),
            (
                "unknown tool as isError",
                listed(call().flagged(true), false),
                "unknown_tool error_channel_mismatch",
            ),
            (
                "known tool, -32602, 2025-11-25",
                listed(call().code(-32602), true),
                "error_channel_mismatch",
            ),
            (
                "known tool, -32602, before",
                version(listed(call().code(-32602), true), "2025-06-18"),
                "",
            ),
            ("nobody knows the tools", call().code(-32602), ""),
            (
                "a foreign digest on the call",
                done().with(|c| {
                    if let Some(half) = &mut c.exchange.asking {
                        half.call.contract = Some(Digest::Foreign(Name::new("sep-2636:sha256")))
                    }
                }),
                "digest_scheme_mismatch",
            ),
        ],
        codes,
    );
}

#[test]
fn two_views() {
    let both = |left: Option<bool>, right: Option<bool>| {
        call().asks(|a| a.is_error = left).answers(|a| a.is_error = right)
    };
    check(
        vec![
            ("agree", both(Some(true), Some(true)), ""),
            ("one is silent", both(None, Some(true)), ""),
            ("true and false", both(Some(false), Some(true)), "views_disagree"),
            (
                "a code over isError",
                call().asks(|a| a.code = Some(-32602)).answers(|a| a.is_error = Some(true)),
                "views_disagree",
            ),
            (
                "an exception over success",
                call().fails(Failure::Unnamed).answers(|a| a.is_error = Some(false)),
                "views_disagree",
            ),
            (
                "who gave up reports no result",
                call().asks(|a| a.code = Some(-32001)).answers(|a| a.is_error = Some(false)),
                "",
            ),
            (
                "text against flag",
                call().flagged(false).asks(|a| a.error_text = true),
                "result_text_contradicts_flag",
            ),
            ("text with its flag", call().flagged(true).asks(|a| a.error_text = true), ""),
        ],
        codes,
    );
}

#[test]
fn rounds_and_tasks() {
    let round = || call().modern().asks(|a| a.result_type = Some(ResultType::InputRequired));
    let ended = |case: Case| case.with(|c| c.operation.run_ended = Some(ms(9_000)));
    check(
        vec![
            ("the run ended", ended(round()), "input_required_never_resumed"),
            ("resumed", ended(round()).with(|c| c.operation.resumed = true), ""),
            ("still asked", round().now(9_000_000), ""),
            (
                "a silent task",
                call().task(TaskStatus::Working, None, None).now(304_000),
                "task_never_finished",
            ),
            ("a working task", call().task(TaskStatus::Working, None, None).now(303_999), ""),
            (
                "a task that asks",
                call().task(TaskStatus::InputRequired, None, None).now(9_000_000),
                "",
            ),
        ],
        codes,
    );
}

/// Blame is the asking side's, strength the version's.
#[test]
fn capabilities() {
    let set = |names: &[&str]| Some(names.iter().map(|name| Name::new(name)).collect());
    let used = |method: &str, since: &str| {
        version(call().method(method).served(), since).with(|c| {
            c.scope.server_capabilities = set(&["tools"]);
            c.scope.client_capabilities = set(&["roots"]);
        })
    };
    let asked = |case: Case| case.with(|c| c.exchange.direction = Direction::ServerToClient);
    check(
        vec![
            ("negotiated", used("tools/list", "2025-11-25"), ""),
            ("prompts", used("prompts/get", "2025-11-25"), "client must prompts healthy"),
            (
                "before it was a must",
                used("prompts/get", "2025-03-26"),
                "client should prompts healthy",
            ),
            (
                "sampling",
                asked(used("sampling/createMessage", "2025-06-18")),
                "server must sampling healthy",
            ),
            ("roots", asked(used("roots/list", "2025-06-18")), ""),
            ("completion before it was one", used("completion/complete", "2024-11-05"), ""),
            ("tasks are an extension in modern", used("tasks/get", "2026-07-28").modern(), ""),
        ],
        |verdict| {
            let finding = verdict.findings.first();
            finding.map_or(String::new(), |f| {
                format!("{} {} {} {}", f.blame, f.strength, word(f.detail.as_ref()), verdict.state)
            })
        },
    );
}

#[test]
fn joined_findings_are_merged_sorted_and_capped() {
    let joined = |case: Case, code: Code, span: u8| {
        case.with(|c| c.exchange.findings.push(Finding::new(code, vec![SpanId([span; 8])])))
    };
    let case = joined(joined(call().http(404), Code::SampledOut, 1), Code::SampledOut, 1);
    let case = joined(case, Code::DoubleInstrumentation, 1);
    check(vec![("merged", case, "session_expired double_instrumentation sampled_out")], codes);
    let many = (0..200).fold(call(), |case, n| joined(case, Code::AmbiguousAttribute, n));
    assert_eq!(judged(&many).findings.len(), CAP);
}

#[test]
fn details_are_counts_and_pointers() {
    let case = call().flagged(false).with(|c| {
        c.catalog.unknown_arguments = 2;
        let contract = &mut c.catalog.contract;
        contract.status = Some(ContractStatus::Drifted);
        contract.confidence = Some(Confidence::Weak);
        contract.pointers = vec![Name::new("/inputSchema/properties/q"), Name::new("/title")];
    });
    let verdict = judged(&case);
    let said: Vec<String> = verdict
        .findings
        .iter()
        .map(|f| format!("{} {} {}", f.code, f.confidence, word(f.detail.as_ref())))
        .collect();
    assert_eq!(
        said,
        [
            "contract_drift weak /inputSchema/properties/q /title",
            "argument_not_in_contract strong 2"
        ]
    );
}

#[test]
fn rules_stand_in_the_order_of_the_registry() {
    assert!(RULES.is_sorted_by_key(|rule| rule.code));
    assert_eq!(call().clock_skew, SECOND / 4);
}
