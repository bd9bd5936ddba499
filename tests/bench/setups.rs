//! mcp-verdict, as it is configured for a row.

use crate::ledger::{Promise, Which};
use crate::subject::Setup;

const DEFAULT: Promise =
    Promise { bytes: true, enriched: true, events: Which::All, verdict_spans: Which::Problems };

pub const QUEUED: Setup = Setup { name: "queued", set: &["storage.ack=queued"], promise: DEFAULT };

/// Room for every call of a run, so that none leaves early as evicted, which is a revision.
pub const ROOMY: Setup = Setup {
    name: "queued, limits.memory 4 GiB",
    set: &["storage.ack=queued", "processors.mcp_verdict.limits.memory=4GiB"],
    promise: DEFAULT,
};

pub const QUIET: Setup = Setup {
    name: "queued, no events or verdict spans",
    set: &[
        "storage.ack=queued",
        "processors.mcp_verdict.verdict_events=none",
        "processors.mcp_verdict.verdict_spans=none",
    ],
    promise: Promise { events: Which::None, verdict_spans: Which::None, ..DEFAULT },
};

pub const INTERVAL: Setup = Setup {
    name: "durable, sync: interval",
    set: &["storage.ack=durable", "storage.sync=interval"],
    promise: DEFAULT,
};

pub const ALWAYS: Setup = Setup {
    name: "durable, sync: always",
    set: &["storage.ack=durable", "storage.sync=always"],
    promise: DEFAULT,
};

/// For checks before a call: what they are asked about is pinned.
pub const PINNED: Setup = Setup {
    name: "queued, pins",
    set: &["storage.ack=queued", "processors.mcp_verdict.contracts.mode=pin"],
    promise: DEFAULT,
};

/// Nothing is judged, and so nothing let go, while memory is read; limits are out of the way.
pub const HOLDING: Setup = Setup {
    name: "held spans",
    set: &[
        "storage.ack=queued",
        "processors.mcp_verdict.settle=10m",
        "processors.mcp_verdict.limits.memory=32GiB",
    ],
    promise: Promise { enriched: false, events: Which::None, ..DEFAULT },
};

/// Requests stay open while memory is read; limits are out of the way.
pub const OPEN: Setup = Setup {
    name: "open requests",
    set: &[
        "storage.ack=queued",
        "processors.mcp_verdict.deadline=1h",
        "processors.mcp_verdict.inactivity=1h",
        "processors.mcp_verdict.limits.memory=32GiB",
        "processors.mcp_verdict.limits.chains=2000000",
    ],
    promise: DEFAULT,
};

/// Every output setting, for what it makes of the bytes that came in.
pub const PROBLEM_EVENTS: Setup = Setup {
    name: "verdict_events: problems",
    set: &["storage.ack=queued", "processors.mcp_verdict.verdict_events=problems"],
    promise: Promise { events: Which::Problems, ..DEFAULT },
};

pub const ALL_SPANS: Setup = Setup {
    name: "verdict_spans: all",
    set: &["storage.ack=queued", "processors.mcp_verdict.verdict_spans=all"],
    promise: Promise { verdict_spans: Which::All, ..DEFAULT },
};

pub const FULL: Setup = Setup {
    name: "enrich: full",
    set: &["storage.ack=queued", "processors.mcp_verdict.enrich=full"],
    promise: DEFAULT,
};

pub const GZIP: Setup = Setup {
    name: "compression: gzip",
    set: &["storage.ack=queued", "exporters.otlp.compression=gzip"],
    promise: DEFAULT,
};

pub const ZSTD: Setup = Setup {
    name: "compression: zstd",
    set: &["storage.ack=queued", "exporters.otlp.compression=zstd"],
    promise: DEFAULT,
};
