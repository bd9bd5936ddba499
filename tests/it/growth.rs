//! What a call costs does not grow with what is already there. Each figure is a ratio of two costs of
//! one run: the machine and its other work stand in both.

use std::sync::Arc;
use std::time::Instant;

use mcp_verdict::coverage::{self, Recording};
use mcp_verdict::engine::{Effect, Engine, Limits};
use mcp_verdict::model::fact::{Fact, Says, Sighting};
use mcp_verdict::model::ids::{Arrival, MILLI, Name, Position, SECOND, SpanId, SpanRef, TraceId};
use mcp_verdict::model::policy::Policy;
use mcp_verdict::normalise::sight;
use mcp_verdict::wire::{Signal, json};

const BEGAN: u64 = 1_795_996_800 * SECOND;
/// Calls between two ticks.
const BATCH: u64 = 100;

/// Both halves of a call, as two processes record them.
fn template() -> Sighting {
    let sighting = sight(Signal::Traces, &export(0, 0), &Policy::default());
    assert_eq!((sighting.facts.len(), sighting.bones.len(), sighting.held.len()), (2, 2, 2));
    sighting
}

/// The export of call number `number`, which began so many nanoseconds later.
fn export(number: u64, later: u64) -> Vec<u8> {
    let began = BEGAN + later;
    let span = |id: &str, parent: &str, kind: u8| {
        format!(
            r#"{{"traceId": "d2af5344e416c396{number:016x}", "spanId": "{id}",
            "parentSpanId": "{parent}", "kind": {kind}, "name": "tools/call get_weather",
            "startTimeUnixNano": "{began}", "endTimeUnixNano": "{}", "attributes": [
            {{"key": "mcp.method.name", "value": {{"stringValue": "tools/call"}}}},
            {{"key": "gen_ai.tool.name", "value": {{"stringValue": "get_weather"}}}},
            {{"key": "jsonrpc.request.id", "value": {{"stringValue": "{number}"}}}},
            {{"key": "mcp.session.id", "value": {{"stringValue": "s"}}}},
            {{"key": "mcp.protocol.version", "value": {{"stringValue": "2025-11-25"}}}}]}}"#,
            began + 5 * MILLI
        )
    };
    let block = |service: &str, span: String| {
        format!(
            r#"{{"resource": {{"attributes": [{{"key": "service.name",
            "value": {{"stringValue": "{service}"}}}}]}}, "scopeSpans": [{{"spans": [{span}]}}]}}"#
        )
    };
    let (asking, answering) =
        (span("d957b83588548293", "", 3), span("d957b83588548294", "d957b83588548293", 2));
    let export = format!(
        r#"{{"resourceSpans": [{}, {}]}}"#,
        block("agent", asking),
        block("server", answering)
    );
    let limits = json::Limits { max_bytes: 1 << 20 };
    json::to_protobuf(Signal::Traces, export.as_bytes(), limits).unwrap().bytes
}

/// How the calls of a run hang together.
struct Shape {
    session: fn(u64) -> String,
    request_id: fn(u64) -> String,
    trace: fn(u64) -> u64,
}

/// Call number `number`, a millisecond after the one before it.
fn call(template: &Sighting, shape: &Shape, number: u64) -> Sighting {
    let mut trace = [7; 16];
    trace[8..].copy_from_slice(&(shape.trace)(number).to_be_bytes());
    let moved = |at: SpanRef| {
        let offset = number * 16 + u64::from(at.span.0[7] & 15);
        SpanRef { trace: TraceId(trace), span: SpanId((offset + 1).to_be_bytes()) }
    };
    let later = number * MILLI;
    let (session, id) =
        (Name::new(&(shape.session)(number)), Name::new(&(shape.request_id)(number)));
    let parent =
        |at: SpanRef, parent: Option<SpanId>| parent.map(|span| moved(SpanRef { span, ..at }).span);
    let mut sighting = template.clone();
    for bone in &mut sighting.bones {
        (bone.start, bone.end) = (bone.start + later, bone.end + later);
        (bone.parent, bone.at) = (parent(bone.at, bone.parent), moved(bone.at));
    }
    for fact in &mut sighting.facts {
        let mut one: Fact = fact.as_ref().clone();
        (one.start, one.end) = (one.start + later, one.end + later);
        (one.parent, one.id.at) = (parent(one.id.at, one.parent), moved(one.id.at));
        let Says::Half(half) = &mut one.says else { unreachable!("halves") };
        let half = std::sync::Arc::make_mut(half);
        half.request_id = Some(id.clone());
        half.session.as_mut().unwrap().0 = session.clone();
        *fact = Arc::new(one);
    }
    for held in &mut sighting.held {
        held.at = moved(held.at);
    }
    sighting
}

