//! The two halves of one request within a trace (judgment.md §4.1): the answering half belongs to
//! the nearest asking half above it, HTTP spans between them skipped. A server half and the client
//! span below it are never one request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ancestry::Ancestry;
use super::halves::agree_in_trace;
use super::side::Side;
use crate::model::fact::{End, HalfFact};
use crate::model::ids::SpanId;

/// A request within one trace: at least one side.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Pair {
    pub asking: Option<Arc<Side>>,
    pub answering: Option<Arc<Side>>,
}

/// What the sides of one trace yield.
pub struct Paired {
    pub pairs: Vec<Pair>,
    /// Records that are no request, phantoms of a server framework, and a span of the request that
    /// each was a look-up for.
    pub phantoms: BTreeMap<SpanId, SpanId>,
    /// Asking spans around several answered requests.
    pub wrappers: BTreeSet<SpanId>,
}

/// What is above an answering side.
enum Above {
    /// The asking side with this number.
    Asker(usize),
    /// A look-up for the side with this number: a phantom.
    Phantom(usize),
    Nobody,
}

pub fn pair(sides: Vec<Side>, tree: &Ancestry<'_>) -> Paired {
    let sides: Vec<Arc<Side>> = sides.into_iter().map(Arc::new).collect();
    let owner: BTreeMap<SpanId, usize> = sides
        .iter()
        .enumerate()
        .flat_map(|(number, side)| side.spans().into_iter().map(move |span| (span, number)))
        .collect();
    let (mut phantoms, mut wrappers) = (BTreeMap::new(), BTreeSet::new());
    let mut answers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut alone = Vec::new();
    for (number, side) in sides.iter().enumerate() {
        match side.end {
            End::Answering => match above(side, number, &sides, &owner, tree) {
                Above::Asker(asker) => answers.entry(asker).or_default().push(number),
                Above::Phantom(behind) => {
                    let behind = sides[behind].at().span;
                    phantoms.extend(side.spans().into_iter().map(|span| (span, behind)));
                }
                Above::Nobody => alone.push(number),
            },
            End::Asking | End::Unknown => {
                answers.entry(number).or_default();
            }
        }
    }
    let mut pairs = Vec::new();
    for (asker, answerers) in answers {
        match answerers.as_slice() {
            [] | [_] => pairs.push(Pair {
                asking: Some(sides[asker].clone()),
                answering: answerers.first().map(|number| sides[*number].clone()),
            }),
            several if aggregates(several, &sides) => {
                wrappers.extend(sides[asker].spans());
                pairs.extend(several.iter().map(|number| answered_alone(&sides[*number])));
            }
            [first, rest @ ..] => {
                pairs.push(Pair {
                    asking: Some(sides[asker].clone()),
                    answering: Some(sides[*first].clone()),
                });
                alone.extend(rest);
            }
        }
    }
    pairs.extend(alone.into_iter().map(|number| answered_alone(&sides[number])));
    Paired { pairs, phantoms, wrappers }
}

fn answered_alone(side: &Arc<Side>) -> Pair {
    Pair { asking: None, answering: Some(side.clone()) }
}

/// Several answered requests, one after the other, with ids that tell them apart.
fn aggregates(answerers: &[usize], sides: &[Arc<Side>]) -> bool {
    let ids: BTreeSet<_> =
        answerers.iter().map(|number| sides[*number].half.request_id.clone()).collect();
    ids.len() == answerers.len()
        && answerers.windows(2).all(|pair| sides[pair[0]].stop <= sides[pair[1]].start)
}

/// A listing right below a call, without an asking half of its own.
fn looks_up(listing: &HalfFact, call: &HalfFact) -> bool {
    listing.method.as_str() == "tools/list" && call.method.as_str() == "tools/call"
}

fn above(
    side: &Side,
    number: usize,
    sides: &[Arc<Side>],
    owner: &BTreeMap<SpanId, usize>,
    tree: &Ancestry<'_>,
) -> Above {
    let mut climbs = side.facts.iter().map(|fact| {
        let from_log = tree.bone(fact.id.at.span).is_none();
        let first = fact.parent.filter(|_| from_log);
        first
            .into_iter()
            .chain(first.map(|parent| tree.above(parent)).into_iter().flatten())
            .chain(tree.above(fact.id.at.span))
            .filter_map(|span| owner.get(&span).copied())
            .filter(|found| *found != number)
            .collect::<Vec<usize>>()
    });
    let Some(up) = climbs.find(|up| !up.is_empty()) else { return Above::Nobody };
    for candidate in up {
        let other = &sides[candidate];
        match other.end {
            End::Answering => {
                let nested = other.process().key == side.process().key
                    && other.half.method != side.half.method;
                return if nested { Above::Phantom(candidate) } else { Above::Nobody };
            }
            End::Asking | End::Unknown if agree_in_trace(&other.half, &side.half) => {
                return Above::Asker(candidate);
            }
            // The server lists its own tools while it serves the call above.
            End::Asking | End::Unknown if looks_up(&side.half, &other.half) => {
                return Above::Phantom(candidate);
            }
            // A session-long or agent-side request with another method: climb on.
            End::Asking | End::Unknown => {}
        }
    }
    Above::Nobody
}
