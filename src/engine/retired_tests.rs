//! What forgotten chains leave behind is bounded by what they showed, not by how many they were.

use std::sync::Arc;

use super::*;
use crate::engine::Checkpoint;
use crate::engine::{Effect, Engine, Limits};
use crate::model::fact::*;
use crate::model::ids::{Arrival, Position, SECOND, SpanId, TraceId};
use crate::model::policy::Policy;

const BEGAN: u64 = 1_700_000_000 * SECOND;

fn process(key: u8) -> Arc<Process> {
    Arc::new(Process { key: Digest16([key; 16]), service: None, distinct: true })
}

/// One half of a request over a pipe; a modern one where `version` says so.
fn half(number: u64, end: End, version: &str) -> Fact {
    let asks = end == End::Asking;
    let mut trace = [1; 16];
    trace[8..].copy_from_slice(&number.to_be_bytes());
    let at = |span: u8| SpanRef { trace: TraceId(trace), span: SpanId([span; 8]) };
    let half = HalfFact {
        end,
        direction: Direction::ClientToServer,
        method: Name::new("tools/call"),
        tool: Name::some("search"),
        request_id: Name::some(&number.to_string()),
        session: None,
        version: Name::some(version),
        transport: Some(Transport::Stdio),
        server_address: None,
        server_name: Name::some("files"),
        rank: Rank::Wire,
        answer: Answer::default(),
        call: Default::default(),
        list: None,
        negotiation: None,
    };
    let at = if asks { at(2) } else { at(3) };
    Fact {
        id: FactId { signal: Signal::Span, at, digest: Digest16(trace) },
        process: process(if asks { 1 } else { 2 }),
        scope: Name::new("mcp"),
        parent: (!asks).then_some(SpanId([2; 8])),
        kind: if asks { 3 } else { 2 },
        status: 0,
        start: BEGAN + number * SECOND,
        end: BEGAN + number * SECOND + 1,
        links: Vec::new(),
        sampling: Sampling::default(),
        says: Says::Half(Arc::new(half)),
        evidence: Default::default(),
        findings: Vec::new(),
    }
}

fn bone(fact: &Fact) -> Bone {
    let Fact { id, parent, kind, status, start, end, .. } = *fact;
    Bone { at: id.at, parent, process: fact.process.clone(), start, end, kind, status, http: None }
}

/// A call without anything else, in a session of its own.
fn lone(number: u64) -> Sighting {
    let mut fact = half(number, End::Asking, "2025-11-25");
    if let Says::Half(half) = &mut fact.says {
        let session = Name::new(&format!("session {number}"));
        Arc::make_mut(half).session = Some((session, Provenance::Wire));
    }
    Sighting { bones: vec![bone(&fact)], facts: vec![Arc::new(fact)], held: Vec::new() }
}

fn evicted(effects: &[Effect], wanted: &str) -> u64 {
    let count = |effect: &Effect| match effect {
        Effect::Evicted { reason, count } if *reason == wanted => *count,
        _ => 0,
    };
    effects.iter().map(count).sum()
}

#[test]
fn the_oldest_leave_where_there_are_too_many() {
    let policy = Arc::new(Policy::default());
    let settle = policy.settle;
    let limits = Limits { chains: 100, scopes: 120, ..Limits::default() };
    let mut engine = Engine::new(policy, limits);
    let arrival = |after: u64| Arrival { monotonic: SECOND + after, wall: BEGAN + after };
    for number in 0..300 {
        engine.see(Position(number + 1), lone(number), arrival(number));
    }
    let effects = engine.tick(arrival(301));
    assert_eq!((engine.tables.chains.len(), evicted(&effects, "chains")), (100, 200));
    let effects = engine.tick(arrival(settle + 302));
    assert_eq!(engine.tables.scopes.len(), 120);
    assert_eq!(evicted(&effects, "scopes") + engine.tables.scopes.len() as u64, 300);
    let first = engine.tables.chains.values().map(|entry| entry.chain.start()).min();
    assert_eq!(first, Some(BEGAN + 200 * SECOND), "the newest stay");
}