/// CPU time of this thread where the system tells it, else time. In nanoseconds.
fn cpu(since: Instant) -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ran = told.and_then(|text| text.split(' ').next()?.parse().ok());
    ran.unwrap_or_else(|| u64::try_from(since.elapsed().as_nanos()).unwrap())
}

/// Nanoseconds a call, of the first and of the last `few` among `many` calls.
fn costs(shape: &Shape, few: u64, many: u64) -> (f64, f64) {
    let template = template();
    let policy = Policy { settle: SECOND, ..Policy::default() };
    let mut engine = Engine::new(Arc::new(policy), Limits::default());
    let mut verdicts = 0;
    let since = Instant::now();
    let (mut first, mut last) = (0, 0);
    for batch in 0..many / BATCH {
        let calls: Vec<Sighting> = (batch * BATCH..(batch + 1) * BATCH)
            .map(|number| call(&template, shape, number))
            .collect();
        let monotonic = SECOND + batch * BATCH * MILLI;
        let now = Arrival { monotonic, wall: BEGAN + monotonic };
        let began = cpu(since);
        for sighting in calls {
            engine.see(Position(1), sighting, now);
        }
        let effects = engine.tick(now);
        let took = cpu(since) - began;
        verdicts += effects.iter().filter(|e| matches!(e, Effect::Verdict(_))).count();
        assert!(!effects.iter().any(|e| matches!(e, Effect::Evicted { .. })), "all stay");
        if batch * BATCH < few {
            first += took;
        } else if batch * BATCH >= many - few {
            last += took;
        }
    }
    assert!(verdicts as u64 > many / 2, "most calls have settled: {verdicts} of {many}");
    let each = |took: u64| took as f64 / few as f64;
    (each(first), each(last))
}

fn grows_little(name: &str, shape: &Shape) {
    let (first, last) = costs(shape, 2_000, 10_000);
    let ratio = last / first;
    assert!(
        ratio <= 2.0,
        "{name}: a call costs {ratio:.1} times as much after 8 000 others \
         ({first:.0} and {last:.0} ns)"
    );
}

#[test]
fn a_call_in_one_session_with_repeating_ids_costs_what_the_first_ones_cost() {
    grows_little(
        "one session",
        &Shape {
            session: |_| "all".into(),
            request_id: |number| (number % 20).to_string(),
            trace: |number| number,
        },
    );
}

#[test]
fn a_call_among_many_sessions_costs_what_the_first_ones_cost() {
    grows_little(
        "many sessions",
        &Shape {
            session: |number| (number / 20).to_string(),
            request_id: |number| (number % 20).to_string(),
            trace: |number| number,
        },
    );
}

/// Nanoseconds a call to say what was seen of so many calls of one session.
fn looked_at(calls: u64, gap: u64) -> f64 {
    let exports = (0..calls).map(|number| (Signal::Traces, export(number, number * gap)));
    let recording = Recording::new(exports.collect(), Policy::default());
    let since = Instant::now();
    let began = cpu(since);
    let tools = coverage::tools(&recording);
    assert_eq!((tools.len(), tools[0].calls), (1, calls));
    (cpu(since) - began) as f64 / calls as f64
}

#[test]
fn looking_at_what_was_seen_of_calls_costs_the_same_for_each() {
    for (name, gap) in [("a second apart", SECOND), ("all at once", 0)] {
        let (few, many) = (looked_at(500, gap), looked_at(3_000, gap));
        let ratio = many / few;
        assert!(
            ratio <= 2.5,
            "{name}: a call costs {ratio:.1} times as much among 3 000 ({few:.0} and {many:.0} ns)"
        );
    }
}
