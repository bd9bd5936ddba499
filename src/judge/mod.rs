//! Judgement (judgment.md §5, 7, 8): one request with everything known of it becomes one verdict.
//!
//! Promises: every function here is pure and total. It asks no clock, keeps no state, sees no
//! content, and never panics, whatever it is given. Where the specification has a table there is a
//! table here: [`ending::RULES`], [`states::STATES`], [`findings::RULES`].

pub mod capabilities;
pub mod clocks;
pub mod ending;
pub mod evidence;
pub mod findings;
pub mod ladders;
pub mod operation;
pub mod seen;
pub mod session;
pub mod states;
pub mod summary;
pub mod witness;

mod verdict;

#[cfg(test)]
mod tests;

pub use ending::ending;
pub use verdict::verdict;
pub use witness::{Note, Witness};
