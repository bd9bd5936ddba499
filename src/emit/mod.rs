//! What leaves for a verdict (judgment.md §8): attributes on request spans, events, verdict spans,
//! what counts in which metric, and redaction of forwarded content.
//!
//! Promises: pure; equal verdicts give equal bytes; nothing but ids, names, digests, counts, codes
//! and times is written.

pub mod severity;
