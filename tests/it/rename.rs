//! Names mean nothing: with services, tools, sessions, agents and ids of a capture renamed, each
//! consistently, its verdicts stay what they were. Methods, attribute keys and libraries keep their
//! names, as those are the conventions by which telemetry is read.

use std::collections::{BTreeMap, BTreeSet};

use mcp_verdict::engine::{Revisions, replay};
use mcp_verdict::model::record::{Record, Verdict};
use serde_json::Value;

use crate::fixtures::{self, Recording, captures, exports_of};

/// Keys whose values are names that people or libraries chose freely.
const NAMES: &[&str] = &[
    "service.name",
    "service.instance.id",
    "service",
    "runtime-id",
    "gen_ai.tool.name",
    "mcp.tool.name",
    "tool.name",
    "gen_ai.agent.name",
    "agent_name",
    "agent.name",
    "graph.node.id",
    "mcp.server.name",
    "fastmcp.server.name",
    "mcp.client.name",
    "mcp.session.id",
    "gen_ai.tool.call.id",
    "gen_ai.agent.call.id",
    "gen_ai.conversation.id",
    "gen_ai.response.id",
];

/// Keys whose values are JSON-RPC ids or progress tokens.
const IDS: &[&str] = &[
    "jsonrpc.request.id",
    "mcp.request.id",
    "mcp.cancelled.request_id",
    "mcp.progress.token",
    "id",
];

/// What precedes an id or a token in the contents that captures hold.
const BEFORE_ID: &[&str] = &[
    "\"id\": ",
    "\"id\":",
    "requestId\": ",
    "requestId\":",
    "progressToken\": ",
    "progressToken\":",
    "progressToken=",
    "request_id=",
    "Number(",
];

/// Where OTLP itself has an id.
const OTLP_IDS: &[&str] = &["traceId", "spanId", "parentSpanId"];

/// Parts of a document that name libraries and conventions.
const FIXED: &[&str] = &["key", "scope", "schemaUrl", "traceState", "severityText"];

/// One consistent renaming of a capture.
#[derive(Default)]
struct Renaming {
    names: BTreeMap<String, String>,
    otlp: BTreeSet<String>,
}

impl Renaming {
    /// With `shape`, an id of hexadecimal digits stays one of as many.
    fn of(documents: &[Value], shape: bool) -> Self {
        let mut renaming = Self::default();
        let mut found = BTreeSet::new();
        documents.iter().for_each(|document| renaming.collect(document, &mut found));
        // Sorted the other way round, so that nothing can go by the order of names either.
        for (number, name) in found.into_iter().rev().enumerate() {
            let digits =
                name.len() >= 32 && name.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
            let new = match shape && digits {
                true => name.chars().map(another_digit).collect(),
                false => format!("q{number:03}x"),
            };
            renaming.names.insert(name, new);
        }
        renaming
    }

    fn collect(&mut self, value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.collect(item, found)),
            Value::Object(members) => {
                let text = |key: &str| members.get(key).and_then(Value::as_str);
                self.otlp.extend(OTLP_IDS.iter().filter_map(|key| text(key)).map(str::to_owned));
                let named = text("key").filter(|key| NAMES.contains(key));
                let value = members.get("value").and_then(|value| value.get("stringValue"));
                if let (Some(_), Some(name)) = (named, value.and_then(Value::as_str)) {
                    found.extend(Some(name.to_owned()).filter(|name| name.len() > 1));
                }
                members.values().for_each(|member| self.collect(member, found));
            }
            Value::String(text) => listed_tools(text, found),
            _ => {}
        }
    }

    fn document(&self, value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(|item| self.document(item)).collect(),
            Value::Object(members) => {
                let id = members.get("key").and_then(Value::as_str).filter(|k| IDS.contains(k));
                let member = |(key, member): (&String, &Value)| {
                    let new = match member {
                        _ if FIXED.contains(&key.as_str()) => member.clone(),
                        Value::String(text) => Value::String(self.text(text)),
                        _ if id.is_some() => another_id(member),
                        _ => self.document(member),
                    };
                    (key.clone(), new)
                };
                Value::Object(members.iter().map(member).collect())
            }
            Value::String(text) => Value::String(self.text(text)),
            other => other.clone(),
        }
    }

    /// Renames every whole word that is one of the names or ids.
    fn text(&self, text: &str) -> String {
        let part_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let mut out = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let word = rest.find(|c| !part_of_word(c)).unwrap_or(rest.len());
            if word == 0 {
                let other = rest.find(part_of_word).unwrap_or(rest.len());
                out.push_str(&rest[..other]);
                rest = &rest[other..];
                continue;
            }
            let new = match BEFORE_ID.iter().any(|before| out.ends_with(before)) {
                true => shifted(&rest[..word]),
                false => self.word(&rest[..word]),
            };
            out.push_str(&new);
            rest = &rest[word..];
        }
        out
    }

    fn word(&self, word: &str) -> String {
        if let Some(new) = self.names.get(word) {
            return new.clone();
        }
        let parts = word.split('-').map(|part| match self.otlp.contains(part) {
            true => part.chars().map(another_digit).collect(),
            false => part.to_owned(),
        });
        parts.collect::<Vec<String>>().join("-")
    }
}

