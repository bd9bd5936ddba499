//! A backend, a program in front of it, and spans to send.

use crate::ports::FREE;
use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use mcp_verdict::app::App;
use mcp_verdict::config::{Settings, Sources, load_with};
use mcp_verdict::log::Log;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message;

/// How long a test waits for what has to come: longer than a slow machine takes, under any load.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// One request that the backend got.
#[derive(Clone, Debug)]
pub struct Got {
    pub path: String,
    pub coding: String,
    pub body: Bytes,
}

/// Status and body.
pub type Reply = (u16, &'static [u8]);

/// An OTLP/HTTP backend that keeps raw bodies, and answers from a script, then 200.
#[derive(Clone)]
pub struct Backend {
    pub address: SocketAddr,
    got: Arc<Mutex<Vec<Got>>>,
    script: Arc<Mutex<VecDeque<Reply>>>,
    dead: Arc<AtomicBool>,
    delay: Duration,
    /// Requests that are not answered yet, by their number among those it got.
    unanswered: Arc<Mutex<BTreeSet<usize>>>,
}

/// How far a backend is.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    /// Requests that it got so far.
    pub got: usize,
    /// Of them, not answered yet.
    pub requests: usize,
}

impl Backend {
    pub async fn start(script: &[Reply]) -> Self {
        Self::slow(script, Duration::ZERO).await
    }

