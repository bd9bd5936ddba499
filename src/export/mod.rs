//! OTLP out: held spans, the outbox, batches by bytes, exporters and their retries.
//!
//! Promises: what was handed in is delivered, or dropped with a reason that is also a metric label;
//! each exporter and signal has its own lane, so that none blocks another; only what OTLP calls
//! retryable is tried again, and what a backend refuses for its content is taken apart until only
//! that is dropped; bytes leave as they came wherever codings agree. With a log on disk,
//! what waits beyond a bound lies there alone.

mod apart;
mod batch;
mod client;
mod counters;
mod hold;
mod lane;
mod ledger;
mod outbox;
mod outcome;
mod pace;
mod page;
mod parcel;
pub mod settings;
mod shelf;
mod trouble;

pub use client::{ExporterError, tls_config};
pub use counters::Counters;
pub use hold::{Hold, Leaving, Origin};
pub use lane::Lane;
pub use ledger::Ledger;
pub use outbox::Outbox;
pub use parcel::{Due, Parcel};
pub use shelf::{Backlog, Page, Shelf, Taken};
