//! Export requests that are encoded once and sent many times, each time with ids that are new.

use bytes::{Bytes, BytesMut};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;

/// Eight bytes that stand in every trace id of a template, where the number of the trace will be.
const MARK: [u8; 8] = *b"\xf7BENCH\x00\xf7";
/// The session of the calls in a template, which becomes one of its own for each number.
const SESSION: &str = "bench-session-00";
const SERVER: i32 = 2;
const CLIENT: i32 = 3;

/// What a program under test is given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// Spans of services that know nothing of MCP.
    Plain,
    /// Tool calls as instrumented agents emit them: an agent's span, both halves, HTTP between them.
    Mcp,
    /// One call in a hundred spans.
    Mixed,
}

impl Load {
    pub const ALL: [Load; 3] = [Load::Plain, Load::Mixed, Load::Mcp];

    pub fn name(self) -> &'static str {
        match self {
            Load::Plain => "plain",
            Load::Mixed => "mixed",
            Load::Mcp => "mcp",
        }
    }

    pub fn says(self) -> &'static str {
        match self {
            Load::Plain => "no MCP span",
            Load::Mixed => "one MCP call in 100 spans",
            Load::Mcp => "20 MCP calls of five spans, a session an export",
        }
    }

    /// One template of 100 spans.
    pub fn template(self) -> Template {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as u64);
        let calls = match self {
            Load::Plain => 0,
            Load::Mixed => 1,
            Load::Mcp => 20,
        };
        let mut client = Vec::new();
        let mut server = Vec::new();
        for call in 0..calls {
            mcp_call(call, now, &mut client, &mut server);
        }
        for item in (calls * 5)..100 {
            client.push(plain_span(item, now));
        }
        let request = ExportTraceServiceRequest {
            resource_spans: vec![block("bench-agent", client), block("bench-server", server)],
        };
        Template::new(&request)
    }
}

fn plain_span(item: u64, now: u64) -> Span {
    let table = format!("SELECT name, price FROM goods WHERE id = ${item}");
    span(item, 0, item + 1, CLIENT, "SELECT goods", now)
        .with(&[
            ("db.system.name", "postgresql"),
            ("db.namespace", "shop"),
            ("db.query.text", &table),
        ])
        .with(&[("server.address", "db.internal"), ("db.operation.name", "SELECT")])
        .with(&[("db.collection.name", "goods"), ("thread.name", "worker-7")])
        .with(&[("code.function.name", "shop.goods.find"), ("app.tenant", "tenant-0042")])
}

/// agent step → client half → HTTP client → HTTP server → server half, one trace; all calls of a request in one session.
fn mcp_call(call: u64, now: u64, client: &mut Vec<Span>, server: &mut Vec<Span>) {
    let id = call.to_string();
    let half = [("mcp.method.name", "tools/call"), ("jsonrpc.request.id", id.as_str())];
    let tool = [("gen_ai.operation.name", "execute_tool"), ("gen_ai.tool.name", "get_weather")];
    let http = [("http.request.method", "POST"), ("url.full", "http://tools.internal/mcp")];
    let session = [("mcp.session.id", SESSION), ("mcp.protocol.version", "2025-11-25")];
    let status = ("http.response.status_code", 200);
    client
        .push(span(call, 0, 1, CLIENT, "agent step", now).with(&[("gen_ai.agent.name", "bench")]));
    let caller = span(call, 1, 2, CLIENT, "tools/call get_weather", now);
    client.push(caller.with(&half).with(&tool).with(&session));
    client.push(span(call, 2, 3, CLIENT, "POST", now).with(&http).with_int(status));
    server.push(span(call, 3, 4, SERVER, "POST /mcp", now).with(&http).with_int(status));
    let answering = span(call, 4, 5, SERVER, "tools/call get_weather", now);
    server.push(answering.with(&half).with(&tool).with(&session));
}

