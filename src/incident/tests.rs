//! Incidents from entries: grouping, statuses, and that order does not matter.

use super::*;
use crate::model::ids::{SECOND, SpanId, TraceId};

const QUIET: Nanos = 24 * 3600 * SECOND;
const T0: Nanos = 1_700_000_000 * SECOND;

fn passed(authority: Rung) -> Passes {
    let layers = FailureLayers {
        transport: Rung::Passed,
        protocol: Rung::Passed,
        authority,
        execution: Rung::Passed,
        outcome: Rung::Unobserved,
    };
    Passes { layers, catalog: Rung::Passed, settled: false }
}

/// A call that passed everything and was verified by nobody, `at` seconds after the start.
fn call(at: u64) -> Entry {
    let span = SpanRef { trace: TraceId([1; 16]), span: SpanId(at.to_be_bytes()) };
    Entry {
        id: Digest16::of(&[&at.to_be_bytes()]),
        server: Name::new("srv"),
        scope: Name::new("s1"),
        agent: Name::some("agent"),
        method: Name::new("tools/call"),
        tool: Name::some("create_ticket"),
        unknown_tool: false,
        credential: None,
        start: T0 + at * SECOND,
        time: T0 + at * SECOND + 1,
        span,
        failure: None,
        passes: passed(Rung::Passed),
    }
}

fn verified(at: u64) -> Entry {
    let mut entry = call(at);
    entry.passes.settled = true;
    entry
}

fn with(entry: Entry, credential: &str) -> Entry {
    Entry { credential: Name::some(credential), ..entry }
}

fn failed(at: u64, layer: &str, reason: Reason, discriminator: &str) -> Entry {
    let failure = Failure {
        layer: Name::new(layer),
        reason,
        discriminator: Name::some(discriminator),
        owner: Owner::CredentialOwner,
        next_step: NextStep::RefreshCredentialOnce,
    };
    let mut passes = passed(Rung::Failed);
    passes.layers.protocol = Rung::Unobserved;
    passes.layers.execution = Rung::Unobserved;
    Entry { failure: Some(failure), passes, ..call(at) }
}

fn denied(at: u64, credential: &str) -> Entry {
    let entry = failed(at, "authority", Reason::InvalidToken, credential);
    with(entry, credential)
}

fn said(entries: &[Entry], now: u64) -> Vec<String> {
    fold(entries, T0 + now * SECOND, QUIET)
        .iter()
        .map(|incident| {
            let name = incident.discriminator.as_ref().map_or("-", |name| name.as_str());
            format!("{} {name} {} {}", incident.layer, incident.status, incident.count)
        })
        .collect()
}

#[test]
fn statuses() {
    let elsewhere = |entry: Entry| Entry { scope: Name::new("s2"), ..entry };
    let five: Vec<Entry> = (1..=5).map(|at| denied(at, "cred-1")).collect();
    let and = |more: Vec<Entry>| [five.clone(), more].concat();
    let rows = vec![
        ("failures alone", five.clone(), 9, "authority cred-1 open 5"),
        (
            "passed, nobody checked",
            and(vec![with(call(8), "cred-1")]),
            9,
            "authority cred-1 recovering 5",
        ),
        (
            "passed and verified",
            and(vec![with(verified(8), "cred-1")]),
            9,
            "authority cred-1 resolved 5",
        ),
        (
            "another credential",
            and(vec![with(verified(8), "cred-2")]),
            9,
            "authority cred-1 open 5",
        ),
        ("an unknown one, same scope", and(vec![verified(8)]), 9, "authority cred-1 resolved 5"),
        (
            "an unknown one, elsewhere",
            and(vec![elsewhere(verified(8))]),
            9,
            "authority cred-1 open 5",
        ),
        (
            "a success before the failures",
            and(vec![with(verified(0), "cred-1")]),
            9,
            "authority cred-1 open 5",
        ),
        ("quiet for a day", five.clone(), 86_410, "authority cred-1 expired 5"),
        (
            "recovering, then quiet",
            and(vec![with(call(8), "cred-1")]),
            86_410,
            "authority cred-1 expired 5",
        ),
        (
            "resolved stays resolved",
            and(vec![with(verified(8), "cred-1")]),
            90_000,
            "authority cred-1 resolved 5",
        ),
        (
            "it failed again",
            and(vec![with(verified(8), "cred-1"), denied(9, "cred-1")]),
            10,
            "authority cred-1 open 6",
        ),
    ];
    for (name, entries, now, want) in rows {
        assert_eq!(said(&entries, now), [want], "{name}");
    }
}

#[test]
fn causes_do_not_mix() {
    let entries = [
        denied(1, "cred-1"),
        denied(2, "cred-2"),
        with(verified(9), "cred-2"),
        failed(3, "execution", Reason::ToolError, "create_ticket"),
        Entry {
            server: Name::new("other"),
            ..failed(4, "execution", Reason::ToolError, "create_ticket")
        },
    ];
    assert_eq!(
        said(&entries, 10),
        [
            "authority cred-1 open 1",
            "authority cred-2 resolved 1",
            "execution create_ticket resolved 1",
            "execution create_ticket open 1",
        ]
    );
}

#[test]
fn who_and_when() {
    let agent = |entry: Entry, name: &str| Entry { agent: Name::some(name), ..entry };
    let entries = [
        agent(denied(2, "c"), "b"),
        agent(denied(1, "c"), "a"),
        agent(denied(3, "c"), "a"),
        with(verified(8), "c"),
    ];
    let incidents = fold(&entries, T0 + 9 * SECOND, QUIET);
    let incident = &incidents[0];
    assert_eq!(incident.agents, [Name::new("a"), Name::new("b")]);
    assert_eq!(incident.tools, [Name::new("create_ticket")]);
    assert_eq!(incident.first_seen, T0 + SECOND);
    assert_eq!(incident.last_seen, T0 + 3 * SECOND + 1);
    assert_eq!(incident.resolved_at, Some(T0 + 8 * SECOND + 1));
    assert_eq!(incident.owner, Owner::CredentialOwner);
}

#[test]
fn order_and_repeats_do_not_matter() {
    let mut entries = vec![
        denied(1, "a"),
        denied(2, "a"),
        denied(3, "b"),
        with(call(5), "a"),
        with(verified(6), "b"),
        failed(4, "transport", Reason::Http(503), "srv"),
    ];
    let want = fold(&entries, T0 + 9 * SECOND, QUIET);
    assert_eq!(want.len(), 3);
    for turn in 0..entries.len() {
        entries.rotate_left(1);
        let mut more = entries.clone();
        more.extend(entries.iter().take(turn).cloned());
        assert_eq!(fold(&more, T0 + 9 * SECOND, QUIET), want);
    }
}

#[test]
fn only_a_tool_that_was_listed_may_be_a_label() {
    let error = |at| failed(at, "execution", Reason::ToolError, "create_ticket");
    let label = |entries: &[Entry]| {
        let all = fold(entries, T0 + 9 * SECOND, QUIET);
        all[0].named_tool.as_ref().map(|tool| tool.to_string())
    };
    assert_eq!(label(&[error(1), error(2)]), Some("create_ticket".into()));
    let made_up = Entry { unknown_tool: true, ..error(2) };
    assert_eq!(label(&[error(1), made_up]), None);
    let another = Entry { tool: Name::some("close_ticket"), ..error(2) };
    assert_eq!(label(&[error(1), another]), None);
}
