//! The state table, row by row, with both ladders.

use super::build::*;
use crate::judge::states::STATES;
use crate::model::case::Case;
use crate::model::fact::{Failure, Fault};
use crate::model::ids::{Name, SpanId};
use crate::model::words::*;

fn stale(case: Case) -> Case {
    case.with(|c| c.catalog.convergence = Some(Convergence::Stale))
}

fn verified(case: Case) -> Case {
    case.effect(Effect::Confirmed, 1_450).outcome(
        OutcomeStatus::Verified,
        OutcomeMethod::FileDigest,
        1_490,
    )
}

#[test]
fn every_row_of_the_table_in_its_order() {
    let order: Vec<State> = STATES.iter().map(|row| row.state).collect();
    assert_eq!(order, State::ALL);
}

#[test]
fn states() {
    let input = |case: Case| case.asks(|a| a.result_type = Some(ResultType::InputRequired));
    check(
        vec![
            ("401", call().http(401), "needs_auth invalid_token authority complete"),
            (
                "401 and a stale catalog",
                stale(call()).http(401),
                "needs_auth invalid_token authority complete",
            ),
            (
                "unsupported version",
                call().method("initialize").code(-32602),
                "incompatible_session unsupported_version protocol complete",
            ),
            (
                "dead session",
                call().http(404),
                "incompatible_session session_expired protocol complete",
            ),
            ("503", call().http(503), "unreachable http_503 transport complete"),
            ("503, stale", stale(call()).http(503), "unreachable http_503 transport complete"),
            (
                "DNS",
                call().fault(Fault::NotConnected),
                "unreachable connection_failed transport lost",
            ),
            (
                "504 of a reader",
                call().read_only().http(504),
                "unreachable http_504 transport lost",
            ),
            (
                "504, nothing written",
                call().http(504).effect(Effect::Absent, 9_000),
                "unreachable http_504 transport lost",
            ),
            (
                "a listing that timed out",
                call().method("tools/list").fails(Failure::Timeout),
                "unreachable timeout transport lost",
            ),
            (
                "stale and green",
                verified(stale(call().flagged(false))),
                "stale_catalog stale - complete",
            ),
            (
                "stale and red",
                stale(call().flagged(true)),
                "stale_catalog stale execution complete",
            ),
            (
                "unpinned",
                call()
                    .flagged(false)
                    .with(|c| c.catalog.contract.red = Some(Reason::ContractUnpinned)),
                "stale_catalog contract_unpinned - complete",
            ),
            ("open", call().open(), "working in_progress - open"),
            (
                "waits for a person",
                input(call().modern()),
                "working awaiting_input - awaiting_input",
            ),
            ("-32042", call().code(-32042), "working awaiting_input - awaiting_input"),
            (
                "task working",
                call().task(TaskStatus::Working, None, None),
                "working task_running - open",
            ),
            (
                "task asks",
                call().task(TaskStatus::InputRequired, None, None),
                "working awaiting_input - awaiting_input",
            ),
            ("-32601", call().code(-32601), "protocol_error method_not_found protocol complete"),
            ("-32602", call().code(-32602), "protocol_error invalid_params protocol complete"),
            ("-32603", call().code(-32603), "protocol_error internal_error protocol complete"),
            ("-32002", call().code(-32002), "protocol_error jsonrpc_error protocol complete"),
            (
                "-32020",
                call().modern().code(-32020),
                "protocol_error header_mismatch protocol complete",
            ),
            (
                "-32020 means nothing before",
                call().code(-32020),
                "protocol_error jsonrpc_error protocol complete",
            ),
            (
                "refused locally",
                call().fails(Failure::RefusedLocally),
                "protocol_error refused_locally protocol complete",
            ),
            (
                "unnamed, a reader",
                call().read_only().fails(Failure::Unnamed),
                "protocol_error client_exception protocol lost",
            ),
            ("isError", call().flagged(true), "tool_failed tool_error execution complete"),
            (
                "a reader's timeout",
                call().read_only().fails(Failure::Timeout),
                "tool_failed timeout execution lost",
            ),
            (
                "a timeout, nothing written",
                call().fails(Failure::Timeout).effect(Effect::Absent, 9_000),
                "tool_failed timeout execution lost",
            ),
            (
                "task failed",
                call().task(TaskStatus::Failed, None, None),
                "tool_failed task_failed execution complete",
            ),
            (
                "task completed with isError",
                call().modern().task(TaskStatus::Completed, Some(true), None),
                "tool_failed tool_error execution complete",
            ),
            (
                "task failed with a code, modern",
                call().modern().task(TaskStatus::Failed, None, Some(-32603)),
                "protocol_error internal_error protocol complete",
            ),
            (
                "output refused by its schema",
                call().flagged(false).with(|c| c.catalog.output_mismatch = true),
                "tool_failed output_schema_mismatch execution complete",
            ),
            (
                "a reader cancelled",
                call().read_only().fails(Failure::Cancelled),
                "cancelled cancelled - cancelled",
            ),
            (
                "cancelled, nothing written",
                call().fails(Failure::Cancelled).effect(Effect::Absent, 9_000),
                "cancelled cancelled - cancelled",
            ),
            (
                "the run of an input round ended",
                input(call().modern()).with(|c| c.operation.run_ended = Some(ms(9_000))),
                "cancelled input_required_never_resumed - expired",
            ),
            (
                "a listing called off",
                call().method("tools/list").fails(Failure::Cancelled),
                "cancelled cancelled - cancelled",
            ),
            ("timeout", call().fails(Failure::Timeout), "effect_unknown timeout - lost"),
            (
                "timeout and the SDK's cancel",
                call().fails(Failure::Timeout).cancel(1_401),
                "effect_unknown timeout - cancelled",
            ),
            ("cancelled", call().fails(Failure::Cancelled), "effect_unknown cancelled - cancelled"),
            ("502", call().http(502), "effect_unknown http_502 transport lost"),
            ("unnamed", call().fails(Failure::Unnamed), "effect_unknown client_exception - lost"),
            (
                "answered, and the effect is unknown",
                call().flagged(false).effect(Effect::Unknown, 9_000),
                "effect_unknown effect_unknown - complete",
            ),
            (
                "outcome missing",
                call().flagged(false).outcome(OutcomeStatus::Missing, OutcomeMethod::Query, 9_000),
                "false_success outcome_missing outcome complete",
            ),
            (
                "effect absent",
                call().flagged(false).effect(Effect::Absent, 9_000),
                "false_success effect_absent outcome complete",
            ),
            (
                "timeout, receipt, failed check",
                call().fails(Failure::Timeout).effect(Effect::Confirmed, 9_000).outcome(
                    OutcomeStatus::Failed,
                    OutcomeMethod::RecordVersion,
                    9_100,
                ),
                "false_success outcome_failed outcome lost",
            ),
            ("nobody checked", call().flagged(false), "unverified unobserved_outcome - complete"),
            ("nothing seen", call(), "unverified unobserved_request - partial"),
            (
                "outcome known, catalog not",
                verified(call().flagged(false)).with(|c| c.catalog.convergence = None),
                "unverified unobserved_catalog - complete",
            ),
            (
                "session unknown",
                verified(call().flagged(false))
                    .with(|c| (c.scope.negotiated, c.exchange.version) = (false, None)),
                "unverified unobserved_session - complete",
            ),
            ("all layers agree", verified(call().flagged(false)), "healthy - - complete"),
            (
                "504, but the record is there and right",
                verified(call().http(504)),
                "healthy - - lost",
            ),
            (
                "isError unseen, but checked",
                call().served().outcome(OutcomeStatus::Verified, OutcomeMethod::Query, 9_000),
                "healthy - - complete",
            ),
            ("a listing", call().method("tools/list").served(), "healthy - - complete"),
        ],
        line,
    );
}