#[test]
fn a_held_span_leaves_with_its_verdict_though_its_trace_is_evicted() {
    let policy = Arc::new(Policy::default());
    let mut engine = Engine::new(policy, Limits { chains: 1, ..Limits::default() });
    let arrival = |after: u64| Arrival { monotonic: SECOND + after, wall: BEGAN + after };
    let spans = [0, 1].map(|number| {
        let mut seen = lone(number);
        let at = seen.facts[0].id.at;
        seen.held = vec![HeldSpan { at, index: 0 }];
        engine.see(Position(number + 1), seen, arrival(number));
        at
    });
    let effects = engine.tick(arrival(2));
    let released = effects.iter().filter_map(|effect| match effect {
        Effect::Release { span, with, .. } => Some((*span, with.as_ref()?.operator.span)),
        _ => None,
    });
    assert_eq!(released.collect::<Vec<_>>(), [(spans[0], spans[0])]);
    assert!(engine.sent.is_empty(), "what was forgotten is not remembered as sent");
}

#[test]
fn what_processes_showed_is_kept_once() {
    let policy = Arc::new(Policy::default());
    let (settle, retention) = (policy.settle, policy.retention);
    let mut engine = Engine::new(policy, Limits::default());
    let arrival = |after: u64| Arrival { monotonic: SECOND + after, wall: BEGAN + after };
    for number in 0..300 {
        let version = if number % 2 == 0 { "2026-07-28" } else { "2025-11-25" };
        let facts = [End::Asking, End::Answering].map(|end| half(number, end, version));
        let bones = facts.iter().map(bone).collect();
        let facts = facts.into_iter().map(Arc::new).collect();
        engine.see(Position(number + 1), Sighting { bones, facts, held: Vec::new() }, arrival(0));
    }
    engine.tick(arrival(1));
    engine.tick(arrival(settle + 2));
    let [client, server] = [1, 2].map(|key| Digest16([key; 16]));
    assert_eq!(engine.tables.chains.len(), 300);
    assert_eq!(engine.tables.stdio_partners[&client][&server].len(), 300);
    engine.tick(arrival(retention + settle + 4));
    let tables = &engine.tables;
    assert_eq!(tables.chains.len(), 0, "all are forgotten");
    assert_eq!(tables.stdio_partners[&client][&server].len(), 1);
    assert_eq!(tables.stdio_partners[&server][&client].len(), 1);
    assert_eq!(tables.origins[&client].values().map(BTreeSet::len).collect::<Vec<_>>(), [1]);
    assert_eq!(tables.by_process.len() + tables.process_scopes.len(), 0);
    assert_eq!(tables.traces.len() + tables.ids.len() + tables.operations.len(), 0);
}

/// A call in a trace that holds a whole session: one end of it.
fn in_one_trace(number: u64, end: End) -> Sighting {
    let mut fact = half(number, end, "2025-11-25");
    let span = |of: u64| SpanId((number * 2 + of + 1).to_be_bytes());
    let asks = end == End::Asking;
    fact.id.at = SpanRef { trace: TraceId([9; 16]), span: span(u64::from(!asks)) };
    fact.parent = (!asks).then(|| span(0));
    Sighting { bones: vec![bone(&fact)], facts: vec![Arc::new(fact)], held: Vec::new() }
}

fn verdicts(effects: &[Effect]) -> BTreeSet<Digest16> {
    let of = |effect: &Effect| match effect {
        Effect::Verdict(verdict) => Some(verdict.id),
        _ => None,
    };
    effects.iter().filter_map(of).collect()
}

#[test]
fn a_trace_goes_on_after_it_was_forgotten() {
    let policy = Arc::new(Policy::default());
    let (settle, retention) = (policy.settle, policy.retention);
    let mut engine = Engine::new(policy.clone(), Limits::default());
    let arrival = |after: u64| Arrival { monotonic: SECOND + after, wall: BEGAN + after };
    engine.see(Position(1), in_one_trace(0, End::Asking), arrival(0));
    engine.tick(arrival(1));
    let first = engine.tick(arrival(settle + 2));
    assert_eq!(verdicts(&first).len(), 1);
    let later = retention + settle + 4;
    engine.tick(arrival(later));
    assert!(engine.tables.traces.is_empty(), "nothing came for long enough");
    // The other end of the forgotten call is late, by this process and by the next one.
    let slices: Vec<Vec<u8>> = engine.checkpoint(arrival(later)).into_slices().collect();
    let mut next = Engine::new(policy, Limits::default());
    next.restore(Checkpoint::from_slices(&slices).unwrap(), arrival(later));
    for engine in [&mut engine, &mut next] {
        engine.see(Position(2), in_one_trace(0, End::Answering), arrival(later));
        let late = engine.tick(arrival(later + 1));
        assert!(late.contains(&Effect::Late { count: 1 }), "{late:?}");
        assert!(verdicts(&engine.tick(arrival(later + 2 * settle))).is_empty());
        // A call that began after all that was forgotten is a call like any other.
        let number = later / SECOND;
        engine.see(Position(3), in_one_trace(number, End::Asking), arrival(later + 2 * settle));
        engine.tick(arrival(later + 2 * settle + 1));
        let effects = engine.tick(arrival(later + 4 * settle));
        assert_eq!(verdicts(&effects).len(), 1, "{effects:?}");
    }
}

