//! The terminal: how wide it is, and writing to stderr. Colours are left to `anstream`, which knows
//! NO_COLOR, CLICOLOR, TERM and pipes.

use std::fmt::Display;
use std::io::{IsTerminal, Write};

/// Columns of the terminal on stdout; `None` where stdout is no terminal, so that nothing is cut.
/// `COLUMNS` wins, as shells have it.
pub fn width() -> Option<usize> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let set = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let asked = terminal_size::terminal_size_of(&stdout).map(|(width, _)| usize::from(width.0));
    Some(set.or(asked).filter(|width| *width > 0).unwrap_or(80))
}

/// One line on stderr. A closed stderr leaves nobody to tell.
pub fn tell(line: &dyn Display) {
    let _ = writeln!(std::io::stderr(), "mcp-verdict: {line}");
}
