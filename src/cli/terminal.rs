//! Writing to stderr, and the terminal that results go to.

use std::fmt::Display;
use std::io::Write;

pub use crate::show::terminal::{out, width};

/// One line on stderr. A closed stderr leaves nobody to tell.
pub fn tell(line: &dyn Display) {
    let _ = writeln!(std::io::stderr(), "mcp-verdict: {line}");
}
