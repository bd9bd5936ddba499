//! What a span costs on its way through, beside two peers in the same run.
//!
//! `cargo test --release --test bench -- [--full] [--seconds N] [--load NAME]`
//!
//! A load generator sends exports that were encoded beforehand over gRPC; a sink counts the spans that
//! come out. Between them stands one process at a time: a bare forwarder (tonic, bodies as bytes: the
//! floor), an OpenTelemetry Collector (`otlp → batch → otlp`), and mcp-verdict. CPU time is what the
//! operating system counts for that process, from before the first export until the last span is out.
//! Ratios are what to compare; absolute figures depend on the machine and on what else it does.

// This is a program for people; its output is its result.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod payload;
mod raw;
mod target;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use payload::{Load, Template, count_spans};
use target::{Kind, Target};
use tonic::codegen::BoxFuture;
use tonic::transport::Channel;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Exports under way at once, over so many connections.
const IN_FLIGHT: usize = 16;
const CONNECTIONS: usize = 4;
/// How long after the load the last span may take to come out: `settle` and something.
const DRAIN: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ran = match arguments.first().map(String::as_str) {
        Some("--forward") => forward(&arguments[1..]),
        _ => Options::parse(&arguments).and_then(bench),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    seconds: u64,
    rounds: usize,
    loads: Vec<Load>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut options = Self { seconds: 3, rounds: 1, loads: vec![Load::Plain, Load::Mcp] };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--full" => {
                    (options.seconds, options.rounds, options.loads) = (10, 3, Load::ALL.to_vec());
                }
                "--seconds" => options.seconds = rest.next().ok_or("--seconds N")?.parse()?,
                "--load" => {
                    let name = rest.next().ok_or("--load plain|mixed|mcp")?;
                    options.loads = Load::ALL.into_iter().filter(|l| l.name() == name).collect();
                }
                other => {
                    return Err(
                        format!("unknown argument '{other}'; see the top of main.rs").into()
                    );
                }
            }
        }
        if options.loads.is_empty() {
            return Err("no such load; known: plain, mixed, mcp".into());
        }
        Ok(options)
    }
}

/// The floor: answers an export when the next hop has answered it.
fn forward(ports: &[String]) -> Result<(), Failure> {
    struct Forwarder(Channel);
    impl raw::Receive for Forwarder {
        fn receive(&self, _: usize, body: Bytes) -> BoxFuture<Bytes, tonic::Status> {
            let next = self.0.clone();
            Box::pin(async move { raw::export(&next, raw::TRACES, body).await })
        }
    }
    let [port, sink] = ports else { return Err("--forward PORT SINK".into()) };
    let (port, sink) = (port.parse()?, sink.parse()?);
    runtime()?.block_on(async {
        let forwarder = Arc::new(Forwarder(raw::connect(sink)?));
        Ok(raw::serve(port, forwarder).await?)
    })
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// Counts what comes out.
#[derive(Default)]
struct Sink {
    theirs: AtomicU64,
    ours: AtomicU64,
}

impl raw::Receive for Sink {
    fn receive(&self, signal: usize, body: Bytes) -> BoxFuture<Bytes, tonic::Status> {
        if signal == 0 {
            let count = count_spans(&body);
            self.theirs.fetch_add(count.theirs, Ordering::Relaxed);
            self.ours.fetch_add(count.ours, Ordering::Relaxed);
        }
        Box::pin(async { Ok(Bytes::new()) })
    }
}

fn bench(options: Options) -> Result<(), Failure> {
    let kinds = kinds()?;
    let runtime = runtime()?;
    println!(
        "exports of 100 spans, {IN_FLIGHT} under way over {CONNECTIONS} connections, no compression, settle 2 s"
    );
    for &load in &options.loads {
        let template = Arc::new(load.template());
        println!(
            "\n{} ({}; {} bytes a span)",
            load.name(),
            load.says(),
            template.len() as u64 / template.spans()
        );
        println!(
            "  {:22} {:>12} {:>7} {:>12} {:>9} {:>9} {:>9}",
            "", "CPU µs/span", "× floor", "spans/s", "p50 ms", "p99 ms", "peak MiB"
        );
        let mut floor = None;
        for kind in &kinds {
            let mut runs = Vec::new();
            for _ in 0..options.rounds {
                runs.push(runtime.block_on(measure(kind, &template, options.seconds))?);
            }
            runs.sort_by(|a, b| a.cpu_per_span.total_cmp(&b.cpu_per_span));
            let median = &runs[runs.len() / 2];
            let floor = *floor.get_or_insert(median.cpu_per_span);
            median.print(&kind.name(), floor);
        }
    }
    Ok(())
}

/// The floor, the Collector where it has been built, and the binary under test.
fn kinds() -> Result<Vec<Kind>, Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let binary = std::env::var_os("MCP_VERDICT_BIN")
        .map_or_else(|| root.join("target/release/mcp-verdict"), PathBuf::from);
    if !binary.exists() {
        return Err(format!("{} is not there: cargo build --release", binary.display()).into());
    }
    let built = Command::new(root.join("tests/interop/peers/build")).arg("collector").output()?;
    if !built.status.success() {
        return Err(String::from_utf8_lossy(&built.stderr).into_owned().into());
    }
    let collector = PathBuf::from(String::from_utf8(built.stdout)?.trim());
    Ok(vec![
        Kind::Floor,
        Kind::Collector(collector),
        Kind::Verdict { binary: binary.clone(), ack: "queued" },
        Kind::Verdict { binary, ack: "durable" },
    ])
}

