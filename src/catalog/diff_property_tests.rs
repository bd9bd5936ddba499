//! An independent JSON Schema validator judges the grades: where a change of random schemas is
//! graded `compatible`, nothing that the old one accepts is refused by the new one.
//!
//! A schema that lists its properties and is open all the same says nothing of other names; adding
//! an optional property is compatible by decree. So where a property was added, only values are
//! judged that keep to declared names; in all other pairs every value is.

use super::diff::diff_values;
use super::grade::Kind;
use crate::model::words::Grade;
use serde_json::{Map, Value, json};

/// SplitMix64: the same cases on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap()
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn scalar(dice: &mut Dice) -> Value {
    let values = [
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(2),
        json!(-1),
        json!(2.5),
        json!(1.0),
        json!(""),
        json!("a"),
        json!("b"),
        json!("abc"),
    ];
    dice.pick(&values)
}

fn names(dice: &mut Dice) -> Value {
    NAMES.iter().filter(|_| dice.one_in(3)).map(|name| json!(name)).collect()
}

fn properties(dice: &mut Dice, depth: usize) -> Value {
    let mut map = Map::new();
    for name in NAMES {
        if dice.one_in(2) {
            map.insert(name.to_owned(), schema(dice, depth));
        }
    }
    Value::Object(map)
}

fn list(dice: &mut Dice, depth: usize) -> Value {
    (0..=dice.below(3)).map(|_| schema(dice, depth)).collect()
}

/// One keyword with a value that fits it.
fn keyword(dice: &mut Dice, depth: usize) -> (&'static str, Value) {
    let types = ["string", "integer", "number", "boolean", "null", "array", "object"];
    let small = |dice: &mut Dice| json!(dice.below(4));
    let number =
        |dice: &mut Dice| dice.pick(&[json!(-1), json!(0), json!(1), json!(1.5), json!(2)]);
    let simple = 21;
    match dice.below(if depth == 0 { simple } else { simple + 18 }) {
        0..=3 => ("type", json!(dice.pick(&types))),
        4 | 5 => ("type", json!([dice.pick(&types), dice.pick(&["null", "string"])])),
        6 | 7 => ("enum", (0..=dice.below(3)).map(|_| scalar(dice)).collect()),
        8 => ("const", scalar(dice)),
        9 => ("minimum", number(dice)),
        10 => ("maximum", number(dice)),
        11 => ("exclusiveMinimum", number(dice)),
        12 => ("exclusiveMaximum", number(dice)),
        13 => ("multipleOf", dice.pick(&[json!(1), json!(2), json!(0.5)])),
        14 => ("minLength", small(dice)),
        15 => ("maxLength", small(dice)),
        16 => ("minItems", small(dice)),
        17 => ("maxItems", small(dice)),
        18 => ("pattern", json!(dice.pick(&["^a", "b$"]))),
        19 => ("required", names(dice)),
        20 => ("$ref", json!(dice.pick(&["#/$defs/A", "#/$defs/B"]))),
        21..=24 => ("properties", properties(dice, depth - 1)),
        25 => ("additionalProperties", schema(dice, depth - 1)),
        26 => ("additionalProperties", json!(dice.one_in(2))),
        27 => ("patternProperties", json!({dice.pick(&["^a", "^[bc]"]): schema(dice, depth - 1)})),
        28 => ("items", schema(dice, depth - 1)),
        29 => ("prefixItems", list(dice, depth - 1)),
        30 | 31 => ("anyOf", list(dice, depth - 1)),
        32 => ("oneOf", list(dice, depth - 1)),
        33 => ("allOf", list(dice, depth - 1)),
        34 => ("not", schema(dice, depth - 1)),
        35 => (dice.pick(&["if", "then", "else"]), schema(dice, depth - 1)),
        36 => ("contains", schema(dice, depth - 1)),
        37 => (
            dice.pick(&["minContains", "maxContains", "minProperties", "maxProperties"]),
            small(dice),
        ),
        _ => (dice.pick(&["unevaluatedProperties", "unevaluatedItems"]), json!(false)),
    }
}

fn schema(dice: &mut Dice, depth: usize) -> Value {
    if dice.one_in(25) {
        return json!(!dice.one_in(3));
    }
    let mut map = Map::new();
    for _ in 0..1 + dice.below(3) {
        let (key, value) = keyword(dice, depth);
        map.insert(key.to_owned(), value);
    }
    if map.contains_key("properties") && dice.one_in(2) {
        map.insert("type".to_owned(), json!("object"));
        map.remove("enum");
        map.remove("const");
    }
    Value::Object(map)
}

