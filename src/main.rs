//! The `mcp-verdict` program: everything it does is in the library, so that tests drive the same
//! code.

use std::process::ExitCode;

fn main() -> ExitCode {
    mcp_verdict::cli::main()
}
