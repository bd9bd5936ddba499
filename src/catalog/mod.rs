//! What a server's tools are, whether they changed, and whether a call may rely on them.
//!
//! Promises: pure; definitions are content and stay inside, what leaves are digests, pointers and
//! grades.

pub mod convergence;
pub mod digest;
pub mod listing;
pub mod projection;
pub mod traversal;