#[test]
fn ladders() {
    check(
        vec![
            ("all agree", verified(call().flagged(false)), "ppppp ppppp"),
            ("nobody checked", call().flagged(false), "ppp.. pppp."),
            ("isError unseen", call().served(), "pp... ppp.."),
            ("401", call().http(401), "ppF.. p.F.."),
            ("401 on initialize", call().method("initialize").http(401), "pnF.. p.F.."),
            ("DNS", call().fault(Fault::NotConnected), "ppF.. F...."),
            ("-32602", call().code(-32602), "ppF.. pF..."),
            ("isError", call().flagged(true), "ppF.. pppF."),
            ("a method's error", call().method("prompts/get").code(-32602), "pnF.. pF..."),
            ("a method's answer", call().method("prompts/get").served(), "pnpnn pppnn"),
            ("version refused", call().modern().code(-32022), "F.... pF..."),
            ("stale hides what is behind", stale(verified(call().flagged(false))), "pF... ppppp"),
            ("timeout", call().fails(Failure::Timeout), "pp... ....."),
            ("timeout of a reader", call().read_only().fails(Failure::Timeout), "ppF.. ...F."),
            ("a server that ran on", call().fails(Failure::Timeout).served(), "pp... ppp.."),
            ("504", call().http(504), "pp... F...."),
            (
                "504 with a receipt",
                call().http(504).effect(Effect::Confirmed, 9_000),
                "pppp. p.pp.",
            ),
            ("a reader's success", call().read_only().flagged(false), "pppn. pppp."),
            ("effect absent", call().flagged(false).effect(Effect::Absent, 9_000), "pppF. ppppF"),
            (
                "outcome missing",
                call().flagged(false).outcome(OutcomeStatus::Missing, OutcomeMethod::Query, 9_000),
                "ppp.F ppppF",
            ),
            ("open", call().open(), "ppw.. wwww."),
            ("modern, answered", call().modern().flagged(false), "ppp.. pppp."),
            ("modern, silent", call().modern(), "np... ....."),
            ("-32042 is no result", call().code(-32042), "ppw.. pwpw."),
        ],
        |verdict| format!("{} {}", health(verdict), ladder(verdict)),
    );
}

