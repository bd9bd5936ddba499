//! Everything one trace says by itself: its requests with their carriers and agents, the
//! notifications, the evidence that finds its call here and the evidence that must look elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ancestry::{Ancestry, Bones};
use super::carrier::{Carrier, HttpLogs, carrier};
use super::halves::{group, same_tool};
use super::pairs::{Pair, pair};
use super::placing::{self, Placement};
use super::process::Roles;
use crate::model::fact::*;
use crate::model::ids::{Digest16, Name, Nanos, SpanId, SpanRef};

/// A request within its trace.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceRequest {
    pub pair: Pair,
    pub carrier: Carrier,
    pub agent: Option<Name>,
    /// End of the nearest agent run above.
    pub run_ended: Option<Nanos>,
    /// Records with effect or outcome facts that belong here.
    pub evidence: Vec<Arc<Fact>>,
    /// Records that fit this request and another one.
    pub ambiguous: Vec<SpanId>,
    /// An answering half without anything above it.
    pub root: bool,
    /// Only the answering half is known, and the span above it is nobody else's: the asking half
    /// that has not come, whose name the request may bear.
    pub named_by_parent: bool,
}

impl TraceRequest {
    /// What the request is named by until halves join across traces.
    pub fn key(&self) -> SpanRef {
        let side = self.pair.asking.as_ref().or(self.pair.answering.as_ref());
        side.map_or(SpanRef::default(), |side| side.at())
    }
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct TraceView {
    pub requests: Vec<TraceRequest>,
    /// Request by span: halves, twins and wrappers.
    pub owner: BTreeMap<SpanId, usize>,
    /// Notifications, with the request they stand under.
    pub notes: Vec<(Arc<Fact>, Option<usize>)>,
    /// Connection spans: they hold a session together.
    pub connections: Vec<Arc<Fact>>,
    /// What the model was offered, when its span ended.
    pub models: Vec<(Nanos, Arc<Definitions>)>,
    /// Evidence without a call in this trace.
    pub unplaced: Vec<Arc<Fact>>,
    /// Held spans that are no request.
    pub idle: BTreeSet<SpanId>,
}

pub struct TraceInput<'a> {
    pub bones: &'a Bones,
    /// Sorted by id.
    pub facts: &'a [Arc<Fact>],
    pub roles: &'a dyn Fn(&Digest16) -> Roles,
    pub skew: Nanos,
}

pub fn view(input: &TraceInput<'_>) -> TraceView {
    let tree = Ancestry::new(input.bones);
    let end_of = |fact: &Fact, half: &HalfFact| match half.end {
        End::Unknown => (input.roles)(&fact.process.key).end(half.direction),
        known => known,
    };
    let grouped = group(input.facts, &tree, end_of, input.skew);
    let halves: BTreeSet<SpanId> = grouped.sides.iter().flat_map(|side| side.spans()).collect();
    let paired = pair(grouped.sides, &tree);
    let phantoms = paired.phantoms;
    let idle: BTreeSet<SpanId> = grouped
        .wrappers
        .into_iter()
        .chain(phantoms.keys().copied())
        .chain(paired.wrappers)
        .collect();
    let logs = http_logs(input.facts);
    let agents = agents(input.facts);
    let mut requests: Vec<TraceRequest> = paired
        .pairs
        .into_iter()
        .map(|pair| {
            let carrier = carrier(&pair, &tree, &halves, &logs, input.skew);
            let (agent, run_ended) = agent_above(&pair, &tree, &agents);
            let root = pair.asking.is_none()
                && pair.answering.as_ref().is_some_and(|side| {
                    side.spans().iter().all(|span| tree.above(*span).next().is_none())
                });
            let (evidence, ambiguous) = (Vec::new(), Vec::new());
            let named_by_parent = false;
            TraceRequest {
                pair,
                carrier,
                agent,
                run_ended,
                evidence,
                ambiguous,
                root,
                named_by_parent,
            }
        })
        .collect();
    requests.sort_by_key(TraceRequest::key);
    let mut owner = owners(&requests);
    for (phantom, behind) in phantoms {
        if let Some(number) = owner.get(&behind).copied() {
            owner.entry(phantom).or_insert(number);
        }
    }
    name_by_parent(&mut requests, &owner);
    let mut view = TraceView { owner, idle, requests, ..TraceView::default() };
    sort_records(input.facts, &tree, &mut view);
    lend_tools(input.facts, &tree, &mut view);
    view
}

