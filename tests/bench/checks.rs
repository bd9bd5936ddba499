//! How long a check before a call takes while spans flow, beside a bare handler of the same web
//! framework: `cargo test --release --test bench -- --checks [--seconds N]`.
//!
//! Both servers run at once and are asked in turn, each 1,000 times a second by an open-loop schedule,
//! so that whatever the machine does hits both. The ratio of the two 99th percentiles is the result.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use reqwest::Client;

use crate::client::Client as Exporter;
use crate::load::{CONNECTIONS, Offer};
use crate::payload::Load;
use crate::round::Serving;
use crate::rows::{Flow, Pace};
use crate::setups::PINNED;
use crate::sink::Sink;
use crate::subject::{Binaries, Subject, Target, ports};
use crate::{Failure, runtime};

/// Questions a second to each of the two.
const RATE: u64 = 1000;
/// Spans a second that flow meanwhile.
const SPANS: u64 = 5_000;
const ROUNDS: u64 = 5;
/// Questions under way at once to each of the two; what is due beyond waits, and its time runs.
const IN_FLIGHT: usize = 128;
/// The 99th percentile of checks may be so many times that of the bare handler.
const MOST: f64 = 2.0;

/// What each is asked: a pinned tool by its definition.
const QUESTION: &str = r#"{"server":"tools.example.com","tool":"search","definition":{"name":"search",
"description":"Searches the knowledge base and gives the best passages.","inputSchema":{"type":"object",
"properties":{"query":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":50},
"language":{"type":"string","enum":["de","en","nb"]}},"required":["query"]}}}"#;

/// The floor: takes a body, answers as many bytes as a check does.
pub fn bare(ports: &[String]) -> Result<(), Failure> {
    let [port] = ports else { return Err("--bare PORT".into()) };
    let port: u16 = port.parse()?;
    const ANSWER: &str = r#"{"answer":"proceed","reason":"pinned","expected_digest":"mcp-tool/1:sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","held_digest":"mcp-tool/1:sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","grade":null,"changes":[],"omitted":0}"#;
    runtime()?.block_on(async {
        let router = Router::new().route("/", post(|_: Bytes| async { ANSWER }));
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
        Ok(axum::serve(listener, router).await?)
    })
}

struct Bare(Child);

impl Drop for Bare {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures, prints, and fails over the ratio.
pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let seconds = match arguments {
        [] => 3,
        [named, seconds] if named == "--seconds" => seconds.parse()?,
        _ => return Err("--checks [--seconds N]".into()),
    };
    let binaries = &crate::binaries(false)?;
    let bare_port = ports()?.grpc;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--bare").arg(bare_port.to_string()).stdin(Stdio::null());
    let _bare = Bare(command.spawn()?);
    let mut ratios = runtime()?.block_on(rounds(binaries, bare_port, seconds))?;
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    println!("  median ratio of p99: {median:.2}, at most {MOST:.1}");
    if median <= MOST {
        Ok(())
    } else {
        Err(format!("p99 of checks is {median:.2} times that of a bare handler").into())
    }
}

/// The ratio of each round.
async fn rounds(binaries: &Binaries, bare: u16, seconds: u64) -> Result<Vec<f64>, Failure> {
    let flow =
        Flow { load: Load::Mcp, spans: 100, pace: Pace::At(SPANS), gzip: false, http: false };
    let sink_port = ports()?.grpc;
    let _serving = Serving(tokio::spawn(Sink::new(None).serve(sink_port)));
    let lockfile = [("mcp-tools.lock", lockfile())];
    let files = lockfile.each_ref().map(|(name, text)| (*name, text.as_str()));
    let target = Target::start(&Subject::Verdict(PINNED), binaries, &flow, sink_port, &files)?;
    let urls = [
        format!("http://127.0.0.1:{bare}/"),
        format!("http://127.0.0.1:{}/v1/contracts/check", target.ports.page),
    ];
    let client = Client::new();
    let exports = SPANS * seconds / flow.spans;
    let offer = Arc::new(Offer::new(&flow, exports));
    let port = target.ports.grpc;
    let senders = (0..CONNECTIONS).map(|_| Exporter::grpc(port)).collect::<Result<Vec<_>, _>>()?;
    println!("{RATE} checks/s and as many of a bare axum handler, {SPANS} spans/s flowing");
    println!(
        "  {:>14} {:>14} {:>14} {:>14} {:>7}",
        "bare p50 µs", "p99 µs", "check p50 µs", "p99 µs", "ratio"
    );
    ask(&client, &urls, 1).await?;
    let mut ratios = Vec::new();
    for round in 0..ROUNDS {
        let flowing = offer.send(&senders, round * exports..(round + 1) * exports);
        let (sent, asked) = tokio::join!(flowing, ask(&client, &urls, seconds));
        sent?;
        let [bare, check] = asked?;
        let ratio = at(&check, 99) / at(&bare, 99);
        println!(
            "  {:>14.0} {:>14.0} {:>14.0} {:>14.0} {ratio:>7.2}",
            at(&bare, 50),
            at(&bare, 99),
            at(&check, 50),
            at(&check, 99)
        );
        ratios.push(ratio);
    }
    Ok(ratios)
}

/// µs
fn at(sorted: &[Duration], percent: usize) -> f64 {
    let at = sorted.len().saturating_sub(1) * percent / 100;
    sorted.get(at).map_or(f64::NAN, |d| d.as_secs_f64() * 1e6)
}

/// Asks both in turn by the clock; the answer times of each, from when the question was due.
async fn ask(
    client: &Client,
    urls: &[String; 2],
    seconds: u64,
) -> Result<[Vec<Duration>; 2], Failure> {
    let gap = Duration::from_nanos(1_000_000_000 / (2 * RATE));
    let began = Instant::now();
    let free = [(); 2].map(|()| Arc::new(tokio::sync::Semaphore::new(IN_FLIGHT)));
    let mut asked = tokio::task::JoinSet::new();
    for number in 0..2 * RATE * seconds {
        let due = began + gap * u32::try_from(number)?;
        tokio::time::sleep_until(due.into()).await;
        let which = usize::try_from(number % 2)?;
        let request = client.post(&urls[which]).header("content-type", "application/json");
        let request = request.body(QUESTION);
        let free = free[which].clone();
        asked.spawn(async move {
            let _place = free.acquire_owned().await?;
            let answer = request.send().await?.text().await?;
            Ok::<_, Failure>((which, due.elapsed(), answer))
        });
    }
    let mut times = [Vec::new(), Vec::new()];
    while let Some(done) = asked.join_next().await {
        let (which, took, answer) = done??;
        if !answer.starts_with(r#"{"answer":"proceed","reason":"pinned""#) {
            return Err(format!("an answer that is none: {answer}").into());
        }
        times[which].push(took);
    }
    times.iter_mut().for_each(|times| times.sort());
    Ok(times)
}

/// The lockfile that pins what is asked about.
fn lockfile() -> String {
    use mcp_verdict::catalog::lockfile::{Lockfile, Mark, Pin, anyones};
    let question: serde_json::Value = serde_json::from_str(QUESTION).expect("the question is JSON");
    let tool = mcp_verdict::catalog::projection::read_definition(&question["definition"]);
    let tool = tool.expect("the question holds a tool");
    let mark = Mark { at: "2026-01-01T00:00:00Z".into(), by: "bench".into() };
    let mut lockfile = Lockfile::default();
    lockfile
        .set(anyones("tools.example.com", &tool), Pin::of(&tool, mark, None).expect("a digest"));
    lockfile.print()
}