    pub async fn slow(script: &[Reply], delay: Duration) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let backend = Backend {
            address: listener.local_addr().unwrap(),
            got: Arc::default(),
            script: Arc::new(Mutex::new(script.iter().copied().collect())),
            dead: Arc::default(),
            delay,
            unanswered: Arc::default(),
        };
        let serving = backend.clone();
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let backend = serving.clone();
                let service = service_fn(move |request| backend.clone().answer(request));
                tokio::spawn(async move {
                    let builder = Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        backend
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let path = request.uri().path().to_owned();
        let coding = request.headers().get("content-encoding");
        let coding = coding.map(|v| v.to_str().unwrap().to_owned()).unwrap_or_default();
        let body = request.into_body().collect().await.unwrap().to_bytes();
        // Asked once: what is refused is what is forgotten.
        let dead = self.dead.load(Ordering::Relaxed);
        let mut number = None;
        if !dead {
            let mut got = self.got.lock().unwrap();
            number = Some(got.len());
            self.unanswered.lock().unwrap().insert(got.len());
            got.push(Got { path, coding, body });
        }
        // Whoever asked may be gone before it is answered.
        let _open = Unanswered { of: self.unanswered.clone(), number };
        tokio::time::sleep(self.delay).await;
        let (status, body) = match dead {
            true => (503, &b""[..]),
            false => self.next(),
        };
        let mut response = Response::new(Full::new(Bytes::from_static(body)));
        *response.status_mut() = status.try_into().unwrap();
        response.headers_mut().insert("content-type", "application/x-protobuf".parse().unwrap());
        Ok(response)
    }

    fn next(&self) -> Reply {
        self.script.lock().unwrap().pop_front().unwrap_or((200, b""))
    }

    pub fn open(&self) -> Open {
        let got = self.got.lock().unwrap().len();
        Open { got, requests: self.unanswered.lock().unwrap().len() }
    }

    /// Spans of requests that came since and were answered.
    pub fn answered_since(&self, open: &Open) -> BTreeSet<Vec<u8>> {
        let got = self.got.lock().unwrap();
        let unanswered = self.unanswered.lock().unwrap();
        let new = got.iter().enumerate().skip(open.got);
        let traces = new.filter(|(n, got)| got.path == "/v1/traces" && !unanswered.contains(n));
        let bodies =
            traces.map(|(_, g)| ExportTraceServiceRequest::decode(g.body.clone()).unwrap());
        let scopes = bodies.flat_map(|b| b.resource_spans).flat_map(|r| r.scope_spans);
        scopes.flat_map(|scope| scope.spans).map(|span| span.span_id).collect()
    }

    /// While it is dead every request is answered with 503 and forgotten.
    pub fn set_dead(&self, dead: bool) {
        self.dead.store(dead, Ordering::Relaxed);
    }

    /// Requests on a path so far.
    pub fn requests(&self, path: &str) -> Vec<Got> {
        self.got.lock().unwrap().iter().filter(|got| got.path == path).cloned().collect()
    }

    /// Spans so far, verdict spans among them.
    pub fn spans(&self) -> Vec<Span> {
        let requests = self.requests("/v1/traces");
        let bodies =
            requests.iter().map(|got| ExportTraceServiceRequest::decode(got.body.clone()).unwrap());
        let scopes = bodies.flat_map(|b| b.resource_spans).flat_map(|r| r.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }

    /// Log records so far, each with its resource.
    pub fn records(&self) -> Vec<(Resource, LogRecord)> {
        let requests = self.requests("/v1/logs");
        let bodies =
            requests.iter().map(|got| ExportLogsServiceRequest::decode(got.body.clone()).unwrap());
        let resources = bodies.flat_map(|body| body.resource_logs);
        let of = |(resource, records): (Resource, Vec<LogRecord>)| {
            records.into_iter().map(move |record| (resource.clone(), record))
        };
        resources
            .map(|r| {
                let records = r.scope_logs.into_iter().flat_map(|s| s.log_records).collect();
                (r.resource.unwrap_or_default(), records)
            })
            .flat_map(of)
            .collect()
    }

    /// Waits until `ready` holds; panics after so many seconds.
    pub async fn until(&self, what: &str, ready: impl Fn(&Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !ready(self) {
            assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// A request that is not answered yet.
struct Unanswered {
    of: Arc<Mutex<BTreeSet<usize>>>,
    number: Option<usize>,
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.of.lock().unwrap().remove(&number);
        }
    }
}

/// Whether tests that have a long form take it: `tests/run --full` asks for that.
pub fn long_forms() -> bool {
    std::env::var("LONG_FORMS").is_ok_and(|value| value == "1")
}

/// Prints a figure, and keeps it beside the build for the report of the long ladder.
pub fn report(figure: &str) {
    println!("{figure}");
    if long_forms() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/target/long-forms.txt");
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        std::io::Write::write_all(&mut file.unwrap(), format!("{figure}\n").as_bytes()).unwrap();
    }
}

/// Settings in front of a backend; `more` are `key=value`s over them.
pub fn settings(backend: &Backend, more: &[&str]) -> Settings {
    let set = [
        "processors.mcp_verdict.settle=300ms".to_owned(),
        "storage.ack=queued".to_owned(),
        format!("exporters.otlp_http.endpoint=http://{}", backend.address),
        "exporters.otlp_http.retry_on_failure.initial_interval=50ms".to_owned(),
    ];
    let more = FREE.iter().chain(more).map(|text| (*text).to_owned());
    let set = set.into_iter().chain(more).collect();
    let sources = Sources { files: Vec::new(), set };
    load_with(&sources, &|_| None).unwrap_or_else(|mistakes| panic!("{mistakes:?}"))
}

/// A running program and a client of it.
pub struct Program {
    pub app: App,
    client: reqwest::Client,
    runtime: Runtime,
}

/// Threads that end with their owner, whatever runs on them.
struct Runtime(Option<tokio::runtime::Runtime>);

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(threads) = self.0.take() {
            threads.shutdown_background();
        }
    }
}

impl Program {
    pub async fn start(backend: &Backend, more: &[&str]) -> Self {
        let app = App::start(&settings(backend, more)).await.unwrap();
        Program { app, client: client(), runtime: Runtime(None) }
    }

    /// A program of its own threads, on a log that may hold something.
    pub async fn start_on(backend: &Backend, more: &[&str], log: Arc<dyn Log>) -> Self {
        let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let settings = settings(backend, more);
        let app = threads.spawn(async move { App::start_on(&settings, log).await.unwrap() });
        let app = app.await.unwrap();
        Program { app, client: client(), runtime: Runtime(Some(threads)) }
    }

    /// Ends it as a crash would: nothing is drained.
    pub fn kill(self) {
        drop(self.runtime);
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.app.http_address().unwrap())
    }

    /// Posts a protobuf body.
    pub async fn post(
        &self,
        path: &str,
        body: impl Into<Bytes>,
        coding: &str,
    ) -> reqwest::Response {
        let mut request = self.client.post(self.url(path)).body(body.into());
        request = request.header("content-type", "application/x-protobuf");
        if !coding.is_empty() {
            request = request.header("content-encoding", coding);
        }
        request.send().await.unwrap()
    }

