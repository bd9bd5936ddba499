//! What a span costs on its way through, beside two peers in the same run.
//!
//! `cargo test --release --test bench -- [--full] [--seconds N] [--load NAME [--rate SPANS_A_SECOND]]`
//!
//! `… -- --checks [--seconds N]` measures the check before a call, `… -- --scale SERVERS TOOLS CLIENTS`
//! what many catalogs cost, `… -- --engine CALLS` what a call takes of the engine, in time and memory.
//!
//! A load generator sends exports that were encoded beforehand over gRPC; a sink counts the spans that
//! come out. Between them stands one process at a time: a bare forwarder (tonic, bodies as bytes: the
//! floor), an OpenTelemetry Collector (`otlp → batch → otlp`), and mcp-verdict. CPU time is what the
//! operating system counts for that process, from before the first export until the last span is out.
//! Ratios are what to compare; absolute figures depend on the machine and on what else it does.

// This is a program for people; its output is its result.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod checks;
mod engine;
mod generate;
mod payload;
mod raw;
mod scale;
mod target;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use generate::{CONNECTIONS, IN_FLIGHT, Offer};
use payload::{Load, count_spans};
use target::{Kind, Target};
use tonic::codegen::BoxFuture;
use tonic::transport::Channel;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How long after the load the last span may take to come out: `settle` and something.
const DRAIN: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ran = match arguments.first().map(String::as_str) {
        Some("--forward") => forward(&arguments[1..]),
        Some("--bare") => checks::bare(&arguments[1..]),
        Some("--engine") => engine::run(&arguments[1..]),
        Some("--scale") => scale::run(&arguments[1..]),
        Some("--checks") => Options::parse(&arguments[1..])
            .and_then(|options| checks::measure(binary()?, options.seconds)),
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
    /// what is sent, and how many spans a second where it is not as many as are taken
    loads: Vec<(Load, Option<u64>)>,
}

/// A rate that everything measured can take, so that CPU time a span is not that of an overload.
const PACE: u64 = 20_000;

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let loads = vec![(Load::Plain, None), (Load::Mcp, Some(PACE))];
        let mut options = Self { seconds: 3, rounds: 1, loads };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--full" => {
                    (options.seconds, options.rounds) = (10, 3);
                    let paced = Load::ALL.map(|load| (load, Some(PACE)));
                    options.loads = Load::ALL.map(|load| (load, None)).into();
                    options.loads.extend(paced);
                }
                "--seconds" => options.seconds = rest.next().ok_or("--seconds N")?.parse()?,
                "--load" => {
                    let name = rest.next().ok_or("--load plain|mixed|mcp")?;
                    let named = Load::ALL.into_iter().filter(|load| load.name() == name);
                    options.loads = named.map(|load| (load, None)).collect();
                }
                "--rate" => {
                    let rate = rest.next().ok_or("--rate SPANS_A_SECOND")?.parse()?;
                    options.loads.iter_mut().for_each(|(_, pace)| *pace = Some(rate));
                }
                other => {
                    let error = format!("unknown argument '{other}'; see the top of main.rs");
                    return Err(error.into());
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
    for &(load, rate) in &options.loads {
        let offer = Offer { template: Arc::new(load.template()), rate };
        let pace = rate.map_or("as many as are taken".to_owned(), |rate| format!("{rate} spans/s"));
        let bytes = offer.template.len() as u64 / offer.template.spans();
        println!("\n{} ({}; {bytes} bytes a span), {pace}", load.name(), load.says());
        println!(
            "  {:22} {:>12} {:>7} {:>12} {:>9} {:>9} {:>9}",
            "", "CPU µs/span", "× floor", "spans/s", "p50 ms", "p99 ms", "peak MiB"
        );
        let mut floor = None;
        for kind in &kinds {
            let mut runs = Vec::new();
            for _ in 0..options.rounds {
                runs.push(runtime.block_on(measure(kind, &offer, options.seconds))?);
            }
            runs.sort_by(|a, b| a.cpu_per_span.total_cmp(&b.cpu_per_span));
            let median = &runs[runs.len() / 2];
            let floor = *floor.get_or_insert(median.cpu_per_span);
            median.print(&kind.name(), floor);
        }
    }
    Ok(())
}

fn binary() -> Result<PathBuf, Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let binary = std::env::var_os("MCP_VERDICT_BIN")
        .map_or_else(|| root.join("target/release/mcp-verdict"), PathBuf::from);
    if !binary.exists() {
        return Err(format!("{} is not there: cargo build --release", binary.display()).into());
    }
    Ok(binary)
}

/// The floor, the Collector where it has been built, and the binary under test.
fn kinds() -> Result<Vec<Kind>, Failure> {
    let (root, binary) = (Path::new(env!("CARGO_MANIFEST_DIR")), binary()?);
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
    /// accepted, and not out when the run ended
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
            (self.lost, "spans not out after 20 s"),
        ] {
            if count > 0 {
                print!("  {count} {what}");
            }
        }
        println!();
    }
}

async fn measure(kind: &Kind, offer: &Offer, seconds: u64) -> Result<Run, Failure> {
    let sink = Arc::new(Sink::default());
    let sink_port = target::ports()?.grpc;
    let serving = tokio::spawn(raw::serve(sink_port, sink.clone()));
    tokio::time::sleep(Duration::from_millis(100)).await;
    let target = Target::start(kind, sink_port)?;
    let warm = offer.send(target.port, Duration::from_millis(500), 1 << 40).await?;
    settled(&sink, warm.accepted * offer.template.spans()).await;
    let (before, out_before, ours_before) =
        (target.cpu()?, sink.theirs.load(Ordering::Relaxed), sink.ours.load(Ordering::Relaxed));
    let sent = offer.send(target.port, Duration::from_secs(seconds), 0).await?;
    let spans = sent.accepted * offer.template.spans();
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
