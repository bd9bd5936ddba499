//! What one verdict rests on. Nobody keeps it for every chain: who asks waits for the engine's next
//! round, which answers a few such questions and no more.
//!
//! Promises: no content; a question costs the engine one chain's judgement, once a round a few of
//! them at most; one that cannot be answered soon has no answer.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::oneshot;

use crate::model::ids::{Digest16, Name, Nanos, SpanId, TraceId};
use crate::model::words::{FailureLayer, Reason, State};
use crate::proto;

/// Behind one verdict.
#[derive(Clone, Debug, Serialize)]
pub struct Evidence {
    /// Every record, the asking half first.
    pub facts: Vec<Source>,
    /// What was found beside the records themselves.
    pub beside: Vec<String>,
    /// What was decided, in order, and by which rule.
    pub judgement: Vec<String>,
    /// By itself, where other attempts of its operation decide.
    pub alone: Option<State>,
    pub changes: Vec<Change>,
    pub clocks: Clocks,
}

/// One record, and what it says.
#[derive(Clone, Debug, Serialize)]
pub struct Source {
    pub role: &'static str,
    pub source: &'static str,
    pub trace_id: TraceId,
    pub span_id: SpanId,
    pub service: Option<Name>,
    pub instrumentation_scope: Name,
    /// Unix nanoseconds by its own clock, as all times of records.
    pub start_time: String,
    pub end_time: String,
    pub says: Vec<String>,
}

/// Attributes that were not recorded, and what the verdict would be with them.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    pub attributes: BTreeMap<&'static str, &'static str>,
    pub state: State,
    pub reason: Option<Reason>,
    pub first_failed_layer: Option<FailureLayer>,
}

/// In force for the request, in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Clocks {
    pub deadline: Nanos,
    pub inactivity: Nanos,
}

/// Who waits for what.
#[derive(Debug, Default)]
pub struct Questions(Mutex<VecDeque<Question>>);

/// One chain that somebody asks about.
#[derive(Debug)]
pub struct Question {
    pub chain: Digest16,
    answer: oneshot::Sender<Option<Evidence>>,
}

/// Questions that may wait, those answered in a round, and how long an answer is waited for.
const WAITING: usize = 64;
const A_ROUND: usize = 8;
const PATIENCE: Duration = Duration::from_secs(1);

impl Question {
    pub fn answer(self, evidence: Option<Evidence>) {
        // Who asked may have stopped waiting.
        let _ = self.answer.send(evidence);
    }
}

impl Questions {
    /// What a chain's verdict rests on; `None` once that is forgotten, and when too many ask.
    pub async fn ask(&self, chain: Digest16) -> Option<Evidence> {
        let (answer, answered) = oneshot::channel();
        {
            let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.len() >= WAITING {
                return None;
            }
            waiting.push_back(Question { chain, answer });
        }
        tokio::time::timeout(PATIENCE, answered).await.ok()?.ok().flatten()
    }

    /// Those of one round; who has stopped waiting is left out.
    pub fn take(&self) -> Vec<Question> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|question| !question.answer.is_closed());
        let some = waiting.len().min(A_ROUND);
        waiting.drain(..some).collect()
    }
}

impl From<Evidence> for proto::EvidenceChain {
    fn from(evidence: Evidence) -> Self {
        proto::EvidenceChain {
            verdict: None,
            facts: evidence.facts.into_iter().map(proto::Fact::from).collect(),
            judgement: evidence.judgement,
            beside: evidence.beside,
            changes: evidence.changes.into_iter().map(proto::WhatIf::from).collect(),
            alone: evidence.alone.map(|state| state.to_string()),
            deadline: evidence.clocks.deadline,
            inactivity: evidence.clocks.inactivity,
        }
    }
}

impl From<Source> for proto::Fact {
    fn from(source: Source) -> Self {
        proto::Fact {
            role: source.role.to_owned(),
            source: source.source.to_owned(),
            trace_id: source.trace_id.to_string(),
            span_id: source.span_id.to_string(),
            instrumentation_scope: source.instrumentation_scope.to_string(),
            says: source.says,
            service: source.service.map(|service| service.to_string()),
            start_time: source.start_time.parse().unwrap_or_default(),
            end_time: source.end_time.parse().unwrap_or_default(),
        }
    }
}

impl From<Change> for proto::WhatIf {
    fn from(change: Change) -> Self {
        let text = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        proto::WhatIf {
            attributes: change.attributes.into_iter().map(text).collect(),
            state: change.state.to_string(),
            reason: change.reason.map(|reason| reason.to_string()),
            first_failed_layer: change.first_failed_layer.map(|layer| layer.to_string()),
        }
    }
}
