//! What `explain` promises is true: each change it prints, written into the recording's JSON by
//! another hand, gives the promised state.

use serde_json::{Value as Json, json};

use super::*;
use crate::config::{Sources, load_with};
use crate::coverage::Value;
use crate::engine;
use crate::model::record::Record;
use crate::wire::Signal;
use crate::wire::json::{Limits, to_protobuf};

/// Cases that between them have every ladder rung missing or failed once.
const CASES: [&str; 6] = [
    "seed-health-move-4-nobody-checked",
    "seed-health-8-effect-unknown",
    "seed-health-4-stale-catalog",
    "seed-ladder-eight-calls",
    "field-b01-unset-but-failed",
    "field-b03-outcome-not-observable",
];

fn lines(case: &str) -> Vec<String> {
    let path = format!("tests/data/cases/{case}/input.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().filter(|line| !line.trim().is_empty()).map(str::to_string).collect()
}

fn record(lines: &[String]) -> Recording {
    let mut exports = Vec::new();
    for line in lines {
        for (key, signal) in [("resourceSpans", Signal::Traces), ("resourceLogs", Signal::Logs)] {
            if line.contains(key) {
                let limits = Limits { max_bytes: 1 << 24 };
                exports.push((signal, to_protobuf(signal, line.as_bytes(), limits).unwrap().bytes));
            }
        }
    }
    let settings = load_with(&Sources::default(), &|_| None).unwrap();
    Recording::new(exports, settings.policy)
}

/// Adds the attributes to the span in the JSON text.
fn write_in(lines: &[String], change: &Change) -> Vec<String> {
    let value = |value: &Value| match value {
        Value::Text(text) => json!({ "stringValue": text }),
        Value::Bool(flag) => json!({ "boolValue": flag }),
        Value::Int(number) => json!({ "intValue": number.to_string() }),
        Value::Texts(texts) => {
            let values: Vec<_> = texts.iter().map(|text| json!({ "stringValue": text })).collect();
            json!({ "arrayValue": { "values": values } })
        }
    };
    let add = |span: &mut Json| {
        let same = |key: &str, id: String| span[key].as_str().is_some_and(|text| text == id);
        if !same("traceId", change.trace_id.to_string())
            || !same("spanId", change.span_id.to_string())
        {
            return;
        }
        let list = span["attributes"].as_array_mut().unwrap();
        for (key, v) in &change.attributes {
            list.retain(|attr| attr["key"] != *key);
            list.push(json!({ "key": key, "value": value(v) }));
        }
    };
    let change_line = |line: &String| {
        let mut document: Json = serde_json::from_str(line).unwrap();
        let resources = document["resourceSpans"].as_array_mut().into_iter().flatten();
        for resource in resources {
            for scope in resource["scopeSpans"].as_array_mut().unwrap() {
                scope["spans"].as_array_mut().unwrap().iter_mut().for_each(&add);
            }
        }
        document.to_string()
    };
    lines.iter().map(change_line).collect()
}

#[test]
fn every_printed_change_is_true() {
    let mut checked = 0;
    for case in CASES {
        let lines = lines(case);
        let recording = record(&lines);
        for explained in recording.explain(&|verdict| verdict.method.as_str() == "tools/call") {
            for change in changes(&recording, &explained) {
                let changed = record(&write_in(&lines, &change));
                let records =
                    engine::replay(changed.sightings, &changed.policy, engine::Revisions::Final);
                let verdict = records.iter().find_map(|record| match record {
                    Record::Verdict(verdict) if verdict.id == explained.verdict.id => Some(verdict),
                    _ => None,
                });
                let got = verdict.map(|v| (v.state, v.reason, v.first_failed_layer));
                let want = (change.state, change.reason, change.first_failed_layer);
                assert_eq!(got, Some(want), "{case}: {:?}", change.attributes);
                checked += 1;
            }
        }
    }
    assert!(checked > 20, "only {checked} changes were offered");
}

#[test]
fn a_verified_outcome_is_offered_where_nobody_checked() {
    let recording = record(&lines("seed-health-move-4-nobody-checked"));
    let found = recording.explain(&|verdict| verdict.method.as_str() == "tools/call");
    let changes = changes(&recording, &found[0]);
    let healthy = |change: &&Change| change.state.as_str() == "healthy";
    let offer = changes.iter().find(healthy).expect("something makes it healthy");
    assert_eq!(offer.attributes[0].0, "mcp_evidence.outcome.status");
}

#[test]
fn the_text_names_facts_rule_and_changes() {
    let recording = record(&lines("seed-health-8-effect-unknown"));
    let found = recording.explain(&|verdict| verdict.method.as_str() == "tools/call");
    let mut out = Vec::new();
    print_text(&mut out, &recording, &found).unwrap();
    let text = String::from_utf8(anstream::adapter::strip_bytes(&out).into_vec()).unwrap();
    insta::assert_snapshot!(text);
}
