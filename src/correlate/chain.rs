//! A chain: one request with everything that was joined to it, from one trace or from several.

use std::sync::Arc;

use super::carrier::Carrier;
use super::join::{How, Joined};
use super::process::Roles;
use super::side::{Side, absorb};
use super::trace::TraceRequest;
use crate::model::case::Half;
use crate::model::fact::*;
use crate::model::findings::{Code, Finding};
use crate::model::ids::{Digest16, Name, Nanos, SpanId, SpanRef, TraceId};
use crate::model::words::{Era, Transport};

#[derive(Clone, PartialEq, Debug)]
pub struct Chain {
    pub asking: Option<Arc<Side>>,
    pub answering: Option<Arc<Side>>,
    direction: Direction,
    named_by_parent: bool,
    pub carrier: Carrier,
    pub agent: Option<Name>,
    pub run_ended: Option<Nanos>,
    /// Records with effect or outcome facts found within the traces.
    pub evidence: Vec<Arc<Fact>>,
    pub findings: Vec<Finding>,
    /// Sorted.
    pub traces: Vec<TraceId>,
    /// A session id that its halves together show to be made up.
    pub disowned: Option<Name>,
}

/// First version without sessions and `initialize`.
const MODERN: &str = "2026-07-28";

/// The era a version belongs to; `None` for text that is no version.
pub fn era_of(version: &str) -> Option<Era> {
    let dated = version.len() == 10
        && version.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    dated.then_some(if version >= MODERN { Era::Modern } else { Era::Legacy })
}

impl Chain {
    /// Puts together the request that leads and those that joined it, in the order of `joined`.
    /// The roles of the processes settle the direction of what both ends may send; `made_up` tells
    /// whether other requests showed a process to have made up a session id.
    pub fn assemble(
        leader: &TraceRequest,
        members: &[(Joined, &TraceRequest)],
        roles_of: impl Fn(&Digest16) -> Roles,
        made_up: impl Fn(&Digest16, &Name) -> bool,
    ) -> Self {
        let mut chain = Self {
            asking: leader.pair.asking.clone(),
            answering: leader.pair.answering.clone(),
            direction: Direction::Either,
            named_by_parent: leader.named_by_parent,
            carrier: leader.carrier.clone(),
            agent: leader.agent.clone(),
            run_ended: leader.run_ended,
            evidence: leader.evidence.clone(),
            findings: Vec::new(),
            traces: vec![leader.key().trace],
            disowned: None,
        };
        chain.note_ambiguous(&leader.ambiguous);
        for (joined, member) in members {
            chain.take(*joined, member);
        }
        chain.take_told();
        chain.doubt_session(made_up);
        chain.direction = chain.settle_direction(roles_of);
        chain.note_session_change();
        let own = chain.own_findings();
        chain.findings.extend(own);
        chain.findings.sort();
        chain.findings.dedup();
        chain
    }

    fn take(&mut self, joined: Joined, member: &TraceRequest) {
        let merge =
            |mine: &mut Option<Arc<Side>>, more: &Option<Arc<Side>>| match (mine.as_mut(), more) {
                (Some(side), Some(more)) => *side = Arc::new(side.with(more.facts.iter().cloned())),
                (None, Some(more)) => *mine = Some(more.clone()),
                _ => {}
            };
        merge(&mut self.asking, &member.pair.asking);
        merge(&mut self.answering, &member.pair.answering);
        self.carrier.seen = self.carrier.seen.or(member.carrier.seen);
        self.carrier.over_http |= member.carrier.over_http;
        self.carrier.findings.extend(member.carrier.findings.iter().cloned());
        self.agent = self.agent.take().or_else(|| member.agent.clone());
        self.evidence.extend(member.evidence.iter().cloned());
        self.evidence.sort_by_key(|fact| fact.id);
        let trace = member.key().trace;
        if let Err(at) = self.traces.binary_search(&trace) {
            self.traces.insert(at, trace);
        }
        self.note_ambiguous(&member.ambiguous);
        if joined.how != How::Started {
            let spans = vec![joined.leader.span, joined.member.span];
            self.findings.push(Finding::new(Code::ContextNotPropagated, spans));
        }
    }

