//! What happens to MCP spans between the real ports: held, judged, enriched, told as events.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_verdict::log::{Log, Memory};
use opentelemetry_proto::tonic::logs::v1::LogRecord;

use super::support::*;

fn state_of(backend: &Backend, name: &str) -> Option<String> {
    let spans = backend.spans();
    let span = spans.iter().find(|span| span.name == name)?;
    Some(attribute(&span.attributes, "mcp_verdict.state").unwrap_or("none").to_owned())
}

/// Scenario: a tool call alone. Guarantees: it leaves once, only added to; an event under the same
/// resource tells the same state.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_leaves_enriched_and_an_event_tells_it() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    let sent = failed(call(&trace(), "search"), "timeout");
    program.send("asker", vec![sent.clone()]).await;
    backend
        .until("the span and its event", |b| !b.spans().is_empty() && !b.records().is_empty())
        .await;
    let spans = backend.spans();
    let got = spans.iter().find(|span| span.span_id == sent.span_id).unwrap();
    let mut bare = got.clone();
    bare.attributes.retain(|attribute| !attribute.key.starts_with("mcp_verdict."));
    assert_eq!(bare, sent, "only additions");
    let state = attribute(&got.attributes, "mcp_verdict.state").unwrap();
    let (resource, event) = backend
        .records()
        .into_iter()
        .find(|(_, record)| record.event_name == "mcp_verdict.verdict")
        .unwrap();
    assert_eq!(attribute(&event.attributes, "mcp_verdict.state"), Some(state));
    assert_eq!(attribute(&resource.attributes, "service.name"), Some("asker"));
    assert_eq!((&event.trace_id, &event.span_id), (&sent.trace_id, &sent.span_id));
}

/// Scenario: a failing tool whose owner is configured for the tool, for its server and for all, and
/// one of another server. Guarantees: verdict and incident events carry the narrowest text.
#[tokio::test(flavor = "multi_thread")]
async fn events_carry_the_configured_owner() {
    let backend = Backend::start(&[]).await;
    let server = "processors.mcp_verdict.servers.\"tools.example.com\"";
    let more = [
        "processors.mcp_verdict.owners={ tool_owner: everybody }",
        &format!("{server}.owners={{ tool_owner: server-team }}"),
        &format!("{server}.tools.search.owners={{ tool_owner: search-team }}"),
    ];
    let program = Program::start(&backend, &more).await;
    let mut elsewhere = failed(call(&trace(), "other"), "tool_error");
    elsewhere.attributes.retain(|attribute| attribute.key != "server.address");
    elsewhere.attributes.push(text("server.address", "other.example.com"));
    let calls = [
        failed(call(&trace(), "search"), "tool_error"),
        failed(call(&trace(), "fetch"), "tool_error"),
        elsewhere,
    ];
    program.send("asker", calls.to_vec()).await;
    backend.until("the events", |b| b.records().len() >= 6).await;
    let told = |kind: &str| -> BTreeSet<(String, String)> {
        let records = backend.records().into_iter().map(|(_, record)| record);
        let of = |record: LogRecord| {
            let of = |key| attribute(&record.attributes, key).unwrap_or("nobody").to_owned();
            let server = of("mcp_verdict.server");
            (of("mcp_verdict.owner.contact"), server)
        };
        records.filter(|record| record.event_name == kind).map(of).collect()
    };
    let [ours, others] = ["tools.example.com", "other.example.com"];
    let want = [("search-team", ours), ("server-team", ours), ("everybody", others)];
    let want: BTreeSet<_> = want.map(|(who, at)| (who.to_owned(), at.to_owned())).into();
    assert_eq!(told("mcp_verdict.verdict"), want);
    assert_eq!(told("mcp_verdict.incident"), want);
}

/// Scenario: one export with a plain span beside a call, and a plain export after it. Guarantees:
/// neither waits for the verdict.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_mcp_leaves_before_its_neighbours_settle() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &["processors.mcp_verdict.settle=5s"]).await;
    let began = Instant::now();
    let (call, beside) = (call(&trace(), "slow"), span(&trace(), "beside"));
    program.send("both", vec![call.clone(), beside]).await;
    program.send("plain", vec![span(&trace(), "after")]).await;
    backend.until("the plain spans", |b| b.spans().len() >= 2).await;
    assert!(!backend.spans().iter().any(|span| span.name == call.name), "they waited for it");
    let names: Vec<String> = backend.spans().into_iter().map(|span| span.name).collect();
    assert!(names.contains(&"beside".into()) && names.contains(&"after".into()), "{names:?}");
    backend.until("the call", |b| state_of(b, &call.name).is_some()).await;
    assert!(began.elapsed() >= Duration::from_secs(5), "it was held");
}

