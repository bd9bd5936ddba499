//! The rules for keywords that are compared one by one: types, finite sets, bounds, patterns.
//!
//! Promises: a rule that finds no proof notes `breaking`; a keyword that nobody knows is compared
//! as text and any change of it is `breaking`.

use super::diff_schema::{Note, Stand, Walk, grade, speaks_of};
use super::diff_values::{Types, finite, integer, names, order, set};
use super::diff_view::{Place, View};
use super::grade::{Grade, Kind};
use serde_json::{Number, Value};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Keywords with rules of their own elsewhere.
const ELSEWHERE: [&str; 14] = [
    "properties",
    "patternProperties",
    "additionalProperties",
    "required",
    "items",
    "prefixItems",
    "additionalItems",
    "anyOf",
    "oneOf",
    "enum",
    "const",
    "contains",
    "minContains",
    "maxContains",
];

pub(super) fn keywords<'a>(walk: &Walk<'_, 'a>, a: &View<'a>, b: &View<'a>) -> Vec<Note<'a>> {
    let mut notes: Vec<Note<'a>> = values(walk, a, b).into_iter().collect();
    let all: BTreeSet<&str> = a.keywords.keys().chain(b.keywords.keys()).copied().collect();
    for keyword in all {
        if ELSEWHERE.contains(&keyword) {
            continue;
        }
        let (own, other) = (a.keywords.get(keyword), b.keywords.get(keyword));
        let Some(other) = other else {
            let kind = if keyword == "type" { Kind::TypeChanged } else { Kind::ConstraintRemoved };
            notes.extend(gone(walk, keyword, kind, own));
            continue;
        };
        let equal = own.is_some_and(|own| own.schema == other.schema);
        if equal && walk.is_plain(other.schema) && !keyword.starts_with("unevaluated") {
            continue;
        }
        if !Types::of(a).meets(speaks_of(keyword)) {
            notes.push(walk.constraint(true, own, Some(other)));
            continue;
        }
        notes.extend(rule(walk, keyword, (a, own), (b, other)));
    }
    notes
}

fn gone<'a>(
    walk: &Walk<'_, 'a>,
    keyword: &str,
    kind: Kind,
    own: Option<&Place<'a>>,
) -> Option<Note<'a>> {
    match (keyword, kind) {
        // Their `if` tells what becomes of them.
        _ if !is_known(keyword) => Some(walk.note(Kind::Undecided, Grade::Breaking, own, None)),
        (_, Kind::TypeChanged) => Some(walk.note(kind, Grade::Compatible, own, None)),
        _ => own.map(|own| walk.constraint(true, Some(own), None)),
    }
}

fn is_known(keyword: &str) -> bool {
    speaks_of(keyword) != Types::ANY
        || matches!(keyword, "type" | "const" | "enum" | "format" | "not" | "if" | "then" | "else")
}

fn rule<'a>(
    walk: &Walk<'_, 'a>,
    keyword: &str,
    (a, own): (&View<'a>, Option<&Place<'a>>),
    (b, other): (&View<'a>, &Place<'a>),
) -> Vec<Note<'a>> {
    let one = |holds| vec![walk.constraint(holds, own, Some(other))];
    let own_value = own.map(|own| own.schema);
    match keyword {
        "type" => kind_of_value(walk, a, own, other).into_iter().collect(),
        "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum" => {
            one(number_bound(keyword, a, other.schema) == Some(true))
        }
        "minLength" | "minItems" | "minProperties" => {
            one(count(own_value, other.schema, Ordering::Greater) == Some(true))
        }
        "maxLength" | "maxItems" | "maxProperties" => {
            one(count(own_value, other.schema, Ordering::Less) == Some(true))
        }
        "multipleOf" => one(multiple(a, own_value, other.schema)),
        "uniqueItems" => one(other.schema == &Value::Bool(false)),
        "dependentRequired" => one(dependent(a, own_value, other.schema)),
        "propertyNames" | "contentSchema" => inner(walk, own, other),
        "dependentSchemas" => schemas_by_name(walk, own, other),
        "not" => one(own.is_some_and(|own| walk.reversed_proof(own, other))),
        "if" | "then" | "else" => conditions(walk, keyword, a, b),
        "unevaluatedProperties" | "unevaluatedItems" => {
            unevaluated(walk, keyword, (a, own), (b, other))
        }
        "format" | "pattern" | "contentEncoding" | "contentMediaType" => one(false),
        // `dependencies`, and what nobody knows.
        _ => vec![walk.note(Kind::Undecided, Grade::Breaking, own, Some(other))],
    }
}

