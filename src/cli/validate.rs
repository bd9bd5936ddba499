//! `validate`: checks a configuration without opening a port, and prints the registry of keys.

use std::io::Write;

use clap::Args;

use super::{ConfigArgs, Exit, Failure, tell_mistakes};
use crate::config::{check_files, keys};

#[derive(Args, Debug)]
pub struct ValidateArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Print every key with its form, default and meaning instead
    #[arg(long)]
    keys: bool,
}

pub fn run(args: &ValidateArgs) -> Result<Exit, Failure> {
    let mut out = std::io::stdout().lock();
    if args.keys {
        for row in keys::rows() {
            let default = if row.default.is_empty() { "" } else { "; default " };
            writeln!(out, "{}", row.path)?;
            writeln!(out, "    {}{default}{}", row.form.describe(), row.default)?;
            writeln!(out, "    {}", row.says)?;
        }
        return Ok(Exit::Done);
    }
    let settings = args.config.load()?;
    let mistakes = check_files(&settings);
    if !mistakes.is_empty() {
        tell_mistakes(&mistakes);
        return Ok(Exit::Config);
    }
    let names: Vec<_> = settings.exporters.iter().map(|e| e.name.as_str()).collect();
    writeln!(out, "configuration is usable; exporters: {}", names.join(", "))?;
    Ok(Exit::Done)
}
