//! What changed between two definitions of one tool, where, and how bad that is.
//!
//! Promises: pure, total, bounded; two definitions with different digests always yield a change;
//! what is not proved `compatible` or known to be text is `breaking`.
//!
//! `inputSchema` is judged from the caller's side: what the old schema accepted must be accepted.
//! `outputSchema` the other way round: what the new schema allows must have been allowed, for the
//! reader of results was written against the old one; a new property of a result is compatible
//! where the old schema left room for it, a wider enum or type of a result is breaking.

use super::diff_schema::{Flow, Note, compare};
use super::diff_text;
use super::diff_view::{Dialect, Document, Place, dialect, mentions};
use super::digest::{text_digest, value_digest};
use super::grade::{Change, Grade, Kind, Located};
use super::projection::MEMBERS;
use crate::model::digest::{Definition, Digest};
use serde_json::Value;
use std::collections::BTreeMap;

/// All changes from `old` to `new`; `None` where there are none.
pub fn diff(old: &Definition, new: &Definition) -> Option<Located> {
    diff_values(&old.projected.value(), &new.projected.value())
}

/// The changes of a tool that was listed and is listed no more: its callers are cut off.
pub fn removed(old: &Definition) -> Option<Located> {
    let old = Some(text_digest(old.projected.text()));
    let (pointer, kind, grade) = (String::new(), Kind::ToolRemoved, Grade::Breaking);
    Located::of(vec![Change { pointer, kind, grade, old, new: None }])
}

/// The changes that digests of members alone show, by the place of each member without its leading
/// slash: a text member is `semantic` whatever it says now, a parameter that is gone is `breaking`,
/// anything else is `unlocated`.
pub fn diff_members(
    old: &BTreeMap<String, Digest>,
    new: &BTreeMap<String, Digest>,
) -> Option<Located> {
    let all = old.keys().chain(new.keys().filter(|member| !old.contains_key(*member)));
    let change = |member: &String| {
        let (was, is) = (old.get(member), new.get(member));
        if was == is {
            return None;
        }
        let heir = |was: &Digest| {
            let mut fresh = new.iter().filter(|(member, _)| !old.contains_key(*member));
            fresh.find(|(_, digest)| *digest == was).map(|(_, digest)| digest)
        };
        let heir = is.is_none().then(|| was.and_then(heir)).flatten();
        let (kind, grade) = match heir {
            Some(_) if member.contains('/') => (Kind::PropertyRenamed, Grade::Breaking),
            _ => member_grade(member, was.is_some(), is.is_some()),
        };
        let pointer = format!("/{member}");
        let is = is.or(heir.filter(|_| kind == Kind::PropertyRenamed));
        Some(Change { pointer, kind, grade, old: was.cloned(), new: is.cloned() })
    };
    Located::of(all.filter_map(change).collect())
}

fn member_grade(member: &str, was: bool, is: bool) -> (Kind, Grade) {
    match (member, was, is) {
        ("name", ..) => (Kind::ToolRenamed, Grade::Breaking),
        ("title" | "description", ..) => (Kind::TextChanged, Grade::Semantic),
        ("annotations", ..) => (Kind::AnnotationChanged, Grade::Semantic),
        ("outputSchema", false, true) => (Kind::SchemaAdded, Grade::Compatible),
        ("inputSchema" | "outputSchema", true, false) => (Kind::SchemaRemoved, Grade::Breaking),
        (parameter, true, false) if parameter.contains('/') => {
            (Kind::PropertyRemoved, Grade::Breaking)
        }
        _ => (Kind::MemberChanged, Grade::Unlocated),
    }
}

pub(super) fn diff_values(old: &Value, new: &Value) -> Option<Located> {
    let mut notes = Vec::new();
    for member in MEMBERS {
        let (was, is) = (old.get(member), new.get(member));
        if was != is {
            notes.extend(member_notes(member, was, is));
        }
    }
    // References are followed wherever they stand; most of what they lead to did not change.
    let same_value = |note: &Note<'_>| note.old == note.new && note.kind.is_of_its_value();
    notes.retain(|note| note.grade != Grade::Compatible || !same_value(note));
    let mut changes: Vec<Change> = notes.iter().map(change).collect();
    let (was, is) = (value_digest(old), value_digest(new));
    if changes.is_empty() && was != is {
        let (pointer, kind, grade) = (String::new(), Kind::Reworded, Grade::Compatible);
        changes.push(Change { pointer, kind, grade, old: was, new: is });
    }
    Located::of(changes)
}

fn change(note: &Note<'_>) -> Change {
    Change {
        pointer: note.pointer.clone(),
        kind: note.kind,
        grade: note.grade,
        old: note.old.and_then(value_digest),
        new: note.new.and_then(value_digest),
    }
}

