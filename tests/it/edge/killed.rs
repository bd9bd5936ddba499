//! The real program, killed under load: what it acknowledged arrives. And two of them on one
//! directory.

use crate::ports::FREE;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use super::support::*;

/// The built program, in front of a backend, with its log in a directory.
pub struct Process {
    child: Child,
    pub url: String,
    /// Where gRPC is received.
    pub grpc: String,
    /// Where health and metrics are.
    pub health: String,
    pub metrics: String,
    /// What it said since it was ready, one line each.
    pub told: Arc<Mutex<Vec<String>>>,
}

fn command(backend: &str, directory: &Path) -> Command {
    let set = [
        "processors.mcp_verdict.settle=300ms".to_owned(),
        format!("storage.directory={}", directory.display()),
        "storage.max_size=32MiB".to_owned(),
        format!("exporters.otlp_http.endpoint={backend}"),
        "exporters.otlp_http.retry_on_failure.initial_interval=50ms".to_owned(),
        "exporters.otlp_http.retry_on_failure.max_interval=200ms".to_owned(),
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-verdict"));
    let set = FREE.into_iter().chain(set.iter().map(String::as_str));
    command.arg("run").args(set.flat_map(|one| ["--set", one]));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

impl Process {
    /// Starts it and waits until its ports are open.
    fn start(backend: &Backend, directory: &Path) -> Self {
        Process::start_with(backend, directory, &[])
    }

    /// The same, with more settings.
    pub fn start_with(backend: &Backend, directory: &Path, more: &[&str]) -> Self {
        Process::start_at(&format!("http://{}", backend.address), directory, more)
    }

    /// The same, in front of a backend at a URL.
    pub fn start_at(backend: &str, directory: &Path, more: &[&str]) -> Self {
        let mut command = command(backend, directory);
        command.args(more.iter().flat_map(|one| ["--set", one]));
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let ready = lines.by_ref().map(|line| line.unwrap()).find(|line| line.contains("ready"));
        let ready = ready.expect("it starts");
        let line: serde_json::Value = serde_json::from_str(&ready).unwrap();
        let address = |port: &str| {
            let address = line[port].as_str().unwrap();
            format!("http://{}", address.trim_start_matches("Some(").trim_end_matches(')'))
        };
        let url = format!("{}/v1/traces", address("http"));
        let told = Arc::<Mutex<Vec<String>>>::default();
        let listening = told.clone();
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| listening.lock().unwrap().push(line));
        });
        let (grpc, health, metrics) = (address("grpc"), address("health"), address("metrics"));
        Process { child, url, grpc, health, metrics, told }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn kill(self) {
        drop(self);
    }

    /// Asks it to end and waits until it has, with nothing lost.
    pub fn stop(self) {
        assert_eq!(self.end(), Some(0));
    }

    /// Asks it to end and waits until it has. Its exit code.
    pub fn end(mut self) -> Option<i32> {
        self.ask_to_end();
        self.child.wait().unwrap().code()
    }

    pub fn ask_to_end(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    }

    /// The lines so far that say this, as JSON.
    pub fn said(&self, what: &str) -> Vec<serde_json::Value> {
        let lines = self.told.lock().unwrap();
        let said = lines.iter().filter(|line| line.contains(what));
        said.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub async fn send(&self, service: &str, spans: Vec<Span>) {
        let request = client().post(&self.url).header("content-type", "application/x-protobuf");
        let body = export(service, spans).encode_to_vec();
        assert_eq!(request.body(body).send().await.unwrap().status(), 200);
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
        let mut spans = vec![call(&trace(), "load"), span(&trace(), "one"), span(&trace(), "two")];
        spans[2].attributes.push(text("filler", &"x".repeat(20_000)));
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

/// Revision, what it supersedes, and the digest of the rest of each event of a chain, in order.
pub type Events = BTreeMap<String, Vec<(i64, Option<i64>, Vec<u8>)>>;

pub fn events(backend: &Backend) -> Events {
    let mut events = Events::new();
    for (_, record) in backend.records() {
        let attributes = &record.attributes;
        let int = |key: &str| int(attributes, key);
        let Some(id) = attribute(attributes, "mcp_verdict.chain.id").map(str::to_owned) else {
            continue;
        };
        let revision = int("mcp_verdict.revision").unwrap_or(1);
        let mut content = record.clone();
        // When it was said: an event that is sent twice is said once.
        content.observed_time_unix_nano = 0;
        let event = (revision, int("mcp_verdict.supersedes"), content.encode_to_vec());
        let known = events.entry(id).or_default();
        if !known.contains(&event) {
            known.push(event);
        }
    }
    events
}

/// Each revision has one content, and names the one before.
pub fn assert_single(events: &Events) {
    for (id, events) in events {
        for (place, (revision, supersedes, _)) in events.iter().enumerate() {
            let before = (place > 0).then_some(place as i64);
            assert_eq!((*revision, *supersedes), (place as i64 + 1, before), "{id}: {events:?}");
        }
    }
}

pub fn delivered(backend: &Backend) -> BTreeSet<Vec<u8>> {
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
        backend.until("work", |_| taken() >= enough).await;
        // Most lives are short; some see a checkpoint.
        let least = if life % 4 == 3 { 2_500 } else { 0 };
        let moment = least + (life + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 150;
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
    backend.until("every acknowledged span", all).await;
    let spans = backend.spans();
    let bare = spans.iter().filter(|span| {
        calls.contains(&span.span_id) && attribute(&span.attributes, "mcp_verdict.state").is_none()
    });
    assert_eq!(bare.count(), 0, "calls leave with their verdict");
    assert_single(&events(&backend));
    assert!(directory.path().join("checkpoint").exists(), "no life was long enough for one");
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
    let mut second =
        command(&format!("http://{}", backend.address), directory.path()).spawn().unwrap();
    let mut told = String::new();
    second.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(second.wait().unwrap().code(), Some(64), "{told}");
    let path = directory.path().display();
    let sentence = format!("storage.directory: `{path}` is in use by another process");
    assert!(told.contains(&sentence), "{told}");
    first.kill();
}

/// Scenario: a call is judged and everything of it is delivered; then the process ends, by a kill or
/// by a stop, and the other half of the call comes to the next one. Guarantees: the next process
/// revises what the first one said, under the next number, and says nothing twice.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_before_the_end_is_revised_after_it() {
    for killed in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let backend = Backend::start(&[]).await;
        let process = Process::start(&backend, directory.path());
        let trace = trace();
        let asking = call(&trace, "write");
        let answering = Span {
            parent_span_id: asking.span_id.clone(),
            kind: 2,
            attributes: asking.attributes.clone(),
            ..span(&trace, "tools/call write")
        };
        process.send("client", vec![failed(asking, "timeout")]).await;
        backend.until("the first verdict", |b| events(b).len() == 1).await;
        backend.until("its span", |b| b.spans().iter().any(|s| s.name == "tools/call write")).await;
        match killed {
            true => process.kill(),
            false => process.stop(),
        }
        assert_eq!(directory.path().join("checkpoint").exists(), !killed);
        let next = Process::start(&backend, directory.path());
        tokio::time::sleep(Duration::from_millis(1_000)).await;
        next.send("server", vec![answering]).await;
        let revised = |b: &Backend| events(b).values().any(|events| events.len() == 2);
        backend.until("the revision", revised).await;
        tokio::time::sleep(Duration::from_millis(700)).await;
        let events = events(&backend);
        assert_eq!(events.len(), 1, "{events:?}");
        assert_single(&events);
        next.kill();
    }
}
