//! `run`: the processor itself, until a signal ends it.

use super::{ConfigArgs, Exit, Failure, tell_mistakes, terminal};
use crate::app::process;
use crate::config::{Sources, check_files};

pub fn run(args: &ConfigArgs) -> Result<Exit, Failure> {
    let settings = args.load()?;
    let mistakes = check_files(&settings);
    if !mistakes.is_empty() {
        tell_mistakes(&mistakes);
        return Ok(Exit::Config);
    }
    let sources = Sources { files: args.config.clone(), set: args.set.clone() };
    Ok(match process::run(&settings, &sources, &|line| terminal::tell(&line)) {
        process::Ended::Done => Exit::Done,
        process::Ended::Unusable => Exit::Config,
        process::Ended::Lost => Exit::Internal,
        process::Ended::Interrupted => Exit::Interrupted,
    })
}
