//! A start on what an earlier process left: nobody is answered before it is taken up.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::killed::Process;
use super::support::*;
use crate::page::support::{listing, tool};

/// Ports that are free now: the first four for telemetry and the page, the last for health.
const PORTS: [&str; 5] = [
    "receivers.otlp.protocols.grpc.endpoint",
    "receivers.otlp.protocols.http.endpoint",
    "service.telemetry.metrics.endpoint",
    "service.telemetry.page.endpoint",
    "service.telemetry.health.endpoint",
];

fn free() -> [SocketAddr; 5] {
    let taken = PORTS.map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    taken.map(|listener| listener.local_addr().unwrap())
}

async fn start(backend: &Backend, directory: &Path, ports: [SocketAddr; 5]) -> Process {
    let set: Vec<String> = PORTS.iter().zip(ports).map(|(k, at)| format!("{k}={at}")).collect();
    let (backend, directory) = (backend.clone(), directory.to_path_buf());
    let start = move || {
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        Process::start_with(&backend, &directory, &set)
    };
    tokio::task::spawn_blocking(start).await.unwrap()
}

/// Asks about a tool that was changed; `None` where nobody listens.
async fn ask(client: &reqwest::Client, page: SocketAddr, changed: &Value) -> Option<Value> {
    let question = json!({"server": "tools.example.com", "tool": "find", "definition": changed});
    let request = client.post(format!("http://{page}/v1/contracts/check"));
    let request = request.header("content-type", "application/json").body(question.to_string());
    let response = request.send().await.ok()?;
    let status = response.status().as_u16();
    let answer: Value = serde_json::from_slice(&response.bytes().await.ok()?).unwrap();
    Some(json!([status, answer["answer"], answer["reason"], answer["grade"]]))
}

/// Every answer until `over`, from the first on.
async fn ask_on(page: SocketAddr, changed: Value, over: Arc<AtomicBool>) -> Vec<Value> {
    let (client, mut answers) = (client(), Vec::new());
    while !over.load(Ordering::Relaxed) {
        match ask(&client, page, &changed).await {
            Some(answer) => answers.push(answer),
            None => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
    answers
}

/// Ports that are closed when health opens, and what `/readyz` says then.
async fn closed_at_health(ports: [SocketAddr; 5]) -> (Vec<&'static str>, u16) {
    while TcpStream::connect(ports[4]).await.is_err() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut closed = Vec::new();
    for (port, name) in ports[..4].iter().zip(PORTS) {
        if TcpStream::connect(port).await.is_err() {
            closed.push(name);
        }
    }
    let ready = client().get(format!("http://{}/readyz", ports[4])).send().await.unwrap();
    (closed, ready.status().as_u16())
}

/// Scenario: a tool was listed and a changed definition of it is checked; the process is killed or
/// stopped with much in its log, and starts again while somebody asks all the time. Guarantees: the
/// first answer is the one that the earlier process gave, and so is every other; when health opens
/// every other port is open, and it says ready.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_answered_before_what_was_left_is_taken_up() {
    for killed in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let backend = Backend::start(&[]).await;
        let ports = free();
        let process = start(&backend, directory.path(), ports).await;
        let (old, new) = (tool("find", "query", ""), tool("find", "q", ""));
        process.send("desk", vec![listing(std::slice::from_ref(&old))]).await;
        let want = json!([200, "proceed", "drift_tolerated", "breaking"]);
        let end = Instant::now() + PATIENCE;
        loop {
            let answer = ask(&client(), ports[3], &new).await.unwrap();
            if answer == want {
                break;
            }
            assert!(Instant::now() < end, "{answer}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        for _ in 0..40 {
            let mut spans = vec![call(&trace(), "find")];
            spans.resize_with(50, || {
                let mut other = span(&trace(), "other");
                other.attributes.push(text("filler", &"x".repeat(2_000)));
                other
            });
            process.send("desk", spans).await;
        }
        match killed {
            true => process.kill(),
            false => process.stop(),
        }
        let ports = free();
        let over = Arc::new(AtomicBool::new(false));
        let asked = tokio::spawn(ask_on(ports[3], new, over.clone()));
        let closed = tokio::spawn(closed_at_health(ports));
        let next = start(&backend, directory.path(), ports).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        over.store(true, Ordering::Relaxed);
        let answers = asked.await.unwrap();
        let wrong = answers.iter().enumerate().find(|(_, answer)| **answer != want);
        assert!(answers.len() > 5 && wrong.is_none(), "{}: {wrong:?}", answers.len());
        assert_eq!(closed.await.unwrap(), (Vec::new(), 200));
        next.stop();
    }
}
