//! Coverage: which layers of the health contract were ever observed of each server's tools, on what
//! evidence, and what to record or configure so that the most calls leave `unverified`.
//!
//! Promises: advice is true by construction. Each candidate is tried on the recording, by the code
//! that judges, and what is claimed of it is what moved. Nothing here is read from anywhere or
//! printed; the same recording gives the same report.

pub mod advice;
pub mod observed;
mod paste;
pub mod recording;
pub mod rules;
mod shapes;

pub use advice::{Advice, Advised, Part};
pub use observed::{LayerSeen, Tool, tools};
pub use paste::{attribute_lines, config};
pub use recording::{Attributes, Recording, Trial, Value};
pub use rules::{Tried, try_out};
