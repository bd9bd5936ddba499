//! `completions`: a script for the user's shell, made from the same definitions as the parser.

use clap::{Args, CommandFactory};

use super::{Cli, Exit, Failure};

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell that will read it
    shell: clap_complete::Shell,
}

pub fn run(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "mcp-verdict", &mut script);
    std::io::Write::write_all(&mut std::io::stdout(), &script)?;
    Ok(Exit::Done)
}
