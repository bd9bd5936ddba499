//! Calls that lack nothing but evidence of their effect and outcome, and spans below them.

use std::path::PathBuf;
use std::sync::Arc;

use mcp_verdict::coverage::Recording;
use mcp_verdict::engine::{Revisions, replay};
use mcp_verdict::model::policy::Policy;
use mcp_verdict::model::record::{Record, Verdict};
use mcp_verdict::wire::Signal;
use serde_json::{Value, json};

use crate::fixtures::{cases, exports_of, sightings};

/// A call whose every layer but effect and outcome is observed.
const CASE: &str = "cases/seed-health-move-4-nobody-checked/input.jsonl";
pub const TOOL: &str = "publish_report";
pub const SERVER: &str = "srv";
/// The answering half of the call: what the tool did stands below it.
const SERVED: &str = "06b4d71b5bdba56d";
const TRACE: &str = "d2af5344e416c396f63d1ef7c6892429";
/// When the tool began.
const BEGAN: u64 = 1_795_996_801_010_000_000;

/// A span as documents write it: name, kind, status, attributes; the next one starts after it. One
/// that links to another stands in a trace of its own.
pub fn spans_below(spans: &[Value]) -> Vec<Value> {
    let kinds = ["unspecified", "internal", "server", "client", "producer", "consumer"];
    let statuses = ["unset", "ok", "error"];
    let word = |span: &Value, key: &str, known: &[&str]| {
        let word = span[key].as_str().unwrap_or(known[0]);
        known.iter().position(|known| *known == word).unwrap_or_else(|| panic!("{key}: {word}"))
    };
    let build = |(number, span): (usize, &Value)| {
        let start = BEGAN + number as u64 * 20_000_000;
        let id = |number: usize| format!("{:016x}", 0xab00 + number);
        let linked = span["links"].as_str().map(|name| {
            let at = spans.iter().position(|other| other["name"] == name).expect("linked span");
            json!([{ "traceId": TRACE, "spanId": id(at) }])
        });
        let own = format!("{:032x}", 0xcd00 + number);
        json!({
            "traceId": if linked.is_some() { &own } else { TRACE },
            "parentSpanId": if linked.is_some() { "" } else { SERVED },
            "links": linked.unwrap_or_else(|| json!([])),
            "spanId": id(number), "name": span["name"],
            "kind": word(span, "kind", &kinds),
            "status": { "code": word(span, "status", &statuses) },
            "startTimeUnixNano": start.to_string(),
            "endTimeUnixNano": (start + 10_000_000).to_string(),
            "attributes": attributes(&span["attributes"]),
        })
    };
    spans.iter().enumerate().map(build).collect()
}

fn attributes(map: &Value) -> Vec<Value> {
    let value = |value: &Value| match value {
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        Value::Bool(flag) => json!({ "boolValue": flag }),
        other => json!({ "stringValue": other }),
    };
    let pairs = map.as_object().into_iter().flatten();
    pairs.map(|(key, v)| json!({ "key": key, "value": value(v) })).collect()
}

/// The documents of the call, with these spans below it.
pub fn documents(spans: &[Value]) -> Vec<Value> {
    let case = cases().into_iter().find(|case| case.name == CASE).expect("the case");
    let mut documents = case.documents();
    let resource = json!({ "attributes": [
        { "key": "service.name", "value": { "stringValue": SERVER } },
        { "key": "service.instance.id", "value": { "stringValue": "srv-1" } },
    ] });
    documents.push(json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": [{
        "scope": { "name": "app" }, "spans": spans_below(spans),
    }] }] }));
    documents
}

/// The same document in traces and sessions of other names.
pub fn of_another_trace(document: Value) -> Value {
    let text = document.to_string();
    let own = |id: &str| format!("{}{}", if id.starts_with('f') { "e" } else { "f" }, &id[1..]);
    let mut text = text.replace(TRACE, &own(TRACE));
    let case = cases().into_iter().find(|case| case.name == CASE).expect("the case");
    let mut ids = std::collections::BTreeSet::new();
    for document in case.documents() {
        collect(&document, &mut ids);
    }
    for id in ids {
        text = text.replace(&id, &own(&id));
    }
    serde_json::from_str(&text).expect("JSON")
}

/// Ids of all spans, traces and sessions in a document.
fn collect(value: &Value, ids: &mut std::collections::BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, ids)),
        Value::Object(members) => {
            for key in ["spanId", "traceId"] {
                ids.extend(members.get(key).and_then(Value::as_str).map(str::to_owned));
            }
            if members.get("key").is_some_and(|key| key == "mcp.session.id") {
                ids.extend(members["value"]["stringValue"].as_str().map(str::to_owned));
            }
            members.values().for_each(|member| collect(member, ids));
        }
        _ => {}
    }
}

pub fn recording(spans: &[Value], policy: Policy) -> Recording {
    Recording::new(exports_of(&documents(spans)), policy)
}

/// The verdict on the call.
pub fn verdict(exports: &[(Signal, Vec<u8>)], policy: Policy) -> Verdict {
    let policy = Arc::new(policy);
    let records = replay(sightings(exports, &policy), &policy, Revisions::Final);
    let call = records.into_iter().find_map(|record| match record {
        Record::Verdict(verdict) if verdict.method.as_str() == "tools/call" => Some(*verdict),
        _ => None,
    });
    call.expect("one call")
}

/// A file in a directory of its own.
pub fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("pasted.yaml");
    std::fs::write(&path, text).expect("written");
    (directory, path)
}
