//! How things are drawn on a terminal, for whoever prints: columns that fit, and verdicts in them.
//! Colours are left to `anstream`, which knows NO_COLOR, CLICOLOR, TERM and pipes.

pub mod evidence;
pub mod grid;
pub mod terminal;
pub mod verdicts;
