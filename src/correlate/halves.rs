//! From records to sides (judgment.md §4.5): duplicates of one span id, twins of a second
//! instrumentation, and outer spans around several consecutive inner ones, which are no request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ancestry::Ancestry;
use super::side::{Side, absorb_call};
use crate::model::fact::*;
use crate::model::findings::{Code, Finding};
use crate::model::ids::{Name, SpanId};

/// What the records of one trace yield.
#[derive(Default)]
pub struct Sides {
    pub sides: Vec<Side>,
    /// Outer spans that are no request.
    pub wrappers: BTreeSet<SpanId>,
}

/// Whether two names can be one tool: equal, or one carries a server prefix before it.
pub fn same_tool(a: Option<&Name>, b: Option<&Name>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return true };
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    long.strip_suffix(short.as_str())
        .is_some_and(|prefix| prefix.is_empty() || !prefix.ends_with(char::is_alphanumeric))
}

/// Whether two halves that parentage joins can be one request: parentage outranks sessions, and
/// what one end calls the arguments.
pub fn agree_in_trace(a: &HalfFact, b: &HalfFact) -> bool {
    let ids = match (&a.request_id, &b.request_id) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    a.method == b.method && same_tool(a.tool.as_ref(), b.tool.as_ref()) && ids
}

/// Whether two halves can be one request by what they say of themselves.
pub fn agree(a: &HalfFact, b: &HalfFact) -> bool {
    let sessions = match (&a.session, &b.session) {
        (Some((a, one)), Some((b, other))) if one.counts() && other.counts() => a == b,
        _ => true,
    };
    let arguments = match (&a.call.arguments, &b.call.arguments) {
        (Some(a), Some(b)) => a.digest == b.digest || !(a.complete && b.complete),
        _ => true,
    };
    agree_in_trace(a, b) && sessions && arguments
}

/// `inner` runs inside `outer`, as far as their clocks can be believed.
fn inside(inner: &Side, outer: &Side, skew: u64) -> bool {
    inner.start.saturating_add(skew) >= outer.start
        && (inner.stop <= outer.stop.saturating_add(skew) || !outer.ended)
}

/// Groups the half facts of one trace. `end_of` settles ends that a record leaves open.
pub fn group(
    facts: &[Arc<Fact>],
    tree: &Ancestry<'_>,
    end_of: impl Fn(&Fact, &HalfFact) -> End,
    skew: u64,
) -> Sides {
    let mut sides = by_span(facts, end_of);
    let mut wrappers = BTreeSet::new();
    fold_nested(&mut sides, &mut wrappers, tree, skew);
    fold_siblings(&mut sides, skew);
    let mut sides: Vec<Side> = sides.into_values().collect();
    sides.sort_by_key(|side| (side.start, side.at()));
    Sides { sides, wrappers }
}

/// One side a span id. Records that differ under one id are one half with a finding; a start
/// record and its span are not a defect.
fn by_span(
    facts: &[Arc<Fact>],
    end_of: impl Fn(&Fact, &HalfFact) -> End,
) -> BTreeMap<SpanId, Side> {
    let mut records: BTreeMap<SpanId, Vec<Arc<Fact>>> = BTreeMap::new();
    for fact in facts.iter().filter(|fact| fact.half().is_some()) {
        records.entry(fact.id.at.span).or_default().push(fact.clone());
    }
    let one = |(span, records): (SpanId, Vec<Arc<Fact>>)| {
        let doubled = records
            .iter()
            .filter(|fact| fact.id.signal == Signal::Span && matches!(fact.says, Says::Half(_)))
            .count();
        let end = records.iter().find_map(|fact| Some(end_of(fact, fact.half()?)))?;
        let mut side = Side::merge(records, end)?;
        if doubled > 1 {
            side.findings.push(Finding::new(Code::DuplicateSpanId, vec![span]));
        }
        Some((span, side))
    };
    records.into_iter().filter_map(one).collect()
}

/// Folds an inner half into the outer one it repeats, innermost pairs first. An outer half around
/// several consecutive ones is a wrapper: its evidence goes to the last of them.
fn fold_nested(
    sides: &mut BTreeMap<SpanId, Side>,
    wrappers: &mut BTreeSet<SpanId>,
    tree: &Ancestry<'_>,
    skew: u64,
) {
    // Deepest outer halves first, so that three nested spans fold from the inside out.
    let mut outers: Vec<(usize, SpanId)> =
        sides.keys().map(|span| (tree.above(*span).count(), *span)).collect();
    outers.sort_unstable_by(|a, b| b.cmp(a));
    let mut leader: BTreeMap<SpanId, SpanId> = BTreeMap::new();
    let below = below(sides, tree);
    for (_, outer_span) in outers {
        let inner = repeats_of(outer_span, sides, &below, &leader, tree, skew);
        match inner.as_slice() {
            [] => {}
            [one] => join(sides, &mut leader, outer_span, *one),
            several if consecutive(several, sides) => {
                wrap(sides, &mut leader, wrappers, outer_span, several);
            }
            // Overlapping repeats: a second instrumentation's, merged by the sibling rule.
            several => {
                for one in several {
                    join(sides, &mut leader, outer_span, *one);
                }
            }
        }
    }
}

/// The sides somewhere below each span: where repeats of it can be at all.
fn below(sides: &BTreeMap<SpanId, Side>, tree: &Ancestry<'_>) -> BTreeMap<SpanId, Vec<SpanId>> {
    let mut below: BTreeMap<SpanId, Vec<SpanId>> = BTreeMap::new();
    for span in sides.keys() {
        for above in tree.above(*span) {
            below.entry(above).or_default().push(*span);
        }
    }
    below
}

