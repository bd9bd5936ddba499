//! The real program, killed under load: what it acknowledged arrives. And two of them on one
//! directory.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prost::Message;

use super::support::*;

/// The built program, in front of a backend, with its log in a directory.
struct Process {
    child: Child,
    url: String,
}

fn command(backend: &Backend, directory: &Path) -> Command {
    let set = [
        "receivers.otlp.protocols.grpc.endpoint=127.0.0.1:0".to_owned(),
        "receivers.otlp.protocols.http.endpoint=127.0.0.1:0".to_owned(),
        "service.telemetry.metrics.endpoint=127.0.0.1:0".to_owned(),
        "service.telemetry.health.endpoint=127.0.0.1:0".to_owned(),
        "service.telemetry.page.endpoint=127.0.0.1:0".to_owned(),
        "processors.mcp_verdict.settle=300ms".to_owned(),
        format!("storage.directory={}", directory.display()),
        format!("exporters.otlp_http.endpoint=http://{}", backend.address),
        "exporters.otlp_http.retry_on_failure.initial_interval=50ms".to_owned(),
        "exporters.otlp_http.retry_on_failure.max_interval=200ms".to_owned(),
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-verdict"));
    command.arg("run").args(set.iter().flat_map(|one| ["--set", one.as_str()]));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

impl Process {
    /// Starts it and waits until its ports are open.
    fn start(backend: &Backend, directory: &Path) -> Self {
        let mut child = command(backend, directory).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let ready = lines.by_ref().map(|line| line.unwrap()).find(|line| line.contains("ready"));
        let ready = ready.expect("it starts");
        let line: serde_json::Value = serde_json::from_str(&ready).unwrap();
        let http = line["http"].as_str().unwrap();
        let address = http.trim_start_matches("Some(").trim_end_matches(')');
        let url = format!("http://{address}/v1/traces");
        std::thread::spawn(move || lines.for_each(drop));
        Process { child, url }
    }

    fn kill(self) {
        drop(self);
    }
}

/// A test that fails leaves no process behind.
impl Drop for Process {
    fn drop(&mut self) {
        // On Unix this is SIGKILL. It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Span ids that were acknowledged: of calls, and of the others.
#[derive(Default)]
struct Acknowledged {
    calls: BTreeSet<Vec<u8>>,
    others: BTreeSet<Vec<u8>>,
}

/// Sends exports, each with a call and two spans that are no calls, until nobody answers.
async fn load(url: String, acknowledged: Arc<Mutex<Acknowledged>>) {
    let client = client();
    loop {
        let spans = vec![call(&trace(), "load"), span(&trace(), "one"), span(&trace(), "two")];
        let ids: Vec<Vec<u8>> = spans.iter().map(|span| span.span_id.clone()).collect();
        let request = client.post(&url).header("content-type", "application/x-protobuf");
        let body = export("loaded", spans).encode_to_vec();
        match request.body(body).send().await {
            Ok(answer) if answer.status() == 200 => {
                let mut acknowledged = acknowledged.lock().unwrap();
                acknowledged.calls.insert(ids[0].clone());
                acknowledged.others.extend(ids[1..].iter().cloned());
            }
            Ok(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(_) => return,
        }
    }
}

fn delivered(backend: &Backend) -> BTreeSet<Vec<u8>> {
    backend.spans().into_iter().map(|span| span.span_id).collect()
}

/// Scenario: senders on sixteen connections, a backend that comes and goes, and `kill -9` at random
/// moments with restarts in between. Guarantees: every span that was acknowledged arrives, every
/// call with its verdict.
#[tokio::test(flavor = "multi_thread")]
async fn no_kill_loses_an_acknowledged_span() {
    let directory = tempfile::tempdir().unwrap();
    let backend = Backend::start(&[]).await;
    let acknowledged = Arc::new(Mutex::new(Acknowledged::default()));
    for life in 0..8_u64 {
        let process = Process::start(&backend, directory.path());
        backend.set_dead(life % 3 == 1);
        let senders: Vec<_> = (0..16)
            .map(|_| tokio::spawn(load(process.url.clone(), acknowledged.clone())))
            .collect();
        // Some work, however slow the machine, and then a moment that no seed tells.
        let taken = || acknowledged.lock().unwrap().calls.len();
        let enough = taken() + 20;
        backend.until(20, "work", |_| taken() >= enough).await;
        let moment = (life + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 150;
        tokio::time::sleep(Duration::from_millis(moment)).await;
        process.kill();
        for sender in senders {
            sender.await.unwrap();
        }
    }
    backend.set_dead(false);
    let last = Process::start(&backend, directory.path());
    let Acknowledged { calls, others } = std::mem::take(&mut *acknowledged.lock().unwrap());
    assert!(calls.len() >= 160, "only {} exports were taken", calls.len());
    let all = |b: &Backend| {
        let delivered = delivered(b);
        delivered.is_superset(&calls) && delivered.is_superset(&others)
    };
    backend.until(30, "every acknowledged span", all).await;
    let spans = backend.spans();
    let bare = spans.iter().filter(|span| {
        calls.contains(&span.span_id) && attribute(&span.attributes, "mcp_verdict.state").is_none()
    });
    assert_eq!(bare.count(), 0, "calls leave with their verdict");
    println!("8 kills, {} exports acknowledged, {} spans came", calls.len(), spans.len());
    last.kill();
}

/// Scenario: a second program on the directory of a running one. Guarantees: exit code 64, and a
/// sentence that names the key and the path.
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_in_use_is_no_place_to_start() {
    let directory = tempfile::tempdir().unwrap();
    let backend = Backend::start(&[]).await;
    let first = Process::start(&backend, directory.path());
    let mut second = command(&backend, directory.path()).spawn().unwrap();
    let mut told = String::new();
    second.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(second.wait().unwrap().code(), Some(64), "{told}");
    let path = directory.path().display();
    let sentence = format!("storage.directory: `{path}` is in use by another process");
    assert!(told.contains(&sentence), "{told}");
    first.kill();
}
