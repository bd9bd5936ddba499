//! `replay`: judges recorded OTLP in event time, with the code that judges live.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use super::{ConfigArgs, Exit, Failure, input, table, terminal};
use crate::engine;
use crate::model::fact::Sighting;
use crate::model::policy::Policy;
use crate::model::record::Record;
use crate::normalise;

#[derive(Args, Debug)]
pub struct ReplayArgs {
    /// OTLP JSON lines, or protobuf where the name ends in .pb or .bin; `-` is stdin; .gz and .zst
    /// are inflated
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    config: ConfigArgs,
    /// How records are printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Print what the whole input yields, or every revision on the way there
    #[arg(long, value_enum, default_value_t = Which::Final)]
    revisions: Which,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Which {
    Final,
    All,
}

pub fn run(args: &ReplayArgs) -> Result<Exit, Failure> {
    let settings = args.config.load()?;
    let sightings = sight(&args.files, &settings.policy)?;
    let revisions = match args.revisions {
        Which::Final => engine::Revisions::Final,
        Which::All => engine::Revisions::All,
    };
    let records = engine::replay(sightings, &Arc::new(settings.policy), revisions);
    match args.format {
        Format::Json => write_json(&records)?,
        Format::Table => {
            let mut out = terminal::out();
            table::write(&mut out, &records, terminal::width())?;
        }
    }
    Ok(Exit::Done)
}

/// What every export of the files says.
pub fn sight(files: &[PathBuf], policy: &Policy) -> Result<Vec<Sighting>, Exit> {
    let mut sightings = Vec::new();
    let mut take = |signal, export: &[u8]| {
        sightings.push(normalise::sight(signal, export, policy));
    };
    match input::read(files, &mut take) {
        Ok(()) => Ok(sightings),
        Err(error) => {
            terminal::tell(&error);
            Err(Exit::Input)
        }
    }
}

/// One JSON object a line.
fn write_json(records: &[Record]) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for record in records {
        serde_json::to_writer(&mut out, record)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}