/// What a framework's tool span says of its end, to the last call of that tool below it in its own
/// process, where the call's own records say nothing.
fn lend_tools(facts: &[Arc<Fact>], tree: &Ancestry<'_>, view: &mut TraceView) {
    let tools = facts.iter().filter(|fact| matches!(fact.says, Says::Tool));
    let tools: BTreeMap<SpanId, &Arc<Fact>> = tools.map(|fact| (fact.id.at.span, fact)).collect();
    if tools.is_empty() {
        return;
    }
    let mut last: BTreeMap<SpanId, (Nanos, usize)> = BTreeMap::new();
    for (number, request) in view.requests.iter().enumerate() {
        let Some(side) = &request.pair.asking else { continue };
        if side.half.method.as_str() != "tools/call" || side.half.answer != Answer::default() {
            continue;
        }
        let above = tree.above(side.at().span).filter_map(|span| tools.get(&span));
        for tool in above.filter(|fact| fact.process.key == side.process().key) {
            let named = tool.evidence.request.as_ref().and_then(|request| request.tool.as_ref());
            if named.is_some() && same_tool(named, side.tool()) {
                let latest = last.entry(tool.id.at.span).or_insert((side.start, number));
                *latest = (*latest).max((side.start, number));
            }
        }
    }
    for (span, (_, number)) in last {
        view.requests[number].evidence.push(tools[&span].clone());
    }
}

/// Which lone answering halves may bear the name of the span above them: one each.
fn name_by_parent(requests: &mut [TraceRequest], owner: &BTreeMap<SpanId, usize>) {
    let mut named: BTreeSet<SpanId> = BTreeSet::new();
    for request in requests.iter_mut().filter(|request| request.pair.asking.is_none()) {
        let parent = request.pair.answering.as_ref().and_then(|side| side.best().parent);
        let free = parent.filter(|parent| !owner.contains_key(parent));
        request.named_by_parent = free.is_some_and(|parent| named.insert(parent));
    }
}

fn owners(requests: &[TraceRequest]) -> BTreeMap<SpanId, usize> {
    let mut owner = BTreeMap::new();
    for (number, request) in requests.iter().enumerate() {
        for side in request.pair.asking.iter().chain(&request.pair.answering) {
            owner.extend(side.spans().into_iter().map(|span| (span, number)));
            for span in &side.wrappers {
                owner.entry(*span).or_insert(number);
            }
        }
    }
    owner
}

/// Notifications, connections, model spans and evidence to where they belong.
fn sort_records(facts: &[Arc<Fact>], tree: &Ancestry<'_>, view: &mut TraceView) {
    for fact in facts {
        match &fact.says {
            Says::Notification(_) => {
                let near = placing::above(fact, tree, &view.owner, |_| true);
                view.notes.push((fact.clone(), near));
            }
            Says::Connection(_) => view.connections.push(fact.clone()),
            Says::Model { tools } => view.models.push((fact.end, tools.clone())),
            _ => {}
        }
        if matches!(fact.says, Says::Tool) {
            continue;
        }
        let speaks = fact.evidence.speaks();
        // A request's own key is read from its sides; a wrapper is no side.
        let beside = fact.half().is_none() || view.idle.contains(&fact.id.at.span);
        let keyed = fact.evidence.operation_key.is_some() && beside;
        if !speaks && !keyed {
            continue;
        }
        match placing::within(fact, tree, view) {
            Placement::On(number) => view.requests[number].evidence.push(fact.clone()),
            // A key alone says something only where it stands.
            _ if !speaks => {}
            Placement::Between(several) => {
                for number in several {
                    view.requests[number].ambiguous.push(fact.id.at.span);
                }
            }
            Placement::Elsewhere => view.unplaced.push(fact.clone()),
        }
    }
    view.models.sort_by_key(|(end, _)| *end);
}

fn http_logs(facts: &[Arc<Fact>]) -> HttpLogs {
    let mut logs = HttpLogs::new();
    for fact in facts {
        if let Says::Http(http) = &fact.says {
            logs.entry(fact.id.at.span).or_default().push((fact.start, *http));
        }
    }
    for all in logs.values_mut() {
        all.sort_unstable();
    }
    logs
}

/// A span that names its agent, and when its run ended if it is one.
type AgentSpan = (Option<Name>, Option<Nanos>);

fn agents(facts: &[Arc<Fact>]) -> BTreeMap<SpanId, AgentSpan> {
    let spans = facts.iter().filter_map(|fact| match &fact.says {
        Says::Agent { name, run } => {
            Some((fact.id.at.span, (name.clone(), run.then_some(fact.end))))
        }
        _ => None,
    });
    spans.collect()
}

/// Name of the nearest named agent above, and the end of the nearest run.
fn agent_above(
    pair: &Pair,
    tree: &Ancestry<'_>,
    agents: &BTreeMap<SpanId, AgentSpan>,
) -> AgentSpan {
    let Some(side) = pair.asking.as_ref().or(pair.answering.as_ref()) else { return (None, None) };
    let above: Vec<_> = tree.at_or_above(side.at().span).filter_map(|id| agents.get(&id)).collect();
    let own = side.half.call.agent_name.clone();
    let name = own.or_else(|| above.iter().find_map(|(name, _)| name.clone()));
    (name, above.iter().find_map(|(_, run_ended)| *run_ended))
}
