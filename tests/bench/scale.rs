//! What many catalogs cost: `cargo test --release --test bench -- --scale SERVERS TOOLS CLIENTS`.
//!
//! Every client lists every server's tools once and calls one of them, straight into an engine without
//! limits; then one tool of every server is renamed and one client of each lists again. Printed: CPU
//! time until everything is judged, and the resident memory that is left. Run it with a number doubled to see
//! the slope.

use std::sync::Arc;
use std::time::Duration;

use mcp_verdict::engine::{Effect, Engine, Limits};
use mcp_verdict::model::ids::{Arrival, Position, SECOND};
use mcp_verdict::model::policy::Policy;
use mcp_verdict::normalise::sight;
use mcp_verdict::wire::Signal;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;

use crate::Failure;

/// Listings between two ticks.
const BATCH: u64 = 500;
const BEGAN: u64 = 1_796_000_000 * SECOND;

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let numbers: Vec<u64> = arguments.iter().map(|n| n.parse()).collect::<Result<_, _>>()?;
    let [servers, tools, clients] = numbers[..] else {
        return Err("--scale SERVERS TOOLS CLIENTS".into());
    };
    let began = cpu()?;
    let empty = resident()?;
    let mut world = World::new();
    for client in 0..clients {
        for server in 0..servers {
            world.session(server, tools, client, "query");
        }
    }
    world.settle();
    let (listed, memory) = (cpu()? - began, resident()? - empty);
    for server in 0..servers {
        world.session(server, tools, 0, "q");
    }
    world.settle();
    let lines = servers * tools * clients;
    println!(
        "{servers} servers × {tools} tools × {clients} clients = {lines} lines: {:.2} s, {:.2} µs a line, \
         {memory} MiB, {:.0} bytes a line; one renamed tool each: {:.2} s, {} drifts, {} verdicts",
        listed.as_secs_f64(),
        listed.as_secs_f64() * 1e6 / lines as f64,
        (memory << 20) as f64 / lines as f64,
        (cpu()? - began - listed).as_secs_f64(),
        world.drifts,
        world.verdicts,
    );
    Ok(())
}

struct World {
    engine: Engine,
    policy: Arc<Policy>,
    sent: u64,
    drifts: usize,
    verdicts: usize,
}

impl World {
    fn new() -> Self {
        let policy = Arc::new(Policy::default());
        let most = usize::MAX;
        let limits =
            Limits { lookback: most, facts: most, chains: most, scopes: most, ..Limits::default() };
        let engine = Engine::new(policy.clone(), limits);
        World { engine, policy, sent: 0, drifts: 0, verdicts: 0 }
    }

    /// Event and arrival time move on together, a millisecond a session.
    fn now(&self) -> Arrival {
        let monotonic = SECOND + self.sent * 1_000_000;
        Arrival { monotonic, wall: BEGAN + monotonic }
    }

    fn session(&mut self, server: u64, tools: u64, client: u64, parameter: &str) {
        self.sent += 1;
        let now = self.now();
        let bytes = export(self.sent, now.wall, server, tools, client, parameter);
        let mut sighting = sight(Signal::Traces, &bytes, &self.policy);
        sighting.held.clear();
        self.engine.see(Position(self.sent), sighting, now);
        if self.sent.is_multiple_of(BATCH) {
            self.tick(now);
        }
    }

    fn tick(&mut self, now: Arrival) {
        for effect in self.engine.tick(now) {
            match effect {
                Effect::Drift(_) => self.drifts += 1,
                Effect::Verdict(_) => self.verdicts += 1,
                _ => {}
            }
        }
    }

    /// A verdict is sent a settle after it was judged, what it says of its scope and server another
    /// settle later.
    fn settle(&mut self) {
        for _ in 0..4 {
            self.sent += 10_000;
            self.tick(self.now());
        }
    }
}

fn text(key: &str, value: String) -> KeyValue {
    let value = Some(AnyValue { value: Some(Value::StringValue(value)) });
    KeyValue { key: key.into(), value, ..KeyValue::default() }
}

/// A listing of a server's tools and a call, by one client in a session of its own.
fn export(number: u64, at: u64, server: u64, tools: u64, client: u64, parameter: &str) -> Vec<u8> {
    let tool = |tool: u64| {
        let parameter = if tool == 0 { parameter } else { "query" };
        format!(
            r#"{{"name":"tool-{tool}","description":"Tool {tool} of server {server}: finds passages and gives the best.",
            "inputSchema":{{"type":"object","properties":{{"{parameter}":{{"type":"string","description":"What to look for."}},
            "limit":{{"type":"integer","minimum":1,"maximum":50}},"language":{{"type":"string","enum":["de","en","nb"]}}}},
            "required":["{parameter}"]}}}}"#
        )
    };
    let definitions: Vec<String> = (0..tools).map(tool).collect();
    let span = |offset: u64, method: &str, more: Vec<KeyValue>| {
        let mut attributes = vec![
            text("mcp.method.name", method.into()),
            text("mcp.session.id", format!("session-{number}")),
            text("jsonrpc.request.id", offset.to_string()),
            text("mcp.protocol.version", "2025-11-25".into()),
            text("server.address", format!("server-{server}.example.com")),
        ];
        attributes.extend(more);
        Span {
            trace_id: [number.to_be_bytes(), 7u64.to_be_bytes()].concat(),
            span_id: (number * 4 + offset).to_be_bytes().to_vec(),
            name: method.into(),
            kind: 3,
            start_time_unix_nano: at + offset * 100_000,
            end_time_unix_nano: at + offset * 100_000 + 50_000,
            attributes,
            ..Span::default()
        }
    };
    let listed = vec![
        text("mcp_evidence.list.definitions", format!("[{}]", definitions.join(","))),
        text("mcp_evidence.list.last_page", "true".into()),
    ];
    let called = vec![
        text("gen_ai.tool.name", "tool-1".into()),
        text("mcp_evidence.call.is_error", "false".into()),
    ];
    let spans = vec![span(1, "tools/list", listed), span(2, "tools/call", called)];
    let attributes = vec![
        text("service.name", "agent".into()),
        text("service.instance.id", format!("client-{client}")),
    ];
    let resource = Some(Resource { attributes, ..Resource::default() });
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    let resource_spans = vec![ResourceSpans { resource, scope_spans, ..ResourceSpans::default() }];
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}

/// MiB
pub fn resident() -> Result<u64, Failure> {
    Ok(crate::subject::memory_of(std::process::id(), "VmRSS")? as u64)
}

/// CPU time of this process so far.
fn cpu() -> Result<Duration, Failure> {
    crate::subject::cpu_of(std::process::id())
}
