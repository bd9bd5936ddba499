//! Comparing the values in a schema as JSON Schema means them: numbers, types, finite sets.
//!
//! Promises: exact or `None`; no rounding decides anything.

use super::diff_view::View;
use super::digest::canonical_text;
use serde_json::{Number, Value};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Compares two numbers by value; `None` where a double stands against an integer beyond 2^53.
pub(super) fn order(a: &Number, b: &Number) -> Option<Ordering> {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        (Some(a), None) => small(a)?.partial_cmp(&b.as_f64()?),
        (None, Some(b)) => a.as_f64()?.partial_cmp(&small(b)?),
        (None, None) => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// The number as an integer, where it is one and exactly known.
pub(super) fn integer(number: &Number) -> Option<i128> {
    if let Some(value) = number.as_i64() {
        return Some(i128::from(value));
    }
    if let Some(value) = number.as_u64() {
        return Some(i128::from(value));
    }
    let value = number.as_f64()?;
    let exact = value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0;
    // Checked above: a whole number within 2^53.
    #[allow(clippy::cast_possible_truncation)]
    exact.then_some(value as i128)
}

fn small(value: i128) -> Option<f64> {
    let value = i64::try_from(value).ok().filter(|value| value.unsigned_abs() <= 1 << 53)?;
    // Checked above: exact up to 2^53.
    #[allow(clippy::cast_precision_loss)]
    Some(value as f64)
}

/// A set of JSON Schema types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub const ANY: Types = Types(0b0111_1111);
    pub const OBJECT: Types = Types(1);
    pub const ARRAY: Types = Types(2);
    pub const STRING: Types = Types(4);
    pub const INTEGER: Types = Types(8);
    /// Numbers with a fraction; `number` is this and `INTEGER`.
    const FRACTION: Types = Types(16);
    pub const NUMBER: Types = Types(24);
    const BOOLEAN: Types = Types(32);
    const NULL: Types = Types(64);

    fn named(name: &str) -> Option<Types> {
        Some(match name {
            "object" => Types::OBJECT,
            "array" => Types::ARRAY,
            "string" => Types::STRING,
            "integer" => Types::INTEGER,
            "number" => Types::NUMBER,
            "boolean" => Types::BOOLEAN,
            "null" => Types::NULL,
            _ => return None,
        })
    }

    /// What a `type` keyword allows; `None` where it is malformed.
    pub fn read(value: &Value) -> Option<Types> {
        match value {
            Value::String(name) => Types::named(name),
            Value::Array(names) => names.iter().try_fold(Types(0), |types, name| {
                Some(Types(types.0 | Types::named(name.as_str()?)?.0))
            }),
            _ => None,
        }
    }

    fn of_value(value: &Value) -> Types {
        match value {
            Value::Null => Types::NULL,
            Value::Bool(_) => Types::BOOLEAN,
            Value::Number(number) if integer(number).is_some() => Types::INTEGER,
            // Beyond 2^53 a double may be either.
            Value::Number(_) => Types::NUMBER,
            Value::String(_) => Types::STRING,
            Value::Array(_) => Types::ARRAY,
            Value::Object(_) => Types::OBJECT,
        }
    }

    /// A superset of the types of the values that a schema accepts.
    pub fn of(view: &View<'_>) -> Types {
        let declared = view.value("type").and_then(Types::read).unwrap_or(Types::ANY);
        match finite(view) {
            Some(values) => {
                let seen = values.iter().fold(0, |types, value| types | Types::of_value(value).0);
                Types(declared.0 & seen)
            }
            None => declared,
        }
    }

    pub fn within(self, other: Types) -> bool {
        self.0 & !other.0 == 0
    }

    pub fn meets(self, other: Types) -> bool {
        self.0 & other.0 != 0
    }

    /// The single types in it.
    pub fn split(self) -> Vec<Types> {
        let single = [
            Types::OBJECT,
            Types::ARRAY,
            Types::STRING,
            Types::INTEGER,
            Types::FRACTION,
            Types::BOOLEAN,
            Types::NULL,
        ];
        single.into_iter().filter(|types| self.meets(*types)).collect()
    }

    /// The values of `self` where they are finitely many.
    fn values(self) -> Option<Vec<Value>> {
        if self.0 == 0 || !self.within(Types(Types::BOOLEAN.0 | Types::NULL.0)) {
            return None;
        }
        let mut values = Vec::new();
        if self.meets(Types::BOOLEAN) {
            values.extend([Value::Bool(false), Value::Bool(true)]);
        }
        if self.meets(Types::NULL) {
            values.push(Value::Null);
        }
        Some(values)
    }
}

/// The values that `const` or `enum` leaves, whatever else is asked of them.
pub(super) fn finite(view: &View<'_>) -> Option<Vec<Value>> {
    match (view.value("const"), view.value("enum")) {
        (Some(only), Some(Value::Array(values))) => {
            let listed = set(values).contains(&canonical_text(only)?);
            return Some(listed.then(|| only.clone()).into_iter().collect());
        }
        (Some(only), _) => return Some(vec![only.clone()]),
        (None, Some(Value::Array(values))) => return Some(values.clone()),
        (None, _) => {}
    }
    view.value("type").and_then(Types::read).and_then(Types::values)
}

/// Values by what JSON Schema calls equal.
pub(super) fn set(values: &[Value]) -> BTreeSet<String> {
    values.iter().filter_map(canonical_text).collect()
}

/// Whether two schemas are known to accept no common value.
pub(super) fn disjoint(a: &View<'_>, b: &View<'_>, depth: usize) -> bool {
    if a.never || b.never || !Types::of(a).meets(Types::of(b)) {
        return true;
    }
    if let (Some(a), Some(b)) = (finite(a), finite(b)) {
        return set(&a).is_disjoint(&set(&b));
    }
    let objects = |view: &View<'_>| Types::of(view).within(Types::OBJECT);
    if depth == 0 || !objects(a) || !objects(b) {
        return false;
    }
    tags(a).iter().any(|(name, values)| {
        tags(b).iter().any(|(other, others)| name == other && values.is_disjoint(others))
    })
}

/// Required properties that only a finite set of values may have: what tells variants apart.
fn tags(view: &View<'_>) -> Vec<(String, BTreeSet<String>)> {
    let required = names(view.value("required"));
    let tag = |(name, place): (String, super::diff_view::Place<'_>)| {
        let values = match (place.schema.get("const"), place.schema.get("enum")) {
            (Some(only), _) => vec![only.clone()],
            (None, Some(Value::Array(values))) => values.clone(),
            _ => return None,
        };
        required.contains(&name).then(|| (name, set(&values)))
    };
    view.members("properties").into_iter().filter_map(tag).collect()
}

/// The texts in an array.
pub(super) fn names(value: Option<&Value>) -> BTreeSet<String> {
    let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}