fn member_notes<'a>(member: &str, old: Option<&'a Value>, new: Option<&'a Value>) -> Vec<Note<'a>> {
    let pointer = format!("/{member}");
    let one = |kind, grade| vec![Note { pointer: pointer.clone(), kind, grade, old, new }];
    match (member, old, new) {
        ("name", ..) => one(Kind::ToolRenamed, Grade::Breaking),
        ("title" | "description", ..) => one(Kind::TextChanged, Grade::Semantic),
        ("annotations", Some(Value::Object(_)), Some(Value::Object(_))) => {
            by_key(&pointer, old, new, |_, _| (Kind::AnnotationChanged, Grade::Semantic))
        }
        ("annotations", ..) => one(Kind::AnnotationChanged, Grade::Semantic),
        ("execution", ..) => by_key(&pointer, old, new, execution),
        ("inputSchema", Some(old), Some(new)) => schemas(&pointer, old, new, Flow::Input),
        ("outputSchema", Some(old), Some(new)) => schemas(&pointer, old, new, Flow::Output),
        ("outputSchema", None, Some(_)) => one(Kind::SchemaAdded, Grade::Compatible),
        (_, None, Some(_)) => one(Kind::SchemaAdded, Grade::Breaking),
        _ => one(Kind::SchemaRemoved, Grade::Breaking),
    }
}

/// One note for each member of an object that differs; absent objects have none.
fn by_key<'a>(
    pointer: &str,
    old: Option<&'a Value>,
    new: Option<&'a Value>,
    judge: impl Fn(Option<(&str, &Value)>, Option<(&str, &Value)>) -> (Kind, Grade),
) -> Vec<Note<'a>> {
    let place = |schema| Place { schema, pointer: pointer.to_owned() };
    let members = |value: Option<&'a Value>| -> BTreeMap<String, Place<'a>> {
        value.map(place).map(|place| place.children().into_iter().collect()).unwrap_or_default()
    };
    let (had, has) = (members(old), members(new));
    let mut keys: Vec<&String> = had.keys().chain(has.keys()).collect();
    keys.sort();
    keys.dedup();
    let note = |key: &String| {
        let (was, is) = (had.get(key), has.get(key));
        let value = |place: Option<&Place<'a>>| place.map(|place| place.schema);
        if value(was) == value(is) {
            return None;
        }
        let (kind, grade) =
            judge(value(was).map(|v| (key.as_str(), v)), value(is).map(|v| (key.as_str(), v)));
        let pointer = is.or(was).map(|place| place.pointer.clone()).unwrap_or_default();
        Some(Note { pointer, kind, grade, old: value(was), new: value(is) })
    };
    keys.into_iter().filter_map(note).collect()
}

/// `taskSupport`: a caller that does not use tasks must still be served, and one that does.
fn execution(old: Option<(&str, &Value)>, new: Option<(&str, &Value)>) -> (Kind, Grade) {
    let key = old.or(new).map(|(key, _)| key).unwrap_or_default();
    let word = |side: Option<(&str, &Value)>| {
        let word = side.map_or(Some("forbidden"), |(_, value)| value.as_str());
        word.map(ToOwned::to_owned)
    };
    let (old, new) = (word(old), word(new));
    let grade = match (key, old.as_deref(), new.as_deref()) {
        ("taskSupport", Some(_), Some("optional")) => Grade::Compatible,
        ("taskSupport", Some(old), Some(new)) if old == new => Grade::Compatible,
        _ => Grade::Breaking,
    };
    (Kind::ExecutionChanged, grade)
}

fn schemas<'a>(pointer: &str, old: &'a Value, new: &'a Value, flow: Flow) -> Vec<Note<'a>> {
    let (was, is) = (Document::new(old, pointer), Document::new(new, pointer));
    let mut notes = compare(&was, &is, flow);
    notes.extend(diff_text::notes(&was.root, &is.root));
    if old.get("$schema") != new.get("$schema") {
        let holds = same_dialect(old, new);
        let grade = if holds { Grade::Compatible } else { Grade::Breaking };
        let (old, new) = (old.get("$schema"), new.get("$schema"));
        let pointer = format!("{pointer}/$schema");
        notes.push(Note { pointer, kind: Kind::ConstraintChanged, grade, old, new });
    }
    notes
}

/// Keywords whose meaning, or whose being known, depends on the draft.
const BY_DRAFT: [&str; 16] = [
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "$id",
    "id",
    "prefixItems",
    "additionalItems",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedItems",
    "unevaluatedProperties",
    "minContains",
    "maxContains",
    "exclusiveMinimum",
    "exclusiveMaximum",
];

/// Whether another declared draft leaves these two schemas their meaning.
fn same_dialect(old: &Value, new: &Value) -> bool {
    let (was, is) = (dialect(old), dialect(new));
    if was == Dialect::Unknown || is == Dialect::Unknown {
        return false;
    }
    let neutral = |schema: &Value| {
        !BY_DRAFT.iter().any(|keyword| mentions(schema, keyword)) && !has_tuple(schema)
    };
    was == is || neutral(old) && neutral(new)
}

fn has_tuple(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.get("items").is_some_and(Value::is_array) || members.values().any(has_tuple)
        }
        Value::Array(items) => items.iter().any(has_tuple),
        _ => false,
    }
}
