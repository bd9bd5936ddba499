//! What a schema says to its reader rather than to a validator: descriptions, titles, defaults.
//!
//! Promises: compared where both definitions have a schema at the same pointer; what came or went
//! with a whole schema is the change of that schema.

use super::diff_schema::Note;
use super::diff_view::Place;
use super::grade::{Grade, Kind};
use serde_json::Value;

/// Whether validators ignore a keyword. A model does not: it reads them.
pub(super) fn is_annotation(keyword: &str) -> bool {
    kind(keyword).is_some()
}

fn kind(keyword: &str) -> Option<Kind> {
    Some(match keyword {
        "description" | "title" | "$comment" | "markdownDescription" => Kind::TextChanged,
        "enumNames" | "enumDescriptions" | "markdownEnumDescriptions" => Kind::TextChanged,
        "default" => Kind::DefaultChanged,
        "examples" | "example" | "deprecated" | "readOnly" | "writeOnly" => Kind::AnnotationChanged,
        _ if keyword.starts_with("x-") => Kind::AnnotationChanged,
        _ => return None,
    })
}

/// The changes of annotations between two schemas at one place, and below.
pub(super) fn notes<'a>(old: &Place<'a>, new: &Place<'a>) -> Vec<Note<'a>> {
    let (Value::Object(before), Value::Object(after)) = (old.schema, new.schema) else {
        return Vec::new();
    };
    let mut notes = Vec::new();
    let keywords = before.keys().chain(after.keys().filter(|key| !before.contains_key(*key)));
    for keyword in keywords {
        let (was, is) = (before.get(keyword), after.get(keyword));
        if let Some(kind) = kind(keyword) {
            if was != is {
                let pointer = new.at(new.schema, keyword).pointer;
                notes.push(Note { pointer, kind, grade: Grade::Semantic, old: was, new: is });
            }
        } else if let (Some(was), Some(is)) = (was, is) {
            notes.extend(below(keyword, &old.at(was, keyword), &new.at(is, keyword)));
        }
    }
    notes
}

fn below<'a>(keyword: &str, old: &Place<'a>, new: &Place<'a>) -> Vec<Note<'a>> {
    match keyword {
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
        | "dependencies" | "allOf" | "anyOf" | "oneOf" | "prefixItems" => pairs(old, new),
        "items" if old.schema.is_array() => pairs(old, new),
        "items"
        | "additionalItems"
        | "additionalProperties"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contains"
        | "propertyNames"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contentSchema" => notes(old, new),
        _ => Vec::new(),
    }
}

fn pairs<'a>(old: &Place<'a>, new: &Place<'a>) -> Vec<Note<'a>> {
    let same_key = |(key, was): (String, Place<'a>)| {
        let is = match new.schema {
            Value::Object(members) => members.get(&key),
            Value::Array(items) => key.parse().ok().and_then(|at: usize| items.get(at)),
            _ => None,
        };
        is.map(|is| notes(&was, &new.at(is, &key))).unwrap_or_default()
    };
    old.children().into_iter().flat_map(same_key).collect()
}
