//! The program itself, with its log at level debug: what it logs, prints, answers and serves while
//! it takes recordings full of canaries, exports that cannot be read, and a backend that talks back.

#[path = "../../bench/raw.rs"]
mod raw;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use mcp_verdict::wire::Signal;
use prost::Message;
use serde_json::Value;

use super::plant::{CANARY, How, Plant};
use super::{Watch, plant};
use crate::edge::support::{Backend, client};
use crate::fixtures::{captures, exports_of};

struct Running {
    child: Killed,
    lines: mpsc::Receiver<String>,
    /// What it prints, read as it comes: a pipe that is full would hold it up.
    printed: std::thread::JoinHandle<String>,
    /// Every line so far, the ports' among them.
    log: String,
    _directory: tempfile::TempDir,
}

/// A process that does not outlive its test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

impl Running {
    fn start(backend: &Backend) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-verdict"));
        let exporter = format!("exporters.otlp_http.endpoint=http://{}", backend.address);
        let directory = tempfile::tempdir().expect("a directory");
        let storage = format!("storage.directory={}", directory.path().display());
        let more = [
            "service.telemetry.logs.level=debug",
            "service.shutdown_timeout=5s",
            "exporters.console/verdicts.show=verdicts",
            "exporters.console/spans.show=spans",
            "processors.mcp_verdict.settle=300ms",
            &exporter,
            &storage,
        ];
        for set in crate::ports::FREE.into_iter().chain(more) {
            command.args(["--set", set]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program");
        let (send, lines) = mpsc::channel();
        let stderr = child.stderr.take().expect("piped");
        std::thread::spawn(move || {
            BufReader::new(stderr).lines().map_while(Result::ok).all(|line| send.send(line).is_ok())
        });
        let mut stdout = child.stdout.take().expect("piped");
        let printed = std::thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).expect("UTF-8");
            text
        });
        let child = Killed(child);
        Running { child, lines, printed, log: String::new(), _directory: directory }
    }

    /// The line that says it is ready: plain addresses by part.
    fn ready(&mut self) -> Value {
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(30));
            let line = line.unwrap_or_else(|_| panic!("not ready:\n{}", self.log));
            self.log.push_str(&line);
            self.log.push('\n');
            let told: Value = serde_json::from_str(&line).unwrap_or_default();
            if told["message"] == "ready" {
                return told;
            }
        }
    }

    /// Ends it as an operator would; the rest of the log, and what it printed.
    fn stop(mut self) -> (String, String) {
        let id = self.child.0.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status().expect("kill");
        self.child.0.wait().expect("an end");
        let printed = self.printed.join().expect("what it printed");
        self.log.extend(self.lines.iter().map(|line| line + "\n"));
        (self.log, printed)
    }
}

/// Exports with a mistake beside a canary, or for a canary.
fn unreadable() -> Vec<String> {
    let span = |more: &str| {
        let ids = r#""traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708""#;
        format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{{ids},{more}}}]}}]}}]}}"#)
    };
    let mistakes = [
        r#""name":"CANARY","kind":"CANARY""#,
        r#""name":"CANARY","startTimeUnixNano":"CANARY""#,
        r#""name":{"CANARY":"CANARY"}"#,
        r#""attributes":[{"key":"CANARY","value":{"intValue":"CANARY"}}]"#,
        r#""attributes":[{"key":"CANARY","value":{"bytesValue":"CANARY!"}}]"#,
        r#""attributes":{"CANARY":"CANARY"}"#,
        r#""status":{"message":"CANARY","code":"CANARY"}"#,
        r#""name":"CANARY"#,
    ];
    let mut all: Vec<String> =
        mistakes.iter().map(|text| span(&text.replace("CANARY", CANARY))).collect();
    all.push(format!("{CANARY} is no JSON"));
    all.push(format!("\"{CANARY}\""));
    all.push(format!("{{\"{CANARY}\":\"{CANARY}\"}}"));
    all.push(all[0].replace("0102030405060708090a0b0c0d0e0f10", CANARY));
    all
}

/// Sends exports, asks pages, and watches what is answered.
struct Sender {
    /// As the program said them.
    ports: Value,
    client: reqwest::Client,
    channel: tonic::transport::Channel,
    watch: Watch,
}

impl Sender {
    fn new(ports: Value) -> Self {
        let grpc = address(&ports, "grpc").port();
        let channel = raw::connect(grpc).expect("a port");
        Sender { ports, client: client(), channel, watch: Watch::default() }
    }

    /// By gRPC; whether it was taken.
    async fn call(&mut self, path: &'static str, body: Vec<u8>) -> bool {
        let answer = raw::export(&self.channel, path, body.into(), None).await;
        match &answer {
            Ok(answer) => self.watch.bytes("gRPC answer", answer),
            Err(status) => {
                self.watch.text("gRPC answer", &format!("{status:?} {}", status.message()));
                self.watch.bytes("gRPC details", status.details());
            }
        }
        answer.is_ok()
    }