/// `enum` and `const`, which replace each other freely.
fn values<'a>(walk: &Walk<'_, 'a>, a: &View<'a>, b: &View<'a>) -> Option<Note<'a>> {
    let stated = |view: &View<'a>| {
        let place = view.keywords.get("const").or_else(|| view.keywords.get("enum"));
        place.cloned()
    };
    let (own, other) = (stated(a), stated(b));
    let malformed = |view: &View<'a>| view.value("enum").is_some_and(|value| !value.is_array());
    if malformed(a) || malformed(b) {
        let note = walk.note(Kind::Undecided, Grade::Breaking, own.as_ref(), other.as_ref());
        return (a.value("enum") != b.value("enum")).then_some(note);
    }
    let wanted = other.as_ref().and_then(|_| finite(b)).map(|values| set(&values));
    let had = finite(a).map(|values| set(&values));
    let holds = match (&had, &wanted) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(had), Some(wanted)) => had.is_subset(wanted),
    };
    let changed = match (&own, &other) {
        (None, None) => false,
        (Some(_), Some(_)) => had != wanted,
        _ => true,
    };
    let reordered = !changed && own.as_ref().map(|p| p.schema) != other.as_ref().map(|p| p.schema);
    let kind = if reordered { Kind::Reworded } else { Kind::EnumChanged };
    let note = || walk.note(kind, grade(holds), own.as_ref(), other.as_ref());
    (changed || reordered).then(note)
}

fn kind_of_value<'a>(
    walk: &Walk<'_, 'a>,
    a: &View<'a>,
    own: Option<&Place<'a>>,
    other: &Place<'a>,
) -> Option<Note<'a>> {
    let Some(allowed) = Types::read(other.schema) else {
        return Some(walk.note(Kind::TypeChanged, Grade::Breaking, own, Some(other)));
    };
    // A type that cannot be read may allow anything.
    let had = Types::of(a);
    let same = own.and_then(|own| Types::read(own.schema)) == Some(allowed);
    let kind = if same { Kind::Reworded } else { Kind::TypeChanged };
    Some(walk.note(kind, grade(had.within(allowed)), own, Some(other)))
}

/// Whether the bounds of `a` imply this one; `None` where that is unknown.
fn number_bound(keyword: &str, a: &View<'_>, bound: &Value) -> Option<bool> {
    let bound = bound.as_number()?;
    let (inclusive, exclusive, tighter) = match keyword {
        "minimum" | "exclusiveMinimum" => ("minimum", "exclusiveMinimum", Ordering::Greater),
        _ => ("maximum", "exclusiveMaximum", Ordering::Less),
    };
    let against = |keyword: &str| order(a.value(keyword)?.as_number()?, bound);
    let strict = keyword.starts_with("exclusive");
    let by_inclusive =
        against(inclusive).map(|order| order == tighter || order == Ordering::Equal && !strict);
    let by_exclusive = against(exclusive).map(|order| order == tighter || order == Ordering::Equal);
    Some(by_inclusive == Some(true) || by_exclusive == Some(true))
}

fn count(own: Option<&Value>, bound: &Value, tighter: Ordering) -> Option<bool> {
    let bound = bound.as_number()?;
    let zero = Number::from(0);
    let own = match own {
        Some(own) => own.as_number()?,
        // Nothing is shorter than empty.
        None if tighter == Ordering::Greater => &zero,
        None => return Some(false),
    };
    let order = order(own, bound)?;
    Some(order == tighter || order == Ordering::Equal)
}

fn multiple(a: &View<'_>, own: Option<&Value>, wanted: &Value) -> bool {
    let Some(wanted) = wanted.as_number() else { return false };
    if integer(wanted) == Some(1) && Types::of(a).within(Types::INTEGER) {
        return true;
    }
    let Some(own) = own.and_then(Value::as_number) else { return false };
    match (integer(own), integer(wanted)) {
        (Some(own), Some(wanted)) => wanted > 0 && own % wanted == 0,
        _ => order(own, wanted) == Some(Ordering::Equal),
    }
}

