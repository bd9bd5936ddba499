//! What is sent: spans as instrumented programs emit them, about 440 bytes each.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};

use crate::template::{SESSION_MARK, SPAN_MARK, State, TRACE_MARK, Template};

const SERVER: i32 = 2;
const CLIENT: i32 = 3;
/// Spans of one call: agent, client half, HTTP client, HTTP server, server half.
const CALL: u64 = 5;
/// Calls of one session in an export; the tool fails the last.
const CALLS_A_SESSION: u64 = 20;

/// What a program under test is given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// Spans of services that know nothing of MCP.
    Plain,
    /// A tenth of the spans are those of tool calls.
    Tenth,
    /// Nothing but tool calls: an agent's span, both halves, HTTP between them.
    Mcp,
}

impl Load {
    pub fn says(self) -> &'static str {
        match self {
            Load::Plain => "no MCP span",
            Load::Tenth => "one span in ten belongs to an MCP call",
            Load::Mcp => "MCP calls of five spans, 20 a session, one in 20 fails",
        }
    }

    /// A template of so many spans.
    pub fn template(self, spans: u64) -> Template {
        self.padded(spans, 0)
    }

    /// The same, the halves of requests longer by so many bytes.
    pub fn padded(self, spans: u64, padding: usize) -> Template {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as u64);
        let calls = match self {
            Load::Plain => 0,
            Load::Tenth => spans / 10 / CALL,
            Load::Mcp => spans / CALL,
        };
        let padding = "x".repeat(padding);
        let mut export = Export { now, padding, client: Vec::new(), server: Vec::new() };
        (0..calls).for_each(|call| export.call(call));
        (calls..calls + spans - calls * CALL).for_each(|item| export.plain(item));
        let blocks = [("bench-agent", export.client), ("bench-server", export.server)];
        let filled = blocks.into_iter().filter(|(_, spans)| !spans.is_empty());
        let resource_spans = filled.map(|(service, spans)| block(service, spans)).collect();
        let states = (0..calls).map(becomes).collect();
        Template::new(&ExportTraceServiceRequest { resource_spans }, states)
    }
}

fn becomes(call: u64) -> State {
    match (call + 1).is_multiple_of(CALLS_A_SESSION) {
        true => State::Failed,
        false => State::Unverified,
    }
}

/// An export under way; each span's id is its place in it.
struct Export {
    now: u64,
    padding: String,
    client: Vec<Span>,
    server: Vec<Span>,
}

impl Export {
    fn next(&self) -> u64 {
        (self.client.len() + self.server.len()) as u64
    }