#[test]
fn an_endless_trace_is_judged_on_and_on() {
    let policy = Arc::new(Policy::default());
    let settle = policy.settle;
    let limits = Limits { facts_per_trace: 20, ..Limits::default() };
    let mut engine = Engine::new(policy, limits);
    let arrival = |after: u64| Arrival { monotonic: SECOND + after, wall: BEGAN + after };
    let (mut effects, calls) = (Vec::new(), 200);
    for number in 0..calls {
        // A call every ten seconds, both ends in one export.
        let after = number * 10 * SECOND;
        let mut seen = in_one_trace(number * 10, End::Asking);
        let answered = in_one_trace(number * 10, End::Answering);
        seen.facts.extend(answered.facts);
        seen.bones.extend(answered.bones);
        engine.see(Position(number + 1), seen, arrival(after));
        effects.extend(engine.tick(arrival(after + 1)));
        effects.extend(engine.tick(arrival(after + settle + 2)));
        assert!(engine.tables.traces.values().all(|entry| entry.facts.len() <= 20));
    }
    assert_eq!(verdicts(&effects).len() as u64, calls);
    assert!(evicted(&effects, "facts") >= calls / 11);
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Late { .. })));
}

/// A session of `server` lists tools that nobody listed before.
fn listing(number: u64, tools: &str) -> Sighting {
    let mut seen = lone(number % 20);
    let mut fact = seen.facts[0].as_ref().clone();
    let mut trace = [2; 16];
    trace[8..].copy_from_slice(&number.to_be_bytes());
    fact.id.at.trace = TraceId(trace);
    (fact.start, fact.end) = (BEGAN + number, BEGAN + number + 1);
    if let Says::Half(half) = &mut fact.says {
        let half = Arc::make_mut(half);
        half.method = Name::new("tools/list");
        let tools = crate::catalog::listing::tools_from_json(tools).unwrap();
        let page = Arc::new(Definitions::new(tools));
        let facts = ListFacts { definitions: Some(page), ..ListFacts::default() };
        half.list = Some(Box::new(ListFacts { next_cursor: Some(None), ..facts }));
    }
    seen.bones = vec![bone(&fact)];
    seen.facts = vec![Arc::new(fact)];
    seen
}

#[test]
fn ever_new_tools_are_bounded_by_what_they_take() {
    let policy = Arc::new(Policy::default());
    let settle = policy.settle;
    let limits = Limits { facts: 1 << 20, ..Limits::default() };
    let mut engine = Engine::new(policy, limits);
    let arrival = |after: u64| Arrival { monotonic: SECOND + after, wall: BEGAN + after };
    let mut effects = Vec::new();
    for round in 0..8 {
        for number in round * 200..(round + 1) * 200 {
            let text = "x".repeat(1_000);
            let tools =
                format!(r#"[{{"name":"t{number}","description":"{text}","inputSchema":{{}}}}]"#);
            engine.see(Position(number + 1), listing(number, &tools), arrival(round * settle));
        }
        // What traces leave behind is counted once a settle, and makes room with the next tick.
        for after in [1, settle, settle + 1] {
            effects.extend(engine.tick(arrival(round * settle + after)));
        }
        assert!(engine.bytes() <= limits.facts, "{} after round {round}", engine.bytes());
    }
    assert!(evicted(&effects, "history") + evicted(&effects, "scopes") > 0);
    let drifts: usize = engine.drifts.values().map(|told| told.len()).sum();
    let told = effects.iter().filter(|effect| matches!(effect, Effect::Drift(_))).count();
    assert!(drifts < told / 3, "{drifts} of {told} drifts are remembered: whose tools are these?");
    let interned = engine.tables.interned.bytes();
    assert!(interned <= limits.facts, "{interned} bytes of definitions");
}
