//! A JSON Schema as the comparison sees it: references followed and conjunctions flattened where
//! that cannot change the meaning.
//!
//! Promises: total and bounded; what cannot be followed is marked opaque, never ignored.

use super::projection::escape;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// References followed in place one after another before they count as a circle.
const MOST_HOPS: usize = 32;

/// A schema and where it stands in its definition.
#[derive(Clone, Debug)]
pub(super) struct Place<'a> {
    pub schema: &'a Value,
    pub pointer: String,
}

impl<'a> Place<'a> {
    pub fn at(&self, schema: &'a Value, token: &str) -> Place<'a> {
        Place { schema, pointer: format!("{}/{}", self.pointer, escape(token)) }
    }

    /// The members of an object or the items of an array, each in its place.
    pub fn children(&self) -> Vec<(String, Place<'a>)> {
        match self.schema {
            Value::Object(members) => {
                members.iter().map(|(key, value)| (key.clone(), self.at(value, key))).collect()
            }
            Value::Array(items) => {
                let place = |(at, value)| (usize::to_string(&at), self.at(value, &at.to_string()));
                items.iter().enumerate().map(place).collect()
            }
            _ => Vec::new(),
        }
    }

    pub fn address(&self) -> usize {
        std::ptr::from_ref(self.schema).addr()
    }
}

/// A whole schema, within which `$ref` is resolved.
pub(super) struct Document<'a> {
    pub root: Place<'a>,
    /// Draft 7 and older: what stands beside `$ref` is ignored.
    lone_ref: bool,
    /// An `$id` below the root moves the base of references: none is followed.
    nested_ids: bool,
    /// Whether there is any reference at all.
    pub has_refs: bool,
}

impl<'a> Document<'a> {
    pub fn new(schema: &'a Value, pointer: &str) -> Document<'a> {
        let below = |key: &str| match schema {
            Value::Object(members) => members.values().any(|value| mentions(value, key)),
            _ => false,
        };
        let refs = ["$ref", "$dynamicRef", "$recursiveRef"];
        Document {
            root: Place { schema, pointer: pointer.to_owned() },
            lone_ref: matches!(dialect(schema), Dialect::Draft7OrOlder),
            nested_ids: below("$id") || is_draft4(schema) && mentions_schema_id(schema),
            has_refs: refs.iter().any(|key| mentions(schema, key)),
        }
    }

    fn resolve(&self, reference: &str) -> Option<Place<'a>> {
        let fragment = reference.strip_prefix('#').filter(|_| !self.nested_ids)?;
        let fragment = percent_decoded(fragment)?;
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return find_anchor(&self.root, &fragment);
        }
        let schema = self.root.schema.pointer(&fragment)?;
        Some(Place { schema, pointer: format!("{}{fragment}", self.root.pointer) })
    }
}

/// Which JSON Schema a document declares; MCP's default is 2020-12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Draft2020,
    Draft2019,
    Draft7OrOlder,
    Unknown,
}

pub(super) fn dialect(schema: &Value) -> Dialect {
    let Some(declared) = schema.get("$schema") else { return Dialect::Draft2020 };
    let declared = declared.as_str().unwrap_or_default().trim_end_matches('#');
    let (_, declared) = declared.split_once("://").unwrap_or(("", declared));
    match declared {
        "json-schema.org/draft/2020-12/schema" => Dialect::Draft2020,
        "json-schema.org/draft/2019-09/schema" => Dialect::Draft2019,
        "json-schema.org/draft-07/schema"
        | "json-schema.org/draft-06/schema"
        | "json-schema.org/draft-04/schema" => Dialect::Draft7OrOlder,
        _ => Dialect::Unknown,
    }
}

/// One schema with the keywords that hold at its place.
#[derive(Clone, Debug, Default)]
pub(super) struct View<'a> {
    /// Keyword to where it physically stands. Annotations are left out.
    pub keywords: BTreeMap<&'a str, Place<'a>>,
    /// Schemas that hold too and could not be merged without changing a meaning.
    pub conjuncts: Vec<Place<'a>>,
    /// References that lead out of the document or nowhere.
    pub opaque: Vec<Place<'a>>,
    /// `false`: nothing is accepted.
    pub never: bool,
}

