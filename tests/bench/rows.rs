//! The one table of what is measured, and what it is held against.

use crate::figures::Figure;
use crate::payload::Load;
use crate::setups::{
    ALL_SPANS, ALWAYS, FULL, GZIP, INTERVAL, PROBLEM_EVENTS, QUEUED, QUIET, ROOMY, ZSTD,
};
use crate::subject::Subject::{self, Batch, Floor, GroupByTrace, Verdict};
use crate::targets::{Bound, Target};

/// One line of the benchmark.
pub struct Row {
    pub id: &'static str,
    pub says: &'static str,
    pub work: Work,
    pub targets: &'static [Target],
    /// What the floor took of CPU, ns a span, when it was measured beforehand on such a machine.
    pub floor_beforehand: Option<f64>,
    /// How many of its programs, from the first, are in the quick form.
    pub quick: usize,
    /// Rounds and seconds of the full form, where they are not as usual.
    pub fixed: Option<(usize, u64)>,
}

#[derive(Clone, Copy)]
pub enum Work {
    /// Spans through a program.
    Flow(Flow, &'static [Subject]),
    /// Memory of requests that wait for an answer, and of spans that wait for a verdict.
    Memory,
    /// What a call costs beside ever more live sessions.
    Live,
    /// A recorded file, judged, and beside it read by others.
    Replay,
    /// The program at rest.
    Rest,
}

/// A load, and how it travels.
#[derive(Clone, Copy)]
pub struct Flow {
    pub load: Load,
    /// an export
    pub spans: u64,
    pub pace: Pace,
    /// in and out
    pub gzip: bool,
    /// OTLP over HTTP in; out is gRPC always
    pub http: bool,
}

/// spans a second
#[derive(Clone, Copy)]
pub enum Pace {
    At(u64),
    /// As fast as they are taken; about so many, to reckon how many make up a time.
    Fast(u64),
}

impl Pace {
    pub fn about(self) -> u64 {
        match self {
            Pace::At(rate) | Pace::Fast(rate) => rate,
        }
    }
}

/// Exports before the timed ones.
pub const WARM: u64 = 20;
/// A rate at which judged work is compared: at full speed a hold mostly measures memory growth.
const JUDGED: Pace = Pace::At(60_000);
/// A floor that takes so many times what it took beforehand is a machine that is busy with other work.
pub const FLOOR_AT_MOST: f64 = 2.0;

/// Exports as the floor was measured beforehand.
const PLAIN: Flow =
    Flow { load: Load::Plain, spans: 500, pace: Pace::Fast(400_000), gzip: false, http: false };
const MCP: Flow = Flow { load: Load::Mcp, pace: JUDGED, ..PLAIN };

const ROW: Row = Row {
    id: "",
    says: "",
    work: Work::Rest,
    targets: &[],
    floor_beforehand: None,
    quick: 0,
    fixed: None,
};

pub const ROWS: &[Row] = &[
    Row {
        id: "plain",
        says: "pass-through, as fast as taken",
        work: Work::Flow(
            PLAIN,
            &[Floor, Batch, Verdict(QUEUED), Verdict(INTERVAL), Verdict(ALWAYS)],
        ),
        targets: &[
            Target::cpu("queued", 1.15, "floor"),
            Target::cpu("queued", 0.25, "Collector, batch"),
            Target::cpu("durable, sync: interval", 1.5, "floor"),
        ],
        floor_beforehand: Some(600.0),
        quick: 3,
        ..ROW
    },
    Row {
        id: "gzip",
        says: "pass-through with gzip in and out",
        work: Work::Flow(
            Flow { gzip: true, pace: Pace::Fast(100_000), ..PLAIN },
            &[Floor, Batch, Verdict(QUEUED)],
        ),
        targets: &[Target::cpu("queued", 0.1, "Collector, batch")],
        quick: 3,
        ..ROW
    },
    Row {
        id: "http",
        says: "pass-through with HTTP/protobuf in",
        work: Work::Flow(Flow { http: true, ..PLAIN }, &[Batch, Verdict(QUEUED)]),
        targets: &[Target::cpu("queued", 0.25, "Collector, batch")],
        ..ROW
    },
    Row {
        id: "tenth",
        says: "10 % MCP, 90 % other",
        work: Work::Flow(Flow { load: Load::Tenth, ..MCP }, &[Floor, Batch, Verdict(QUEUED)]),
        targets: &[Target::cpu("queued", 1.5, "floor")],
        ..ROW
    },
    Row {
        id: "judged",
        says: "only MCP spans: judged, held, enriched, all default outputs",
        work: Work::Flow(
            MCP,
            &[Floor, GroupByTrace, Verdict(QUEUED), Batch, Verdict(ROOMY), Verdict(QUIET)],
        ),
        targets: &[
            Target::cpu("queued", 3.0, "floor"),
            Target::cpu("queued", 0.1, "Collector, groupbytrace"),
            Target::cpu("queued, no events or verdict spans", 2.0, "floor"),
        ],
        quick: 3,
        ..ROW
    },
    Row {
        id: "outputs",
        says: "what each output setting makes of the bytes that came in",
        work: Work::Flow(
            Flow { pace: Pace::At(20_000), ..MCP },
            &[
                Verdict(QUEUED),
                Verdict(PROBLEM_EVENTS),
                Verdict(QUIET),
                Verdict(ALL_SPANS),
                Verdict(FULL),
                Verdict(GZIP),
                Verdict(ZSTD),
            ],
        ),
        fixed: Some((1, 2)),
        ..ROW
    },
    Row {
        id: "latency",
        says: "pass-through at 5,000 spans/s, 50 an export",
        work: Work::Flow(
            Flow { spans: 50, pace: Pace::At(5_000), ..PLAIN },
            &[Floor, Batch, Verdict(QUEUED)],
        ),
        targets: &[Target {
            subject: "queued",
            figure: Figure::DeliveredP99,
            bound: Bound::Within(2.0, "floor"),
        }],
        fixed: Some((5, 10)),
        ..ROW
    },
    Row {
        id: "overload",
        says: "more MCP spans than can be judged, for a minute; what is refused is sent again",
        work: Work::Flow(
            Flow { pace: Pace::Fast(50_000), ..MCP },
            &[GroupByTrace, Verdict(QUEUED)],
        ),
        targets: &[
            Target::at_most("queued", Figure::Swing, 1.2),
            Target::at_most("queued", Figure::Peak, 512.0),
        ],
        fixed: Some((1, 60)),
        ..ROW
    },
    Row {
        id: "memory",
        says: "memory of open requests and of held spans, limits.memory 32 GiB",
        work: Work::Memory,
        targets: &[
            Target::at_most("10,000 open requests", Figure::BytesEach, 1024.0),
            Target::at_most("100,000 open requests", Figure::BytesEach, 1024.0),
            Target::at_most("1,000,000 open requests", Figure::BytesEach, 1024.0),
            Target::at_most("held spans", Figure::BytesByte, 1.2),
        ],
        fixed: Some((1, 0)),
        ..ROW
    },
    Row {
        id: "live",
        says: "a call's five spans, scanned, folded and judged, beside live sessions",
        work: Work::Live,
        targets: &[Target::cpu("400,000 sessions", 1.2, "25,000 sessions")],
        fixed: Some((1, 0)),
        ..ROW
    },
    Row {
        id: "replay",
        says: "a recorded file of MCP spans",
        work: Work::Replay,
        targets: &[Target::cpu("replay", 0.2, "decoded, an insert a span")],
        ..ROW
    },
    Row {
        id: "rest",
        says: "the program at rest",
        work: Work::Rest,
        targets: &[
            Target::at_most("mcp-verdict", Figure::Idle, 20.0),
            Target::at_most("mcp-verdict", Figure::Binary, 20.0),
            Target::at_most("mcp-verdict", Figure::Ready, 100.0),
        ],
        ..ROW
    },
];
