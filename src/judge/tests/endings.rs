//! How a request ended: eras, halves that disagree, HTTP, cancels.

use super::build::*;
use crate::judge::ending::{RULES, ruled};
use crate::model::case::{Case, Ending};
use crate::model::fact::{Failure, Fault};
use crate::model::ids::Name;
use crate::model::words::{Era, ResultType};

fn said(case: &Case) -> String {
    let (ending, rule) = ruled(&case.exchange, &case.scope);
    let what = match ending {
        Ending::Result { is_error } => format!("result {}", word(is_error)),
        Ending::Error { code } => format!("error {}", word(code)),
        Ending::Unauthorized { reason } => format!("unauthorized {reason}"),
        Ending::NotSent { reason } => format!("not_sent {reason}"),
        Ending::Incompatible { reason } => format!("incompatible {reason}"),
        Ending::Lost { reason } => format!("lost {reason}"),
        other => format!("{other:?}"),
    };
    format!("{what} by {}", rule.id)
}

fn endings(rows: Vec<(&str, Case, &str)>) {
    let wrong: Vec<String> = rows
        .iter()
        .map(|(name, case, want)| (name, said(case), want))
        .filter(|(_, got, want)| got != *want)
        .map(|(name, got, want)| format!("{name}:\n   got {got}\n  want {want}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn unknown_era(case: Case) -> Case {
    case.with(|c| {
        (c.exchange.era, c.exchange.version, c.exchange.session_id) = (Era::Unknown, None, None)
    })
}

fn sessionless(case: Case) -> Case {
    case.with(|c| (c.exchange.session_id, c.scope.answered_before) = (None, false))
}

fn version(case: Case, version: &str) -> Case {
    case.with(|c| c.exchange.version = Name::some(version))
}

fn without_asking(case: Case) -> Case {
    case.with(|c| c.exchange.asking = None)
}

#[test]
fn answers() {
    endings(vec![
        ("both say success", call().flagged(false), "result false by received"),
        ("both say isError", call().flagged(true), "result true by answered"),
        ("UNSET client, UNSET server", call().served(), "result - by served"),
        ("UNSET client alone proves nothing", call(), "Unobserved by unobserved"),
        ("UNSET client, HTTP 200", call().http(200), "Unobserved by unobserved"),
        (
            "gateway that saw HTTP 200 only",
            without_asking(call()).answers(|a| a.http_status = Some(200)),
            "result - by served",
        ),
        (
            "the caller's SDK raises over an isError answer",
            call().asks(|a| a.code = Some(-32602)).answers(|a| a.is_error = Some(true)),
            "result true by answered",
        ),
        (
            "the server says isError, the caller says success",
            call().asks(|a| a.is_error = Some(false)).answers(|a| a.is_error = Some(true)),
            "result true by received",
        ),
        (
            "the server's code, the caller's framework says isError",
            call().asks(|a| a.is_error = Some(true)).answers(|a| a.code = Some(-32601)),
            "error -32601 by answered",
        ),
        (
            "isError beats a code quoted on the same half",
            call().asks(|a| (a.is_error, a.code) = (Some(true), Some(-32602))),
            "result true by answered",
        ),
        (
            "the caller's code beats the server's mere OK",
            call().asks(|a| a.code = Some(-32601)).answers(|a| a.result_seen = true),
            "error -32601 by answered",
        ),
        (
            "a red caller that shows output shows no result",
            call().asks(|a| (a.result_seen, a.failure) = (true, Some(Failure::Unnamed))),
            "Unnamed by unnamed",
        ),
        (
            "the handler raised, the caller is silent",
            call().answers(|a| a.failure = Some(Failure::HandlerRaised)),
            "result true by server_failed",
        ),
        (
            "the handler raised, the caller has the code",
            call()
                .asks(|a| a.code = Some(-32603))
                .answers(|a| a.failure = Some(Failure::HandlerRaised)),
            "error -32603 by answered",
        ),
        (
            "a red server half of another method",
            call().method("resources/read").answers(|a| a.failure = Some(Failure::Unnamed)),
            "error - by server_failed",
        ),
        ("unnamed, only the client saw", call().fails(Failure::Unnamed), "Unnamed by unnamed"),
        (
            "unnamed on the client, the server merely ended",
            call().fails(Failure::Unnamed).served(),
            "Unnamed by unnamed",
        ),
        (
            "unnamed on the client, the server says success",
            call().fails(Failure::Unnamed).answers(|a| a.is_error = Some(false)),
            "result false by answered",
        ),
        ("only a start record", call().open(), "Open by open"),
        (
            "start record of the caller, the server answered",
            call().open().answers(|a| a.is_error = Some(false)),
            "result false by answered",
        ),
    ]);
}

#[test]
fn questions_and_tasks() {
    let asked = |case: Case| case.asks(|a| a.result_type = Some(ResultType::InputRequired));
    endings(vec![
        ("input required", asked(call().modern()), "InputRequired by received"),
        ("a task", call().answers(|a| a.result_type = Some(ResultType::Task)), "Task by answered"),
        ("-32042 in 2025-11-25", call().code(-32042), "InputRequired by answered"),
        (
            "-32042, legacy, version unseen",
            version(call(), "").code(-32042),
            "InputRequired by answered",
        ),
        (
            "-32042 before it existed",
            version(call(), "2025-06-18").code(-32042),
            "error -32042 by answered",
        ),
        ("-32042 in modern", call().modern().code(-32042), "error -32042 by answered"),
        ("-32042, era unknown", unknown_era(call()).code(-32042), "error -32042 by answered"),
    ]);
}

#[test]
fn codes_by_era() {
    let init = || call().method("initialize");
    endings(vec![
        ("-32022", call().modern().code(-32022), "incompatible unsupported_version by answered"),
        ("-32004 RC", call().modern().code(-32004), "incompatible unsupported_version by answered"),
        ("-32021", call().modern().code(-32021), "incompatible missing_capability by answered"),
        ("-32003 RC", call().modern().code(-32003), "incompatible missing_capability by answered"),
        ("-32003 legacy", call().code(-32003), "error -32003 by answered"),
        ("-32004 legacy", call().code(-32004), "error -32004 by answered"),
        ("-32004, era unknown", unknown_era(call()).code(-32004), "error -32004 by answered"),
        (
            "-32001 RC, a header refused",
            call().modern().code(-32001).http(400),
            "error -32001 by answered",
        ),
        (
            "-32001 modern, only the client saw it",
            call().modern().asks(|a| a.code = Some(-32001)),
            "TimedOut by timed_out",
        ),
        (
            "-32001 legacy, only the client saw it",
            call().asks(|a| a.code = Some(-32001)),
            "TimedOut by timed_out",
        ),
        (
            "-32001 on the client, the stream was open",
            call().asks(|a| a.code = Some(-32001)).http(200),
            "TimedOut by timed_out",
        ),
        (
            "-32001 on the client, the server finished",
            call().asks(|a| a.code = Some(-32001)).answers(|a| a.is_error = Some(false)),
            "TimedOut by timed_out",
        ),
        ("-32001 of both is the server's own", call().code(-32001), "error -32001 by answered"),
        (
            "-32001 with 404, no session id recorded",
            sessionless(call()).asks(|a| a.code = Some(-32001)).http(404),
            "SessionExpired by session_expired",
        ),
        (
            "-32001 with 400 in a session",
            call().asks(|a| a.code = Some(-32001)).http(400),
            "SessionExpired by session_expired",
        ),
        (
            "-32602 on initialize",
            init().code(-32602),
            "incompatible unsupported_version by answered",
        ),
        ("-32602 on initialize, modern", init().modern().code(-32602), "error -32602 by answered"),
        (
            "the client refuses the server's version",
            init().fails(Failure::UnsupportedVersion),
            "incompatible unsupported_version by incompatible",
        ),
        ("-32602 on a call", call().code(-32602), "error -32602 by answered"),
    ]);
}

#[test]
fn http() {
    endings(vec![
        ("404 with a session id", call().http(404), "SessionExpired by session_expired"),
        (
            "404 in a scope that answered",
            sessionless(call()).with(|c| c.scope.answered_before = true).http(404),
            "SessionExpired by session_expired",
        ),
        ("404 with neither", sessionless(call()).http(404), "not_sent wrong_url by http_refused"),
        (
            "404 on initialize",
            call().method("initialize").http(404),
            "not_sent wrong_url by http_refused",
        ),
        (
            "404 with -32601, modern",
            call().modern().code(-32601).http(404),
            "error -32601 by answered",
        ),
        (
            "404 modern without a body",
            call().modern().http(404),
            "not_sent wrong_url by http_refused",
        ),
        (
            "a dead session by its text",
            unknown_era(call()).fails(Failure::SessionExpired),
            "SessionExpired by session_expired",
        ),
        (
            "no session can die in modern",
            call().modern().fails(Failure::SessionExpired),
            "Unnamed by unnamed",
        ),
        (
            "old SDKs call a wrong URL a dead session",
            sessionless(call()).method("initialize").fails(Failure::SessionExpired),
            "not_sent wrong_url by http_refused",
        ),
        ("408", call().http(408), "not_sent http_408 by http_refused"),
        ("429", call().http(429), "not_sent http_429 by http_refused"),
        ("503", call().http(503), "not_sent http_503 by http_refused"),
        (
            "503 that an SDK shows as -32603",
            call().asks(|a| a.code = Some(-32603)).http(503),
            "not_sent http_503 by http_refused",
        ),
        (
            "503 in front of a server that answered",
            call().http(503).answers(|a| a.is_error = Some(false)),
            "lost http_503 by http_refused",
        ),
        ("500", call().http(500), "lost http_500 by http_lost"),
        (
            "504, and the server finished",
            call().http(504).answers(|a| a.is_error = Some(false)),
            "lost http_504 by http_lost",
        ),
        (
            "500 that carries a JSON-RPC error both saw",
            call().http(500).code(-32603),
            "error -32603 by answered",
        ),
        ("400 with nothing", call().http(400), "error - by http_error"),
        ("401", call().http(401), "unauthorized invalid_token by unauthorized"),
        ("403", call().http(403), "unauthorized forbidden by unauthorized"),
        (
            "403 with a named scope",
            call().http(403).fails(Failure::InsufficientScope),
            "unauthorized insufficient_scope by unauthorized",
        ),
        (
            "401 only on the client's own span",
            call().asks(|a| a.http_status = Some(401)),
            "unauthorized invalid_token by unauthorized",
        ),
        (
            "401, a new token, 200",
            call().asks(|a| a.http_status = Some(401)).http(200).flagged(false),
            "result false by received",
        ),
        (
            "401 that a framework prints as output",
            call().http(401).asks(|a| a.result_seen = true),
            "unauthorized invalid_token by unauthorized",
        ),
        ("DNS", call().fault(Fault::NotConnected), "not_sent connection_failed by not_connected"),
        ("TLS", call().fails(Failure::Tls), "not_sent tls_failed by not_connected"),
        (
            "not connected, yet the server has it",
            call().fails(Failure::NotConnected).served(),
            "lost connection_lost by not_connected",
        ),
        (
            "a stream that broke",
            call().fault(Fault::Lost),
            "lost connection_lost by connection_lost",
        ),
        (
            "a stream that broke after the answer",
            call().fault(Fault::Lost).flagged(false),
            "result false by received",
        ),
        ("a read timeout of the POST", call().fault(Fault::Timeout), "TimedOut by timed_out"),
        (
            "the tool's own ECONNREFUSED",
            call().asks(|a| (a.is_error, a.failure) = (Some(true), Some(Failure::NotConnected))),
            "result true by answered",
        ),
        (
            "refused by the client, never sent",
            call().fails(Failure::RefusedLocally),
            "RefusedLocally by refused_locally",
        ),
        (
            "refused by the client after the server's isError",
            call().fails(Failure::RefusedLocally).answers(|a| a.is_error = Some(true)),
            "result true by answered",
        ),
    ]);
}

#[test]
fn giving_up() {
    let late = |case: Case| {
        case.served().with(|c| {
            if let Some(half) = &mut c.exchange.answering {
                (half.end, half.answer.is_error) = (ms(9_000), Some(false));
            }
        })
    };
    let hung_up = |case: Case| {
        without_asking(case).answers(|a| a.failure = Some(Failure::ClientDisconnected))
    };
    endings(vec![
        ("a timeout", call().fails(Failure::Timeout), "TimedOut by timed_out"),
        (
            "a timeout and the SDK's own cancel, the server finished later",
            late(call().fails(Failure::Timeout).cancel(1_401)),
            "TimedOut by timed_out",
        ),
        (
            "cancelled by name",
            call().fails(Failure::Cancelled).cancel(1_400),
            "Cancelled by cancelled",
        ),
        (
            "cancelled, and the SDK says -32001",
            call().asks(|a| (a.failure, a.code) = (Some(Failure::Cancelled), Some(-32001))),
            "Cancelled by cancelled",
        ),
        ("silent halves and a cancel", call().served().cancel(1_390), "Cancelled by cancelled"),
        (
            "a cancel that crossed the answer",
            call().flagged(false).cancel(1_390),
            "result false by received",
        ),
        ("a cancel long after the end", call().served().cancel(9_000), "result - by served"),
        ("a cancel of an open request", call().open().cancel(1_100), "Cancelled by cancelled"),
        (
            "the server saw its client hang up, modern",
            hung_up(call().modern()),
            "Cancelled by cancelled",
        ),
        (
            "the same before: a broken transport",
            hung_up(call()),
            "lost connection_lost by connection_lost",
        ),
        (
            "the same when the era is unknown",
            hung_up(unknown_era(call())),
            "lost connection_lost by connection_lost",
        ),
        (
            "the caller's connection broke, whatever the server finished",
            late(call().fails(Failure::ConnectionLost)),
            "lost connection_lost by connection_lost",
        ),
    ]);
}

#[test]
fn capabilities_that_were_not_negotiated() {
    let knows = |case: Case, names: &[&str]| {
        let set = Some(names.iter().map(|name| Name::new(name)).collect());
        case.with(|c| c.scope.server_capabilities = set)
    };
    let read = || call().method("resources/read").code(-32601);
    endings(vec![
        (
            "refused, and not negotiated",
            knows(read(), &["tools"]),
            "incompatible capability_not_negotiated by answered",
        ),
        (
            "a nested capability implies its parent",
            knows(read(), &["resources.subscribe"]),
            "error -32601 by answered",
        ),
        ("nobody knows the capabilities", read(), "error -32601 by answered"),
    ]);
}

#[test]
fn rules_have_distinct_names() {
    let names: std::collections::BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(names.len(), RULES.len());
}