fn document(dice: &mut Dice) -> Value {
    let mut root = schema(dice, 2);
    if !root.is_object() {
        root = json!({});
    }
    root["properties"] = properties(dice, 2);
    root["$defs"] = json!({"A": schema(dice, 1), "B": schema(dice, 1)});
    if dice.one_in(2) {
        root["type"] = json!("object");
    }
    root
}

/// Changes one keyword of one schema somewhere below.
fn mutate(dice: &mut Dice, value: &mut Value) {
    let Some(members) = value.as_object_mut() else {
        *value = schema(dice, 1);
        return;
    };
    let keys: Vec<String> = members.keys().filter(|key| *key != "$defs").cloned().collect();
    if !keys.is_empty() && !dice.one_in(3) {
        let key = dice.pick(&keys);
        match members.get_mut(&key) {
            Some(Value::Object(children)) if is_map(&key) && !children.is_empty() => {
                let names: Vec<String> = children.keys().cloned().collect();
                let name = dice.pick(&names);
                return mutate(dice, &mut children[&name]);
            }
            Some(Value::Array(children)) if is_list(&key) && !children.is_empty() => {
                let at = dice.below(children.len());
                return mutate(dice, &mut children[at]);
            }
            Some(child @ Value::Object(_)) if !is_map(&key) => return mutate(dice, child),
            _ => {}
        }
    }
    match (dice.below(5), keys.is_empty()) {
        (0 | 1, false) => {
            members.shift_remove(&dice.pick(&keys));
        }
        (2, false) if !members.contains_key("$defs") => {
            let own = value.clone();
            *value = json!({"anyOf": [own, {"type": "null"}]});
        }
        _ => {
            let (key, fresh) = keyword(dice, 1);
            members.insert(key.to_owned(), fresh);
        }
    }
}

fn is_map(keyword: &str) -> bool {
    matches!(keyword, "properties" | "patternProperties" | "$defs")
}

fn is_list(keyword: &str) -> bool {
    matches!(keyword, "anyOf" | "oneOf" | "allOf" | "prefixItems")
}

/// A value that has a chance to fit a schema.
fn instance(dice: &mut Dice, root: &Value, schema: &Value, depth: usize) -> Value {
    let Some(members) = schema.as_object().filter(|_| depth > 0 && !dice.one_in(12)) else {
        return free(dice, 2);
    };
    if let Some(target) = members.get("$ref").and_then(Value::as_str).filter(|_| dice.one_in(2)) {
        let target = root.pointer(&target[1..]).cloned().unwrap_or_default();
        return instance(dice, root, &target, depth - 1);
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(Value::Array(list)) = members.get(key).filter(|_| dice.one_in(2)) {
            let part = dice.pick(list);
            return instance(dice, root, &part, depth - 1);
        }
    }
    if let Some(Value::Array(values)) = members.get("enum").filter(|list| *list != &json!([])) {
        return dice.pick(values);
    }
    if let Some(value) = members.get("const") {
        return value.clone();
    }
    let mut types: Vec<&str> = match members.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if types.is_empty() {
        types =
            if members.contains_key("properties") { vec!["object"] } else { vec!["array", "any"] };
    }
    match dice.pick(&types) {
        "object" => object(dice, root, members, depth),
        "array" => array(dice, root, members, depth),
        "string" => json!(dice.pick(&["", "a", "b", "ab", "abc", "abcd"])),
        "integer" => json!(dice.pick(&[-2, -1, 0, 1, 2, 3, 4])),
        "number" => json!(dice.pick(&[-1.5, -1.0, 0.0, 0.5, 1.0, 1.5, 2.5, 4.0])),
        "boolean" => json!(dice.one_in(2)),
        "null" => Value::Null,
        _ => free(dice, 2),
    }
}

fn object(dice: &mut Dice, root: &Value, members: &Map<String, Value>, depth: usize) -> Value {
    let mut out = Map::new();
    let required = members.get("required").cloned().unwrap_or_default();
    for name in NAMES {
        let must = required.as_array().is_some_and(|list| list.contains(&json!(name)));
        let own = members.get("properties").and_then(|properties| properties.get(name));
        if must || own.is_some() && dice.one_in(2) || dice.one_in(6) {
            let rest = members.get("additionalProperties");
            let schema = own.or(rest).cloned().unwrap_or(json!(true));
            out.insert(name.to_owned(), instance(dice, root, &schema, depth - 1));
        }
    }
    Value::Object(out)
}

fn array(dice: &mut Dice, root: &Value, members: &Map<String, Value>, depth: usize) -> Value {
    let item = |dice: &mut Dice, at: usize| {
        let first = members.get("prefixItems").and_then(|list| list.get(at));
        let schema = first.or(members.get("items")).cloned().unwrap_or(json!(true));
        instance(dice, root, &schema, depth - 1)
    };
    (0..dice.below(5)).map(|at| item(dice, at)).collect()
}

