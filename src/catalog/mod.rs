//! What a server's tools are, whether they changed, and whether a call may rely on them.
//!
//! Promises: pure; definitions are content and stay inside, what leaves are digests, pointers and
//! grades.

pub mod check;
pub mod conformance;
pub mod convergence;
#[cfg(test)]
mod convergence_tests;
pub mod diff;
mod diff_alternatives;
mod diff_containers;
mod diff_keywords;
#[cfg(test)]
mod diff_property_tests;
mod diff_schema;
#[cfg(test)]
mod diff_tests;
mod diff_text;
mod diff_values;
mod diff_view;
pub mod digest;
mod drifts;
pub mod grade;
pub mod hints;
pub mod listing;
pub mod lockfile;
#[cfg(test)]
mod lockfile_tests;
mod lockfile_text;
pub mod moved;
pub mod projection;
pub mod reference;
pub mod traversal;
