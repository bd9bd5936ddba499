//! The records that leave the engine (judgment.md §8): printed by `replay --format json` one JSON
//! object a line, in the order of the fields here; the same message stands in `proto/`.
//! Absent values are `null`. Times are decimal strings of Unix nanoseconds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

use super::findings::Finding;
use super::ids::{Digest16, Name, Nanos, SpanId, SpanRef, TraceId};
use super::words::*;

fn time<S: Serializer>(nanos: &Nanos, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(nanos)
}

fn time_or_null<S: Serializer>(nanos: &Option<Nanos>, s: S) -> Result<S::Ok, S::Error> {
    match nanos {
        Some(nanos) => s.collect_str(nanos),
        None => s.serialize_none(),
    }
}

/// One record, tagged by its kind.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    Verdict(Box<Verdict>),
    Session(Session),
    ContractDrift(Drift),
    Incident(Incident),
    Summary(Summary),
}

/// Rungs of the health contract.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Layers {
    pub session: Rung,
    pub catalog: Rung,
    pub request: Rung,
    pub effect: Rung,
    pub outcome: Rung,
}

impl Layers {
    pub fn get(&self, layer: Layer) -> Rung {
        match layer {
            Layer::Session => self.session,
            Layer::Catalog => self.catalog,
            Layer::Request => self.request,
            Layer::Effect => self.effect,
            Layer::Outcome => self.outcome,
        }
    }
}

/// Rungs of the failure ladder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FailureLayers {
    pub transport: Rung,
    pub protocol: Rung,
    pub authority: Rung,
    pub execution: Rung,
    pub outcome: Rung,
}

impl FailureLayers {
    pub fn get(&self, layer: FailureLayer) -> Rung {
        match layer {
            FailureLayer::Transport => self.transport,
            FailureLayer::Protocol => self.protocol,
            FailureLayer::Authority => self.authority,
            FailureLayer::Execution => self.execution,
            FailureLayer::Outcome => self.outcome,
        }
    }
}

/// Status is `null` for methods without a contract (everything but `tools/call`).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Contract {
    pub status: Option<ContractStatus>,
    pub digest: Option<Name>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Outcome {
    pub status: Option<OutcomeStatus>,
    pub method: Option<OutcomeMethod>,
}

/// The conclusion on a chain.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Verdict {
    pub id: Digest16,
    /// From 1. A late fact that changes any other field makes the next one.
    pub revision: u32,
    pub supersedes: Option<u32>,
    pub scope: Name,
    pub session_id: Option<Name>,
    pub era: Era,
    pub protocol_version: Option<Name>,
    pub transport: Option<Transport>,
    pub agent: Option<Name>,
    pub server: Name,
    pub method: Name,
    pub tool: Option<Name>,
    pub request_id: Option<Name>,
    pub operation_id: Option<Name>,
    pub attempt: u32,
    pub state: State,
    pub reason: Option<Reason>,
    pub lifecycle: Lifecycle,
    pub layers: Layers,
    pub failure_layers: FailureLayers,
    pub first_failed_layer: Option<FailureLayer>,
    pub convergence: Option<Convergence>,
    pub contract: Contract,
    pub effect: Option<Effect>,
    pub outcome: Outcome,
    pub confidence: Confidence,
    pub findings: Vec<Finding>,
    pub next_step: NextStep,
    pub owner: Owner,
    pub retry: Retry,
    /// `null` while only a record without span context is known.
    pub trace_id: Option<TraceId>,
    pub client_span_id: Option<SpanId>,
    pub server_span_id: Option<SpanId>,
    #[serde(serialize_with = "time")]
    pub start_time: Nanos,
    #[serde(serialize_with = "time_or_null")]
    pub end_time: Option<Nanos>,
    /// Newest time of any evidence the verdict rests on.
    #[serde(serialize_with = "time")]
    pub evidence_time: Nanos,
    /// The operator's row: on events, not printed.
    #[serde(skip)]
    pub operator: OperatorRow,
}

/// §8.2: what an event says beyond the printed record.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct OperatorRow {
    pub impact: Option<Impact>,
    pub required_scope: Option<Name>,
    pub agent_run: Option<Name>,
    pub owner_contact: Option<String>,
    /// §8: the surviving chain's id where this one was merged away.
    pub merged_into: Option<Digest16>,
    /// Which half's resource and span the event names: the asking one, else the answering one.
    pub span: SpanRef,
    /// The answering half where it stands in another trace than `span`.
    pub answering: Option<SpanRef>,
    /// What the first failed rung of the failure ladder says: incidents go by it, even where the
    /// state speaks of something else.
    pub failure: Option<FailureRow>,
}

