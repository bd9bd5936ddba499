//! What leaves for a verdict (judgment.md §8): attributes on request spans, events, verdict spans,
//! what counts in which metric, and redaction of forwarded content.
//!
//! Promises: pure; equal verdicts give equal bytes; nothing but ids, names, digests, counts, codes
//! and times is written.

pub mod attributes;
pub mod event;
pub mod metrics;
pub mod record;
pub mod redaction;
pub mod severity;
pub mod span;
pub mod vocabulary;

#[cfg(test)]
mod tests;

use crate::model::record::Verdict;
use crate::model::words::vocabulary;

vocabulary!(
    /// Which verdicts leave as events or spans.
    Which { All = "all", Problems = "problems", None = "none" }
);
vocabulary!(
    /// How much is added to request spans.
    Enrich { Compact = "compact", Full = "full" }
);
vocabulary!(
    /// What becomes of content on forwarded telemetry.
    Redact { Keep = "keep", Digest = "digest", Drop = "drop" }
);

impl Which {
    /// Whether this revision leaves. A problem is a state that somebody must act on; later
    /// revisions count too, because what they take back has already left.
    pub fn wants(self, verdict: &Verdict) -> bool {
        match self {
            Self::All => true,
            Self::Problems => severity::is_problem(verdict.state) || verdict.revision > 1,
            Self::None => false,
        }
    }
}
