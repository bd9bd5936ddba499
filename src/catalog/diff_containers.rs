//! Objects and arrays: properties by name and pattern, what is required, items by place.
//!
//! Promises: a property that is gone is `breaking` even where any name is accepted, for its value
//! is silently dropped; an optional property may be added where the old schema said nothing about
//! names it does not declare.

use super::diff_schema::{Flow, Note, Stand, Walk, grade, speaks_of};
use super::diff_values::{Types, names, order};
use super::diff_view::{Document, Place, View};
use super::grade::{Grade, Kind};
use serde_json::{Number, Value};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// How many schemas in place are searched for names.
const MOST_PARTS: usize = 256;

type Names<'a> = BTreeMap<String, Place<'a>>;

pub(super) fn objects<'a>(
    walk: &Walk<'_, 'a>,
    (sub, a): (&Place<'a>, &View<'a>),
    b: &View<'a>,
    stand: Stand,
) -> Vec<Note<'a>> {
    let had: Names<'a> = a.members("properties").into_iter().collect();
    let wanted: Names<'a> = b.members("properties").into_iter().collect();
    let mut notes = malformed(walk, a, b);
    for (name, own) in &had {
        match wanted.get(name) {
            Some(other) => notes.extend(walk.included(own, other, Stand::Whole)),
            None => notes.push(only_sub(walk, b, (name, own, &had), &wanted)),
        }
    }
    for (name, other) in wanted.iter().filter(|(name, _)| !had.contains_key(*name)) {
        notes.push(only_sup(walk, (sub, a), (name, other, &wanted), stand));
    }
    notes.extend(required(walk, (&had, a), (&wanted, b)));
    if Types::of(a).meets(Types::OBJECT) {
        notes.extend(patterns(walk, a, b));
        notes.extend(rest(walk, a, b));
    }
    notes
}

/// `properties`, `patternProperties` and `required` that are not what they must be.
fn malformed<'a>(walk: &Walk<'_, 'a>, a: &View<'a>, b: &View<'a>) -> Vec<Note<'a>> {
    let odd = |place: &Option<&Place<'a>>, keyword: &str| {
        place.is_some_and(|place| match keyword {
            "required" => !place.schema.is_array(),
            _ => !place.schema.is_object(),
        })
    };
    let note = |keyword| {
        let (own, other) = (a.keywords.get(keyword), b.keywords.get(keyword));
        let same = own.map(|place| place.schema) == other.map(|place| place.schema);
        let undecided = (odd(&own, keyword) || odd(&other, keyword)) && !same;
        undecided.then(|| walk.note(Kind::Undecided, Grade::Breaking, own, other))
    };
    ["properties", "patternProperties", "required"].into_iter().filter_map(note).collect()
}

/// A property that `sup` does not name.
fn only_sub<'a>(
    walk: &Walk<'_, 'a>,
    b: &View<'a>,
    (name, own, had): (&str, &Place<'a>, &Names<'a>),
    wanted: &Names<'a>,
) -> Note<'a> {
    if walk.flow == Flow::Input {
        return gone((name, own), had, wanted);
    }
    // A result that the old schema did not know: fine where it let everything pass.
    let open = b.value("patternProperties").is_none();
    let holds = match b.keywords.get("additionalProperties") {
        _ if !open => false,
        None => true,
        Some(other) => walk.proof(own, other).is_some(),
    };
    walk.note(Kind::PropertyAdded, grade(holds), Some(own), None)
}

/// A property that was: a rename where a new one looks just like it.
fn gone<'a>((name, was): (&str, &Place<'a>), old: &Names<'a>, new: &Names<'a>) -> Note<'a> {
    let fresh = |other: &&String| !old.contains_key(*other);
    let lost = |other: &&String| !new.contains_key(*other);
    let like = |place: &Place<'a>| bare(place.schema) == bare(was.schema);
    let twins = old.iter().filter(|(name, place)| lost(name) && like(place)).map(|(name, _)| name);
    let rank = twins.take_while(|twin| twin.as_str() != name).count();
    let heirs = new.iter().filter(|(name, place)| fresh(name) && like(place));
    let heir = heirs.map(|(_, place)| place).nth(rank);
    let kind = if heir.is_some() { Kind::PropertyRenamed } else { Kind::PropertyRemoved };
    let (old, new) = (Some(was.schema), heir.map(|place| place.schema));
    Note { pointer: was.pointer.clone(), kind, grade: Grade::Breaking, old, new }
}

/// A schema without its texts, which often repeat the name.
fn bare(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(members) = schema.as_object_mut() {
        members.shift_remove("title");
        members.shift_remove("description");
    }
    schema
}

