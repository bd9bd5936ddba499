//! One side of a request: the records of one end that are one half (twins, duplicates, a start
//! record and its span), merged so that most evidence wins.

use std::sync::Arc;

use crate::model::case::Half;
use crate::model::fact::*;
use crate::model::findings::Finding;
use crate::model::ids::{Digest16, Name, Nanos, SpanId, SpanRef};
use crate::model::rare::Rare;

#[derive(Clone, PartialEq, Debug)]
pub struct Side {
    /// Best first.
    pub facts: Vec<Arc<Fact>>,
    /// Merged from all of them.
    pub half: Arc<HalfFact>,
    pub end: End,
    pub ended: bool,
    pub start: Nanos,
    pub stop: Nanos,
    /// Findings that correlation raised on this side.
    pub findings: Vec<Finding>,
    /// Spans around it that are no request; their evidence came here.
    pub wrappers: Vec<SpanId>,
}

/// How much a record says; the best record names the half.
fn weight(fact: &Fact, half: &HalfFact) -> (bool, Rank, usize) {
    let answer = &half.answer;
    let told = [
        half.request_id.is_some(),
        half.tool.is_some(),
        half.session.as_ref().is_some_and(|(_, provenance)| provenance.counts()),
        half.version.is_some(),
        half.server_address.is_some(),
        answer.is_error.is_some(),
        answer.code.is_some(),
        answer.result_seen,
        answer.failure.is_some(),
        answer.http_status.is_some(),
        half.call.arguments.is_some(),
        fact.evidence.speaks(),
    ];
    let started = matches!(fact.says, Says::Started(_));
    (!started, half.rank, told.into_iter().filter(|told| *told).count())
}

impl Side {
    /// Merges records that were found to be one half. `facts` must not be empty and must all carry
    /// a half; records that do not are left out. `None` if nothing is left.
    pub fn merge(facts: impl IntoIterator<Item = Arc<Fact>>, end: End) -> Option<Self> {
        let mut facts: Vec<Arc<Fact>> = facts.into_iter().filter(|f| f.half().is_some()).collect();
        facts.sort_by(|a, b| {
            let key = |fact: &Fact| fact.half().map(|half| weight(fact, half));
            key(b).cmp(&key(a)).then_with(|| (a.start, a.id).cmp(&(b.start, b.id)))
        });
        facts.dedup_by_key(|fact| fact.id);
        let mut half = facts.first()?.half()?.clone();
        for other in facts.iter().skip(1).filter_map(|fact| fact.half()) {
            absorb(Arc::make_mut(&mut half), other);
        }
        let ended = facts.iter().any(|fact| matches!(fact.says, Says::Half(_)));
        let best = facts.first()?;
        let (start, stop) = (best.start, best.end);
        Some(Self {
            half,
            end,
            ended,
            start,
            stop,
            facts,
            findings: Vec::new(),
            wrappers: Vec::new(),
        })
    }

    /// The same half with more records.
    pub fn with(&self, facts: impl IntoIterator<Item = Arc<Fact>>) -> Self {
        let all = self.facts.iter().cloned().chain(facts);
        let mut side = Self::merge(all, self.end).unwrap_or_else(|| self.clone());
        side.findings = self.findings.clone();
        side.wrappers = self.wrappers.clone();
        side
    }

    pub fn best(&self) -> &Fact {
        &self.facts[0]
    }

    pub fn at(&self) -> SpanRef {
        self.best().id.at
    }

    pub fn process(&self) -> &Arc<Process> {
        &self.best().process
    }

    /// Ids of all its records, in this trace or not.
    pub fn spans(&self) -> Vec<SpanId> {
        let mut spans: Vec<SpanId> = self.facts.iter().map(|fact| fact.id.at.span).collect();
        spans.sort_unstable();
        spans.dedup();
        spans
    }

    pub fn tool(&self) -> Option<&Name> {
        self.half.tool.as_ref()
    }

    pub fn wire_session(&self) -> Option<&Name> {
        match &self.half.session {
            Some((id, provenance)) if provenance.counts() => Some(id),
            _ => None,
        }
    }

    pub fn operation_key(&self) -> Option<Digest16> {
        self.facts.iter().filter_map(|fact| fact.evidence.operation_key).min()
    }

    pub fn agent_run(&self) -> Option<&Name> {
        self.facts.iter().filter_map(|fact| fact.evidence.agent_run.as_ref()).min()
    }

    pub fn to_half(&self) -> Half {
        let best = self.best();
        let twins = self.spans().into_iter().filter(|span| *span != best.id.at.span).collect();
        Half {
            at: best.id.at,
            parent: best.parent,
            twins,
            start: self.start,
            end: self.stop,
            ended: self.ended,
            status: best.status,
            answer: self.half.answer.clone(),
            call: self.half.call.clone(),
        }
    }
}

