//! Coverage of a running program beside that of a recording of the same telemetry.

use std::time::{Duration, Instant};

use mcp_verdict::coverage::{Recording, tools};
use mcp_verdict::wire::Signal;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::{Value, json};

use super::support::*;
use crate::edge::support::*;

fn with(mut span: Span, key: &str, value: &str) -> Span {
    span.attributes.push(text(key, value));
    span
}

/// A listing, and calls of two tools: failed, answered, and with an effect and an outcome.
fn calls() -> Vec<Span> {
    let confirmed = || with(call(&trace(), "find"), "mcp_evidence.effect.status", "confirmed");
    let checked = with(confirmed(), "mcp_evidence.outcome.status", "verified");
    vec![
        listing(&[tool("find", "q", "Finds.")]),
        failed(call(&trace(), "move"), "tool_error"),
        call(&trace(), "move"),
        call(&trace(), "find"),
        confirmed(),
        with(checked, "mcp_evidence.outcome.method", "query"),
    ]
}

/// Scenario: the same spans sent to a running program, and recorded. Guarantees: both count the same
/// calls, states and layers of each tool; the gauge has them too.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_program_covers_what_its_recording_covers() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    let spans = calls();
    let mut exports = Vec::new();
    for span in spans {
        exports.push((Signal::Traces, export("desk", vec![span.clone()]).encode_to_vec()));
        program.send("desk", vec![span]).await;
    }
    let recording = Recording::new(exports, settings(&backend, &[]).policy);
    let wanted: Vec<Value> = tools(&recording).iter().map(|tool| json!(tool)).map(plain).collect();
    assert!(wanted.iter().any(|tool| tool["layers"][4]["observed"] != 0), "{wanted:#?}");
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let (_, answer) = get(&program, "/v1/coverage").await;
        let mut found: Vec<Value> =
            answer["tools"].as_array().unwrap().iter().cloned().map(plain).collect();
        let by_name = |tool: &Value| tool["tool"].to_string();
        found.sort_by_key(by_name);
        let mut wanted = wanted.clone();
        wanted.sort_by_key(by_name);
        if found == wanted {
            break;
        }
        assert!(Instant::now() < end, "{found:#?}\n{wanted:#?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (_, one) = get(&program, "/v1/coverage?tool=find&limit=1").await;
    assert_eq!(one["tools"][0]["tool"], "find");
    let outcome = &one["tools"][0]["layers"][4];
    assert_eq!(outcome["evidence"], json!({"verified by query": 1}));
    let calls = one["tools"][0]["calls"].as_f64().unwrap();
    let seen = outcome["observed"].as_f64().unwrap();
    for (word, count) in [("true", seen), ("false", calls - seen)] {
        let labels = [r#"layer="outcome""#, &format!(r#"observed="{word}""#), r#"tool="find""#];
        assert_eq!(program.metric("mcp_verdict_coverage{", &labels).await, count, "{word}");
    }
}

/// What both tell: no evidence in words, and what only one of them has left out.
fn plain(mut tool: Value) -> Value {
    for layer in tool["layers"].as_array_mut().unwrap() {
        let layer = layer.as_object_mut().unwrap();
        layer.remove("evidence");
        layer.remove("lacking");
    }
    tool
}
