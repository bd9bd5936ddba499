//! What judgement reads: one request with everything correlation found for it. `judge` is a pure
//! function of these values; `correlate`, `catalog` and the engine fill them in.

use std::collections::BTreeSet;

use super::digest::Digest;
use super::fact::*;
use super::findings::Finding;
use super::ids::{Digest16, Name, Nanos, SpanId, SpanRef};
use super::rare::Rare;
use super::words::*;

/// One side of a request as its best record shows it; twins are merged in (most evidence wins).
#[derive(Clone, PartialEq, Debug)]
pub struct Half {
    pub at: SpanRef,
    /// The span above it, arrived or not: it names a chain whose asking half is unknown.
    pub parent: Option<SpanId>,
    /// The other records of this half: twins, wrappers, duplicates.
    pub twins: Vec<SpanId>,
    pub start: Nanos,
    pub end: Nanos,
    /// `false` while only a start record, or a child that outlived nothing, is known.
    pub ended: bool,
    /// OTLP status code of the best record: 0 unset, 1 ok, 2 error. Never evidence of success.
    pub status: u8,
    pub answer: Answer,
    pub call: Rare<CallFacts>,
}

/// The HTTP exchange that carried a request: the caller's own POSTs, the last one deciding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HttpSeen {
    /// 0 where none was recorded.
    pub status: u16,
    pub fault: Option<Fault>,
    pub end: Nanos,
    /// A POST of the caller's, or the HTTP server span that carries the answering half.
    pub by: End,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CancelSeen {
    pub at: Nanos,
    pub by: End,
}

/// One progress notification for the request's token.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ProgressSeen {
    pub at: Nanos,
    pub value: Option<f64>,
    pub span: SpanId,
}

/// One JSON-RPC request seen from one or both ends.
#[derive(Clone, PartialEq, Debug)]
pub struct Exchange {
    pub asking: Option<Half>,
    pub answering: Option<Half>,
    pub method: Name,
    pub tool: Option<Name>,
    pub request_id: Option<Name>,
    pub direction: Direction,
    pub era: Era,
    pub version: Option<Name>,
    pub transport: Option<Transport>,
    /// Session id of either half, wire provenance, legacy or unknown era only.
    pub session_id: Option<Name>,
    pub server: Name,
    pub agent: Option<Name>,
    pub agent_run: Option<Name>,
    pub http: Option<HttpSeen>,
    pub cancel: Option<CancelSeen>,
    /// In event time; those of its own token while the request was in flight or after.
    pub progress: Vec<ProgressSeen>,
    /// Placed on this request, rules' `when` applied. Sorted by time.
    pub effects: Vec<EffectFact>,
    pub outcomes: Vec<OutcomeFact>,
    /// Caller's knowledge, configuration, or trusted hints; `None` where nobody knows.
    pub read_only: Option<bool>,
    pub idempotent: Option<bool>,
    /// Absolute maximum and inactivity window: the call's own, else configured.
    pub deadline: Nanos,
    pub inactivity: Nanos,
    pub negotiation: Negotiation,
    /// Operation key, where a record of the request carries one.
    pub operation_key: Option<Digest16>,
    /// Found while joining: twins, duplicates, ambiguous keys, labels, secrets.
    pub findings: Vec<Finding>,
}

impl Exchange {
    /// The half a verdict is named after: the asking one, else the answering one.
    pub fn primary(&self) -> Option<&Half> {
        self.asking.as_ref().or(self.answering.as_ref())
    }

    pub fn halves(&self) -> impl Iterator<Item = &Half> {
        self.asking.iter().chain(self.answering.iter())
    }

    pub fn is_call(&self) -> bool {
        self.method.as_str() == "tools/call"
    }

    /// First start of either half; zero times lose.
    pub fn start(&self) -> Nanos {
        self.primary().map_or(0, |half| half.start)
    }

    /// Every span behind it, for findings.
    pub fn spans(&self) -> Vec<SpanId> {
        self.halves().map(|half| half.at.span).collect()
    }
}

