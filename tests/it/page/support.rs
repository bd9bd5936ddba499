//! Listings to send, and questions to ask.

use std::time::{Duration, Instant};

use mcp_verdict::proto::mcp_verdict_client::McpVerdictClient;
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Value, json};
use tonic::transport::Channel;

use crate::edge::support::*;

/// A tool with one parameter, which may be renamed, and a description.
pub fn tool(name: &str, parameter: &str, description: &str) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": {parameter: {"type": "string"}},
            "required": [parameter]},
    })
}

/// The asking half of a complete `tools/list` of tools.example.com.
pub fn listing(tools: &[Value]) -> Span {
    let trace = trace();
    let request = fresh().to_string();
    Span {
        attributes: vec![
            text("mcp.method.name", "tools/list"),
            text("mcp.session.id", &format!("session-{request}")),
            text("jsonrpc.request.id", &request),
            text("mcp.protocol.version", "2025-11-25"),
            text("server.address", "tools.example.com"),
            text("mcp_evidence.list.definitions", &Value::from(tools).to_string()),
            text("mcp_evidence.list.last_page", "true"),
        ],
        ..span(&trace, "tools/list")
    }
}

/// The digest of a tool, as clients compute it.
pub fn digest(tool: &Value) -> String {
    let read = mcp_verdict::catalog::projection::read_definition(tool).unwrap();
    read.digest.unwrap().to_string()
}

pub fn url(program: &Program, path: &str) -> String {
    format!("http://{}{path}", program.app.page_address().unwrap())
}

/// Status and body of a check.
pub async fn check(program: &Program, question: &Value) -> (u16, Value) {
    let request = client().post(url(program, "/v1/contracts/check"));
    let request = request.header("content-type", "application/json").body(question.to_string());
    read(request).await
}

/// Status and body of a path.
pub async fn get(program: &Program, path: &str) -> (u16, Value) {
    read(client().get(url(program, path))).await
}

pub async fn read(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_slice(&response.bytes().await.unwrap()).unwrap())
}

/// Asks until the reason is another than `not`, as long as a test is patient.
pub async fn check_until(program: &Program, question: &Value, not: &str) -> Value {
    let end = Instant::now() + PATIENCE;
    loop {
        let (status, answer) = check(program, question).await;
        assert_eq!(status, 200, "{answer}");
        if answer["reason"] != not {
            return answer;
        }
        assert!(Instant::now() < end, "{answer}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub async fn channel(program: &Program) -> Channel {
    let url = format!("http://{}", program.app.grpc_address().unwrap());
    Channel::from_shared(url).unwrap().connect().await.unwrap()
}

pub async fn grpc(program: &Program) -> McpVerdictClient<Channel> {
    McpVerdictClient::new(channel(program).await)
}

/// Pins a tool of tools.example.com for anyone.
pub fn write_lockfile(path: &std::path::Path, tool: &Value) {
    use mcp_verdict::catalog::lockfile::{Lockfile, Mark, Pin, anyones};
    let tool = mcp_verdict::catalog::projection::read_definition(tool).unwrap();
    let mark = Mark { at: "2026-01-02T03:04:05Z".into(), by: "a test".into() };
    let mut lockfile = Lockfile::default();
    let pin = Pin::of(&tool, mark.clone(), Some(mark)).unwrap();
    lockfile.set(anyones("tools.example.com", &tool), pin);
    std::fs::write(path, lockfile.print()).unwrap();
}
