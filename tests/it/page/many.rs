//! A hundred thousand remembered chains.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_verdict::model::ids::{Digest16, Name, SECOND, SpanRef};
use mcp_verdict::model::record::*;
use mcp_verdict::model::words::*;
use mcp_verdict::page::Board;
use mcp_verdict::page::board::Recorder;
use mcp_verdict::page::listing::{Wanted, chains};
use mcp_verdict::page::overview;
use mcp_verdict::page::recent::Said;

use crate::edge::support::report;

const NOW: u64 = 1_795_996_800 * SECOND;
const MANY: u32 = 100_000;

/// Chain number `number`: one in a thousand is a false success, every call has its own request.
pub fn verdict(number: u32) -> Verdict {
    let (passed, rare) = (Rung::Passed, number.is_multiple_of(1000));
    let name = |text: String| Name::new(&text);
    Verdict {
        id: Digest16::of(&[&number.to_le_bytes()]),
        revision: 1,
        supersedes: None,
        scope: name(format!("scope-{}", number % 500)),
        session_id: None,
        era: Era::Legacy,
        protocol_version: None,
        transport: None,
        agent: Some(name(format!("agent-{}", number % 7))),
        server: name(format!("server-{}", number % 20)),
        method: Name::new("tools/call"),
        tool: Some(name(format!("tool-{}", number % 50))),
        request_id: Some(name(format!("request-{number}"))),
        operation_id: None,
        attempt: 1,
        state: if rare { State::FalseSuccess } else { State::Healthy },
        reason: rare.then_some(Reason::OutcomeMissing),
        lifecycle: Lifecycle::Complete,
        layers: Layers {
            session: passed,
            catalog: passed,
            request: passed,
            effect: passed,
            outcome: passed,
        },
        failure_layers: FailureLayers {
            transport: passed,
            protocol: passed,
            authority: passed,
            execution: passed,
            outcome: passed,
        },
        first_failed_layer: rare.then_some(FailureLayer::Outcome),
        convergence: None,
        contract: Contract::default(),
        effect: None,
        outcome: Outcome::default(),
        confidence: Confidence::Strong,
        findings: Vec::new(),
        next_step: NextStep::Continue,
        owner: Owner::None,
        retry: Retry::Never,
        trace_id: None,
        client_span_id: None,
        server_span_id: None,
        start_time: NOW - u64::from(number % 3000) * SECOND,
        end_time: None,
        evidence_time: NOW,
        operator: OperatorRow { span: SpanRef::default(), ..OperatorRow::default() },
    }
}

fn recorder(most: u32) -> (Arc<Board>, Recorder) {
    let board = Arc::new(Board::default());
    (board.clone(), Recorder::new(board, most as usize))
}

fn full() -> (Arc<Board>, Recorder) {
    let (board, mut recorder) = recorder(MANY);
    (0..MANY).for_each(|number| recorder.verdict(verdict(number).into(), NOW));
    recorder.publish();
    (board, recorder)
}

fn asked(key: &str, value: &str) -> Wanted {
    let mut wanted = Wanted { limit: Some(100), ..Wanted::default() };
    let place = match key {
        "state" => &mut wanted.state,
        "first_failed_layer" => &mut wanted.first_failed_layer,
        "tool" => &mut wanted.tool,
        "agent" => &mut wanted.agent,
        "text" => &mut wanted.text,
        _ => &mut wanted.server,
    };
    *place = value.to_owned();
    wanted
}

