//! `explain`: one chain with every fact, its source span, the rule that fired, and what would
//! change the verdict. It holds no rule: it judges again with a witness, then once more for each
//! piece of evidence that could have been recorded, and prints what moves.

mod text;
mod trials;

use clap::Args;
use std::io::Write;
use std::path::PathBuf;

use super::{ConfigArgs, Exit, Failure, Format, input, terminal};
pub use crate::coverage::Recording;
use crate::engine::Explained;
use crate::model::record::Verdict;

pub use trials::{Change, changes};

#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// Recorded OTLP, as for `replay`
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    config: ConfigArgs,
    /// How it is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    which: Which,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub struct Which {
    /// JSON-RPC request id
    #[arg(long, value_name = "ID")]
    request: Option<String>,
    /// Chain id, or how it begins
    #[arg(long, value_name = "ID")]
    chain: Option<String>,
    /// Trace id: every chain of the trace
    #[arg(long, value_name = "ID")]
    trace: Option<String>,
}

pub fn run(args: &ExplainArgs) -> Result<Exit, Failure> {
    let settings = args.config.load()?;
    let mut exports = Vec::new();
    let mut take = |signal, export: &[u8]| exports.push((signal, export.to_vec()));
    if let Err(error) = input::read(&args.files, &mut take) {
        terminal::tell(&error);
        return Ok(Exit::Input);
    }
    let recording = Recording::new(exports, settings.policy);
    let found = recording.explain(&|verdict| args.which.wants(verdict));
    if found.is_empty() {
        terminal::tell(&args.which.missing());
        return Ok(Exit::No);
    }
    match args.format {
        Format::Text => {
            let mut out = terminal::out();
            print_text(&mut out, &recording, &found)?;
        }
        Format::Json => {
            let mut out = std::io::stdout().lock();
            for explained in &found {
                let changes = changes(&recording, explained);
                serde_json::to_writer(&mut out, &text::json(explained, &changes))?;
                writeln!(out)?;
            }
        }
    }
    Ok(Exit::Done)
}

/// Each chain, with a blank line between two.
pub fn print_text(
    out: &mut dyn Write,
    recording: &Recording,
    found: &[Explained],
) -> std::io::Result<()> {
    for (number, explained) in found.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        text::write(out, explained, &changes(recording, explained))?;
    }
    Ok(())
}

impl Which {
    fn wants(&self, verdict: &Verdict) -> bool {
        let same = |id: Option<&str>, wanted: &str| id == Some(wanted);
        match (&self.request, &self.chain, &self.trace) {
            (Some(id), ..) => same(verdict.request_id.as_deref(), id),
            (_, Some(id), _) => {
                !id.is_empty() && verdict.id.to_string().starts_with(&id.to_ascii_lowercase())
            }
            (.., Some(id)) => {
                let trace = verdict.trace_id.map(|trace| trace.to_string());
                same(trace.as_deref(), &id.to_ascii_lowercase())
            }
            (None, None, None) => false,
        }
    }

    fn missing(&self) -> String {
        match (&self.request, &self.chain, &self.trace) {
            (Some(id), ..) => format!("no request with the id {id} in the input"),
            (_, Some(id), _) => format!("no chain whose id begins with {id} in the input"),
            (.., Some(id)) => format!("no MCP request in a trace {id} in the input"),
            (None, None, None) => "nothing was asked for".to_string(),
        }
    }
}

#[cfg(test)]
mod tests;
