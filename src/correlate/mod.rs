//! Correlation (judgment.md §4): which records are one request, what carried it, whose it is.
//!
//! Every rule is a function from sorted inputs to a value; none of them keeps state or sees arrival
//! order. The engine decides which of them to run again when facts arrive.

pub mod ancestry;
pub mod carrier;
pub mod chain;
pub mod halves;
pub mod join;
pub mod notes;
pub mod operation;
pub mod pairs;
pub mod placing;
pub mod process;
pub mod scope;
pub mod side;
pub mod trace;
