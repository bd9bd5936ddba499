//! The OTLP byte layer: a request stays the protobuf bytes that came in.
//!
//! Promises: views are borrowed from the request, no span is decoded into an object and encoded
//! again, every function is total (no byte sequence makes it panic), and what the program does not
//! know (unknown fields, unknown enum values, duplicate keys, odd times) survives untouched.
//!
//! - [`fields`]: the protobuf wire format itself, one field at a time, and its writers.
//! - [`schema`]: which message of OTLP has which fields, for the scanner and both JSON directions.
//! - [`scan`]: one structural check of a whole export, then borrowed views of what it holds.
//! - [`splice`]: adds, replaces and redacts attributes inside a span's bytes.
//! - [`regroup`]: takes exports apart and puts them together, item by item under their origin.
//! - [`encode`]: messages that this program originates.
//! - [`text`]: text that is not UTF-8, in what this program says itself.
//! - [`json`]: OTLP/JSON to protobuf, once at the edge, and one line of OTLP/JSON back.
//! - [`inflate`]: gzip and zstd, capped.

pub mod encode;
pub mod fields;
pub mod inflate;
pub mod json;
pub mod regroup;
pub mod scan;
pub mod schema;
pub mod splice;
pub mod text;

/// The four OTLP signals, each with its own service, request and path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signal {
    Traces,
    Logs,
    Metrics,
    Profiles,
}

impl Signal {
    /// Every signal, in the order of the documentation.
    pub const ALL: [Signal; 4] = [Signal::Traces, Signal::Logs, Signal::Metrics, Signal::Profiles];

    /// What the Collector's metrics call the items of the signal.
    pub fn items(self) -> &'static str {
        match self {
            Signal::Traces => "spans",
            Signal::Logs => "log_records",
            Signal::Metrics => "metric_points",
            Signal::Profiles => "profile_samples",
        }
    }

    /// Lower-case name, as used in metric labels and configuration.
    pub fn name(self) -> &'static str {
        match self {
            Signal::Traces => "traces",
            Signal::Logs => "logs",
            Signal::Metrics => "metrics",
            Signal::Profiles => "profiles",
        }
    }
}