/// A property that `sub` does not name.
fn only_sup<'a>(
    walk: &Walk<'_, 'a>,
    (sub, a): (&Place<'a>, &View<'a>),
    (name, other, wanted): (&str, &Place<'a>, &Names<'a>),
    stand: Stand,
) -> Note<'a> {
    if walk.flow == Flow::Output {
        let new = a.members("properties").into_iter().collect();
        return gone((name, other), wanted, &new);
    }
    let closed = a.value("patternProperties").is_none();
    let holds = match a.keywords.get("additionalProperties") {
        Some(rest) if !View::of(walk.sub, rest).is_trivial() => {
            closed && walk.proof(rest, other).is_some()
        }
        _ if View::of(walk.sup, other).is_trivial() => true,
        _ => closed && stand == Stand::Whole && silent(walk, (sub, a), name),
    };
    walk.note(Kind::PropertyAdded, grade(holds), None, Some(other))
}

/// Whether the old schema lists its names and says nothing about this one, so that a caller who
/// keeps to the contract never sends it.
fn silent<'a>(walk: &Walk<'_, 'a>, (sub, a): (&Place<'a>, &View<'a>), name: &str) -> bool {
    let lists = sub.address() == walk.sub.root.address()
        || a.value("properties").and_then(Value::as_object).is_some_and(|names| !names.is_empty());
    let others = ["propertyNames", "unevaluatedProperties", "not"];
    walk.declared_only
        && lists
        && others.iter().all(|keyword| a.value(keyword).is_none())
        && a.opaque.is_empty()
        && parts(walk.sub, sub)
            .is_some_and(|parts| parts.iter().skip(1).all(|(_, view)| !speaks_of_name(view, name)))
}

fn speaks_of_name(view: &View<'_>, name: &str) -> bool {
    let others =
        ["patternProperties", "propertyNames", "unevaluatedProperties", "not", "dependencies"];
    let rest = view.value("additionalProperties").is_some_and(|rest| rest != &Value::Bool(true));
    rest || others.iter().any(|keyword| view.value(keyword).is_some())
        || !view.opaque.is_empty()
        || view.members("properties").iter().any(|(other, _)| other == name)
}

/// A schema and all that apply to the same value; `None` where there are too many.
fn parts<'a>(document: &Document<'a>, place: &Place<'a>) -> Option<Vec<(Place<'a>, View<'a>)>> {
    let mut found: Vec<(Place<'a>, View<'a>)> = Vec::new();
    let mut open = vec![place.clone()];
    let mut seen = BTreeSet::new();
    while let Some(place) = open.pop() {
        if !seen.insert(place.address()) {
            continue;
        }
        if found.len() == MOST_PARTS {
            return None;
        }
        let view = View::of(document, &place);
        open.extend(view.in_place());
        found.push((place, view));
    }
    Some(found)
}

/// Every property name that a schema declares for the value it describes.
fn names_of<'a>(walk: &Walk<'_, 'a>, document: &Document<'a>, place: &Place<'a>) -> Names<'a> {
    let parts = parts(document, place).unwrap_or_default();
    walk.spend(parts.len().saturating_sub(1));
    parts.iter().flat_map(|(_, view)| view.members("properties")).collect()
}

/// Names that only alternatives or conditions declared, and that are nowhere now.
pub(super) fn names_gone<'a>(
    walk: &Walk<'_, 'a>,
    sub: &Place<'a>,
    sup: &Place<'a>,
) -> Vec<Note<'a>> {
    let (had, wanted) = (names_of(walk, walk.sub, sub), names_of(walk, walk.sup, sup));
    let (old, new) = match walk.flow {
        Flow::Input => (had, wanted),
        Flow::Output => (wanted, had),
    };
    let lost = old.iter().filter(|(name, _)| !new.contains_key(*name));
    lost.map(|(name, place)| gone((name, place), &old, &new)).collect()
}

fn required<'a>(
    walk: &Walk<'_, 'a>,
    (had, a): (&Names<'a>, &View<'a>),
    (wanted, b): (&Names<'a>, &View<'a>),
) -> Vec<Note<'a>> {
    let (own, other) = (a.keywords.get("required"), b.keywords.get("required"));
    let must = |place: Option<&Place<'a>>| names(place.map(|place| place.schema));
    let (needs, asks) = (must(own), must(other));
    let vacuous = !Types::of(a).meets(speaks_of("required"));
    let note = |name: &String, holds: bool| {
        let added = holds != (walk.flow == Flow::Input);
        let kind = if added { Kind::RequiredAdded } else { Kind::RequiredRemoved };
        let at = walk.note(kind, grade(holds || vacuous), had.get(name), wanted.get(name));
        if !at.pointer.is_empty() {
            return at;
        }
        walk.note(kind, grade(holds || vacuous), own, other)
    };
    let stricter = asks.difference(&needs).map(|name| note(name, false));
    let laxer = needs.difference(&asks).map(|name| note(name, true));
    let reordered = needs == asks && own.map(|p| p.schema) != other.map(|p| p.schema);
    let reordered = reordered.then(|| walk.note(Kind::Reworded, Grade::Compatible, own, other));
    stricter.chain(laxer).chain(reordered).collect()
}