    /// What children, events and log records say of the request itself, to the side whose process
    /// said it.
    fn take_told(&mut self) {
        for fact in std::mem::take(&mut self.evidence) {
            if let Some(told) = &fact.evidence.request {
                let said_it = |side: &Side| side.process().key == fact.process.key;
                let side =
                    match (&mut self.asking, &mut self.answering) {
                        (Some(asking), Some(answering)) => {
                            if said_it(answering) && !said_it(asking) { answering } else { asking }
                        }
                        (Some(side), None) | (None, Some(side)) => side,
                        (None, None) => continue,
                    };
                // The other end answered after the caller had gone: nobody received that.
                let late = side.ended && fact.start > side.stop;
                if said_it(side) || !late {
                    absorb(Arc::make_mut(&mut Arc::make_mut(side).half), told);
                }
            }
            self.evidence.push(fact);
        }
    }

    /// A claimed session id is made up where the caller, recorded by the same instrumentation,
    /// carries none, or where another request showed that.
    fn doubt_session(&mut self, made_up: impl Fn(&Digest16, &Name) -> bool) {
        let Some(answering) = &mut self.answering else { return };
        let (scope, process) = (&answering.facts[0].scope, answering.facts[0].process.key);
        let Some((id, Provenance::Claimed)) = &answering.half.session else { return };
        let id = id.clone();
        let speaks = |fact: &Arc<Fact>| fact.scope == *scope && matches!(fact.says, Says::Half(_));
        let silent = self
            .asking
            .as_ref()
            .is_some_and(|asking| asking.half.session.is_none() && asking.facts.iter().any(speaks));
        if silent {
            self.disowned = Some(id.clone());
        }
        if silent || made_up(&process, &id) {
            let half = Arc::make_mut(&mut Arc::make_mut(answering).half);
            half.session = Some((id, Provenance::Synthetic));
        }
    }

    fn note_ambiguous(&mut self, spans: &[SpanId]) {
        if !spans.is_empty() {
            self.findings.push(Finding::new(Code::AmbiguousEvidence, spans.to_vec()));
        }
    }

    fn note_session_change(&mut self) {
        let (Some(asking), Some(answering)) = (&self.asking, &self.answering) else { return };
        let (Some(a), Some(b)) = (asking.wire_session(), answering.wire_session()) else { return };
        if a != b && self.era() != Era::Modern {
            let spans = vec![asking.at().span, answering.at().span];
            self.findings.push(Finding::new(Code::SessionIdChanged, spans));
        }
    }

    /// Findings that stand on its records, its sides and its carrier.
    fn own_findings(&self) -> Vec<Finding> {
        let sides = || self.asking.iter().chain(&self.answering);
        let records = sides().flat_map(|side| side.facts.iter().flat_map(|f| f.findings.clone()));
        let of_sides = sides().flat_map(|side| side.findings.clone());
        records.chain(of_sides).chain(self.carrier.findings.clone()).collect()
    }

    pub fn sides(&self) -> impl Iterator<Item = &Side> {
        self.asking.iter().chain(&self.answering).map(|side| &**side)
    }

    /// The answering half, without the span above it where that one names another request.
    pub fn answering_half(&self) -> Option<Half> {
        let half = self.answering.as_deref().map(Side::to_half)?;
        Some(Half { parent: half.parent.filter(|_| self.named_by_parent), ..half })
    }

    pub fn primary(&self) -> &Side {
        // Assembled from a request, which has at least one side.
        self.asking.as_ref().or(self.answering.as_ref()).expect("a chain has a side")
    }

