//! The program itself, with its log at level debug: what it logs, answers and serves while it takes
//! recordings full of canaries, exports that cannot be read, and a backend that talks back.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use mcp_verdict::wire::Signal;
use prost::Message;

use super::plant::{CANARY, How, Plant};
use super::{Watch, plant};
use crate::edge::support::{Backend, client};
use crate::fixtures::{captures, exports_of};

struct Running {
    child: Child,
    lines: mpsc::Receiver<String>,
    /// Every line so far, the ports' among them.
    log: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

impl Running {
    fn start(backend: &Backend) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-verdict"));
        let exporter = format!("exporters.otlp_http.endpoint=http://{}", backend.address);
        for set in [
            "receivers.otlp.protocols.grpc.endpoint=127.0.0.1:0",
            "receivers.otlp.protocols.http.endpoint=127.0.0.1:0",
            "service.telemetry.metrics.endpoint=127.0.0.1:0",
            "service.telemetry.health.endpoint=127.0.0.1:0",
            "service.telemetry.page.endpoint=127.0.0.1:0",
            "service.telemetry.logs.level=debug",
            "service.shutdown_timeout=5s",
            "processors.mcp_verdict.settle=300ms",
            &exporter,
        ] {
            command.args(["--set", set]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program");
        let (send, lines) = mpsc::channel();
        let stderr = child.stderr.take().expect("piped");
        std::thread::spawn(move || {
            BufReader::new(stderr).lines().map_while(Result::ok).all(|line| send.send(line).is_ok())
        });
        Running { child, lines, log: String::new() }
    }

    /// The HTTP receiver's address, from the line that says it is ready.
    fn http(&mut self) -> String {
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(30));
            let line = line.unwrap_or_else(|_| panic!("not ready:\n{}", self.log));
            self.log.push_str(&line);
            self.log.push('\n');
            if let (true, Some(at)) = (line.contains("ready"), line.find("http")) {
                let from = line[at..].find("127.0.0.1:").expect("an address") + at;
                let end = line[from..].find(|c: char| !c.is_ascii_digit() && !".:".contains(c));
                return line[from..end.map_or(line.len(), |end| from + end)].to_owned();
            }
        }
    }

    /// Ends it as an operator would; the rest of the log, and what it printed.
    fn stop(mut self) -> (String, String) {
        let id = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status().expect("kill");
        let mut printed = String::new();
        self.child.stdout.take().expect("piped").read_to_string(&mut printed).expect("UTF-8");
        self.child.wait().expect("an end");
        self.log.extend(self.lines.iter().map(|line| line + "\n"));
        (std::mem::take(&mut self.log), printed)
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

/// Sends exports, and watches what is answered.
struct Sender {
    address: String,
    client: reqwest::Client,
    watch: Watch,
}

impl Sender {
    async fn send(&mut self, path: &str, kind: &str, body: Vec<u8>) -> u16 {
        let url = format!("http://{}{path}", self.address);
        let request = self.client.post(url).header("content-type", kind).body(body);
        let response = request.send().await.expect("an answer");
        let status = response.status().as_u16();
        self.watch.text("answer", &format!("{:?}", response.headers()));
        self.watch.bytes("answer", &response.bytes().await.expect("a body"));
        status
    }
}

fn path(signal: Signal) -> &'static str {
    match signal {
        Signal::Logs => "/v1/logs",
        _ => "/v1/traces",
    }
}

/// Scenario: the program takes every capture with canaries in it, over protobuf and JSON, then what
/// cannot be read; its backend answers with canaries, once to refuse and once to warn.
/// Guarantees: no answer, log line at level debug or printed line holds one.
#[tokio::test(flavor = "multi_thread")]
async fn no_content_is_logged_or_answered() {
    const REFUSED: &[u8] = b"\x08\x03\x12\x0aqzcanaryqz";
    const WARNED: &[u8] = b"\x0a\x0c\x12\x0aqzcanaryqz";
    let backend = Backend::start(&[(400, REFUSED), (200, WARNED)]).await;
    let mut program = Running::start(&backend);
    let mut sender = Sender { address: program.http(), client: client(), watch: Watch::default() };
    let (protobuf, json) = ("application/x-protobuf", "application/json");
    for recording in captures() {
        let documents = plant(&recording.documents(), &mut Plant::new(None, How::Beside));
        for (signal, bytes) in exports_of(&documents) {
            assert_eq!(sender.send(path(signal), protobuf, bytes).await, 200);
        }
    }
    for document in plant(&captures()[0].documents(), &mut Plant::new(None, How::Beside)) {
        assert_eq!(sender.send("/v1/traces", json, document.to_string().into()).await, 200);
    }
    let mut refused = 0;
    for text in unreadable() {
        refused += u32::from(sender.send("/v1/traces", json, text.clone().into()).await != 200);
        sender.send("/v1/traces", protobuf, text.into()).await;
    }
    assert!(refused > 5, "only {refused} were refused");
    backend.until(20, "verdict events", |backend| !backend.requests("/v1/logs").is_empty()).await;
    let (log, printed) = program.stop();
    assert!(log.contains("stopping"), "{log}");
    let mut watch = sender.watch;
    watch.text("log", &log);
    watch.text("printed", &printed);
    let events = backend.records().into_iter().map(|(_, record)| record);
    let events: Vec<_> = events.filter(|record| !record.event_name.is_empty()).collect();
    assert!(events.len() > 100, "{} events", events.len());
    events.iter().for_each(|event| watch.bytes("event", &event.encode_to_vec()));
    assert!(watch.seen.is_empty(), "{}", watch.seen.join("\n"));
}