/// The sides whose nearest half above is `outer` and which repeat it.
fn repeats_of(
    outer_span: SpanId,
    sides: &BTreeMap<SpanId, Side>,
    below: &BTreeMap<SpanId, Vec<SpanId>>,
    leader: &BTreeMap<SpanId, SpanId>,
    tree: &Ancestry<'_>,
    skew: u64,
) -> Vec<SpanId> {
    let Some(outer) = sides.get(&outer_span) else { return Vec::new() };
    let members = outer.spans();
    let candidates: BTreeSet<SpanId> = members
        .iter()
        .filter_map(|member| below.get(member))
        .flatten()
        .map(|span| leader.get(span).copied().unwrap_or(*span))
        .collect();
    let mut found: Vec<SpanId> = candidates
        .iter()
        .filter_map(|span| sides.get_key_value(span))
        .filter(|(span, side)| {
            **span != outer_span
                && side.end == outer.end
                && side.process().key == outer.process().key
                && agree(&side.half, &outer.half)
                && inside(side, outer, skew)
                && side.spans().iter().any(|member| {
                    let mut up = tree
                        .above(*member)
                        .map(|id| leader.get(&id).copied().unwrap_or(id))
                        .filter(|id| sides.contains_key(id) && id != *span);
                    up.next() == Some(outer_span)
                })
        })
        .map(|(span, _)| *span)
        .collect();
    found.sort_unstable_by_key(|span| (sides[span].start, *span));
    found
}

/// Whether the sides run one after the other, none inside another.
fn consecutive(spans: &[SpanId], sides: &BTreeMap<SpanId, Side>) -> bool {
    spans.windows(2).all(|pair| {
        let (first, second) = (&sides[&pair[0]], &sides[&pair[1]]);
        let known_apart = match (&first.half.request_id, &second.half.request_id) {
            (Some(a), Some(b)) => a != b,
            _ => false,
        };
        known_apart || first.stop <= second.start
    })
}

/// `inner` becomes part of `outer`; the outer span id leads.
fn join(
    sides: &mut BTreeMap<SpanId, Side>,
    leader: &mut BTreeMap<SpanId, SpanId>,
    outer: SpanId,
    inner: SpanId,
) {
    let (Some(inside), Some(around)) = (sides.remove(&inner), sides.remove(&outer)) else { return };
    let mut side = around.with(inside.facts.iter().cloned());
    side.findings.extend(inside.findings);
    side.wrappers.extend(inside.wrappers);
    note_twins(&mut side);
    for member in side.spans() {
        leader.insert(member, outer);
    }
    sides.insert(outer, side);
}

/// `outer` is no request: what it carries as evidence goes to the last of its inner halves.
fn wrap(
    sides: &mut BTreeMap<SpanId, Side>,
    leader: &mut BTreeMap<SpanId, SpanId>,
    wrappers: &mut BTreeSet<SpanId>,
    outer: SpanId,
    inner: &[SpanId],
) {
    let Some(around) = sides.remove(&outer) else { return };
    wrappers.extend(around.spans());
    let Some(last) = inner.last().and_then(|span| sides.get_mut(span)) else { return };
    last.wrappers.extend(around.spans());
    lend(&around.half, Arc::make_mut(&mut last.half));
    for member in around.spans() {
        leader.insert(member, member);
    }
}

/// A wrapper's own knowledge of the listing or call as a whole, lent to its last page or attempt.
fn lend(from: &HalfFact, to: &mut HalfFact) {
    match (&mut to.list, &from.list) {
        (Some(mine), Some(lent)) => {
            mine.discovered = mine.discovered.take().or_else(|| lent.discovered.clone());
            mine.installed = mine.installed.take().or_else(|| lent.installed.clone());
            mine.tool_count = mine.tool_count.or(lent.tool_count);
        }
        (mine @ None, Some(lent)) => *mine = Some(lent.clone()),
        _ => {}
    }
    absorb_call(&mut to.call, &from.call);
    to.answer.is_error = to.answer.is_error.or(from.answer.is_error);
}

fn note_twins(side: &mut Side) {
    let spans = side.spans();
    side.findings.retain(|finding| finding.code != Code::DoubleInstrumentation);
    if spans.len() > 1 {
        side.findings.push(Finding::new(Code::DoubleInstrumentation, spans));
    }
}

/// Folds halves side by side under one parent, from different instrumentation scopes, one inside
/// the other in time.
fn fold_siblings(sides: &mut BTreeMap<SpanId, Side>, skew: u64) {
    let mut by_parent: BTreeMap<SpanId, Vec<SpanId>> = BTreeMap::new();
    for (span, side) in sides.iter() {
        if let Some(parent) = side.facts.iter().find_map(|fact| fact.parent) {
            by_parent.entry(parent).or_default().push(*span);
        }
    }
    let mut leader = BTreeMap::new();
    for mut family in by_parent.into_values().filter(|family| family.len() > 1) {
        family.sort_unstable_by_key(|span| (sides[span].start, *span));
        for i in 0..family.len() {
            for j in i + 1..family.len() {
                let (Some(a), Some(b)) = (sides.get(&family[i]), sides.get(&family[j])) else {
                    continue;
                };
                if siblings_are_one(a, b, skew) {
                    join(sides, &mut leader, family[i], family[j]);
                }
            }
        }
    }
}

fn siblings_are_one(a: &Side, b: &Side, skew: u64) -> bool {
    let scopes = |side: &Side| -> BTreeSet<Name> {
        side.facts.iter().map(|fact| fact.scope.clone()).collect()
    };
    a.end == b.end
        && a.process().key == b.process().key
        && scopes(a).is_disjoint(&scopes(b))
        && agree(&a.half, &b.half)
        && (inside(a, b, skew.min(1_000_000)) || inside(b, a, skew.min(1_000_000)))
}