/// Scenario: each filter over a hundred thousand chains, one of which finds nothing at all.
/// Guarantees: the right ones, the newest first, each page soon enough for somebody who types; the
/// bound is wide, for a build without optimisation on a busy machine.
#[test]
fn each_filter_answers_soon() {
    let (board, _recorder) = full();
    let recent = board.recent();
    assert_eq!((recent.chains(), recent.revisions()), (u64::from(MANY), MANY as usize));
    let mut worst = Duration::ZERO;
    for (key, value, found) in [
        ("server", "", 100),
        ("state", "false_success", 100),
        ("state", "false_success,tool_failed", 100),
        ("first_failed_layer", "outcome", 100),
        ("first_failed_layer", "transport", 0),
        ("server", "server-7", 100),
        ("tool", "tool-49", 100),
        ("agent", "agent-3", 100),
        ("text", "REQUEST-99999", 1),
        ("text", "outcome_missing", 100),
        ("text", "nowhere to be found", 0),
        ("text", &verdict(4711).id.to_string()[3..20], 1),
    ] {
        let began = Instant::now();
        let page = chains(&recent, &asked(key, value)).unwrap();
        worst = worst.max(began.elapsed());
        assert_eq!(page.items.len(), found, "{key}={value}");
        let numbers: Vec<u64> = page.items.iter().map(|said| said.number).collect();
        assert!(numbers.is_sorted_by(|a, b| a > b), "{key}={value}");
    }
    report(&format!("page: slowest of 12 filters over {MANY} chains: {worst:?}"));
    let bytes = size_of::<Said>() + size_of::<Verdict>();
    report(&format!("page: a remembered verdict takes {bytes} B and its own names"));
    assert!(worst < Duration::from_secs(10), "{worst:?}");
    let overview = overview::overview(&recent, &overview::Wanted::default(), NOW).unwrap();
    assert_eq!(overview.calls.unwrap().attempts, u64::from(MANY), "all began within the hour");
    assert_eq!(overview.states["false_success"], u64::from(MANY / 1000));
}

/// Scenario: all of them page by page, while each is said again. Guarantees: each once, none twice,
/// and a reader's copy stays as it was.
#[test]
fn a_copy_stands_still() {
    let (board, mut recorder) = full();
    let recent = board.recent();
    for number in 0..MANY / 10 {
        let later = Verdict { revision: 2, state: State::Unverified, ..verdict(number) };
        recorder.verdict(later.into(), NOW);
    }
    recorder.publish();
    let mut seen = BTreeSet::new();
    let mut wanted = Wanted { limit: Some(1000), ..Wanted::default() };
    loop {
        let page = chains(&recent, &wanted).unwrap();
        for said in &page.items {
            assert!(said.revision == 1 && seen.insert(said.id));
        }
        wanted.page_token = page.next;
        if wanted.page_token.is_empty() {
            break;
        }
    }
    assert_eq!(seen.len(), MANY as usize);
    let again = board.recent();
    let revised = chains(&again, &asked("state", "unverified")).unwrap();
    assert!(revised.items.iter().all(|said| said.revision == 2));
    // What is remembered is bounded: the oldest revisions made room, and are counted no more.
    assert!(again.revisions() <= MANY as usize + 512);
    let states: u64 = again.states.values().sum();
    assert_eq!(states, u64::from(MANY));
    assert_eq!(again.states[&State::Unverified], u64::from(MANY / 10));
    let minutes = again.timeline.minutes().map(|(_, minute)| u64::from(minute.attempts));
    assert_eq!(minutes.sum::<u64>(), u64::from(MANY), "a revision moves its chain, adds none");
}

/// Scenario: publishing after one more verdict, with a thousand and with a hundred thousand
/// remembered. Guarantees: the engine's thread does not pay for what is remembered. The bound is on
/// a ratio of two costs of one run.
#[test]
fn publishing_does_not_grow_with_what_is_remembered() {
    let cost = |remembered: u32| {
        let (_board, mut recorder) = recorder(MANY);
        (0..remembered).for_each(|number| recorder.verdict(verdict(number).into(), NOW));
        recorder.publish();
        let round = |number: u32| {
            recorder.verdict(verdict(remembered + number).into(), NOW);
            let began = Instant::now();
            recorder.publish();
            began.elapsed()
        };
        let mut rounds: Vec<Duration> = (0..101).map(round).collect();
        rounds.sort();
        rounds[50]
    };
    let (few, many) = (cost(1000), cost(MANY));
    report(&format!("page: publishing with 1,000 remembered {few:?}, with {MANY} {many:?}"));
    assert!(many < few * 20 + Duration::from_micros(200), "{few:?}, then {many:?}");
}