fn patterns<'a>(walk: &Walk<'_, 'a>, a: &View<'a>, b: &View<'a>) -> Vec<Note<'a>> {
    let had: Names<'a> = a.members("patternProperties").into_iter().collect();
    let wanted: Names<'a> = b.members("patternProperties").into_iter().collect();
    let mut notes = Vec::new();
    for (pattern, own) in &had {
        match wanted.get(pattern) {
            Some(other) => notes.extend(walk.included(own, other, Stand::Whole)),
            None => notes.push(walk.constraint(false, Some(own), None)),
        }
    }
    let added = wanted.iter().filter(|(pattern, _)| !had.contains_key(*pattern));
    let nothing = a.value("additionalProperties") == Some(&Value::Bool(false))
        && had.is_empty()
        && a.members("properties").is_empty();
    notes.extend(added.map(|(_, other)| {
        let holds = nothing || View::of(walk.sup, other).is_trivial();
        walk.constraint(holds, None, Some(other))
    }));
    notes
}

/// What holds for everything that is not named. Absent means anything.
fn rest<'a>(walk: &Walk<'_, 'a>, a: &View<'a>, b: &View<'a>) -> Vec<Note<'a>> {
    let keyword = "additionalProperties";
    item(walk, a.keywords.get(keyword), b.keywords.get(keyword))
}

/// Items by place, whichever way a draft spells a tuple, and `contains`.
pub(super) fn arrays<'a>(walk: &Walk<'_, 'a>, a: &View<'a>, b: &View<'a>) -> Vec<Note<'a>> {
    if !Types::of(a).meets(Types::ARRAY) {
        return Vec::new();
    }
    let ((had, own_rest), (wanted, rest)) = (items(a), items(b));
    let mut notes = Vec::new();
    for at in 0..had.len().max(wanted.len()) {
        let own = had.get(at).or(own_rest.as_ref());
        let other = wanted.get(at).or(rest.as_ref());
        notes.extend(item(walk, own, other));
    }
    notes.extend(item(walk, own_rest.as_ref(), rest.as_ref()));
    notes.extend(contains(walk, a, b));
    notes
}

fn item<'a>(
    walk: &Walk<'_, 'a>,
    own: Option<&Place<'a>>,
    other: Option<&Place<'a>>,
) -> Vec<Note<'a>> {
    match (own, other) {
        (Some(own), Some(other)) => walk.included(own, other, Stand::Whole),
        (None, Some(other)) => {
            vec![walk.constraint(View::of(walk.sup, other).is_trivial(), None, Some(other))]
        }
        (Some(own), None) => vec![walk.constraint(true, Some(own), None)],
        (None, None) => Vec::new(),
    }
}

fn items<'a>(view: &View<'a>) -> (Vec<Place<'a>>, Option<Place<'a>>) {
    let list = |keyword: &str| view.members(keyword).into_iter().map(|(_, place)| place).collect();
    match view.value("items") {
        Some(Value::Array(_)) => (list("items"), view.keywords.get("additionalItems").cloned()),
        _ => (list("prefixItems"), view.keywords.get("items").cloned()),
    }
}

fn contains<'a>(walk: &Walk<'_, 'a>, a: &View<'a>, b: &View<'a>) -> Option<Note<'a>> {
    let group = ["contains", "minContains", "maxContains"];
    let values = |view: &View<'a>| group.map(|keyword| view.value(keyword));
    let (own, other) = (a.keywords.get("contains"), b.keywords.get("contains"));
    let plain = other.is_none_or(|other| walk.is_plain(other.schema));
    if values(a) == values(b) && plain {
        return None;
    }
    let holds = match (own, other) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(own), Some(other)) => {
            let exact = b.value("maxContains").is_some();
            walk.proof(own, other).is_some()
                && (!exact || walk.reversed_proof(own, other))
                && contains_counts(a, b)
        }
    };
    let (own, other) =
        (own.or(a.keywords.get("minContains")), other.or(b.keywords.get("minContains")));
    Some(walk.constraint(holds, own, other))
}

fn contains_counts(a: &View<'_>, b: &View<'_>) -> bool {
    let one = Number::from(1);
    let number = |view: &View<'_>, keyword: &str| match view.value(keyword) {
        None => Some(None),
        Some(value) => value.as_number().map(|number| Some(number.clone())),
    };
    let bounds =
        |view: &View<'_>| Some((number(view, "minContains")?, number(view, "maxContains")?));
    let (Some((own_least, own_most)), Some((least, most))) = (bounds(a), bounds(b)) else {
        return false;
    };
    let at_least = order(own_least.as_ref().unwrap_or(&one), least.as_ref().unwrap_or(&one));
    let at_most = match (&own_most, &most) {
        (_, None) => Some(Ordering::Equal),
        (None, Some(_)) => None,
        (Some(own), Some(most)) => order(own, most),
    };
    at_least.is_some_and(Ordering::is_ge) && at_most.is_some_and(Ordering::is_le)
}
