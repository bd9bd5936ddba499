//! The terminal on stdout.

use std::io::{IsTerminal, StdoutLock};

use anstream::AutoStream;

/// Where results are printed; colours are taken out where nobody sees them.
pub fn out() -> AutoStream<StdoutLock<'static>> {
    AutoStream::auto(std::io::stdout()).lock()
}

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