impl<'a> View<'a> {
    pub fn of(document: &Document<'a>, place: &Place<'a>) -> View<'a> {
        View::within(document, place, MOST_HOPS)
    }

    fn within(document: &Document<'a>, place: &Place<'a>, hops: usize) -> View<'a> {
        match place.schema {
            Value::Bool(accepts) => View { never: !accepts, ..View::default() },
            Value::Object(members) => View::of_object(document, place, members, hops),
            // Not a schema at all.
            _ => View { opaque: vec![place.clone()], ..View::default() },
        }
    }

    fn of_object(
        document: &Document<'a>,
        place: &Place<'a>,
        members: &'a Map<String, Value>,
        hops: usize,
    ) -> View<'a> {
        let mut view = View::default();
        let alone = document.lone_ref && members.contains_key("$ref");
        for (keyword, value) in members.iter().filter(|_| !alone) {
            if matters(keyword) {
                view.keywords.insert(keyword, place.at(value, keyword));
            }
        }
        if let Some(reference) = members.get("$ref") {
            view.follow(document, &place.at(reference, "$ref"), hops);
        }
        if let Some(all @ Value::Array(_)) = members.get("allOf").filter(|_| !alone) {
            view.keywords.remove("allOf");
            for (_, part) in place.at(all, "allOf").children() {
                view.merge(document, &part, hops);
            }
        }
        for dynamic in ["$dynamicRef", "$recursiveRef"] {
            view.opaque.extend(view.keywords.remove(dynamic));
        }
        view
    }

    fn follow(&mut self, document: &Document<'a>, reference: &Place<'a>, hops: usize) {
        let target = reference.schema.as_str().and_then(|text| document.resolve(text));
        match target {
            Some(target) if hops > 0 => self.merge(document, &target, hops - 1),
            _ => self.opaque.push(reference.clone()),
        }
    }

    /// Adds a schema that holds at the same place.
    fn merge(&mut self, document: &Document<'a>, place: &Place<'a>, hops: usize) {
        let part = View::within(document, place, hops.saturating_sub(1));
        match self.joined(&part) {
            Some(joined) => *self = joined,
            None => self.conjuncts.push(place.clone()),
        }
    }

    /// Both views as one, where no keyword sees another one that it did not see before.
    pub fn joined(&self, part: &View<'a>) -> Option<View<'a>> {
        let mut groups: BTreeMap<&str, bool> = BTreeMap::new();
        for keyword in self.keywords.keys() {
            groups.insert(group(keyword), true);
        }
        for (keyword, place) in &part.keywords {
            let same = self.keywords.get(keyword).is_some_and(|own| own.schema == place.schema);
            let looks_around = keyword.starts_with("unevaluated");
            if looks_around || groups.contains_key(group(keyword)) && !(same && lone(keyword)) {
                return None;
            }
        }
        let mut joined = self.clone();
        joined.keywords.extend(part.keywords.iter().map(|(key, place)| (*key, place.clone())));
        joined.conjuncts.extend(part.conjuncts.iter().cloned());
        joined.opaque.extend(part.opaque.iter().cloned());
        joined.never |= part.never;
        Some(joined)
    }

    /// Whether everything is accepted.
    pub fn is_trivial(&self) -> bool {
        self.keywords.is_empty()
            && self.conjuncts.is_empty()
            && self.opaque.is_empty()
            && !self.never
    }

    pub fn value(&self, keyword: &str) -> Option<&'a Value> {
        self.keywords.get(keyword).map(|place| place.schema)
    }

    pub fn members(&self, keyword: &str) -> Vec<(String, Place<'a>)> {
        self.keywords.get(keyword).map(Place::children).unwrap_or_default()
    }

    /// The schemas that apply to the same instance, wherever they stand below this one.
    pub fn in_place(&self) -> Vec<Place<'a>> {
        let mut places = self.conjuncts.clone();
        for keyword in ["anyOf", "oneOf", "allOf", "dependentSchemas"] {
            places.extend(self.members(keyword).into_iter().map(|(_, place)| place));
        }
        for keyword in ["if", "then", "else"] {
            places.extend(self.keywords.get(keyword).cloned());
        }
        places
    }
}

/// Keywords that only mean something together.
fn group(keyword: &str) -> &str {
    match keyword {
        "properties" | "patternProperties" | "additionalProperties" => "properties",
        "items" | "prefixItems" | "additionalItems" => "items",
        "contains" | "minContains" | "maxContains" => "contains",
        "if" | "then" | "else" => "if",
        alone => alone,
    }
}

fn lone(keyword: &str) -> bool {
    group(keyword) == keyword && !matches!(keyword, "properties" | "items" | "contains" | "if")
}

/// Whether a keyword says something about which values are accepted, or may.
fn matters(keyword: &str) -> bool {
    !super::diff_text::is_annotation(keyword)
        && !matches!(
            keyword,
            "$ref" | "$defs" | "definitions" | "$schema" | "$id" | "$anchor" | "$vocabulary"
        )
}

/// Whether `key` is a member name anywhere in `value`; may say yes too often.
pub(super) fn mentions(value: &Value, key: &str) -> bool {
    match value {
        Value::Object(members) => {
            members.contains_key(key) || members.values().any(|value| mentions(value, key))
        }
        Value::Array(items) => items.iter().any(|value| mentions(value, key)),
        _ => false,
    }
}

fn is_draft4(schema: &Value) -> bool {
    let declared = schema.get("$schema").and_then(Value::as_str);
    declared.is_some_and(|declared| declared.contains("draft-04"))
}

/// Draft 4 spells it `id`, which is also a common property name: only a text is an identifier.
fn mentions_schema_id(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            members.get("id").is_some_and(Value::is_string)
                || members.values().any(mentions_schema_id)
        }
        Value::Array(items) => items.iter().any(mentions_schema_id),
        _ => false,
    }
}

fn find_anchor<'a>(place: &Place<'a>, anchor: &str) -> Option<Place<'a>> {
    if place.schema.get("$anchor").and_then(Value::as_str) == Some(anchor) {
        return Some(place.clone());
    }
    place.children().into_iter().find_map(|(_, child)| find_anchor(&child, anchor))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}
