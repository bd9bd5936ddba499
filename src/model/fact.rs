//! Facts: what one span or log record says, in the words of MCP, whatever dialect it was written in
//! (judgment.md §3). `normalise` makes them; `correlate` joins them. A fact is immutable and is
//! named by what it says, so that adding it twice is adding it once.
//!
//! No content stands in a fact: names are capped, arguments and results are hashes, definitions are
//! kept once, by digest, apart from everything that is printed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use super::content::{Arguments, Structured};
pub use super::digest::Definitions;
use super::digest::Digest;
pub use super::evidence::{EffectFact, Evidence, Origin, OutcomeFact};
use super::findings::Finding;
use super::ids::{Digest16, Name, Nanos, SpanId, SpanRef, TraceId};
use super::rare::Rare;
use super::words::*;

/// Which signal a fact came in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Signal {
    Span,
    Log,
}

/// A fact's name: equal names mean equal facts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct FactId {
    pub signal: Signal,
    pub at: SpanRef,
    pub digest: Digest16,
}

/// The process (OTLP resource) that emitted something.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Process {
    /// Over service name and instance or process id where there is one, else all attributes.
    pub key: Digest16,
    /// `service.name`.
    pub service: Option<Name>,
    /// Whether an instance or process id told this process from its twins.
    pub distinct: bool,
}

/// What every span leaves, MCP or not: enough for ancestry and for the HTTP below a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Bone {
    pub at: SpanRef,
    pub parent: Option<SpanId>,
    pub process: Arc<Process>,
    pub start: Nanos,
    pub end: Nanos,
    /// OTLP SpanKind number; 0 unspecified, 1 internal, 2 server, 3 client, 4 producer, 5 consumer.
    pub kind: u8,
    /// OTLP status code number; 0 unset, 1 ok, 2 error.
    pub status: u8,
    pub http: Option<Http>,
}

/// The HTTP side of a span: of its own attributes, or of a log record with a status.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct Http {
    /// 0 where none was recorded.
    pub status: u16,
    /// A POST that may carry an MCP request: not `/.well-known/`, `/token`, `/register`,
    /// `/authorize`. GET streams and DELETE are `false`.
    pub carries: bool,
    pub fault: Option<Fault>,
}

/// How an HTTP exchange or a connection broke, where that is said.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Fault {
    /// Refused, no route, DNS: nothing was sent.
    NotConnected,
    Tls,
    /// Reset, closed, broken stream, after sending.
    Lost,
    Timeout,
    Cancelled,
}

/// Everything one span or log record says that matters, beyond its bone.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Fact {
    pub id: FactId,
    pub process: Arc<Process>,
    /// Instrumentation scope (library) name.
    pub scope: Name,
    pub parent: Option<SpanId>,
    /// OTLP SpanKind number; 0 for log records.
    pub kind: u8,
    pub status: u8,
    /// A log record's time is both.
    pub start: Nanos,
    pub end: Nanos,
    /// Spans this one links to, in any trace.
    pub links: Vec<SpanRef>,
    pub sampling: Sampling,
    pub says: Says,
    pub evidence: Rare<Evidence>,
    /// Defects that one record alone shows: secrets, ambiguous keys, bad times.
    pub findings: Vec<Finding>,
}

/// What is known of sampling from flags and tracestate (judgment.md §7, `sampled_out`).
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct Sampling {
    /// OTLP `flags`, trace flag bit 0.
    pub sampled_bit: bool,
    /// OTLP `flags`, bit 8 (context-has-is-remote): the SDK records flags at all.
    pub has_flags: bool,
    /// tracestate `ot=` with `rv` below `th`: this trace was not meant to be kept.
    pub below_threshold: bool,
}