#[test]
fn who_does_what_next() {
    let said = |scope: Failure| call().http(403).fails(scope);
    check(
        vec![
            (
                "401",
                call().http(401),
                "credential_owner refresh_credential_once once strong blocked",
            ),
            (
                "scope",
                said(Failure::InsufficientScope),
                "authorization_owner request_scope never strong blocked",
            ),
            (
                "403",
                call().http(403),
                "authorization_owner inspect_authorization never weak blocked",
            ),
            (
                "version",
                call().modern().code(-32022),
                "integration_owner align_versions never strong blocked",
            ),
            ("dead", call().http(404), "integration_owner start_new_session never strong blocked"),
            (
                "503",
                call().http(503),
                "availability_owner check_availability bounded_backoff strong blocked",
            ),
            (
                "a listing's timeout",
                call().method("tools/list").fails(Failure::Timeout),
                "availability_owner check_availability bounded_backoff weak blocked",
            ),
            (
                "stale",
                stale(call().flagged(false)),
                "integration_owner rediscover_once after_rediscovery strong blocked",
            ),
            (
                "incomplete",
                call().with(|c| c.catalog.convergence = Some(Convergence::Incomplete)),
                "integration_owner resume_from_cursor after_rediscovery strong blocked",
            ),
            (
                "drift",
                call().with(|c| c.catalog.contract.red = Some(Reason::ContractDrift)),
                "integration_owner review_contract after_rediscovery strong blocked",
            ),
            ("open", call().open(), "none wait never strong none"),
            (
                "-32601",
                call().code(-32601),
                "client_implementer refresh_discovery never strong blocked",
            ),
            (
                "-32602",
                call().code(-32602),
                "client_implementer fix_request_contract never strong blocked",
            ),
            (
                "-32000",
                call().code(-32000),
                "client_implementer fix_client_contract never strong blocked",
            ),
            (
                "unnamed",
                call().read_only().fails(Failure::Unnamed),
                "client_implementer fix_client_contract never weak blocked",
            ),
            (
                "isError",
                call().flagged(true),
                "tool_owner inspect_tool_or_input if_reversible strong blocked",
            ),
            (
                "timeout",
                call().fails(Failure::Timeout),
                "operator reconcile_by_operation_key blocked strong possible_effect",
            ),
            (
                "timeout, idempotent",
                call().fails(Failure::Timeout).with(|c| c.exchange.idempotent = Some(true)),
                "operator reconcile_by_operation_key once strong possible_effect",
            ),
            (
                "cancelled",
                call().read_only().fails(Failure::Cancelled),
                "none none never strong none",
            ),
            (
                "missing",
                call().flagged(false).outcome(OutcomeStatus::Missing, OutcomeMethod::Query, 9_000),
                "outcome_owner open_outcome_incident blocked strong wrong_outcome",
            ),
            (
                "a model thinks it failed",
                call().flagged(false).outcome(
                    OutcomeStatus::Failed,
                    OutcomeMethod::LlmJudge,
                    9_000,
                ),
                "outcome_owner open_outcome_incident blocked weak wrong_outcome",
            ),
            ("unchecked", call().flagged(false), "outcome_owner verify_outcome never strong none"),
            ("silent", call(), "integration_owner record_result never strong none"),
            (
                "a model thinks it worked",
                call().flagged(false).outcome(
                    OutcomeStatus::Verified,
                    OutcomeMethod::LlmJudge,
                    9_000,
                ),
                "outcome_owner verify_outcome never weak none",
            ),
            ("healthy", verified(call().flagged(false)), "none continue never strong none"),
            (
                "healthy on a session nobody saw negotiated",
                verified(call().flagged(false)).with(|c| c.scope.negotiated = false),
                "none continue never weak none",
            ),
        ],
        |v| {
            let impact = word(v.operator.impact);
            format!("{} {} {} {} {impact}", v.owner, v.next_step, v.retry, v.confidence)
        },
    );
}