struct Run {
    /// µs
    cpu_per_span: f64,
    spans_per_second: f64,
    /// ms
    p50: f64,
    p99: f64,
    /// MiB
    peak: u64,
    /// verdict spans that came out beside what was sent
    ours: u64,
    lost: u64,
    refused: u64,
}

impl Run {
    fn print(&self, name: &str, floor: f64) {
        let ratio = self.cpu_per_span / floor;
        print!("  {name:22} {:>12.2} {ratio:>7.2} ", self.cpu_per_span);
        print!(
            "{:>12.0} {:>9.2} {:>9.2} {:>9}",
            self.spans_per_second, self.p50, self.p99, self.peak
        );
        for (count, what) in [
            (self.ours, "verdict spans"),
            (self.refused, "exports refused"),
            (self.lost, "spans LOST"),
        ] {
            if count > 0 {
                print!("  {count} {what}");
            }
        }
        println!();
    }
}

async fn measure(kind: &Kind, template: &Arc<Template>, seconds: u64) -> Result<Run, Failure> {
    let sink = Arc::new(Sink::default());
    let sink_port = target::ports()?.grpc;
    let serving = tokio::spawn(raw::serve(sink_port, sink.clone()));
    tokio::time::sleep(Duration::from_millis(100)).await;
    let target = Target::start(kind, sink_port)?;
    let warm = generate(target.port, template, Duration::from_millis(500), 1 << 40).await?;
    settled(&sink, warm.accepted * template.spans()).await;
    let (before, out_before, ours_before) =
        (target.cpu()?, sink.theirs.load(Ordering::Relaxed), sink.ours.load(Ordering::Relaxed));
    let sent = generate(target.port, template, Duration::from_secs(seconds), 0).await?;
    let spans = sent.accepted * template.spans();
    settled(&sink, out_before + spans).await;
    let cpu = target.cpu()? - before;
    let out = sink.theirs.load(Ordering::Relaxed) - out_before;
    let run = Run {
        cpu_per_span: cpu.as_secs_f64() * 1e6 / spans.max(1) as f64,
        spans_per_second: spans as f64 / sent.took.as_secs_f64(),
        p50: sent.percentile(50),
        p99: sent.percentile(99),
        peak: target.peak_memory()?,
        ours: sink.ours.load(Ordering::Relaxed) - ours_before,
        lost: spans.saturating_sub(out),
        refused: sent.refused,
    };
    serving.abort();
    Ok(run)
}

/// Waits until so many spans are out, as long as the last may take.
async fn settled(sink: &Sink, wanted: u64) {
    let began = Instant::now();
    while sink.theirs.load(Ordering::Relaxed) < wanted && began.elapsed() < DRAIN {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[derive(Default)]
struct Sent {
    accepted: u64,
    refused: u64,
    took: Duration,
    /// of each accepted export, sorted
    answers: Vec<Duration>,
}

impl Sent {
    fn percentile(&self, percent: usize) -> f64 {
        let at = self.answers.len().saturating_sub(1) * percent / 100;
        self.answers.get(at).map_or(0.0, |d| d.as_secs_f64() * 1e3)
    }
}

/// Sends for so long; trace ids count up from `first`.
async fn generate(
    port: u16,
    template: &Arc<Template>,
    time: Duration,
    first: u64,
) -> Result<Sent, Failure> {
    let number = Arc::new(AtomicU64::new(first));
    let channels = (0..CONNECTIONS).map(|_| raw::connect(port)).collect::<Result<Vec<_>, _>>()?;
    let began = Instant::now();
    let mut senders = tokio::task::JoinSet::new();
    for sender in 0..IN_FLIGHT {
        let (channel, template, number) =
            (channels[sender % CONNECTIONS].clone(), template.clone(), number.clone());
        senders.spawn(async move {
            let mut sent = Sent::default();
            while began.elapsed() < time {
                let body = template.numbered(number.fetch_add(1, Ordering::Relaxed));
                let asked = Instant::now();
                match raw::export(&channel, raw::TRACES, body).await {
                    Ok(_) => sent.answers.push(asked.elapsed()),
                    // Overload is an answer; the sender waits as a real one would.
                    Err(_) => {
                        sent.refused += 1;
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }
            }
            sent
        });
    }
    let mut all = Sent::default();
    while let Some(sent) = senders.join_next().await {
        let sent = sent?;
        all.refused += sent.refused;
        all.answers.extend(sent.answers);
    }
    all.took = began.elapsed();
    all.accepted = all.answers.len() as u64;
    all.answers.sort();
    Ok(all)
}