/// What a record stands for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Says {
    /// One half of a JSON-RPC request.
    Half(Arc<HalfFact>),
    /// A request has begun; same contents as the half will have, without an end.
    Started(Arc<HalfFact>),
    /// A JSON-RPC notification.
    Notification(Box<Notification>),
    /// A span that names the agent of what is below it. The end of one that is a `run`
    /// (`invoke_agent`) ends the run.
    Agent { name: Option<Name>, run: bool },
    /// A model span that shows which tools the model was offered.
    Model { tools: Arc<Definitions> },
    /// A connection (`mcp.client.session`, `serve_inner`): holds a session together and may be the
    /// only place where a failed connect is seen.
    Connection(Arc<HalfFact>),
    /// A framework's tool span without a word of MCP: what its evidence says of an answer is that
    /// of the last call of the same tool below it, if there is one.
    Tool,
    /// HTTP seen in a log record, or other support without a half of its own.
    Http(Http),
    /// Only evidence attributes or rule matches.
    Evidence,
}

/// Which end of the request a record speaks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum End {
    Asking,
    Answering,
    Unknown,
}

/// Who sends a request: ids of the two directions do not mix.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Direction {
    ClientToServer,
    ServerToClient,
    /// `ping` and the like, until the process roles say which.
    Either,
}

/// How far a session id can be trusted (dialects.md §3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Provenance {
    /// From the wire.
    Wire,
    /// The answering end's word alone, from an instrumentation whose asking end shows every id that
    /// is on the wire: made up, where that end shows none.
    Claimed,
    /// Made up by an instrumentation: keys at most the half that carries it.
    Synthetic,
}

impl Provenance {
    /// Whether the id is the wire's, as far as this half tells.
    pub fn counts(self) -> bool {
        self != Self::Synthetic
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HalfFact {
    pub end: End,
    pub direction: Direction,
    /// JSON-RPC method, e.g. `tools/call`.
    pub method: Name,
    /// Tool name as recorded; may carry a server prefix in some dialects.
    pub tool: Option<Name>,
    /// As the wire gave it, as text. `None` where the dialect has none.
    pub request_id: Option<Name>,
    pub session: Option<(Name, Provenance)>,
    pub version: Option<Name>,
    pub transport: Option<Transport>,
    /// `server.address[:port]` on the asking half.
    pub server_address: Option<Name>,
    /// `session.server_name`, `mcp.server.name`.
    pub server_name: Option<Name>,
    /// Whether the record is the wire's own (an SDK, an MCP instrumentation) or a framework's span
    /// around it. A framework's span is a request only where nothing below it is.
    pub rank: Rank,
    pub answer: Answer,
    pub call: Rare<CallFacts>,
    pub list: Option<Box<ListFacts>>,
    pub negotiation: Option<Box<Negotiation>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Rank {
    Framework,
    Wire,
}

/// What one half says of the answer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    /// `isError` of the tool's result, where it was observable.
    pub is_error: Option<bool>,
    /// A JSON-RPC result is evident: content, output, the dialect's own OK.
    pub result_seen: bool,
    pub code: Option<i64>,
    pub http_status: Option<u16>,
    pub failure: Option<Failure>,
    pub result_type: Option<ResultType>,
    /// `result_text_contradicts_flag`: the text begins like an error.
    pub error_text: bool,
    /// Digest of what a tool gave, where all of it was shown: by it results are told apart.
    pub result: Option<Digest16>,
}

/// A failure by the name its dialect gave it, in our words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Failure {
    Timeout,
    Cancelled,
    /// The answering half saw its client go away.
    ClientDisconnected,
    NotConnected,
    Tls,
    ConnectionLost,
    /// "Session not found", "Session terminated", or HTTP 404 where the text says so.
    SessionExpired,
    InvalidToken,
    InsufficientScope,
    Forbidden,
    UnsupportedVersion,
    MissingCapability,
    /// Arguments refused before anything was sent.
    RefusedLocally,
    /// A JSON-RPC error came back and its code was not recorded.
    Protocol,
    /// The handler raised: the tool's own exception, seen on the answering half.
    HandlerRaised,
    /// The span failed and nothing says how.
    Unnamed,
}

/// Call-side evidence attributes (judgment.md §3).
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct CallFacts {
    pub read_only: Option<bool>,
    /// Hints a server gave of itself: they count only where configured.
    pub hinted_read_only: Option<bool>,
    pub idempotent: Option<bool>,
    pub hinted_idempotent: Option<bool>,
    pub deadline: Option<Nanos>,
    pub inactivity: Option<Nanos>,
    pub progress_token: Option<Name>,
    pub request_state: Option<Digest16>,
    pub next_request_state: Option<Digest16>,
    pub task_id: Option<Name>,
    pub task_status: Option<TaskStatus>,
    pub contract: Option<Digest>,
    pub arguments: Option<Arguments>,
    /// Structured content of the result, to compare with an output schema. Never printed.
    pub structured: Option<Arc<Structured>>,
    pub operation_attempt: Option<u32>,
    pub credential: Option<Name>,
    pub required_scope: Option<Name>,
    pub resource: Option<Name>,
    pub agent_name: Option<Name>,
    pub agent_run: Option<Name>,
    /// A server's record that tells the server's own exception from the protocol's.
    pub auth_context: Option<Digest16>,
}

/// What a `tools/list` half says of its page.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ListFacts {
    pub cursor: Option<Digest16>,
    /// Only the answer is shown: whether a cursor was sent is not known.
    pub headless: bool,
    /// `Some(None)`: it is known that there was no next cursor.
    pub next_cursor: Option<Option<Digest16>>,
    pub ttl: Option<Nanos>,
    /// `name=digest` of each tool on the page.
    pub tools: Vec<(Name, Digest)>,
    pub discovered: Option<Digest>,
    pub installed: Option<Digest>,
    pub tool_count: Option<u64>,
    pub definitions: Option<Arc<Definitions>>,
}