fn span(trace: u64, parent: u64, id: u64, kind: i32, name: &str, now: u64) -> Span {
    let mut trace_id = MARK.to_vec();
    trace_id.extend_from_slice(&trace.to_be_bytes());
    let start = now + id * 100_000;
    Span {
        trace_id,
        span_id: (0xbe00 + id).to_be_bytes().to_vec(),
        parent_span_id: match parent {
            0 => Vec::new(),
            parent => (0xbe00 + parent).to_be_bytes().to_vec(),
        },
        flags: 0x101,
        name: name.to_owned(),
        kind,
        start_time_unix_nano: start,
        end_time_unix_nano: start + 5_000_000 - id * 200_000,
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

fn text(key: &str, value: &str) -> KeyValue {
    pair(key, Value::StringValue(value.to_owned()))
}

fn pair(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

fn block(service: &str, spans: Vec<Span>) -> ResourceSpans {
    let resource = Resource {
        attributes: vec![
            text("service.name", service),
            text("service.instance.id", "3f0c"),
            text("host.name", "bench-host"),
        ],
        ..Resource::default()
    };
    let scope = InstrumentationScope {
        name: "bench".to_owned(),
        version: "1".to_owned(),
        ..InstrumentationScope::default()
    };
    ResourceSpans {
        resource: Some(resource),
        scope_spans: vec![ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() }],
        ..ResourceSpans::default()
    }
}

/// An encoded request and the places where its trace ids are made new.
pub struct Template {
    bytes: Bytes,
    traces: Vec<usize>,
    sessions: Vec<usize>,
}

impl Template {
    fn new(request: &ExportTraceServiceRequest) -> Self {
        let bytes = Bytes::from(request.encode_to_vec());
        let traces = places(&bytes, &MARK);
        let sessions = places(&bytes, SESSION.as_bytes());
        assert_eq!(traces.len() as u64, count_spans(&bytes).theirs, "one mark a span");
        Self { bytes, traces, sessions }
    }

    pub fn spans(&self) -> u64 {
        self.traces.len() as u64
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The request with trace ids and a session that no other number gives.
    pub fn numbered(&self, number: u64) -> Bytes {
        let mut copy = BytesMut::from(&self.bytes[..]);
        for &at in &self.traces {
            copy[at..at + MARK.len()].copy_from_slice(&(number + 1).to_be_bytes());
        }
        let session = format!("{number:016x}");
        for &at in &self.sessions {
            copy[at..at + SESSION.len()].copy_from_slice(session.as_bytes());
        }
        copy.freeze()
    }
}

fn places(bytes: &[u8], mark: &[u8]) -> Vec<usize> {
    bytes.windows(mark.len()).enumerate().filter(|(_, w)| *w == mark).map(|(at, _)| at).collect()
}

/// Spans in a request: those that were sent, and those that mcp-verdict made.
#[derive(Clone, Copy, Default)]
pub struct Count {
    pub theirs: u64,
    pub ours: u64,
}

/// Counts spans by walking the three outer levels; nothing below a span is read.
pub fn count_spans(request: &[u8]) -> Count {
    let mut count = Count::default();
    for (_, resource) in fields(request).filter(|(number, _)| *number == 1) {
        for (_, scope) in fields(resource).filter(|(number, _)| *number == 2) {
            let spans = fields(scope).filter(|(number, _)| *number == 2).count() as u64;
            let named = fields(scope).find(|(number, _)| *number == 1).map(|(_, body)| body);
            let ours = named.is_some_and(|body| {
                fields(body).any(|(number, name)| number == 1 && name == b"mcp-verdict")
            });
            if ours {
                count.ours += spans;
            } else {
                count.theirs += spans;
            }
        }
    }
    count
}

/// The length-delimited fields of a message; ends at the first thing that is not readable.
fn fields(mut bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    std::iter::from_fn(move || {
        loop {
            let key = varint(&mut bytes)?;
            let skip = match key & 7 {
                0 => {
                    varint(&mut bytes)?;
                    continue;
                }
                1 => 8,
                5 => 4,
                2 => {
                    let length = usize::try_from(varint(&mut bytes)?).ok()?;
                    let (body, rest) = bytes.split_at_checked(length)?;
                    bytes = rest;
                    return Some((key >> 3, body));
                }
                _ => return None,
            };
            bytes = bytes.get(skip..)?;
        }
    })
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
