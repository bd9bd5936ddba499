//! More than can be taken: what is taken stays as much as before, and so does memory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
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
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use prost::Message;
use tonic::Code;
use tonic::transport::Channel;

use super::killed::Process;
use super::support::*;

/// A backend that takes so many bytes a second, and remembers whose they were.
#[derive(Default)]
pub struct Narrow {
    pub spans: Mutex<BTreeSet<Vec<u8>>>,
    pub width: AtomicU64,
    /// While it is dead every request is answered with 503 and forgotten.
    pub dead: AtomicBool,
    /// When it is done with what it has taken.
    free: tokio::sync::Mutex<Option<tokio::time::Instant>>,
}

/// Bytes a second.
const WIDTH: u64 = 1 << 20;

impl Narrow {
    pub async fn start() -> (Arc<Self>, std::net::SocketAddr) {
        let narrow = Arc::new(Narrow { width: AtomicU64::new(WIDTH), ..Narrow::default() });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = narrow.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let narrow = serving.clone();
                let service = service_fn(move |request| narrow.clone().answer(request));
                tokio::spawn(async move {
                    let builder = Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        (narrow, address)
    }

    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let traces = request.uri().path() == "/v1/traces";
        let body = request.into_body().collect().await.unwrap().to_bytes();
        if self.dead.load(Ordering::Relaxed) {
            let mut response = Response::new(Full::new(Bytes::new()));
            *response.status_mut() = hyper::StatusCode::SERVICE_UNAVAILABLE;
            return Ok(response);
        }
        let width = self.width.load(Ordering::Relaxed);
        let takes = Duration::from_micros(body.len() as u64 * 1_000_000 / width);
        let mut free = self.free.lock().await;
        let now = tokio::time::Instant::now();
        let done = free.map_or(now, |at| at.max(now)) + takes;
        *free = Some(done);
        drop(free);
        tokio::time::sleep_until(done).await;
        if traces {
            let export = ExportTraceServiceRequest::decode(body).unwrap();
            let scopes = export.resource_spans.into_iter().flat_map(|r| r.scope_spans);
            let ids = scopes.flat_map(|scope| scope.spans).map(|span| span.span_id);
            self.spans.lock().unwrap().extend(ids);
        }
        let mut response = Response::new(Full::new(Bytes::new()));
        response.headers_mut().insert("content-type", "application/x-protobuf".parse().unwrap());
        Ok(response)
    }

    /// Waits until all of these have come.
    pub async fn until(&self, acknowledged: &BTreeSet<Vec<u8>>) {
        let patience = Instant::now() + Duration::from_secs(600);
        let lost = || acknowledged.difference(&self.spans.lock().unwrap()).count();
        while lost() > 0 {
            assert!(Instant::now() < patience, "{} of {} spans lost", lost(), acknowledged.len());
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    fn delivered(&self) -> usize {
        self.spans.lock().unwrap().len()
    }
}

/// Senders of exports, each a call and nine other spans.
pub struct Senders {
    channels: Vec<TraceServiceClient<Channel>>,
    pub acknowledged: Mutex<Vec<Vec<u8>>>,
    taken: AtomicU64,
    pub refused: AtomicU64,
    /// What refusals said, and how often.
    pub told: Mutex<BTreeMap<String, u64>>,
    wrong: Mutex<VecDeque<String>>,
}

const SPANS: usize = 10;
const CONNECTIONS: usize = 8;

fn exported() -> ExportTraceServiceRequest {
    let mut spans = vec![call(&trace(), "load")];
    spans.resize_with(SPANS, || {
        let mut other = span(&trace(), "other");
        other.attributes.push(text("filler", &"x".repeat(6_000)));
        other
    });
    export("loaded", spans)
}

impl Senders {
    pub async fn connect(url: &str) -> Arc<Self> {
        let mut channels = Vec::new();
        for _ in 0..CONNECTIONS {
            channels.push(TraceServiceClient::connect(url.to_owned()).await.unwrap());
        }
        Arc::new(Senders {
            channels,
            acknowledged: Mutex::default(),
            taken: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            told: Mutex::default(),
            wrong: Mutex::default(),
        })
    }

    /// Sends one export by a connection. Whether it was taken; a refusal must be one to come back
    /// after.
    async fn send(&self, connection: usize) -> bool {
        let request = exported();
        let spans = &request.resource_spans[0].scope_spans[0].spans;
        let ids: Vec<Vec<u8>> = spans.iter().map(|span| span.span_id.clone()).collect();
        match self.channels[connection % CONNECTIONS].clone().export(request).await {
            Ok(_) => {
                self.acknowledged.lock().unwrap().extend(ids);
                self.taken.fetch_add(1, Ordering::Relaxed);
                return true;
            }
            Err(status) => {
                let told = status.details().windows(9).any(|at| at == b"RetryInfo");
                if status.code() != Code::ResourceExhausted || !told {
                    self.wrong.lock().unwrap().push_back(format!("{status:?}"));
                }
                *self.told.lock().unwrap().entry(status.message().to_owned()).or_default() += 1;
                self.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
        false
    }

    /// One sender a connection, each waiting for its answer and coming back after a refusal.
    async fn saturate(self: Arc<Self>, until: Instant) {
        let one = |connection| {
            let all = self.clone();
            tokio::spawn(async move {
                while Instant::now() < until {
                    if !all.send(connection).await {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
            })
        };
        let senders: Vec<_> = (0..CONNECTIONS).map(one).collect();
        for sender in senders {
            sender.await.unwrap();
        }
    }

    /// So many exports a second, whatever comes of them. How many were sent.
    pub async fn flood(self: Arc<Self>, rate: f64, until: Instant) -> u64 {
        let began = Instant::now();
        let (mut sent, mut waiting) = (0_u64, tokio::task::JoinSet::new());
        while Instant::now() < until {
            let due = (began.elapsed().as_secs_f64() * rate) as u64;
            while sent < due {
                let (all, number) = (self.clone(), sent as usize);
                waiting.spawn(async move { all.send(number).await });
                sent += 1;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            while waiting.try_join_next().is_some() {}
        }
        waiting.join_all().await;
        sent
    }
}

/// What one phase did.
#[derive(Debug)]
struct Phase {
    delivered: f64,
    memory: f64,
    refused: u64,
}

/// Resident bytes of a process.
pub fn resident(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() * 1024.0
}

pub fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Looks at backend and memory until then.
async fn watch(narrow: &Narrow, senders: &Senders, pid: u32, until: Instant) -> Phase {
    let (began, before) = (Instant::now(), narrow.delivered());
    let refused = senders.refused.load(Ordering::Relaxed);
    let mut memory = Vec::new();
    while Instant::now() < until {
        memory.push(resident(pid));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Phase {
        delivered: (narrow.delivered() - before) as f64 / began.elapsed().as_secs_f64(),
        memory: median(memory),
        refused: senders.refused.load(Ordering::Relaxed) - refused,
    }
}

/// Scenario: a backend that takes 1 MiB a second. Eight senders fill the log and then send what is
/// taken; then twice as much comes, whatever is answered. Guarantees: the backend gets as much as
/// before, memory stays, every refusal says when to come back, and every span that was acknowledged
/// arrives.
#[tokio::test(flavor = "multi_thread")]
async fn twice_the_load_costs_neither_goodput_nor_memory() {
    let (seconds, least, most) = if long_forms() { (60, 0.9, 1.1) } else { (10, 0.5, 1.6) };
    let directory = tempfile::tempdir().unwrap();
    let (narrow, address) = Narrow::start().await;
    let more = [
        "storage.max_size=32MiB".to_owned(),
        "exporters.otlp_http.compression=none".to_owned(),
        "exporters.otlp_http.max_batch_size=256KiB".to_owned(),
        "processors.mcp_verdict.limits.memory=64MiB".to_owned(),
        "processors.mcp_verdict.retention=30s".to_owned(),
    ];
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let process = Process::start_at(&format!("http://{address}"), directory.path(), &more);
    let senders = Senders::connect(&process.grpc).await;
    let filled = Instant::now() + Duration::from_secs(300);
    while senders.refused.load(Ordering::Relaxed) == 0 {
        assert!(Instant::now() < filled, "the log is never full");
        senders.clone().saturate(Instant::now() + Duration::from_secs(1)).await;
    }
    // It is full for a while before it counts.
    senders.clone().saturate(Instant::now() + Duration::from_secs(seconds / 2)).await;
    let mut wanting = Vec::new();
    // What else this machine does may cost one of them its share.
    for _ in 0..5 {
        let compared = compare(&narrow, &senders, process.id(), seconds).await;
        let Compared { goodput, memory, sent, .. } = compared;
        let overload = compared.flooded.refused as f64 > 0.2 * sent as f64;
        if overload && goodput >= least && (2.0 - most..=most).contains(&memory) {
            compared.report(seconds);
            wanting.clear();
            break;
        }
        wanting.push(compared);
    }
    assert!(wanting.is_empty(), "five times: {wanting:?}");
    let acknowledged: BTreeSet<Vec<u8>> = senders.acknowledged.lock().unwrap().drain(..).collect();
    narrow.width.store(100 * WIDTH, Ordering::Relaxed);
    narrow.until(&acknowledged).await;
    report(&format!("overload: {} spans acknowledged, 0 lost", acknowledged.len()));
    let wrong = senders.wrong.lock().unwrap();
    assert!(wrong.is_empty(), "{} refusals of another kind: {:?}", wrong.len(), wrong.front());
    process.stop();
}

/// Twice the load beside the load that is taken.
#[derive(Debug)]
struct Compared {
    saturated: Phase,
    flooded: Phase,
    sent: u64,
    /// Of what they were before.
    goodput: f64,
    memory: f64,
}

async fn compare(narrow: &Narrow, senders: &Arc<Senders>, pid: u32, seconds: u64) -> Compared {
    let until = Instant::now() + Duration::from_secs(seconds);
    let one = tokio::spawn(senders.clone().saturate(until));
    let saturated = watch(narrow, senders, pid, until).await;
    one.await.unwrap();
    let rate = 2.0 * saturated.delivered / SPANS as f64;
    let until = Instant::now() + Duration::from_secs(seconds);
    let two = tokio::spawn(senders.clone().flood(rate, until));
    let flooded = watch(narrow, senders, pid, until).await;
    let sent = two.await.unwrap();
    let goodput = flooded.delivered / saturated.delivered;
    let memory = flooded.memory / saturated.memory;
    Compared { saturated, flooded, sent, goodput, memory }
}

impl Compared {
    fn report(&self, seconds: u64) {
        report(&format!(
            "2 x overload for {seconds} s: {:.0} spans/s at 1 x, goodput at 2 x {:.0} % of it; RSS \
             {:.1} MiB at 1 x, {:.0} % of it at 2 x; {} of {} exports refused",
            self.saturated.delivered,
            self.goodput * 100.0,
            self.saturated.memory / f64::from(1 << 20),
            self.memory * 100.0,
            self.flooded.refused,
            self.sent,
        ));
    }
}