    pub fn key(&self) -> SpanRef {
        self.primary().at()
    }

    pub fn method(&self) -> &Name {
        &self.primary().half.method
    }

    pub fn is_call(&self) -> bool {
        self.method().as_str() == "tools/call"
    }

    /// The called tool, by the shorter of two names where one carries a prefix.
    pub fn tool(&self) -> Option<&Name> {
        let names = self.sides().filter_map(|side| side.tool());
        names.min_by_key(|name| (name.len(), (*name).clone()))
    }

    pub fn request_id(&self) -> Option<&Name> {
        self.sides().find_map(|side| side.half.request_id.as_ref())
    }

    /// The answering half knows what was agreed; the asking one what it sent.
    pub fn version(&self) -> Option<&Name> {
        self.answering.iter().chain(&self.asking).find_map(|side| side.half.version.as_ref())
    }

    /// §2: from the version, else from `initialize` or a session id; else the scope may know.
    pub fn era(&self) -> Era {
        let versions = self.sides().filter_map(|side| side.half.version.as_ref());
        if let Some(era) = versions.filter_map(|version| era_of(version)).max() {
            return era;
        }
        let initialize = self.method().as_str() == "initialize";
        let session = self.sides().any(|side| side.wire_session().is_some());
        if initialize || session { Era::Legacy } else { Era::Unknown }
    }

    /// The wire's session id; a modern request has none, whatever its span says.
    pub fn session_id(&self) -> Option<&Name> {
        if self.era() == Era::Modern {
            return None;
        }
        self.sides().find_map(Side::wire_session)
    }

    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// The key of its operation: its halves', else what was recorded beside them.
    pub fn operation_key(&self) -> Option<Digest16> {
        let beside = || self.evidence.iter().filter_map(|fact| fact.evidence.operation_key).min();
        self.sides().filter_map(Side::operation_key).min().or_else(beside)
    }

    fn settle_direction(&self, roles_of: impl Fn(&Digest16) -> Roles) -> Direction {
        let mut known = self.sides().map(|side| side.half.direction);
        if let Some(direction) = known.find(|d| *d != Direction::Either) {
            return direction;
        }
        let only = |roles: Roles| roles.client != roles.server;
        let asking = self.asking.as_ref().map(|side| roles_of(&side.process().key));
        let answering = self.answering.as_ref().map(|side| roles_of(&side.process().key));
        match (asking.filter(|r| only(*r)), answering.filter(|r| only(*r))) {
            (Some(Roles { server: true, .. }), _) => Direction::ServerToClient,
            (Some(_), _) => Direction::ClientToServer,
            (None, Some(Roles { client: true, .. })) => Direction::ServerToClient,
            (None, Some(_)) => Direction::ClientToServer,
            (None, None) => Direction::Either,
        }
    }

    pub fn transport(&self) -> Option<Transport> {
        if self.carrier.over_http {
            return Some(Transport::Http);
        }
        self.sides().find_map(|side| side.half.transport)
    }

    /// The MCP client's and the MCP server's side, whoever asks.
    pub fn client(&self) -> Option<&Side> {
        match self.direction() {
            Direction::ServerToClient => self.answering.as_deref(),
            _ => self.asking.as_deref(),
        }
    }

    pub fn server(&self) -> Option<&Side> {
        match self.direction() {
            Direction::ServerToClient => self.asking.as_deref(),
            _ => self.answering.as_deref(),
        }
    }

    pub fn auth_context(&self) -> Option<Digest16> {
        self.sides().filter_map(|side| side.half.call.auth_context).min()
    }

    pub fn start(&self) -> Nanos {
        self.primary().start
    }

    /// When the asking end knew the answer, else when the answering end gave it.
    pub fn stop(&self) -> Nanos {
        self.primary().stop
    }

    pub fn spans(&self) -> Vec<SpanId> {
        self.sides().map(|side| side.at().span).collect()
    }
}