fn free(dice: &mut Dice, depth: usize) -> Value {
    match dice.below(if depth == 0 { 3 } else { 5 }) {
        0..=2 => scalar(dice),
        3 => (0..dice.below(4)).map(|_| free(dice, depth - 1)).collect(),
        _ => {
            let mut map = Map::new();
            for name in NAMES {
                if dice.one_in(3) {
                    map.insert(name.to_owned(), free(dice, depth - 1));
                }
            }
            Value::Object(map)
        }
    }
}

/// The schema with every place that lists its properties closed to other names.
fn closed(root: &Value) -> Value {
    let mut closed = root.clone();
    close(&mut closed, root, true, true);
    closed
}

fn close(schema: &mut Value, root: &Value, whole: bool, is_root: bool) {
    let shut = whole && (is_root || lists(schema, root, 4));
    let Some(members) = schema.as_object_mut() else { return };
    for (key, value) in members.iter_mut() {
        match key.as_str() {
            "properties" | "patternProperties" => each(value, root, true),
            "$defs" | "anyOf" | "oneOf" | "allOf" => each(value, root, false),
            "prefixItems" => each(value, root, true),
            "items" | "additionalProperties" => close(value, root, true, false),
            "then" | "else" => close(value, root, false, false),
            _ => {}
        }
    }
    if members.get("additionalProperties").is_some_and(|v| v == &json!(true) || v == &json!({})) {
        members.shift_remove("additionalProperties");
    }
    if shut {
        members.insert("unevaluatedProperties".to_owned(), json!(false));
    }
}

fn each(value: &mut Value, root: &Value, whole: bool) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(|child| close(child, root, whole, false));
        }
        Value::Array(items) => items.iter_mut().for_each(|child| close(child, root, whole, false)),
        _ => {}
    }
}

fn lists(schema: &Value, root: &Value, hops: usize) -> bool {
    let own = schema.get("properties").and_then(Value::as_object).is_some_and(|p| !p.is_empty());
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|r| root.pointer(&r[1..]));
    let parts = schema.get("allOf").and_then(Value::as_array);
    own || hops > 0
        && (target.is_some_and(|target| lists(target, root, hops - 1))
            || parts.is_some_and(|parts| parts.iter().any(|part| lists(part, root, hops - 1))))
}

#[derive(Default, Debug)]
struct Tally {
    compatible: usize,
    breaking: usize,
    judged: usize,
}

fn judge(seed: u64, tally: &mut Tally) {
    let mut dice = Dice(seed);
    let old = document(&mut dice);
    let mut new = old.clone();
    for _ in 0..=dice.below(3) {
        if dice.one_in(4) {
            let name = dice.pick(&["A", "B"]);
            mutate(&mut dice, &mut new["$defs"][name]);
        } else {
            mutate(&mut dice, &mut new);
        }
    }
    let tool = |schema: &Value| json!({"name": "t", "inputSchema": schema});
    let located = diff_values(&tool(&old), &tool(&new));
    if located.as_ref().is_some_and(|located| located.grade != Grade::Compatible) {
        tally.breaking += 1;
        return;
    }
    tally.compatible += usize::from(located.is_some());
    let changes = located.map(|located| located.changes).unwrap_or_default();
    let added = changes.iter().any(|change| change.kind == Kind::PropertyAdded);
    let accepts = if added { closed(&old) } else { old.clone() };
    let (Ok(before), Ok(after)) =
        (jsonschema::validator_for(&accepts), jsonschema::validator_for(&new))
    else {
        return;
    };
    for round in 0..60 {
        let guide = if round % 3 == 0 { &new } else { &old };
        let value = instance(&mut dice, guide, guide, 5);
        if before.is_valid(&value) {
            tally.judged += 1;
            assert!(
                after.is_valid(&value),
                "seed {seed}: {value}\nold {old}\nnew {new}\n{changes:?}"
            );
        }
    }
}

#[test]
fn what_is_graded_compatible_refuses_nothing_that_was_accepted() {
    let mut tally = Tally::default();
    let seeds = std::env::var("DRIFT_SEEDS").ok().and_then(|text| text.parse().ok());
    for seed in 0..seeds.unwrap_or(4_000) {
        judge(seed, &mut tally);
    }
    // The test is worth nothing where nothing is compatible or nothing is judged.
    assert!(tally.compatible > 400 && tally.judged > 10_000, "{tally:?}");
    println!("{tally:?}");
}
