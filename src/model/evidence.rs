//! Evidence on effects and outcomes (judgment.md §3): what a record says of them, and the keys by
//! which it finds the request it speaks of.

use serde::{Deserialize, Serialize};

use super::fact::HalfFact;
use super::ids::{Digest16, Name, Nanos};
use super::words::*;

/// Effect and outcome facts, and the keys by which they find their request.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Evidence {
    pub effects: Vec<EffectFact>,
    pub outcomes: Vec<OutcomeFact>,
    pub operation_key: Option<Digest16>,
    /// (session id, request id) on a record that is no half itself.
    pub session: Option<Name>,
    pub request_id: Option<Name>,
    pub agent_run: Option<Name>,
    /// What a child, a linked span or a log record says of the request it belongs to: merged into
    /// the half that the fact attaches to. Its method is empty where the record names none.
    pub request: Option<Box<HalfFact>>,
}

impl Evidence {
    /// Whether it says something of a request that its record is not itself.
    pub fn speaks(&self) -> bool {
        !self.effects.is_empty() || !self.outcomes.is_empty() || self.request.is_some()
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EffectFact {
    pub status: Effect,
    /// When the destination was looked at; else the record's or event's time, else the span's end.
    pub time: Nanos,
    pub from: Origin,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OutcomeFact {
    pub status: OutcomeStatus,
    pub method: Option<OutcomeMethod>,
    pub time: Nanos,
    pub from: Origin,
}

/// Where an effect or outcome fact came from: an attribute, or a configured rule. A rule's fact
/// speaks only of calls that its `when` admits, chosen after the call is (judgment.md §3(d)).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Origin {
    Attribute,
    /// Index into `Policy::evidence`.
    Rule(u16),
}