/// What its scope knows when the request starts.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ScopeSeen {
    /// Keyed by a session id: only then are id findings raised.
    pub keyed_by_session: bool,
    /// Some request of the scope was answered before this one started.
    pub answered_before: bool,
    /// An `initialize` (legacy) answered with a supported version, and `initialized` was seen.
    pub negotiated: bool,
    /// The negotiation failed.
    pub negotiation_failed: bool,
    pub version: Option<Name>,
    /// A known version plus any successful answer in the scope: the weak proof of a session.
    pub answered_ever: bool,
    pub client_capabilities: Option<BTreeSet<Name>>,
    pub server_capabilities: Option<BTreeSet<Name>>,
    /// The scope's requests are known to record progress tokens.
    pub records_tokens: bool,
    /// A `server/discover` that failed was followed by an `initialize`.
    pub probe_superseded: bool,
}

/// Catalog facts at the call's start (judgment.md §6).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CatalogSeen {
    pub convergence: Option<Convergence>,
    pub contract: ContractSeen,
    /// The scope's complete listing, where one is in force: does it hold the called tool?
    pub tool_listed: Option<bool>,
    /// The visible structured content does not fit the visible output schema.
    pub output_mismatch: bool,
    /// Hashes of visible argument names that the current schema does not know.
    pub unknown_arguments: usize,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct ContractSeen {
    pub status: Option<ContractStatus>,
    pub digest: Option<Digest>,
    /// The reason the mode and `fail_on` make this red, if they do.
    pub red: Option<Reason>,
    /// Pointers of located changes, for the finding's detail.
    pub pointers: Vec<Name>,
    pub confidence: Option<Confidence>,
}

/// The operation a request belongs to, as seen from this request.
#[derive(Clone, PartialEq, Debug)]
pub struct OperationSeen {
    pub id: Option<Name>,
    /// From 1; input rounds are not attempts.
    pub attempt: u32,
    /// An input round that was resumed: the next round's span.
    pub resumed: bool,
    /// The agent's run that owns the request ended at this time.
    pub run_ended: Option<Nanos>,
    pub task: Option<TaskSeen>,
    /// Failures of earlier attempts by layer are counted by the engine; this one exceeds a budget.
    pub earlier_ran: bool,
}

impl Default for OperationSeen {
    fn default() -> Self {
        Self {
            id: None,
            attempt: 1,
            resumed: false,
            run_ended: None,
            task: None,
            earlier_ran: false,
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct TaskSeen {
    pub status: TaskStatus,
    pub at: Nanos,
    /// Inner `isError`, where a `tasks/get` or `tasks/result` shows it.
    pub is_error: Option<bool>,
    pub code: Option<i64>,
    pub result_seen: bool,
}

/// How a request ended, before its scope and operation are looked at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Ending {
    /// A JSON-RPC result: `isError` may be unknown.
    Result {
        is_error: Option<bool>,
    },
    /// A JSON-RPC error with its code, where known.
    Error {
        code: Option<i64>,
    },
    /// `input_required`, or -32042 in 2025-11-25.
    InputRequired,
    /// The answer is a task.
    Task,
    /// 401, 403 and their kin.
    Unauthorized {
        reason: Reason,
    },
    /// Failed before the request could run: not connected, TLS, 408, 429, 503, wrong URL.
    NotSent {
        reason: Reason,
    },
    /// Version or capability refused.
    Incompatible {
        reason: Reason,
    },
    SessionExpired,
    /// The caller refused it itself.
    RefusedLocally,
    TimedOut,
    Cancelled,
    /// Broke after sending: any 5xx but 503, reset, broken stream.
    Lost {
        reason: Reason,
    },
    /// Failed on the client and nobody says how.
    Unnamed,
    /// Ended, and nothing says with what: a client span that is merely UNSET.
    Unobserved,
    /// Not ended; the clocks decide.
    Open,
}

/// Everything a verdict is computed from.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// Event time of the scope: matters to open requests only.
    pub now: Nanos,
    /// Opaque, stable name of the scope.
    pub scope_name: Name,
    pub exchange: Exchange,
    pub scope: ScopeSeen,
    pub catalog: CatalogSeen,
    pub operation: OperationSeen,
    /// Required layers of this server and tool.
    pub requires: Vec<Layer>,
    pub clock_skew: Nanos,
}
