//! The one table of what is measured, and what it is measured against.

use crate::figures::{Figure, Measured, Spread};
use crate::ledger::{Promise, Which};
use crate::payload::Load;
use crate::subject::{Setup, Subject};

/// A load, and how it travels.
#[derive(Clone, Copy)]
pub struct Flow {
    pub load: Load,
    /// an export
    pub spans: u64,
    /// spans a second, where it is not as many as are taken
    pub pace: Option<u64>,
    /// in and out
    pub gzip: bool,
    /// OTLP over HTTP in; out is gRPC always
    pub http: bool,
}

/// Exports before the timed ones.
pub const WARM: u64 = 20;
/// An export as the floor was measured beforehand.
const SPANS: u64 = 500;
/// A rate at which judged work is compared: at full speed a hold mostly measures memory growth.
const JUDGED: Option<u64> = Some(60_000);

/// A floor that takes so many times what it took beforehand is a machine that is busy with other work.
pub const FLOOR_AT_MOST: f64 = 2.0;

const FLOW: Flow = Flow { load: Load::Plain, spans: SPANS, pace: None, gzip: false, http: false };

/// One line of the benchmark.
pub struct Row {
    pub id: &'static str,
    pub says: &'static str,
    pub flow: Flow,
    pub subjects: &'static [Subject],
    pub targets: &'static [Target],
    /// What the floor took of CPU, ns a span, when it was measured beforehand on such a machine.
    pub floor_beforehand: Option<f64>,
    /// Whether it is in the quick form.
    pub quick: bool,
}

/// What is hoped for.
pub struct Target {
    pub subject: &'static str,
    pub figure: Figure,
    pub bound: Bound,
}

/// At most this, this many times what a peer takes, or this more.
#[derive(Clone, Copy)]
pub enum Bound {
    Times(f64, &'static str),
    Within(f64, &'static str),
}

const DEFAULT: Promise =
    Promise { bytes: true, enriched: true, events: Which::All, verdict_spans: Which::Problems };

const QUEUED: Setup = Setup { name: "queued", set: &["storage.ack=queued"], promise: DEFAULT };
const QUIET: Setup = Setup {
    name: "queued, no events or verdict spans",
    set: &[
        "storage.ack=queued",
        "processors.mcp_verdict.verdict_events=none",
        "processors.mcp_verdict.verdict_spans=none",
    ],
    promise: Promise { events: Which::None, verdict_spans: Which::None, ..DEFAULT },
};
const INTERVAL: Setup = Setup {
    name: "durable, sync: interval",
    set: &["storage.ack=durable", "storage.sync=interval"],
    promise: DEFAULT,
};
const ALWAYS: Setup = Setup {
    name: "durable, sync: always",
    set: &["storage.ack=durable", "storage.sync=always"],
    promise: DEFAULT,
};
/// Room for every call of a run, so that none leaves early as evicted, which is a revision.
const ROOMY: Setup = Setup {
    name: "queued, limits.memory 4 GiB",
    set: &["storage.ack=queued", "processors.mcp_verdict.limits.memory=4GiB"],
    promise: DEFAULT,
};
const FULL: Setup = Setup {
    name: "queued, enrich: full",
    set: &["storage.ack=queued", "processors.mcp_verdict.enrich=full"],
    promise: DEFAULT,
};

/// For checks before a call: what they are asked about is pinned.
pub const PINNED: Setup = Setup {
    name: "queued, pins",
    set: &["storage.ack=queued", "processors.mcp_verdict.contracts.mode=pin"],
    promise: DEFAULT,
};

use Subject::{Batch, Floor, GroupByTrace, Verdict};

const fn cpu(subject: &'static str, times: f64, peer: &'static str) -> Target {
    Target { subject, figure: Figure::Cpu, bound: Bound::Times(times, peer) }
}

pub const ROWS: &[Row] = &[
    Row {
        id: "plain",
        says: "pass-through, as fast as taken",
        flow: FLOW,
        subjects: &[Floor, Batch, Verdict(QUEUED), Verdict(INTERVAL), Verdict(ALWAYS)],
        targets: &[
            cpu("queued", 1.15, "floor"),
            cpu("queued", 0.25, "Collector, batch"),
            cpu("durable, sync: interval", 1.5, "floor"),
        ],
        floor_beforehand: Some(600.0),
        quick: true,
    },
    Row {
        id: "gzip",
        says: "the same with gzip in and out",
        flow: Flow { gzip: true, ..FLOW },
        subjects: &[Floor, Batch, Verdict(QUEUED)],
        targets: &[cpu("queued", 0.1, "Collector, batch")],
        floor_beforehand: None,
        quick: true,
    },
    Row {
        id: "http",
        says: "the same with HTTP/protobuf in",
        flow: Flow { http: true, ..FLOW },
        subjects: &[Batch, Verdict(QUEUED)],
        targets: &[cpu("queued", 0.25, "Collector, batch")],
        floor_beforehand: None,
        quick: false,
    },
    Row {
        id: "tenth",
        says: "10 % MCP, 90 % other",
        flow: Flow { load: Load::Tenth, pace: JUDGED, ..FLOW },
        subjects: &[Floor, Batch, Verdict(QUEUED)],
        targets: &[cpu("queued", 1.5, "floor")],
        floor_beforehand: None,
        quick: false,
    },
    Row {
        id: "judged",
        says: "only MCP spans: judged, held, enriched, all default outputs",
        flow: Flow { load: Load::Mcp, pace: JUDGED, ..FLOW },
        subjects: &[Floor, Batch, GroupByTrace, Verdict(QUEUED), Verdict(ROOMY), Verdict(QUIET)],
        targets: &[
            cpu("queued", 3.0, "floor"),
            cpu("queued", 0.1, "Collector, groupbytrace"),
            cpu("queued, no events or verdict spans", 2.0, "floor"),
        ],
        floor_beforehand: None,
        quick: true,
    },
    Row {
        id: "latency",
        says: "pass-through at 5,000 spans/s, 50 an export",
        flow: Flow { spans: 50, pace: Some(5_000), ..FLOW },
        subjects: &[Floor, Batch, Verdict(QUEUED)],
        targets: &[Target {
            subject: "queued",
            figure: Figure::DeliveredP99,
            bound: Bound::Within(2.0, "floor"),
        }],
        floor_beforehand: None,
        quick: false,
    },
];

/// How a target was met.
pub struct Outcome {
    pub says: String,
    /// None where a run that it needs counts for nothing.
    pub measured: Option<Spread>,
    pub met: bool,
}

impl Target {
    pub fn outcome(&self, all: &[Measured]) -> Outcome {
        let find = |name: &str| all.iter().find(|measured| measured.subject == name);
        let (what, own) = (self.figure.says(), find(self.subject));
        let ratio = |own: f64, peer: f64| own / peer;
        let difference = |own: f64, peer: f64| own - peer;
        let against = |peer, both: fn(f64, f64) -> f64| {
            own.zip(find(peer)).and_then(|(own, peer)| own.beside(peer, self.figure, both))
        };
        let (measured, most, bound) = match self.bound {
            Bound::Times(most, peer) => (against(peer, ratio), most, format!("× {peer}")),
            Bound::Within(most, peer) => (against(peer, difference), most, format!("above {peer}")),
        };
        Outcome {
            says: format!("{}: {what} ≤ {most} {bound}", self.subject),
            met: measured.is_some_and(|spread| spread.median <= most),
            measured,
        }
    }
}
