//! The table of edits with the grade each must get.

use super::diff::{diff, diff_values, removed};
use super::grade::Located;
use super::listing::tools_from_json;
use crate::model::words::Grade;
use serde_json::{Value, json};

/// Applies an edit to a schema: `(pointer, new value)`; `null` removes.
fn edited(schema: &Value, edits: &[(&str, Value)]) -> Value {
    let mut schema = schema.clone();
    for (pointer, value) in edits {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let target = schema.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        let key = key.replace("~1", "/").replace("~0", "~");
        if value.is_null() {
            target.remove(&key);
        } else {
            target.insert(key, value.clone());
        }
    }
    schema
}

fn found(located: &Option<Located>) -> Vec<String> {
    let changes = located.as_ref().map(|located| located.changes.clone()).unwrap_or_default();
    changes.iter().map(|c| format!("{} {} {}", c.grade, c.kind, c.pointer)).collect()
}

fn base() -> Value {
    json!({"name": "search", "title": "Search", "description": "Search the index.",
        "annotations": {"readOnlyHint": true},
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": 100,
                    "description": "What"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
                "order": {"type": "string", "enum": ["asc", "desc", "rank"]},
                "ratio": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
                "since": {"type": "string", "format": "date", "pattern": "^2"},
                "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1,
                    "maxItems": 5, "uniqueItems": true},
                "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "shape": {"oneOf": [
                    {"type": "object", "required": ["kind"],
                        "properties": {"kind": {"const": "a"}, "x": {"type": "number"}}},
                    {"type": "object", "required": ["kind"],
                        "properties": {"kind": {"const": "b"}}}]},
                "place": {"$ref": "#/$defs/Place"},
                "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "free": {"type": "object"},
                "coded": {"type": "object", "patternProperties": {"^c": {"type": "string"}}},
                "strict": {"type": "object", "properties": {"a": {"type": "string"}},
                    "additionalProperties": false}
            },
            "required": ["query"],
            "$defs": {"Place": {"type": "object", "properties": {"city": {"type": "string"},
                "zip": {"type": ["string", "null"]}}, "required": ["city"]},
                "Unused": {"type": "string"}}
        },
        "outputSchema": {"type": "object",
            "properties": {"hits": {"type": "integer"}, "unit": {"enum": ["row", "page"]}},
            "required": ["hits"]}
    })
}

const B: &str = "breaking";
const S: &str = "semantic";
const C: &str = "compatible";

