//! Our own telemetry: metrics, health, logs. Nothing that a client sent stands in any of them.
//!
//! Promises: every metric has a row in [`registry`]; label sets are bounded, with one overflow
//! series beyond the bound; exemplars are ids alone; logs are structured and rate-limited; health
//! tells progress.

mod exemplars;
pub mod health;
mod logs;
mod meters;
mod openmetrics;
pub mod registry;
pub mod serve;
pub mod settings;
mod verdicts;

pub use exemplars::Exemplar;
pub use logs::Logs;
pub use meters::Meters;
pub use settings::Settings;
pub use verdicts::VerdictMeters;