    fn plain(&mut self, item: u64) {
        let query =
            format!("SELECT name, price, stock FROM goods WHERE id = {} LIMIT 1", item * 7919);
        let caller = format!("{:016x}", item.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let span = span(item, None, self.next(), CLIENT, "SELECT goods", self.now)
            .with(&[("db.system.name", "postgresql"), ("db.namespace", "shop")])
            .with(&[("db.query.text", &query), ("db.operation.name", "SELECT")])
            .with(&[("db.collection.name", "goods"), ("server.address", "db.internal")])
            .with(&[("thread.name", "worker-7"), ("code.function.name", "shop.goods.find")])
            .with(&[("app.tenant", "tenant-0042"), ("app.request.id", &caller)]);
        self.client.push(span);
    }

    /// agent step → client half → HTTP client → HTTP server → server half, one trace.
    fn call(&mut self, call: u64) {
        let session = format!("{SESSION_MARK}{:02}", call / CALLS_A_SESSION);
        let id = call.to_string();
        let half = [
            ("mcp.method.name", "tools/call"),
            ("jsonrpc.request.id", id.as_str()),
            ("app.note", self.padding.as_str()),
        ];
        let half = &half[..if self.padding.is_empty() { 2 } else { 3 }];
        let tool = [("gen_ai.operation.name", "execute_tool"), ("gen_ai.tool.name", "get_weather")];
        let session =
            [("mcp.session.id", session.as_str()), ("mcp.protocol.version", "2025-11-25")];
        let http = [("http.request.method", "POST"), ("url.full", "http://tools.internal/mcp")];
        let more = [("server.address", "tools.internal"), ("network.protocol.version", "1.1")];
        let peer = [("user_agent.original", "bench-agent/1.0 python-httpx/0.28.1")];
        let status = ("http.response.status_code", 200);
        let failed = [("error.type", "tool_error")];
        let failed = &failed[..usize::from(becomes(call) == State::Failed)];
        let place = [("thread.name", "worker-7"), ("app.tenant", "tenant-0042")];
        let first = self.next();
        let span = |parent: Option<u64>, own: u64, kind, name| {
            span(call, parent.map(|n| first + n), first + own, kind, name, self.now).with(&place)
        };
        let agent = span(None, 0, CLIENT, "invoke_agent bench")
            .with(&[("gen_ai.operation.name", "invoke_agent"), ("gen_ai.agent.name", "bench")])
            .with(&[("gen_ai.provider.name", "example"), ("gen_ai.request.model", "model-2026-01")])
            .with(&[("gen_ai.conversation.id", "conversation-0042"), ("app.release", "2026.11.3")])
            .with(&[("code.function.name", "bench.agent.step"), ("app.region", "eu-north-1")]);
        let asking = span(Some(0), 1, CLIENT, "tools/call get_weather");
        let asking = asking.with(half).with(&tool).with(&session).with(&more[..1]).with(failed);
        let posted = span(Some(1), 2, CLIENT, "POST").with(&http).with(&more).with(&peer);
        let posted = posted.with_int(status).with_int(("server.port", 443));
        let served = span(Some(2), 3, SERVER, "POST /mcp").with(&http).with(&more).with(&peer);
        let served = served.with_int(status).with(&[("url.path", "/mcp")]);
        let answering = span(Some(3), 4, SERVER, "tools/call get_weather");
        let answering =
            answering.with(half).with(&tool).with(&session).with(&more[..1]).with(failed);
        self.client.extend([agent, asking, posted]);
        self.server.extend([served, answering]);
    }
}

fn span(trace: u64, parent: Option<u64>, own: u64, kind: i32, name: &str, now: u64) -> Span {
    let id = |place: u64| [&SPAN_MARK[..], &(place as u16).to_be_bytes()].concat();
    let start = now + own * 100_000;
    Span {
        trace_id: [TRACE_MARK, trace.to_be_bytes()].concat(),
        span_id: id(own),
        parent_span_id: parent.map(id).unwrap_or_default(),
        flags: 0x101,
        name: name.to_owned(),
        kind,
        start_time_unix_nano: start,
        end_time_unix_nano: start + 50_000_000 - own * 80_000,
        ..Span::default()
    }
}

trait With: Sized {
    fn with(self, pairs: &[(&str, &str)]) -> Self;
    fn with_int(self, pair: (&str, i64)) -> Self;
}

impl With for Span {
    fn with(mut self, pairs: &[(&str, &str)]) -> Self {
        self.attributes.extend(pairs.iter().map(|(key, value)| text(key, value)));
        self
    }

    fn with_int(mut self, (key, value): (&str, i64)) -> Self {
        self.attributes.push(pair(key, Value::IntValue(value)));
        self
    }
}

pub fn text(key: &str, value: &str) -> KeyValue {
    pair(key, Value::StringValue(value.to_owned()))
}

fn pair(key: &str, value: Value) -> KeyValue {
    let value = Some(AnyValue { value: Some(value) });
    KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
}

pub fn resource(service: &str) -> Resource {
    let attributes = [
        ("service.name", service),
        ("service.instance.id", "3f0c"),
        ("service.version", "2026.11.3"),
        ("host.name", "bench-host"),
        ("telemetry.sdk.language", "python"),
    ];
    let attributes = attributes.map(|(key, value)| text(key, value)).into();
    Resource { attributes, ..Resource::default() }
}

fn block(service: &str, spans: Vec<Span>) -> ResourceSpans {
    let scope = InstrumentationScope {
        name: "bench".to_owned(),
        version: "1".to_owned(),
        ..InstrumentationScope::default()
    };
    ResourceSpans {
        resource: Some(resource(service)),
        scope_spans: vec![ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() }],
        ..ResourceSpans::default()
    }
}
