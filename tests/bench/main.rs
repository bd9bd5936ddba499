//! What a span costs on its way through, beside peers in the same run.
//!
//! ```text
//! cargo test --release --test bench                      the quick form, under three minutes
//! cargo test --release --test bench -- --full            every row, five rounds
//! cargo test --release --test bench -- --smoke           whether the harness works; measures nothing
//! … -- [--row ID]… [--rounds N] [--seconds N]            some rows, by the ids in rows.rs
//! … -- --full --publish                                  also into docs/performance.md
//! … -- --checks [--seconds N]                            the check before a call
//! … -- --scale SERVERS TOOLS CLIENTS                     what many catalogs cost
//! ```
//!
//! A load generator sends exports over gRPC or HTTP; a sink recognises every span that comes out.
//! Between them stands one process at a time: the floor (tonic, bodies as bytes), an OpenTelemetry
//! Collector, mcp-verdict. CPU time is what the scheduler counts for that process, from before the
//! first export until the last span, verdict and event is out. Programs take turns, round by round, and
//! a ratio is taken within a round. One that loses, repeats or alters a span, or does not judge, has an
//! error instead of a figure. Absolute figures depend on the machine and on what else it does. The
//! report is target/bench/report.md, with pictures, and report.json.

// This is a program for people; its output is its result.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod chart;
mod checks;
mod client;
mod figures;
mod floor;
mod frame;
mod ledger;
mod live;
mod load;
mod markdown;
mod memory;
mod options;
mod payload;
mod protobuf;
mod raw;
mod replay;
mod report;
mod rest;
mod round;
mod rows;
mod scale;
mod setups;
mod sink;
mod subject;
mod targets;
mod template;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use figures::Measured;
use load::Offer;
use options::Options;
use report::{Done, Machine};
use rows::{Flow, Row, Work};
use subject::{Binaries, Subject};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    // The library for HTTP is built without a default for TLS; without one it makes no client.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ran = match arguments.first().map(String::as_str) {
        Some("--forward") => floor::run(&arguments[1..]),
        Some("--bare") => checks::bare(&arguments[1..]),
        Some("--decode") => replay::decode(&arguments[1..]),
        Some("--scale") => scale::run(&arguments[1..]),
        Some("--checks") => checks::run(&arguments[1..]),
        _ => Options::parse(&arguments).and_then(|options| bench(&options)),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// The binary under test is the one that cargo built beside this program, or the one that is named.
fn binaries(collector: bool) -> Result<Binaries, Failure> {
    let built = || PathBuf::from(env!("CARGO_BIN_EXE_mcp-verdict"));
    let verdict = std::env::var_os("MCP_VERDICT_BIN").map_or_else(built, PathBuf::from);
    if !verdict.exists() {
        return Err(format!("{} is not there", verdict.display()).into());
    }
    if !collector {
        return Ok(Binaries { verdict, collector: None });
    }
    let recipe = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/peers/build");
    let built = Command::new(recipe).arg("collector").output()?;
    if !built.status.success() {
        return Err(String::from_utf8_lossy(&built.stderr).into_owned().into());
    }
    let collector = Some(PathBuf::from(String::from_utf8(built.stdout)?.trim()));
    Ok(Binaries { verdict, collector })
}

/// Measures every row that is wanted; an error where one of ours did not do what it promises.
fn bench(options: &Options) -> Result<(), Failure> {
    if cfg!(debug_assertions) && !options.smoke() {
        return Err("a measurement wants --release; without it there is --smoke".into());
    }
    let binaries = binaries(true)?;
    let machine = Machine::here(&binaries.verdict);
    println!("{}\n", machine.says());
    let mut all = Vec::new();
    for row in options.rows() {
        let done = measure(row, &binaries, options)?;
        print!("{}", markdown::row(&done));
        all.push(done);
    }
    println!("report: {}", report::write(&machine, &all)?.display());
    if options.publish {
        report::publish(&machine, &all)?;
    }
    let peers = [Subject::Batch, Subject::GroupByTrace].map(|peer| peer.name());
    let ours = all.iter().flat_map(|done| &done.measured);
    let ours = ours.filter(|measured| !peers.contains(&measured.subject));
    match ours.map(|measured| measured.errors().count()).sum() {
        0 => Ok(()),
        wrong => Err(format!("{wrong} runs did not do what they promise").into()),
    }
}

fn measure(row: &'static Row, binaries: &Binaries, options: &Options) -> Result<Done, Failure> {
    let rounds = options.rounds(row);
    let (mut conditions, most) = (String::new(), options.most());
    let measured = match row.work {
        Work::Flow(flow, subjects) => {
            let offer = Arc::new(Offer::new(&flow, options.exports(row, &flow)));
            conditions = offer.says(&flow, rounds);
            let programs = subjects.iter().take(options.programs(row)).copied().collect();
            runtime()?.block_on(flows(&flow, programs, binaries, &offer, rounds))
        }
        Work::Memory => runtime()?.block_on(memory::measure(binaries, most))?,
        Work::Live => live::measure(most)?,
        Work::Replay => replay::measure(binaries, rounds)?,
        Work::Rest => rest::measure(binaries, rounds)?,
    };
    Ok(Done { row, conditions, measured, counts: !options.smoke() })
}

/// All rounds of a load; programs take turns.
async fn flows(
    flow: &Flow,
    subjects: Vec<Subject>,
    binaries: &Binaries,
    offer: &Arc<Offer>,
    rounds: usize,
) -> Vec<Measured> {
    let started = subjects.iter().map(|s| Measured { subject: s.name(), runs: Vec::new() });
    let mut measured: Vec<Measured> = started.collect();
    for _ in 0..rounds {
        for (subject, measured) in subjects.iter().zip(&mut measured) {
            measured.runs.push(round::run(subject, binaries, flow, offer).await);
        }
    }
    measured
}
