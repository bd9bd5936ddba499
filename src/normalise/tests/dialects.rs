//! One row for each habit of a family that a reader has to know. Rows marked [S] are built from the
//! family's source or documents, the others from recorded spans.

use serde_json::{Value, json};

use super::sight_line;
use crate::model::fact::*;
use crate::model::policy::Policy;

/// A span as OTLP/JSON: attributes and events as plain JSON.
pub struct Row {
    scope: &'static str,
    name: &'static str,
    kind: u8,
    status: u8,
    message: &'static str,
    attributes: Value,
    events: Value,
}

pub fn row(scope: &'static str, name: &'static str, kind: u8, attributes: Value) -> Row {
    Row { scope, name, kind, status: 0, message: "", attributes, events: json!([]) }
}

impl Row {
    pub fn failed(self, message: &'static str) -> Self {
        Self { status: 2, message, ..self }
    }

    /// Events by name and attributes, a microsecond apart.
    pub fn events(self, events: Value) -> Self {
        Self { events, ..self }
    }

    pub fn line(&self) -> String {
        let events = self.events.as_array().into_iter().flatten().enumerate();
        let events: Vec<Value> = events
            .map(|(at, event)| {
                json!({"name": event[0], "attributes": pairs(&event[1]),
                       "timeUnixNano": (1_796_000_000_000_001_000_u64 + at as u64 * 1000)
                           .to_string()})
            })
            .collect();
        let span = json!({
            "traceId": "01".repeat(16), "spanId": "02".repeat(8), "parentSpanId": "03".repeat(8),
            "name": self.name, "kind": self.kind, "attributes": pairs(&self.attributes),
            "status": {"code": self.status, "message": self.message}, "events": events,
            "startTimeUnixNano": "1796000000000000000", "endTimeUnixNano": "1796000000100000000",
        });
        let scope = json!({"scope": {"name": self.scope}, "spans": [span]});
        let resource = json!({"attributes": pairs(&json!({"service.name": "app"}))});
        json!({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}).to_string()
    }
}