/// Why a rung of the failure ladder failed, and whose it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct FailureRow {
    pub layer: FailureLayer,
    pub reason: Option<Reason>,
    pub owner: Owner,
    pub next_step: NextStep,
}

/// Names a record by what it says. Records are plain data: writing them to memory cannot fail.
pub fn digest_of(record: &impl Serialize) -> Digest16 {
    Digest16::of(&[&serde_json::to_vec(record).unwrap_or_default()])
}

impl Verdict {
    /// An answer that carries a JSON-RPC result came to its caller: `isError` results, questions to
    /// a person and tasks included. A result that was discarded or lost on its way is none.
    pub fn protocol_success(&self) -> bool {
        let came = matches!(
            self.lifecycle,
            Lifecycle::Complete | Lifecycle::Open | Lifecycle::AwaitingInput
        );
        came && self.failure_layers.protocol == Rung::Passed
    }

    pub fn verified_success(&self) -> bool {
        self.outcome.status == Some(OutcomeStatus::Verified)
    }

    /// Names all that it says, its revision too.
    pub fn digest(&self) -> Digest16 {
        digest_of(&(self, &self.operator))
    }

    /// Whether two revisions say the same: everything but `revision` and `supersedes`.
    pub fn same_as(&self, other: &Self) -> bool {
        let mut twin = self.clone();
        (twin.revision, twin.supersedes) = (other.revision, other.supersedes);
        twin == *other
    }
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Session {
    pub scope: Name,
    pub session_id: Option<Name>,
    pub era: Era,
    pub protocol_version: Option<Name>,
    /// The session layer.
    pub state: Rung,
    pub convergence: Convergence,
    pub discovered_digest: Option<Name>,
    pub installed_digest: Option<Name>,
    pub tool_count: Option<u64>,
    pub pages: u64,
    pub requests: u64,
    pub findings: Vec<Finding>,
    /// First start in the scope: the sort key, not printed.
    #[serde(skip)]
    pub first_start: Nanos,
    #[serde(skip)]
    pub span: SpanRef,
}

/// One located change of a contract. Pointers are JSON pointers into the definition.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Change {
    pub pointer: Name,
    pub kind: Name,
    pub grade: Grade,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Drift {
    pub server: Name,
    pub tool: Name,
    pub grade: Grade,
    pub scheme: Name,
    pub old_digest: Name,
    /// `null` where the tool was removed.
    pub new_digest: Option<Name>,
    pub changes: Vec<Change>,
    pub confidence: Confidence,
    #[serde(serialize_with = "time")]
    pub first_seen: Nanos,
    #[serde(skip)]
    pub span: SpanRef,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Incident {
    /// A rung of either ladder.
    pub layer: Name,
    pub reason: Reason,
    pub server: Name,
    pub discriminator: Option<Name>,
    pub status: IncidentStatus,
    pub count: u64,
    pub agents: Vec<Name>,
    pub tools: Vec<Name>,
    #[serde(serialize_with = "time")]
    pub first_seen: Nanos,
    #[serde(serialize_with = "time")]
    pub last_seen: Nanos,
    #[serde(serialize_with = "time_or_null")]
    pub resolved_at: Option<Nanos>,
    pub owner: Owner,
    pub next_step: NextStep,
    #[serde(skip)]
    pub span: SpanRef,
    /// Its tool, where it has one only and that is no name that a model came up with.
    #[serde(skip)]
    pub named_tool: Option<Name>,
    /// The chains without which it would not be what it is: its last failure, and while it is
    /// recovering what passed first after that.
    #[serde(skip)]
    pub rests_on: Vec<Digest16>,
}

/// Over `tools/call`; superseded attempts are left out. Rates are `null` without an attempt.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Summary {
    pub attempts: u64,
    pub protocol_success: u64,
    pub verified_success: u64,
    #[serde(serialize_with = "rate")]
    pub protocol_success_rate: Option<f64>,
    #[serde(serialize_with = "rate")]
    pub verified_success_rate: Option<f64>,
    pub states: BTreeMap<State, u64>,
    pub first_failed_layers: BTreeMap<FailureLayer, u64>,
    pub incidents: u64,
}

fn rate<S: Serializer>(rate: &Option<f64>, s: S) -> Result<S::Ok, S::Error> {
    match rate {
        Some(whole) if whole.fract() == 0.0 => s.serialize_u64(*whole as u64),
        Some(rate) => s.serialize_f64(*rate),
        None => s.serialize_none(),
    }
}
