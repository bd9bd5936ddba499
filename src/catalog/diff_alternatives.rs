//! `anyOf` and `oneOf`: which alternatives stand for which.
//!
//! Promises: `oneOf` counts as `anyOf` only where its alternatives are known to exclude each
//! other; a proof over all parts of a value (its types, its finitely many values, its own
//! alternatives) counts as a proof for the value.

use super::diff_schema::{Note, Stand, Walk};
use super::diff_values::Types;
use super::diff_view::{Place, View};
use super::grade::{Grade, Kind};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::LazyLock;

const KEYWORDS: [&str; 2] = ["anyOf", "oneOf"];

pub(super) fn alternatives<'a>(
    walk: &Walk<'_, 'a>,
    (sub, a): (&Place<'a>, &View<'a>),
    b: &View<'a>,
) -> Vec<Note<'a>> {
    let mut notes = Vec::new();
    for keyword in KEYWORDS {
        let (own, other) = (a.keywords.get(keyword), b.keywords.get(keyword));
        match (own, other) {
            (Some(own), Some(other)) => notes.extend(both(walk, keyword, own, other)),
            (Some(own), None) => notes.push(walk.constraint(true, Some(own), None)),
            (None, Some(other)) => notes.extend(added(walk, keyword, (sub, a), other)),
            (None, None) => {}
        }
    }
    notes
}

/// Proves inclusion for each alternative of `a` by itself; `None` where one fails.
pub(super) fn by_branches<'a>(
    walk: &Walk<'_, 'a>,
    a: &View<'a>,
    (sup, b): (&Place<'a>, &View<'a>),
) -> Option<Vec<Note<'a>>> {
    let list = KEYWORDS.into_iter().find_map(|keyword| a.keywords.get_key_value(keyword));
    let (keyword, list) = list?;
    let mut rest = a.clone();
    rest.keywords.remove(keyword);
    let mut notes = Vec::new();
    for (_, branch) in list.children() {
        let joined = rest.joined(&View::of(walk.sub, &branch))?;
        notes.extend(
            walk.trial_apart(|walk| walk.views((&branch, &joined), (sup, b), Stand::Part))?,
        );
    }
    notes.push(walk.constraint(true, Some(list), b.keywords.get(keyword)));
    Some(notes)
}

fn places<'a>(list: &Place<'a>) -> Vec<Place<'a>> {
    list.children().into_iter().map(|(_, place)| place).collect()
}

fn both<'a>(
    walk: &Walk<'_, 'a>,
    keyword: &str,
    own: &Place<'a>,
    other: &Place<'a>,
) -> Vec<Note<'a>> {
    if own.schema == other.schema && walk.is_plain(own.schema) {
        return Vec::new();
    }
    let (had, wanted) = (places(own), places(other));
    if keyword == "oneOf" && walk.may_overlap(walk.sup, &wanted) {
        let pairs = || had.iter().zip(&wanted);
        if had.len() == wanted.len() && pairs().all(|(had, wanted)| walk.same(had, wanted)) {
            return Vec::new();
        }
        return vec![walk.constraint(false, Some(own), Some(other))];
    }
    let mut notes = Vec::new();
    let mut used = BTreeSet::new();
    for (at, branch) in had.iter().enumerate() {
        match best(walk, at, branch, &wanted) {
            Some((to, proof)) => {
                used.insert(to);
                notes.extend(proof);
            }
            None if had.len() == wanted.len() => {
                used.insert(at);
                notes.extend(walk.included(branch, &wanted[at], Stand::Part));
            }
            None => {
                let kind = of_old(walk, Kind::AlternativeRemoved, Kind::AlternativeAdded);
                notes.push(walk.note(kind, Grade::Breaking, Some(branch), None));
            }
        }
    }
    let unused = wanted.iter().enumerate().filter(|(at, _)| !used.contains(at));
    let kind = of_old(walk, Kind::AlternativeAdded, Kind::AlternativeRemoved);
    notes.extend(unused.map(|(_, place)| walk.note(kind, Grade::Compatible, None, Some(place))));
    notes
}

fn of_old(walk: &Walk<'_, '_>, input: Kind, output: Kind) -> Kind {
    if walk.flow == super::diff_schema::Flow::Input { input } else { output }
}

/// The alternative that takes a branch with the fewest changes, the one at its own place first.
fn best<'a>(
    walk: &Walk<'_, 'a>,
    at: usize,
    branch: &Place<'a>,
    wanted: &[Place<'a>],
) -> Option<(usize, Vec<Note<'a>>)> {
    let own = wanted.get(at).and_then(|place| Some((at, walk.proof(branch, place)?)));
    if own.as_ref().is_some_and(|(_, notes)| notes.is_empty()) {
        return own;
    }
    let others = wanted.iter().enumerate().filter(|(other, _)| *other != at);
    let proofs = others.filter_map(|(at, place)| Some((at, walk.proof(branch, place)?)));
    own.into_iter().chain(proofs).min_by_key(|(_, notes)| notes.len())
}

fn added<'a>(
    walk: &Walk<'_, 'a>,
    keyword: &str,
    (sub, a): (&Place<'a>, &View<'a>),
    list: &Place<'a>,
) -> Vec<Note<'a>> {
    let wanted = places(list);
    let fits = |part: &View<'a>| {
        let proof = |place: &Place<'a>| {
            let view = View::of(walk.sup, place);
            walk.trial(|walk| walk.views((sub, part), (place, &view), Stand::Part))
        };
        wanted.iter().filter_map(proof).min_by_key(Vec::len)
    };
    let exclusive = keyword == "anyOf" || !walk.may_overlap(walk.sup, &wanted);
    // The other list of alternatives may hold the same ones.
    let other_list = KEYWORDS.into_iter().find_map(|other| a.keywords.get(other));
    let parts = match other_list {
        Some(own) => places(own).iter().map(|place| View::of(walk.sub, place)).collect(),
        None => vec![a.clone()],
    };
    let covered = exclusive
        && parts.iter().all(|part| {
            fits(part).is_some() || {
                let pieces = pieces(part);
                pieces.len() > 1 && pieces.iter().all(|piece| fits(piece).is_some())
            }
        });
    vec![walk.constraint(covered, None, Some(list))]
}

/// One view for each of the finitely many values, or for each type.
fn pieces<'a>(view: &View<'a>) -> Vec<View<'a>> {
    if let Some(place) = view.keywords.get("enum") {
        let piece = |(_, value): (String, Place<'a>)| {
            let mut piece = view.clone();
            piece.keywords.remove("enum");
            piece.keywords.insert("const", value);
            piece
        };
        return place.children().into_iter().map(piece).collect();
    }
    let Some(place) = view.keywords.get("type") else { return Vec::new() };
    let piece = |types: Types| {
        let mut piece = view.clone();
        let schema = name_of(types)?;
        piece.keywords.insert("type", Place { schema, pointer: place.pointer.clone() });
        Some(piece)
    };
    Types::of(view).split().into_iter().filter_map(piece).collect()
}

fn name_of(types: Types) -> Option<&'static Value> {
    static NAMES: LazyLock<Vec<Value>> = LazyLock::new(|| {
        let names = ["integer", "object", "array", "string", "boolean", "null", "number"];
        names.into_iter().map(Value::from).collect()
    });
    NAMES.iter().find(|name| Types::read(name).is_some_and(|named| types.within(named)))
}