/// Names of tools in listings, which some captures show nowhere else.
fn listed_tools(text: &str, found: &mut BTreeSet<String>) {
    let Ok(json) = serde_json::from_str::<Value>(text) else { return };
    let mut waiting = vec![&json];
    while let Some(value) = waiting.pop() {
        let members = value.as_object().map(|members| members.values());
        let items = value.as_array().map(|items| items.iter());
        waiting.extend(members.into_iter().flatten());
        waiting.extend(items.into_iter().flatten());
        let tools = value.get("tools").and_then(Value::as_array).into_iter().flatten();
        let names = tools.filter_map(|tool| tool.get("name").and_then(Value::as_str));
        found.extend(names.map(str::to_owned));
    }
}

/// A JSON-RPC id that is a number, moved; the order of ids means nothing.
fn shifted(id: &str) -> String {
    id.parse::<u64>().map_or_else(|_| id.to_owned(), |number| (number + 7000).to_string())
}

fn another_id(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(shifted(text)),
        Value::Object(members) => {
            let member = |(key, member): (&String, &Value)| (key.clone(), another_id(member));
            Value::Object(members.iter().map(member).collect())
        }
        Value::Number(number) => match number.as_u64() {
            Some(number) => (number + 7000).into(),
            None => value.clone(),
        },
        other => other.clone(),
    }
}

/// A permutation of the hexadecimal digits; zero stays, for an id of zeros is none.
fn another_digit(digit: char) -> char {
    const PERMUTED: &[u8; 16] = b"0d5a1f9c27e4b638";
    digit.to_digit(16).map_or(digit, |at| char::from(PERMUTED[at as usize]))
}

/// The verdicts of a recording, counted, as `say` says them.
fn verdicts(
    recording: &Recording,
    documents: &[Value],
    say: &dyn Fn(Verdict) -> String,
) -> BTreeMap<String, u64> {
    let sightings = fixtures::sightings(&exports_of(documents), &recording.policy);
    let mut counts = BTreeMap::new();
    for record in replay(sightings, &recording.policy, Revisions::Final) {
        if let Record::Verdict(verdict) = record {
            *counts.entry(say(*verdict)).or_default() += 1;
        }
    }
    counts
}

fn judged(v: &Verdict) -> String {
    let reason = v.reason.map(|reason| reason.to_string());
    format!("{} {:?} {reason:?} {:?} {:?}", v.method, v.state, v.first_failed_layer, v.lifecycle)
}

/// Judged, and whose it is: names as `name` says them.
fn named(v: &Verdict, name: &dyn Fn(&str) -> String) -> String {
    let names = [&v.tool, &v.session_id, &v.agent, &Some(v.server.clone())];
    let names = names.map(|said| said.as_ref().map(|said| name(said)));
    format!("{} {names:?}", judged(v))
}

/// What changes between two counts.
fn change(was: &BTreeMap<String, u64>, is: &BTreeMap<String, u64>) -> String {
    let only = |a: &BTreeMap<String, u64>, b: &BTreeMap<String, u64>| {
        let gone = a.iter().filter(|(key, count)| b.get(*key) != Some(count));
        gone.map(|(key, count)| format!("{count} × {key}")).collect::<Vec<_>>().join("; ")
    };
    format!("  was: {}\n  is:  {}", only(was, is), only(is, was))
}

fn check(shape: bool) {
    let mut wrong = Vec::new();
    for recording in captures() {
        let documents = recording.documents();
        let renaming = Renaming::of(&documents, shape);
        assert!(!renaming.names.is_empty(), "{}: nothing to rename", recording.name);
        let renamed: Vec<Value> = documents.iter().map(|d| renaming.document(d)).collect();
        assert_ne!(documents, renamed, "{}", recording.name);
        let was = verdicts(&recording, &documents, &|v| named(&v, &|name| renaming.text(name)));
        let is = verdicts(&recording, &renamed, &|v| named(&v, &str::to_owned));
        if was != is {
            wrong.push(format!("{}\n{}", recording.name, change(&was, &is)));
        }
    }
    assert!(wrong.is_empty(), "{} captures change:\n{}", wrong.len(), wrong.join("\n"));
}

/// Scenario: every name is another word, every id another text. Guarantees: the same verdicts of the
/// same calls, servers and sessions, under their new names.
#[test]
fn verdicts_do_not_depend_on_names() {
    check(false);
}

/// Scenario: the same, but an id of hexadecimal digits stays one. Guarantees: the same.
#[test]
fn verdicts_do_not_depend_on_digits() {
    check(true);
}