    /// Sends spans of one service; they must be taken.
    pub async fn send(&self, service: &str, spans: Vec<Span>) {
        let body = export(service, spans).encode_to_vec();
        assert_eq!(self.post("/v1/traces", body, "").await.status(), 200);
    }

    /// A sample of `/metrics`: the sum over all series whose name and labels hold these texts.
    pub async fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let text = self.metrics().await;
        let lines = text.lines().filter(|line| line.starts_with(name));
        let wanted = lines.filter(|line| labels.iter().all(|label| line.contains(label)));
        wanted.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    }

    /// Waits for a metric's value: it may be counted after what it counts has been seen elsewhere.
    pub async fn metric_until(&self, name: &str, labels: &[&str], holds: impl Fn(f64) -> bool) {
        let end = Instant::now() + PATIENCE;
        loop {
            let value = self.metric(name, labels).await;
            if holds(value) {
                return;
            }
            assert!(Instant::now() < end, "{name} {labels:?} is {value}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The text of `/metrics`.
    pub async fn metrics(&self) -> String {
        let url = format!("http://{}/metrics", self.app.metrics_address.unwrap());
        self.client.get(url).send().await.unwrap().text().await.unwrap()
    }

    /// Status and body of a health endpoint.
    pub async fn health(&self, path: &str) -> (u16, serde_json::Value) {
        let url = format!("http://{}{path}", self.app.health_address.unwrap());
        let response = self.client.get(url).send().await.unwrap();
        let status = response.status().as_u16();
        let body = response.bytes().await.unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }
}

/// The client's library is built without a default for TLS.
pub fn client() -> reqwest::Client {
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

static NEXT: AtomicU64 = AtomicU64::new(1);

/// An id that no other test uses.
pub fn fresh() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

pub fn trace() -> Vec<u8> {
    [0xe0u64.to_be_bytes(), fresh().to_be_bytes()].concat()
}

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    since.as_nanos() as u64
}

pub fn text(key: &str, value: &str) -> KeyValue {
    let value = AnyValue { value: Some(Value::StringValue(value.into())) };
    KeyValue { key: key.into(), value: Some(value), ..KeyValue::default() }
}

pub fn number(key: &str, value: i64) -> KeyValue {
    let value = AnyValue { value: Some(Value::IntValue(value)) };
    KeyValue { key: key.into(), value: Some(value), ..KeyValue::default() }
}

/// A plain client span that ended just now.
pub fn span(trace: &[u8], name: &str) -> Span {
    Span {
        trace_id: trace.to_vec(),
        span_id: (0x5a00_0000_0000_0000 | fresh()).to_be_bytes().to_vec(),
        name: name.into(),
        kind: 3,
        start_time_unix_nano: now() - 2_000_000,
        end_time_unix_nano: now() - 1_000_000,
        ..Span::default()
    }
}

/// The asking half of a tool call, in the words of the semantic conventions.
pub fn call(trace: &[u8], tool: &str) -> Span {
    let request = fresh().to_string();
    Span {
        attributes: vec![
            text("mcp.method.name", "tools/call"),
            text("gen_ai.tool.name", tool),
            text("mcp.session.id", &format!("session-{request}")),
            text("jsonrpc.request.id", &request),
            text("mcp.protocol.version", "2025-11-25"),
            text("network.transport", "tcp"),
            text("server.address", "tools.example.com"),
        ],
        ..span(trace, &format!("tools/call {tool}"))
    }
}

pub fn failed(mut span: Span, error: &str) -> Span {
    span.status = Some(Status { code: 2, message: String::new() });
    span.attributes.push(text("error.type", error));
    span
}

pub fn export(service: &str, spans: Vec<Span>) -> ExportTraceServiceRequest {
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource {
                attributes: vec![text("service.name", service)],
                ..Resource::default()
            }),
            scope_spans: vec![ScopeSpans {
                scope: Some(InstrumentationScope { name: "peer".into(), ..Default::default() }),
                spans,
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        }],
    }
}

/// The integer value of an attribute.
pub fn int(attributes: &[KeyValue], key: &str) -> Option<i64> {
    let attribute = attributes.iter().find(|attribute| attribute.key == key)?;
    match attribute.value.as_ref()?.value.as_ref()? {
        Value::IntValue(number) => Some(*number),
        _ => None,
    }
}

/// The text value of an attribute.
pub fn attribute<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    let attribute = attributes.iter().find(|attribute| attribute.key == key)?;
    match attribute.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}