impl ListFacts {
    /// Whether anything is said of where the page stands in its traversal.
    pub fn paged(&self) -> bool {
        self.cursor.is_some() || self.next_cursor.is_some()
    }
}

/// What an `initialize`, `server/discover` or `subscriptions/listen` half says.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Negotiation {
    pub requested_version: Option<Name>,
    pub client_capabilities: Option<Vec<Name>>,
    pub server_capabilities: Option<Vec<Name>>,
    pub subscribed: Option<Vec<Name>>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Notification {
    pub method: Name,
    pub session: Option<(Name, Provenance)>,
    pub version: Option<Name>,
    pub end: End,
    pub cancelled_request_id: Option<Name>,
    pub progress: Option<Progress>,
    pub task_id: Option<Name>,
    pub task_status: Option<TaskStatus>,
    pub subscribed: Option<Vec<Name>>,
    pub auth_context: Option<Digest16>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Progress {
    pub token: Name,
    pub value: Option<f64>,
    pub total: Option<f64>,
}

impl Fact {
    pub fn trace(&self) -> TraceId {
        self.id.at.trace
    }

    /// The half this record is, started or done.
    pub fn half(&self) -> Option<&Arc<HalfFact>> {
        match &self.says {
            Says::Half(half) | Says::Started(half) => Some(half),
            _ => None,
        }
    }

    /// Tool definitions that the record shows: of a listing, or as a model was offered them.
    pub fn definitions(&self) -> Option<&Arc<Definitions>> {
        match &self.says {
            Says::Model { tools } => Some(tools),
            _ => self.half()?.list.as_ref()?.definitions.as_ref(),
        }
    }
}

/// What one export yields, in the order of its items.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sighting {
    /// One for every span of the export, MCP or not.
    pub bones: Vec<Bone>,
    pub facts: Vec<Arc<Fact>>,
    /// Spans that wait for their verdict; everything else of the export leaves at once.
    pub held: Vec<HeldSpan>,
}

/// A span to hold, by its number among the export's spans (from 0).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldSpan {
    pub at: SpanRef,
    pub index: usize,
}