fn pairs(attributes: &Value) -> Vec<Value> {
    let value = |value: &Value| match value {
        Value::String(text) => json!({"stringValue": text}),
        Value::Bool(flag) => json!({"boolValue": flag}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        other => json!({"stringValue": other.to_string()}),
    };
    let members = attributes.as_object().into_iter().flatten();
    members.map(|(key, v)| json!({"key": key, "value": value(v)})).collect()
}

/// What the facts of a span say, one short word each.
fn said(row: &Row) -> Vec<String> {
    let sighting = sight_line(&row.line(), &Policy::default());
    sighting.facts.iter().map(|fact| short(fact)).collect()
}

pub fn short(fact: &Fact) -> String {
    match &fact.says {
        Says::Half(half) => format!("{:?} {}", half.rank, half_word(half)),
        Says::Started(half) => format!("started {}", half_word(half)),
        Says::Connection(half) => format!("connection {}", half_word(half)),
        Says::Notification(note) => {
            let id = note.cancelled_request_id.as_ref().map(|id| format!(" of {id}"));
            let token = note.progress.as_ref().map(|p| format!(" {}={:?}", p.token, p.value));
            format!("{}{}{}", note.method, id.unwrap_or_default(), token.unwrap_or_default())
        }
        Says::Agent { .. } => "agent".into(),
        Says::Model { tools } => format!("model with {}", tools.tools.len()),
        Says::Tool => {
            let told = fact.evidence.request.as_deref().map(half_word).unwrap_or_default();
            format!("below {told}")
        }
        Says::Http(http) => format!("http {}", http.status),
        Says::Evidence => match &fact.evidence.request {
            Some(half) => format!("adds {}", half_word(half)),
            None => "evidence".into(),
        },
    }
}

fn half_word(half: &HalfFact) -> String {
    let mut words = vec![format!("{:?}", half.end), half.method.to_string()];
    let answer = &half.answer;
    words.extend(half.tool.iter().map(|tool| tool.to_string()));
    words.extend(half.request_id.iter().map(|id| format!("#{id}")));
    words.extend(half.session.iter().map(|(id, from)| format!("{from:?}:{id}")));
    words.extend(half.version.iter().map(|version| version.to_string()));
    words.extend(answer.is_error.iter().map(|flag| format!("isError={flag}")));
    words.extend(answer.result_seen.then(|| "result".to_owned()));
    words.extend(answer.code.iter().map(|code| code.to_string()));
    words.extend(answer.http_status.iter().map(|status| format!("http={status}")));
    words.extend(answer.failure.iter().map(|failure| format!("{failure:?}")));
    words.join(" ")
}

#[track_caller]
pub fn check(row: Row, want: &[&str]) {
    assert_eq!(said(&row), want, "{} {}", row.scope, row.name);
}

const UUID: &str = "632390e5-f101-4f29-9c05-35753b8a4546";

#[test]
fn a_name_alone_is_nothing() {
    check(row("app", "initialize", 1, json!({})), &[]);
    check(row("app", "tools/call add", 1, json!({"app.step": "x"})), &[]);
    check(row("app", "execute_tool add", 1, json!({"gen_ai.operation.name": "execute_tool"})), &[]);
    check(row("my-mcp-server", "ping", 2, json!({})), &["Wire Answering ping"]);
    // [S] Middlewares of the Go SDK.
    let attributes = json!({"gen_ai.tool.name": "x", "gen_ai.operation.name": "execute_tool"});
    check(row("app", "tools/call x", 2, attributes), &["Wire Answering tools/call x"]);
}

#[test]
fn python_sdk_and_fastmcp() {
    let call = |id: &str| {
        json!({"mcp.method.name": "tools/call", "jsonrpc.request.id": "3",
               "gen_ai.tool.name": "t", "mcp.session.id": id})
    };
    check(
        row("fastmcp", "tools/call t", 2, call(UUID)),
        &[&format!("Wire Answering tools/call t #3 Synthetic:{UUID}")],
    );
    check(
        row("fastmcp", "tools/call t", 2, call("aede46")),
        &["Wire Answering tools/call t #3 Claimed:aede46"],
    );
    let refused = row(
        "mcp-python-sdk",
        "MCP send tools/call t",
        3,
        json!({
        "mcp.method.name": "tools/call", "error.type": "-32603",
        "rpc.response.status_code": "-32603"}),
    );
    check(
        refused.failed("Server returned an error response"),
        &["Wire Asking tools/call t Unnamed"],
    );
    let modern = json!({"mcp.method.name": "tools/list", "mcp.protocol.version": "2026-07-28",
                        "mcp.session.id": "abc"});
    check(
        row("fastmcp", "tools/list", 2, modern),
        &["Wire Answering tools/list Synthetic:abc 2026-07-28"],
    );
    // [S] agent-framework: a label on a connection attempt, no request.
    let label = json!({"mcp.method.name": "initialize", "mcp.protocol.version": "2026-07-28"});
    check(
        row("agent_framework", "initialize", 3, label),
        &["connection Asking initialize 2026-07-28"],
    );
}

#[test]
fn messages_in_attributes() {
    let request = json!({"method": "tools/call", "id": 4,
                         "params": {"name": "t", "arguments": {"a": 1}}});
    let response = json!({"content": [{"type": "text", "text": "x"}], "isError": true});
    let both = json!({"request": request, "response": response});
    check(
        row("logfire.mcp", "MCP server handle request: tools/call", 1, both),
        &["Wire Answering tools/call t #4 isError=true result"],
    );
    // [S] A pending record speaks for the span above it.
    let pending = json!({"rpc.method": "tools/call", "logfire.span_type": "pending_span"});
    check(
        row("logfire.mcp", "MCP request: tools/call t", 1, pending),
        &["started Asking tools/call t"],
    );
    let scope = "opentelemetry.instrumentation.mcp.instrumentation";
    let answer = json!({"mcp.request.id": "6", "mcp.response.value": response});
    check(row(scope, "ResponseStreamWriter", 1, answer), &["adds Unknown  #6 isError=true result"]);
    let tool = json!({"traceloop.entity.name": "t", "error.type": "McpError"});
    check(
        row(scope, "t.tool", 1, tool).failed("Unknown tool: t"),
        &["Wire Unknown tools/call t Protocol"],
    );
    let thrown = row("@traceloop/instrumentation-mcp", "initialize.mcp", 3, json!({}));
    let exception = json!([["exception", {"exception.type": "401", "exception.message": "no"}]]);
    check(thrown.failed("no").events(exception), &["Wire Asking initialize http=401"]);
}

#[test]
fn below_fastmcp_2_tools_stand_in_their_server() {
    let scope = "opentelemetry.instrumentation.mcp.instrumentation";
    let served = json!({"traceloop.entity.name": "t", "traceloop.workflow.name": "toy.mcp",
                        "error.type": "ValidationError"});
    check(
        row(scope, "t.tool", 1, served).failed("2 validation errors"),
        &["Wire Answering tools/call t HandlerRaised"],
    );
    // An application's own workflow says nothing of where its tools run.
    let asked = json!({"traceloop.entity.name": "t", "traceloop.workflow.name": "nightly"});
    check(row(scope, "t.tool", 1, asked), &["Wire Unknown tools/call t"]);
}

#[test]
fn texts_that_quote_codes_are_the_tools_own() {
    let result = json!({"result": "MCP error -32602: Tool x not found", "is_error": true});
    let attributes = json!({"traceloop.entity.output": result});
    let row = row("@traceloop/instrumentation-mcp", "x.tool", 3, attributes);
    check(
        row.failed("MCP error -32602: Tool x not found"),
        &["Wire Asking tools/call x isError=true result"],
    );
}

#[test]
fn javascript_tracers() {
    let sentry = json!({"mcp.method.name": "tools/call", "mcp.tool.name": "t",
                        "mcp.request.id": "7", "mcp.tool.result.is_error": true});
    check(
        row("@sentry/node", "tools/call t", 1, sentry),
        &["Wire Answering tools/call t #7 isError=true result"],
    );
    let unknown = json!({"mcp.method.name": "no/such"});
    check(
        row("@sentry/node", "no/such", 1, unknown).failed("internal_error"),
        &["Wire Answering no/such Protocol"],
    );
    let call = json!({"component": "modelcontextprotocol_client", "error.type": "Error"});
    check(
        row("dd-trace-js", "client_tool_call", 3, call).failed("Error: down"),
        &["Wire Asking tools/call isError=true"],
    );
    let call = json!({"component": "modelcontextprotocol_client", "error.type": "Error"});
    check(
        row("dd-trace-js", "client_tool_call", 3, call)
            .failed("Error: Streamable HTTP error: Error POSTing to endpoint: Service Unavailable"),
        &["Wire Asking tools/call Unnamed"],
    );
    // Python's tracer: what is raised has a type, the text of a result has none.
    let python = |more: Value| {
        let mut all = json!({"operation.name": "mcp.request", "error.message": "timed out"});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        row("", "client_tool_call", 1, all).failed("timed out")
    };
    check(python(json!({})), &["Wire Asking tools/call isError=true"]);
    check(python(json!({"error.type": "McpError"})), &["Wire Asking tools/call Timeout"]);
    let handler = json!({"component": "modelcontextprotocol_server_tool"});
    check(row("dd-trace-js", "add", 1, handler), &["Wire Answering tools/call add"]);
    check(row("dd-trace-js", "initialize", 0, json!({"operation.name": "app.step"})), &[]);
    // [S] Shinzo: random ids, a status that says nothing.
    let shinzo = json!({"mcp.method.name": "tools/call", "mcp.tool.name": "t",
                        "mcp.request.id": UUID, "mcp.session.id": UUID});
    check(
        Row { status: 1, ..row("toy", "tools/call t", 1, shinzo) },
        &[&format!("Wire Answering tools/call t Synthetic:{UUID}")],
    );
    let result = json!({"content": [{"type": "text", "text": "5"}], "isError": false});
    let tool = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "add",
                      "gen_ai.tool.call.result": result});
    check(
        row("gen_ai", "execute_tool add", 1, tool),
        &["Framework Asking tools/call add isError=false result"],
    );
    // [S] Mastra: an address that is a configured name.
    let mastra = json!({"mastra.span.type": "mcp_tool_call", "server.address": "weather"});
    check(
        row("@mastra/otel-exporter", "execute_tool weather_now", 3, mastra),
        &["Framework Asking tools/call weather_now"],
    );
}