    /// A page of the program's own; it must hold what it is for.
    async fn page(&mut self, port: &str, path: &str, holds: &str) {
        let url = format!("http://{}{path}", address(&self.ports, port));
        let response = self.client.get(url).send().await.expect("an answer");
        self.watch.text(path, &format!("{:?}", response.headers()));
        let text = response.text().await.expect("a body");
        assert!(text.contains(holds), "{path}: {text}");
        self.watch.text(path, &text);
    }

    async fn send(&mut self, path: &str, kind: &str, body: Vec<u8>) -> u16 {
        let url = format!("http://{}{path}", address(&self.ports, "http"));
        let request = self.client.post(url).header("content-type", kind).body(body);
        let response = request.send().await.expect("an answer");
        let status = response.status().as_u16();
        self.watch.text("answer", &format!("{:?}", response.headers()));
        self.watch.bytes("answer", &response.bytes().await.expect("a body"));
        status
    }
}

fn address(ports: &Value, part: &str) -> std::net::SocketAddr {
    let text = ports[part].as_str().unwrap_or_default();
    text.parse().unwrap_or_else(|_| panic!("no plain address of {part} in {ports}"))
}

fn path(signal: Signal) -> &'static str {
    match signal {
        Signal::Logs => "/v1/logs",
        _ => "/v1/traces",
    }
}

fn method(signal: Signal) -> &'static str {
    match signal {
        Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        _ => raw::TRACES,
    }
}

/// Scenario: the program takes every capture with canaries in it, by HTTP and gRPC, protobuf and
/// JSON, then what cannot be read; its backend answers with canaries, once to refuse and once to
/// warn. Guarantees: no answer, page of any port, log line at level debug or printed line holds one; nor does
/// an event.
#[tokio::test(flavor = "multi_thread")]
async fn no_content_is_logged_or_answered() {
    const REFUSED: &[u8] = b"\x08\x03\x12\x0aqzcanaryqz";
    const WARNED: &[u8] = b"\x0a\x0c\x12\x0aqzcanaryqz";
    let backend = Backend::start(&[(400, REFUSED), (200, WARNED)]).await;
    let mut program = Running::start(&backend);
    let mut sender = Sender::new(program.ready());
    let (protobuf, json) = ("application/x-protobuf", "application/json");
    for recording in captures() {
        let documents = plant(&recording.documents(), &mut Plant::new(None, How::Beside));
        for (number, (signal, bytes)) in exports_of(&documents).into_iter().enumerate() {
            match number % 2 {
                0 => assert_eq!(sender.send(path(signal), protobuf, bytes).await, 200),
                _ => assert!(sender.call(method(signal), bytes).await),
            }
        }
    }
    for document in plant(&captures()[0].documents(), &mut Plant::new(None, How::Beside)) {
        assert_eq!(sender.send("/v1/traces", json, document.to_string().into()).await, 200);
    }
    let mut refused = 0;
    for text in unreadable() {
        refused += u32::from(sender.send("/v1/traces", json, text.clone().into()).await != 200);
        sender.send("/v1/traces", protobuf, text.clone().into()).await;
        assert!(!sender.call(raw::TRACES, text.into()).await, "that is no protobuf");
    }
    assert!(refused > 5, "only {refused} were refused");
    backend.until("verdict events", |backend| !backend.requests("/v1/logs").is_empty()).await;
    sender.page("metrics", "/metrics", "mcp_verdict_verdicts_total").await;
    for path in ["/", "/readyz", "/livez"] {
        sender.page("health", path, "engine").await;
    }
    sender.page("page", "/v1/chains?limit=1000", "unverified").await;
    sender.page("page", "/v1/incidents?limit=1000", "first_seen").await;
    sender.page("page", "/v1/sessions?limit=1000", "convergence").await;
    sender.page("page", "/v1/drifts?limit=1000", "drifts").await;
    sender.page("page", "/v1/contracts?limit=1000", "members").await;
    sender.page("page", "/v1/coverage?limit=1000", "protocol version").await;
    sender.page("page", "/v1/overview", "tool_failed").await;
    sender.page("page", "/v1/names", "servers").await;
    sender.page("page", "/v1/health", "engine").await;
    let (log, printed) = program.stop();
    assert!(log.contains("stopping"), "{log}");
    let verdicts = printed.lines().filter(|line| line.contains("unverified")).count();
    assert!(printed.contains("NEXT STEP") && verdicts > 10, "{verdicts} in {printed}");
    let mut watch = sender.watch;
    watch.text("log", &log);
    watch.text("printed", &printed);
    let events = backend.records().into_iter().map(|(_, record)| record);
    let events: Vec<_> = events.filter(|record| !record.event_name.is_empty()).collect();
    assert!(events.len() > 100, "{} events", events.len());
    events.iter().for_each(|event| watch.bytes("event", &event.encode_to_vec()));
    assert!(watch.seen.is_empty(), "{}", watch.seen.join("\n"));
}
