//! What a span costs on its way through, beside peers in the same run.
//!
//! ```text
//! cargo test --release --test bench                      the quick form, under three minutes
//! cargo test --release --test bench -- --full            every row, five rounds
//! cargo test --release --test bench -- --smoke           whether the harness works; measures nothing
//! … -- [--row ID]… [--rounds N] [--seconds N]            some rows, by the ids in rows.rs
//! … -- --checks [--seconds N]                            the check before a call
//! … -- --scale SERVERS TOOLS CLIENTS                     what many catalogs cost
//! … -- --engine CALLS                                    what a call takes of the engine
//! ```
//!
//! A load generator sends exports over gRPC or HTTP; a sink recognises every span that comes out.
//! Between them stands one process at a time: the floor (tonic, bodies as bytes), an OpenTelemetry
//! Collector, mcp-verdict. CPU time is what the scheduler counts for that process, from before the
//! first export until the last span, verdict and event is out. Programs take turns, round by round, and
//! a ratio is taken within a round. One that loses, repeats or alters a span, or does not judge, has an
//! error instead of a figure. Absolute figures depend on the machine and on what else it does.

// This is a program for people; its output is its result.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod checks;
mod client;
mod engine;
mod figures;
mod floor;
mod frame;
mod ledger;
mod load;
mod options;
mod payload;
mod protobuf;
mod round;
mod rows;
mod scale;
mod sink;
mod subject;
mod table;
mod template;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use figures::Measured;
use load::Offer;
use options::Options;
use rows::{Row, WARM};
use subject::Binaries;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ran = match arguments.first().map(String::as_str) {
        Some("--forward") => floor::run(&arguments[1..]),
        Some("--bare") => checks::bare(&arguments[1..]),
        Some("--engine") => engine::run(&arguments[1..]),
        Some("--scale") => scale::run(&arguments[1..]),
        Some("--checks") => Options::parse(&arguments[1..])
            .and_then(|options| checks::measure(&binaries(false)?, options.seconds)),
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
    if cfg!(debug_assertions) && !options.smoke {
        return Err("a measurement wants --release; without it there is --smoke".into());
    }
    let binaries = binaries(true)?;
    let runtime = runtime()?;
    let mut wrong = 0;
    for row in options.rows() {
        let measured = runtime.block_on(measure(row, &binaries, options))?;
        table::print(row, &measured);
        let ours = row.subjects.iter().zip(&measured).filter(|(subject, _)| subject.is_ours());
        wrong += ours.map(|(_, measured)| measured.errors().count()).sum::<usize>();
    }
    match wrong {
        0 => Ok(()),
        wrong => Err(format!("{wrong} runs did not do what they promise").into()),
    }
}

/// All rounds of a row; programs take turns.
async fn measure(
    row: &Row,
    binaries: &Binaries,
    options: &Options,
) -> Result<Vec<Measured>, Failure> {
    let exports = options.exports(row);
    let template = Arc::new(row.flow.load.template(row.flow.spans));
    let compressed = if row.flow.gzip { 0..WARM + exports } else { 0..0 };
    let gzipped = compressed.map(|number| template.gzipped(number)).collect();
    let offer = Arc::new(Offer { template, gzipped, pace: row.flow.pace });
    table::head(row, &offer, exports);
    let started = row.subjects.iter().map(|s| Measured { subject: s.name(), runs: Vec::new() });
    let mut measured: Vec<Measured> = started.collect();
    for _ in 0..options.rounds {
        for (subject, measured) in row.subjects.iter().zip(&mut measured) {
            measured.runs.push(round::run(subject, binaries, &row.flow, &offer, exports).await);
        }
    }
    Ok(measured)
}