#[test]
fn rust_events_become_requests() {
    let events = json!([
        ["received request", {"id": "1", "request":
            "CallToolRequest(Request { params: P { name: \"t\", arguments: Some({}) } })"}],
        ["response error", {"id": "1", "error":
            "ErrorData { code: ErrorCode(-32602), message: \"x\" }"}],
        ["received notification", {"notification":
            "CancelledNotification(N { request_id: Some(Number(13)), reason: None })"}],
        ["received notification", {"notification":
            "ProgressNotification(N { progress_token: ProgressToken(Number(7)), progress: 2.0 })"}],
        ["serve finished", {"quit_reason": "Closed"}],
    ]);
    check(
        row("app", "serve_inner", 1, json!({})).events(events),
        &[
            "connection Unknown initialize",
            "notifications/cancelled of 13",
            "notifications/progress 7=Some(2.0)",
            "Wire Answering tools/call t #1 -32602",
        ],
    );
}

/// [S] Known from source and documents.
#[test]
fn gateways_and_servers() {
    let envoy = json!({"mcp.method.name": "tools/call", "mcp.request.id": "5",
                       "mcp.protocol.version": "2025-06-18", "mcp.tool.name": "t"});
    let route = json!([["route to backend", {"mcp.session.id": "s", "mcp.backend.name": "b"}]]);
    check(
        row("gw", "CallTool", 3, envoy).events(route),
        &["Wire Answering tools/call t #5 Wire:s"],
    );
    let csharp = json!({"mcp.method.name": "tools/call", "mcp.session.id": "g",
                        "gen_ai.tool.name": "t", "error.type": "tool_error"});
    check(
        row("Experimental.ModelContextProtocol", "tools/call t", 2, csharp).failed("[]"),
        &["Wire Answering tools/call t Synthetic:g isError=true"],
    );
    let quarkus = json!({"mcp.method.name": "tools/call", "rpc.jsonrpc.request_id": "9",
                         "rpc.jsonrpc.error_code": -32602});
    check(
        row("io.quarkus.opentelemetry.mcp", "tools/call t", 2, quarkus).failed(""),
        &["Wire Answering tools/call t #9 -32602"],
    );
    let agentgateway = json!({"mcp.method.name": "tools/call", "mcp.target": "b",
                              "http.status": 503, "gen_ai.tool.name": "t"});
    check(
        row("agentgateway", "tools/call", 2, agentgateway).failed(""),
        &["Wire Answering tools/call t http=503 Unnamed"],
    );
    let go = json!({"mcp.method": "tools/call", "mcp.tool.name": "t"});
    check(
        row("app", "mcp.tools/call", 2, go).failed("tool returned error result"),
        &["Wire Answering tools/call t isError=true"],
    );
    let apollo = json!({"apollo.mcp.tool_name": "t", "apollo.mcp.request_id": "2"});
    check(row("apollo", "call_tool", 1, apollo), &["Wire Answering tools/call t #2"]);
    let forge = json!({"mcp.tool.name": "t", "upstream.response.success": false});
    check(
        row("mcp-gateway", "mcp.client.call", 1, forge),
        &["Wire Asking tools/call t isError=true"],
    );
    let cyan = json!({"mcp.tool.success": false});
    check(row("app", "tool_execution:t", 1, cyan), &["Wire Answering tools/call t isError=true"]);
    let adk = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t",
                     "gen_ai.tool.type": "McpTool", "error.type": "MCP_TOOL_ERROR"});
    check(
        row("gcp.vertex.agent", "execute_tool t", 1, adk).failed(""),
        &["Framework Asking tools/call t isError=true"],
    );
    let headers = json!({"http.request.method": "POST", "http.response.status_code": 401,
                         "http.request.header.mcp_method": "server/discover"});
    check(
        row("@sentry/node", "POST /mcp", 2, headers).failed("unauthenticated"),
        &["Framework Answering server/discover http=401"],
    );
}