/// Scenario: the HTTP exchange below a call ends, and is exported, ten seconds before the call is.
/// Guarantees: evidence in spans that look like nothing is not missed.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_http_child_is_found_although_it_came_first() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    let trace = trace();
    let call = failed(call(&trace, "deploy"), "401");
    let mut child = failed(span(&trace, "POST"), "401");
    child.parent_span_id = call.span_id.clone();
    child.attributes.push(text("http.request.method", "POST"));
    child.attributes.push(text("url.full", "http://tools.example.com/mcp"));
    child.attributes.push(number("http.response.status_code", 401));
    program.send("agent", vec![child]).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    program.send("agent", vec![call.clone()]).await;
    backend.until("the call", |b| state_of(b, &call.name).is_some()).await;
    assert_eq!(state_of(&backend, &call.name).as_deref(), Some("needs_auth"));
}

/// Scenario: the program is told to stop while a call is held for a minute. Guarantees: it leaves
/// at once, with what is known, and nothing is lost.
#[tokio::test(flavor = "multi_thread")]
async fn held_spans_leave_at_the_stop() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &["processors.mcp_verdict.settle=60s"]).await;
    let sent: Vec<_> = (0..50).map(|n| call(&trace(), &format!("tool-{n}"))).collect();
    for span in &sent {
        program.send("asker", vec![span.clone()]).await;
    }
    let began = Instant::now();
    assert_eq!(program.app.stop().await.lost, 0);
    assert!(began.elapsed() < Duration::from_secs(50));
    for span in &sent {
        let state = state_of(&backend, &span.name).expect("it was delivered");
        assert_ne!(state, "none", "it carries a verdict");
    }
}

/// Scenario: more is held than may be. Guarantees: the oldest leave un-enriched and are counted;
/// none is lost.
#[tokio::test(flavor = "multi_thread")]
async fn at_the_limit_held_spans_leave_unenriched() {
    let backend = Backend::start(&[]).await;
    let more =
        ["processors.mcp_verdict.settle=60s", "processors.mcp_verdict.limits.held_spans=64KiB"];
    let program = Program::start(&backend, &more).await;
    for _ in 0..20 {
        let spans = (0..20).map(|_| call(&trace(), "many")).collect();
        program.send("asker", spans).await;
    }
    backend.until("those over the limit", |b| b.spans().len() > 100).await;
    program.metric_until("mcp_verdict_evicted", &["held_spans"], |count| count > 100.0).await;
    assert_eq!(program.app.stop().await.lost, 0);
    let calls = backend.spans().into_iter().filter(|span| span.name == "tools/call many").count();
    assert_eq!(calls, 400, "every call, once");
}

/// Scenario: the process dies with calls held and plain spans undelivered, and starts again on its
/// log. Guarantees: everything that was acknowledged arrives, the calls with their verdict.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_delivered_is_taken_up_again() {
    let backend = Backend::start(&[]).await;
    backend.set_dead(true);
    let log: Arc<dyn Log> = Arc::new(Memory::new(1 << 24));
    let more = ["service.shutdown_timeout=1ms", "processors.mcp_verdict.settle=60s"];
    let first = Program::start_on(&backend, &more, log.clone()).await;
    let (call, beside) = (failed(call(&trace(), "again"), "timeout"), span(&trace(), "beside"));
    first.send("both", vec![call.clone(), beside.clone()]).await;
    first.send("plain", vec![span(&trace(), "alone")]).await;
    first.kill();
    assert_eq!(log.usage().records, 2, "neither is done");
    backend.set_dead(false);
    let second = Program::start_on(&backend, &[], log.clone()).await;
    backend.until("the call", |b| state_of(b, &call.name).is_some()).await;
    assert_ne!(state_of(&backend, &call.name).as_deref(), Some("none"));
    let count = |name: &str| backend.spans().iter().filter(|span| span.name == name).count();
    // What was on the wire when the process died may come a second time, never a third.
    backend.until("the rest", |_| count("beside") > 0 && count("alone") > 0).await;
    assert!(count("beside") <= 2 && count("alone") <= 2);
    assert_eq!(second.app.stop().await.lost, 0);
    assert_eq!(log.usage().records, 0, "all is done");
}
