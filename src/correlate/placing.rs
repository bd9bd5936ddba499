//! To which request an effect or outcome fact belongs (judgment.md §3): the nearest call at or
//! above its span, else a call whose parent its span is; else links and keys, which other traces
//! resolve. A fact that fits two calls is not guessed.

use std::collections::{BTreeMap, BTreeSet};

use super::ancestry::Ancestry;
use super::trace::{TraceRequest, TraceView};
use crate::model::fact::*;
use crate::model::ids::SpanId;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Placement {
    On(usize),
    Between(Vec<usize>),
    Elsewhere,
}

/// The nearest request at or above a record's span for which `fits` holds.
pub fn above(
    fact: &Fact,
    tree: &Ancestry<'_>,
    owner: &BTreeMap<SpanId, usize>,
    fits: impl Fn(usize) -> bool,
) -> Option<usize> {
    let span = fact.id.at.span;
    let own_parent = fact.parent.filter(|_| tree.bone(span).is_none());
    tree.at_or_above(span)
        .chain(own_parent)
        .filter_map(|id| owner.get(&id).copied())
        .find(|number| fits(*number))
}

/// Where a record's evidence belongs within its own trace.
pub fn within(fact: &Fact, tree: &Ancestry<'_>, view: &TraceView) -> Placement {
    let span = fact.id.at.span;
    let requests = &view.requests;
    let own = view.owner.get(&span).copied().filter(|_| !only_rules(fact));
    let meant = |number: usize| match &fact.evidence.request {
        Some(told) if told.method.is_empty() => true,
        Some(told) => method(&requests[number]) == Some(told.method.as_str()),
        None => is_call(&requests[number]),
    };
    let call = || above(fact, tree, &view.owner, meant);
    if let Some(number) = own.or_else(call) {
        return Placement::On(number);
    }
    if only_rules(fact) || !fact.links.is_empty() || fact.evidence.operation_key.is_some() {
        return Placement::Elsewhere;
    }
    let named: BTreeSet<usize> = (0..requests.len())
        .filter(|number| is_call(&requests[*number]) && has_parent(&requests[*number], span))
        .collect();
    match named.len() {
        0 => Placement::Elsewhere,
        1 => Placement::On(named.into_iter().next().unwrap_or_default()),
        _ => Placement::Between(named.into_iter().collect()),
    }
}

/// Facts of rules alone: they never look below their span.
fn only_rules(fact: &Fact) -> bool {
    if fact.evidence.request.is_some() {
        return false;
    }
    let from_rule = |origin: &Origin| matches!(origin, Origin::Rule(_));
    let effects = fact.evidence.effects.iter().map(|effect| &effect.from);
    effects.chain(fact.evidence.outcomes.iter().map(|outcome| &outcome.from)).all(from_rule)
}

fn is_call(request: &TraceRequest) -> bool {
    method(request) == Some("tools/call")
}

fn method(request: &TraceRequest) -> Option<&str> {
    let side = request.pair.asking.as_ref().or(request.pair.answering.as_ref());
    side.map(|side| side.half.method.as_str())
}

fn has_parent(request: &TraceRequest, span: SpanId) -> bool {
    request
        .pair
        .asking
        .iter()
        .chain(&request.pair.answering)
        .flat_map(|side| &side.facts)
        .any(|fact| fact.parent == Some(span))
}