fn dependent(a: &View<'_>, own: Option<&Value>, wanted: &Value) -> bool {
    let Some(wanted) = wanted.as_object() else { return false };
    let required = names(a.value("required"));
    wanted.iter().all(|(name, needs)| {
        let had = names(own.and_then(|own| own.get(name)));
        needs.is_array()
            && names(Some(needs)).iter().all(|n| had.contains(n) || required.contains(n))
    })
}

fn inner<'a>(walk: &Walk<'_, 'a>, own: Option<&Place<'a>>, other: &Place<'a>) -> Vec<Note<'a>> {
    match own {
        Some(own) => walk.included(own, other, Stand::Part),
        None => vec![walk.constraint(View::of(walk.sup, other).is_trivial(), None, Some(other))],
    }
}

fn schemas_by_name<'a>(
    walk: &Walk<'_, 'a>,
    own: Option<&Place<'a>>,
    other: &Place<'a>,
) -> Vec<Note<'a>> {
    let had = own.map(Place::children).unwrap_or_default();
    let wanted = other.children();
    let find = |name: &str| had.iter().find(|(had, _)| had == name).map(|(_, place)| place);
    let mut notes: Vec<Note<'a>> =
        wanted.iter().flat_map(|(name, place)| inner(walk, find(name), place)).collect();
    let gone = had.iter().filter(|(name, _)| !wanted.iter().any(|(wanted, _)| wanted == name));
    notes.extend(gone.map(|(_, place)| walk.constraint(true, Some(place), None)));
    notes
}

fn conditions<'a>(walk: &Walk<'_, 'a>, keyword: &str, a: &View<'a>, b: &View<'a>) -> Vec<Note<'a>> {
    let (own, other) = (a.keywords.get(keyword), b.keywords.get(keyword));
    let same_if = match (a.keywords.get("if"), b.keywords.get("if")) {
        (Some(own), Some(other)) => walk.same(own, other),
        // Without `if` the others say nothing.
        (own, None) => own.is_none() || keyword == "if",
        (None, Some(_)) => false,
    };
    let unused = b.value("then").is_none() && b.value("else").is_none();
    match (own, other) {
        (Some(own), Some(other)) if same_if && keyword != "if" => {
            walk.included(own, other, Stand::Part)
        }
        _ => {
            let holds = same_if && keyword == "if" || b.value("if").is_none() || unused;
            vec![walk.constraint(holds, own, other)]
        }
    }
}

/// What is left over depends on every other keyword, so all of them must be the same, but for
/// properties that were added.
fn unevaluated<'a>(
    walk: &Walk<'_, 'a>,
    keyword: &str,
    (a, own): (&View<'a>, Option<&Place<'a>>),
    (b, other): (&View<'a>, &Place<'a>),
) -> Vec<Note<'a>> {
    let around: &[&str] = match keyword {
        "unevaluatedProperties" => &["additionalProperties", "patternProperties"],
        _ => &["items", "prefixItems", "additionalItems", "contains"],
    };
    let shared = ["anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "not"];
    let same = |keyword: &&str| {
        let plain = b.value(keyword).is_none_or(|value| walk.is_plain(value));
        a.value(keyword) == b.value(keyword) && plain
    };
    let alike =
        around.iter().chain(&shared).all(same) && a.conjuncts.is_empty() && b.conjuncts.is_empty();
    let named = |view: &View<'a>| names_in(view.value("properties"));
    let alike = alike && named(a).is_subset(&named(b));
    let equal = own.is_some_and(|own| own.schema == other.schema && walk.is_plain(own.schema));
    let holds = alike && equal || View::of(walk.sup, other).is_trivial();
    if holds && equal { Vec::new() } else { vec![walk.constraint(holds, own, Some(other))] }
}

fn names_in(properties: Option<&Value>) -> BTreeSet<&str> {
    let members = properties.and_then(Value::as_object);
    members.map(|members| members.keys().map(String::as_str).collect()).unwrap_or_default()
}