/// Edits, grade, what is said; empty where only the grade counts.
type Row = (Vec<(&'static str, Value)>, &'static str, &'static str);

#[allow(clippy::too_many_lines)] // It is a table.
fn table() -> Vec<Row> {
    let p = "/inputSchema/properties";
    let at = |rest: &str| -> &'static str { Box::leak(format!("{p}/{rest}").into_boxed_str()) };
    let one = |rest: &str, value: Value| vec![(at(rest), value)];
    let s = || json!({"type": "string"});
    let shape = |c: Value| {
        let mut shapes = base().pointer(&format!("{p}/shape/oneOf")).unwrap().clone();
        shapes.as_array_mut().unwrap().push(c);
        shapes
    };
    vec![
        // The tool itself
        (vec![("/description", json!("Other."))], S, "semantic text_changed /description"),
        (vec![("/description", Value::Null)], S, ""),
        (vec![("/title", json!("T"))], S, "semantic text_changed /title"),
        (
            vec![("/annotations/readOnlyHint", json!(false))],
            S,
            "semantic annotation_changed /annotations/readOnlyHint",
        ),
        (vec![("/annotations", Value::Null)], S, "semantic annotation_changed /annotations"),
        (vec![("/name", json!("find"))], B, "breaking tool_renamed /name"),
        (
            vec![("/execution", json!({"taskSupport": "optional"}))],
            C,
            "compatible execution_changed /execution/taskSupport",
        ),
        (vec![("/execution", json!({"taskSupport": "required"}))], B, ""),
        (vec![("/execution", json!({"other": 1}))], B, ""),
        (vec![("/inputSchema", Value::Null)], B, "breaking schema_removed /inputSchema"),
        // Parameters
        (
            vec![(at("query"), Value::Null)],
            B,
            "breaking property_removed /inputSchema/properties/query",
        ),
        (
            vec![(at("free"), Value::Null), (at("loose"), json!({"type": "object"}))],
            B,
            "breaking property_renamed /inputSchema/properties/free",
        ),
        (one("lang", s()), C, "compatible property_added /inputSchema/properties/lang"),
        (
            vec![(at("lang"), s()), ("/inputSchema/required", json!(["query", "lang"]))],
            B,
            "breaking required_added /inputSchema/properties/lang",
        ),
        (
            vec![("/inputSchema/required", json!(["query", "limit"]))],
            B,
            "breaking required_added /inputSchema/properties/limit",
        ),
        (
            vec![("/inputSchema/required", json!([]))],
            C,
            "compatible required_removed /inputSchema/properties/query",
        ),
        (
            vec![("/inputSchema/required", json!(["query", "ghost"]))],
            B,
            "breaking required_added /inputSchema/required",
        ),
        (
            vec![("/inputSchema/additionalProperties", json!(false))],
            B,
            "breaking constraint_added /inputSchema/additionalProperties",
        ),
        (vec![("/inputSchema/additionalProperties", json!(true))], C, ""),
        (vec![("/inputSchema/additionalProperties", json!({"description": "any"}))], C, ""),
        (one("strict/additionalProperties", json!(true)), C, ""),
        (one("strict/properties/b", json!({"type": "integer"})), C, ""),
        (one("labels/additionalProperties", json!({"type": ["string", "null"]})), C, ""),
        (one("labels/additionalProperties", json!({"type": "integer"})), B, ""),
        (one("labels/properties", json!({"x": {"type": "integer"}})), B, ""),
        (one("labels/properties", json!({"x": {"type": "string"}})), C, ""),
        (one("free/properties", json!({"x": {"type": "integer"}})), B, ""),
        (one("free/properties", json!({"x": {}})), C, ""),
        (one("free/propertyNames", json!({"maxLength": 3})), B, ""),
        (one("free/minProperties", json!(1)), B, ""),
        (one("free/dependentRequired", json!({"a": ["b"]})), B, ""),
        (one("coded/patternProperties/^c", json!({"type": ["string", "null"]})), C, ""),
        (one("coded/patternProperties/^d", s()), B, ""),
        (one("coded/patternProperties", json!({})), B, ""),
        (one("coded/properties", json!({"c": {"type": "integer"}})), B, ""),
        // Types
        (
            one("limit/type", json!("number")),
            C,
            "compatible type_changed /inputSchema/properties/limit/type",
        ),
        (one("limit/type", json!(["integer", "null"])), C, ""),
        (
            one("limit/type", json!("string")),
            B,
            "breaking type_changed /inputSchema/properties/limit/type",
        ),
        (one("limit/type", Value::Null), C, ""),
        (one("ratio/type", json!("integer")), B, ""),
        (one("order/type", Value::Null), C, ""),
        (
            one("order/type", json!(["string"])),
            C,
            "compatible reworded /inputSchema/properties/order/type",
        ),
        (
            vec![("/inputSchema/$defs/Place/properties/zip/type", json!("string"))],
            B,
            "breaking type_changed /inputSchema/$defs/Place/properties/zip/type",
        ),
        (vec![("/inputSchema/$defs/Place/properties/zip/type", json!(["null", "string"]))], C, ""),
        (one("query", json!(true)), C, ""),
        (one("query", json!(false)), B, ""),
        // Enums and constants
        (
            one("order/enum", json!(["asc", "desc"])),
            B,
            "breaking enum_changed /inputSchema/properties/order/enum",
        ),
        (
            one("order/enum", json!(["asc", "desc", "rank", "new"])),
            C,
            "compatible enum_changed /inputSchema/properties/order/enum",
        ),
        (
            one("order/enum", json!(["rank", "desc", "asc"])),
            C,
            "compatible reworded /inputSchema/properties/order/enum",
        ),
        (one("order/enum", Value::Null), C, ""),
        (one("query/enum", json!(["a"])), B, ""),
        (vec![(at("order/enum"), Value::Null), (at("order/const"), json!("asc"))], B, ""),
        (
            vec![
                (at("order/enum"), Value::Null),
                (
                    at("order/oneOf"),
                    json!([{"const": "asc"}, {"const": "desc"}, {"const": "rank"}]),
                ),
            ],
            C,
            "",
        ),
        (
            vec![
                (at("order/enum"), Value::Null),
                (at("order/oneOf"), json!([{"const": "asc"}, {"const": "desc"}])),
            ],
            B,
            "",
        ),
        // Bounds, lengths, patterns, formats
        (
            one("limit/maximum", json!(40)),
            B,
            "breaking constraint_changed /inputSchema/properties/limit/maximum",
        ),
        (one("limit/maximum", json!(60)), C, ""),
        (
            one("limit/maximum", Value::Null),
            C,
            "compatible constraint_removed /inputSchema/properties/limit/maximum",
        ),
        (one("limit/minimum", json!(2)), B, ""),
        (one("limit/minimum", json!(0.5)), C, ""),
        (vec![(at("limit/minimum"), Value::Null), (at("limit/exclusiveMinimum"), json!(0))], C, ""),
        (vec![(at("limit/minimum"), Value::Null), (at("limit/exclusiveMinimum"), json!(1))], B, ""),
        (vec![(at("ratio/exclusiveMinimum"), Value::Null), (at("ratio/minimum"), json!(0))], C, ""),
        (one("limit/multipleOf", json!(5)), B, ""),
        (one("limit/multipleOf", json!(1)), C, ""),
        (one("ratio/multipleOf", json!(0.25)), B, ""),
        (one("query/minLength", json!(0)), C, ""),
        (one("query/minLength", json!(3)), B, ""),
        (one("query/maxLength", json!(99)), B, ""),
        (one("query/maximum", json!(5)), C, ""),
        (one("order/maxLength", json!(2)), B, ""),
        (one("since/pattern", json!("^20")), B, ""),
        (one("since/pattern", Value::Null), C, ""),
        (
            one("query/pattern", json!("^a")),
            B,
            "breaking constraint_added /inputSchema/properties/query/pattern",
        ),
        (one("since/format", json!("date-time")), B, ""),
        (one("since/format", Value::Null), C, ""),
        (one("query/contentEncoding", json!("base64")), B, ""),
        // Arrays
        (one("tags/items", json!({"type": "integer"})), B, ""),
        (one("tags/items", json!({"type": ["string", "integer"]})), C, ""),
        (one("tags/items", Value::Null), C, ""),
        (one("tags/minItems", json!(2)), B, ""),
        (one("tags/maxItems", json!(4)), B, ""),
        (one("tags/uniqueItems", json!(false)), C, ""),
        (one("pair/uniqueItems", json!(true)), B, ""),
        (one("pair/items", json!(false)), B, ""),
        (one("pair/prefixItems", json!([{"type": "string"}])), C, ""),
        (
            one("pair/prefixItems", json!([{"type": "string"}, {"type": "string"}])),
            B,
            "breaking type_changed /inputSchema/properties/pair/prefixItems/1/type",
        ),
        (one("tags/contains", json!({"const": "x"})), B, ""),
        // Alternatives and conditions
        (one("either/anyOf", json!([{"type": "string"}])), B, ""),
        (one("either/anyOf", json!([{"type": "null"}, {"type": "string"}])), C, ""),
        (
            one("either/anyOf", json!([{"type": "string"}, {"type": "null"}, {"type": "integer"}])),
            C,
            "compatible alternative_added /inputSchema/properties/either/anyOf/2",
        ),
        (one("either", json!({"type": ["string", "null"]})), C, ""),
        (one("either", json!({"type": "string"})), B, ""),
        (
            one(
                "tags",
                json!({"anyOf": [base()["inputSchema"]["properties"]["tags"].clone(),
            {"type": "null"}]}),
            ),
            C,
            "",
        ),
        (
            one(
                "shape/oneOf",
                shape(json!({"type": "object", "properties": {"kind": {"const": "c"}},
            "required": ["kind"]})),
            ),
            C,
            "",
        ),
        (one("shape/oneOf", shape(json!({"type": "object"}))), B, ""),
        (one("query/not", json!({"const": "x"})), B, ""),
        (one("query/allOf", json!([{"maxLength": 200}])), C, ""),
        (one("query/allOf", json!([{"maxLength": 20}])), B, ""),
        (one("free/if", json!({"required": ["a"]})), C, ""),
        (
            vec![
                (at("free/if"), json!({"required": ["a"]})),
                (at("free/then"), json!({"required": ["b"]})),
            ],
            B,
            "",
        ),
        // References
        (one("place", base()["inputSchema"]["$defs"]["Place"].clone()), C, ""),
        (
            one("place", json!({"allOf": [{"$ref": "#/$defs/Place"}], "description": "Where"})),
            S,
            "",
        ),
        (one("place/$ref", json!("#/$defs/Gone")), B, ""),
        (
            vec![("/inputSchema/$defs/Place/required", json!(["city", "zip"]))],
            B,
            "breaking required_added /inputSchema/$defs/Place/properties/zip",
        ),
        (vec![("/inputSchema/$defs/Place/properties/land", s())], C, ""),
        (
            vec![("/inputSchema/$defs/Unused", json!({"type": "integer"}))],
            C,
            "compatible reworded ",
        ),
        (vec![("/inputSchema/$defs/Place/description", json!("Town"))], S, ""),
        // What is read, not validated
        (
            one("limit/default", json!(20)),
            S,
            "semantic default_changed /inputSchema/properties/limit/default",
        ),
        (one("limit/default", Value::Null), S, ""),
        (one("query/default", json!("x")), S, ""),
        (
            one("query/description", json!("Zero-based")),
            S,
            "semantic text_changed /inputSchema/properties/query/description",
        ),
        (one("query/title", json!("Q")), S, ""),
        (one("query/examples", json!(["a"])), S, ""),
        (one("query/deprecated", json!(true)), S, ""),
        (one("query/x-order", json!(1)), S, ""),
        (
            one("query/nullable", json!(true)),
            B,
            "breaking undecided /inputSchema/properties/query/nullable",
        ),
        (
            vec![("/inputSchema/$schema", json!("https://json-schema.org/draft/2020-12/schema"))],
            C,
            "",
        ),
        (vec![("/inputSchema/$schema", json!("http://json-schema.org/draft-07/schema#"))], B, ""),
        (vec![("/inputSchema/$schema", json!("https://example.com/mine"))], B, ""),
        // Results go the other way
        (vec![("/outputSchema", Value::Null)], B, "breaking schema_removed /outputSchema"),
        (
            vec![("/outputSchema/properties/more", s())],
            C,
            "compatible property_added /outputSchema/properties/more",
        ),
        (vec![("/outputSchema/properties/hits", Value::Null)], B, ""),
        (
            vec![("/outputSchema/properties/unit", Value::Null)],
            B,
            "breaking property_removed /outputSchema/properties/unit",
        ),
        (
            vec![("/outputSchema/required", json!([]))],
            B,
            "breaking required_removed /outputSchema/properties/hits",
        ),
        (
            vec![("/outputSchema/required", json!(["hits", "unit"]))],
            C,
            "compatible required_added /outputSchema/properties/unit",
        ),
        (vec![("/outputSchema/properties/unit/enum", json!(["row"]))], C, ""),
        (vec![("/outputSchema/properties/unit/enum", json!(["row", "page", "x"]))], B, ""),
        (vec![("/outputSchema/properties/hits/type", json!("number"))], B, ""),
        (vec![("/outputSchema/properties/hits/minimum", json!(0))], C, ""),
    ]
}

#[test]
fn every_edit_gets_its_grade() {
    let base = base();
    let table = table();
    assert!(table.len() >= 60);
    let mut wrong = Vec::new();
    for (edits, grade, says) in &table {
        let located = diff_values(&base, &edited(&base, edits));
        let found = found(&located);
        let got = located.as_ref().map_or("none", |located| located.grade.as_str());
        if got != *grade || !says.is_empty() && !found.iter().any(|found| found == says) {
            wrong.push(format!("{edits:?}\n  wanted {grade} {says:?}\n  found {got} {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), table.len(), wrong.join("\n"));
}

/// The published drift cases, over the definitions that they use.
#[test]
fn published_cases_get_their_grades() {
    let tool = |first: &str, limit: &str, more: Value| {
        let mut properties = json!({"limit": {"type": "integer", "description": limit}});
        properties[first] = json!({"type": "string"});
        properties.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let tool = json!([{"name": "search", "description": "Search the index.",
            "inputSchema": {"type": "object", "properties": properties, "required": [],
                "additionalProperties": true}}]);
        tools_from_json(&tool.to_string()).unwrap().remove(0)
    };
    let most = "Maximum number of results.";
    let order = |values: Value| json!({"order": {"type": "string", "enum": values}});
    let pinned = tool("query", most, json!({}));
    assert_eq!(diff(&pinned, &pinned.clone()), None);
    let renamed = diff(&pinned, &tool("q", most, json!({})));
    assert_eq!(
        found(&renamed),
        [
            "compatible property_added /inputSchema/properties/q",
            "breaking property_renamed /inputSchema/properties/query",
        ]
    );
    let meaning = diff(&pinned, &tool("query", "Zero-based page index.", json!({})));
    assert_eq!(
        found(&meaning),
        ["semantic text_changed /inputSchema/properties/limit/description"]
    );
    let narrowed = diff(
        &tool("query", most, order(json!(["asc", "desc", "rank"]))),
        &tool("query", most, order(json!(["asc", "desc"]))),
    );
    assert_eq!(found(&narrowed), ["breaking enum_changed /inputSchema/properties/order/enum"]);
    let optional = diff(&pinned, &tool("query", most, json!({"lang": {"type": "string"}})));
    assert_eq!(found(&optional), ["compatible property_added /inputSchema/properties/lang"]);
    assert_eq!(found(&removed(&pinned)), ["breaking tool_removed "]);
}

#[test]
fn circles_of_references_end_and_what_is_too_much_is_breaking() {
    let tree = |extra: Value| {
        let node = json!({"type": "object", "properties": {"value": extra,
            "next": {"$ref": "#/$defs/Node"}}});
        json!({"name": "t", "inputSchema": {"$ref": "#/$defs/Node", "$defs": {"Node": node}}})
    };
    let grade = |old: &Value, new: &Value| diff_values(old, new).map(|located| located.grade);
    let (narrow, wide) = (tree(json!({"type": "integer"})), tree(json!({"type": "number"})));
    assert_eq!(grade(&narrow, &wide), Some(Grade::Compatible));
    assert_eq!(grade(&wide, &narrow), Some(Grade::Breaking));
    let endless = json!({"name": "t", "inputSchema": {"$ref": "#"}});
    assert_eq!(grade(&endless, &wide), Some(Grade::Breaking));
    let many = |inner: Value| {
        let mut schema = inner;
        for level in 0..30 {
            let text = level.to_string();
            schema = json!({"anyOf": [schema, {"const": text}, {"type": "object"}]});
        }
        json!({"name": "t", "inputSchema": schema})
    };
    let (string, number) = (many(json!({"type": "string"})), many(json!({"type": "number"})));
    assert_eq!(grade(&string, &number), Some(Grade::Breaking));
}

/// Two schemas made to be expensive; run with `--ignored --nocapture` to see what the bound costs.
#[test]
#[ignore = "a measurement"]
fn what_the_worst_comparison_costs() {
    let branch = |at: usize, extra: &str| {
        let mut properties = serde_json::Map::new();
        for name in 0..40 {
            let any = json!({"anyOf": [{"type": "string", "minLength": at}, {"type": "null"},
                {"type": "object", "properties": {extra: {"const": at}}}, {"$ref": "#/$defs/D"}]});
            properties.insert(format!("p{name}"), any);
        }
        json!({"type": "object", "properties": properties})
    };
    let tool = |extra: &str| {
        let branches: Vec<Value> = (0..60).map(|at| branch(at, extra)).collect();
        json!({"name": "t", "inputSchema": {"anyOf": branches, "$defs": {"D": {"const": 1}}}})
    };
    let (old, new) = (tool("a"), tool("b"));
    let start = std::time::Instant::now();
    let located = diff_values(&old, &new).unwrap();
    println!(
        "{:?}, {} changes, {} bytes",
        start.elapsed(),
        located.changes.len() + located.omitted,
        old.to_string().len()
    );
    assert_eq!(located.grade, Grade::Breaking);
}
