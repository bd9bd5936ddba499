//! The command line: one file a command. Results go to stdout, everything else to stderr.

mod completions;
pub mod coverage;
pub mod demo;
pub mod explain;
pub mod input;
pub mod lock;
mod lock_input;
mod lock_instance;
mod lock_report;
mod lock_telemetry;
#[cfg(test)]
mod lock_tests;
mod replay;
mod run;
pub mod table;
pub mod terminal;
mod validate;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::app::lockfile;
use crate::config::{self, Mistake, Settings, Sources};

/// How a command ended, by the number scripts see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    Done,
    /// The answer is "no": drift, halt, not found.
    No,
    /// Usage or input error.
    Input,
    /// Unusable configuration.
    Config,
    /// An internal error, or something accepted was lost.
    Internal,
    /// A second signal ended the process at once.
    Interrupted,
}

impl Exit {
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::No => 1,
            Self::Input => 2,
            Self::Config => 64,
            Self::Internal => 70,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

#[derive(Parser, Debug)]
#[command(
    name = "mcp-verdict",
    version,
    about = "Judges Model Context Protocol telemetry where an OpenTelemetry Collector sits",
    propagate_version = true,
    args_conflicts_with_subcommands = true
)]
pub struct Cli {
    /// Without a command: `run`.
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: ConfigArgs,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Runs the processor: OTLP in, verdicts and OTLP out
    Run(ConfigArgs),
    /// Plays recordings through the real ports and shows the verdicts
    Demo(demo::DemoArgs),
    /// Judges recorded OTLP in event time and prints the verdicts
    Replay(replay::ReplayArgs),
    /// One chain: every fact, the rule that fired, what would change the verdict
    Explain(explain::ExplainArgs),
    /// What was observed of each tool, and what to add so that calls leave `unverified`
    Coverage(coverage::CoverageArgs),
    /// Checks a configuration: all mistakes at once
    Validate(validate::ValidateArgs),
    /// Contracts: pins tools and says what changed since
    Lock(lock::LockArgs),
    /// Prints a completion script for a shell
    Completions(completions::CompletionsArgs),
}

/// Where the configuration comes from.
#[derive(Args, Debug, Clone, Default)]
pub struct ConfigArgs {
    /// Configuration file, or directory of them; several are merged in order
    #[arg(long, value_name = "FILE|DIR")]
    pub config: Vec<PathBuf>,
    /// One value over the files, as in --set processors.mcp_verdict.settle=2s
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// How a command prints what it found: for people, or for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

impl ConfigArgs {
    /// The checked settings; mistakes and warnings are told on stderr.
    pub fn load(&self) -> Result<Settings, Exit> {
        let sources = Sources { files: self.config.clone(), set: self.set.clone() };
        let mut settings = config::load(&sources).map_err(|mistakes| {
            tell_mistakes(&mistakes);
            Exit::Config
        })?;
        settings.warnings.iter().for_each(|warning| terminal::tell(warning));
        lockfile::pin(&mut settings).map_err(|trouble| {
            terminal::tell(&trouble);
            Exit::Config
        })?;
        Ok(settings)
    }
}

/// All mistakes, one a line, on stderr.
pub fn tell_mistakes(mistakes: &[Mistake]) {
    mistakes.iter().for_each(|mistake| terminal::tell(mistake));
    let count = match mistakes.iter().filter(|mistake| !mistake.warning).count() {
        1 => "1 mistake in the configuration".to_string(),
        n => format!("{n} mistakes in the configuration"),
    };
    terminal::tell(&count);
}

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    run(std::env::args_os()).into()
}

/// Runs the program with these arguments, the program's name first.
pub fn run(args: impl IntoIterator<Item = OsString>) -> Exit {
    match Cli::try_parse_from(args) {
        Ok(cli) => dispatch(cli.command.unwrap_or(Command::Run(cli.run))),
        Err(error) => {
            // What was asked for goes to stdout and is no error; usage goes to stderr. A closed
            // pipe leaves nobody to tell.
            let _ = error.print();
            if error.use_stderr() { Exit::Input } else { Exit::Done }
        }
    }
}

fn dispatch(command: Command) -> Exit {
    let result = match command {
        Command::Run(args) => run::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Coverage(args) => coverage::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::Lock(args) => lock::run(&args),
        Command::Completions(args) => completions::run(&args),
    };
    match result {
        Ok(exit) => exit,
        Err(Failure::Exit(exit)) => exit,
        // Whoever read our output has seen enough.
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Exit::Done,
        Err(Failure::Output(error)) => {
            terminal::tell(&format!("cannot write the result: {error}"));
            Exit::Internal
        }
    }
}

/// Why a command stopped early.
#[derive(Debug)]
pub enum Failure {
    /// Already told on stderr.
    Exit(Exit),
    /// The result could not be written.
    Output(std::io::Error),
}

impl From<Exit> for Failure {
    fn from(exit: Exit) -> Self {
        Self::Exit(exit)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Output(error.into())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Output(error)
    }
}