fn fill<T: Clone>(into: &mut Option<T>, other: &Option<T>) {
    if into.is_none() {
        into.clone_from(other);
    }
}

/// Fills what `into` does not know from `other`; an observed failure is never unsaid.
pub(super) fn absorb(into: &mut HalfFact, other: &HalfFact) {
    fill(&mut into.tool, &other.tool);
    fill(&mut into.request_id, &other.request_id);
    let strength = |half: &HalfFact| half.session.as_ref().map(|(_, p)| std::cmp::Reverse(*p));
    if strength(into) < strength(other) {
        into.session.clone_from(&other.session);
    }
    fill(&mut into.version, &other.version);
    fill(&mut into.transport, &other.transport);
    fill(&mut into.server_address, &other.server_address);
    fill(&mut into.server_name, &other.server_name);
    absorb_list(&mut into.list, &other.list);
    absorb_negotiation(&mut into.negotiation, &other.negotiation);
    if into.direction == Direction::Either {
        into.direction = other.direction;
    }
    into.answer = together(&into.answer, &other.answer);
    absorb_call(&mut into.call, &other.call);
}

/// Each record may know another part of one page.
fn absorb_list(into: &mut Option<Box<ListFacts>>, other: &Option<Box<ListFacts>>) {
    let (Some(list), Some(more)) = (into.as_mut(), other) else { return fill(into, other) };
    list.headless &= more.headless;
    fill(&mut list.cursor, &more.cursor);
    fill(&mut list.next_cursor, &more.next_cursor);
    fill(&mut list.ttl, &more.ttl);
    fill(&mut list.discovered, &more.discovered);
    fill(&mut list.installed, &more.installed);
    fill(&mut list.tool_count, &more.tool_count);
    fill(&mut list.definitions, &more.definitions);
    if list.tools.is_empty() {
        list.tools.clone_from(&more.tools);
    }
}

fn absorb_negotiation(into: &mut Option<Box<Negotiation>>, other: &Option<Box<Negotiation>>) {
    let (Some(agreed), Some(more)) = (into.as_mut(), other) else { return fill(into, other) };
    fill(&mut agreed.requested_version, &more.requested_version);
    fill(&mut agreed.client_capabilities, &more.client_capabilities);
    fill(&mut agreed.server_capabilities, &more.server_capabilities);
    fill(&mut agreed.subscribed, &more.subscribed);
}

pub(super) fn absorb_call(into: &mut Rare<CallFacts>, other: &Rare<CallFacts>) {
    if other.is_blank() {
        return;
    }
    let (call, more): (&mut CallFacts, &CallFacts) = (into, other);
    fill(&mut call.read_only, &more.read_only);
    fill(&mut call.hinted_read_only, &more.hinted_read_only);
    fill(&mut call.idempotent, &more.idempotent);
    fill(&mut call.hinted_idempotent, &more.hinted_idempotent);
    fill(&mut call.deadline, &more.deadline);
    fill(&mut call.inactivity, &more.inactivity);
    fill(&mut call.progress_token, &more.progress_token);
    fill(&mut call.request_state, &more.request_state);
    fill(&mut call.next_request_state, &more.next_request_state);
    fill(&mut call.task_id, &more.task_id);
    fill(&mut call.task_status, &more.task_status);
    fill(&mut call.contract, &more.contract);
    fill(&mut call.arguments, &more.arguments);
    fill(&mut call.structured, &more.structured);
    fill(&mut call.operation_attempt, &more.operation_attempt);
    fill(&mut call.credential, &more.credential);
    fill(&mut call.required_scope, &more.required_scope);
    fill(&mut call.resource, &more.resource);
    fill(&mut call.agent_name, &more.agent_name);
    fill(&mut call.agent_run, &more.agent_run);
    fill(&mut call.auth_context, &more.auth_context);
}

/// What two records say of one answer.
pub fn together(one: &Answer, other: &Answer) -> Answer {
    let is_error = match (one.is_error, other.is_error) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (known, None) => known,
        (None, known) => known,
        (Some(false), Some(false)) => Some(false),
    };
    // "Something failed" gives way to a record that says what.
    let failure = match (one.failure, other.failure) {
        (Some(Failure::Unnamed) | None, Some(named)) => Some(named),
        (known, _) => known,
    };
    Answer {
        is_error,
        result_seen: one.result_seen || other.result_seen,
        code: one.code.or(other.code),
        http_status: one.http_status.or(other.http_status),
        failure,
        result_type: one.result_type.or(other.result_type),
        error_text: one.error_text || other.error_text,
        result: one.result.or(other.result),
    }
}