#[test]
fn required_layers_are_configured() {
    let short = |case: Case| case.with(|c| c.requires = vec![Layer::Session, Layer::Request]);
    check(
        vec![
            ("session and request", short(call().flagged(false)), "healthy - - complete"),
            ("but the request is unseen", short(call()), "unverified unobserved_request - partial"),
        ],
        line,
    );
}

#[test]
fn the_chain_is_named_by_the_asking_half_seen_or_not() {
    let both = judged(&call().flagged(false));
    let alone = judged(&call().served().with(|c| {
        c.exchange.asking = None;
        if let Some(half) = &mut c.exchange.answering {
            half.parent = Some(SpanId([1; 8]))
        }
    }));
    assert_eq!(both.id, alone.id);
    assert_eq!((both.revision, both.supersedes), (1, None));
    let orphan = judged(&call().served().with(|c| c.exchange.asking = None));
    assert_ne!(both.id, orphan.id);
}

#[test]
fn the_operators_row() {
    let case = call().http(403).fails(Failure::InsufficientScope).with(|c| {
        c.exchange.agent_run = Name::some("run-1");
        if let Some(half) = &mut c.exchange.asking {
            half.call.required_scope = Name::some("tickets:write")
        }
    });
    let row = judged(&stale(case.flagged(true))).operator;
    assert_eq!(row.required_scope, Name::some("tickets:write"));
    assert_eq!(row.agent_run, Name::some("run-1"));
    let failure = row.failure.unwrap();
    assert_eq!(failure.layer, FailureLayer::Authority);
    assert_eq!(failure.reason, Some(Reason::InsufficientScope));
    assert_eq!(row.span, span(1));
    assert_eq!(row.answering, None);
}

/// Incidents go by the failure ladder where the state speaks of the catalog.
#[test]
fn a_stale_catalog_keeps_the_failed_layers_own_reason() {
    let verdict = judged(&stale(call().flagged(true)));
    assert_eq!(verdict.reason, Some(Reason::Stale));
    let failure = verdict.operator.failure.unwrap();
    assert_eq!((failure.layer, failure.reason), (FailureLayer::Execution, Some(Reason::ToolError)));
    assert_eq!(failure.owner, Owner::ToolOwner);
}
