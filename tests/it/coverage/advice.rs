//! Advice over everything recorded: pasted and recorded as it is printed, it does what it claims.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp_verdict::config::{self, Sources, load_with};
use mcp_verdict::coverage::{self, Advice, Attributes, Part, Recording, advice};
use mcp_verdict::engine::{Revisions, replay};
use mcp_verdict::model::policy::Policy;
use mcp_verdict::model::record::Record;
use mcp_verdict::model::words::{Lifecycle, State};
use mcp_verdict::wire::Signal;
use serde_json::{Value, json};

use super::scene;
use crate::fixtures::{self, captures, cases, exports_of, sightings};

type Exports = Vec<(Signal, Vec<u8>)>;

fn unverified(exports: &Exports, policy: &Arc<Policy>) -> BTreeSet<String> {
    let records = replay(sightings(exports, policy), policy, Revisions::Final);
    let verdicts = records.into_iter().filter_map(|record| match record {
        Record::Verdict(verdict) => Some(verdict),
        _ => None,
    });
    let counted = verdicts.filter(|verdict| {
        verdict.method.as_str() == "tools/call"
            && verdict.lifecycle != Lifecycle::Superseded
            && verdict.state == State::Unverified
    });
    counted.map(|verdict| verdict.id.to_string()).collect()
}

/// Writes the attributes into the documents, on the spans that the advice names.
fn record(documents: &mut [Value], advice: &Advice, attributes: &Attributes) {
    let spans: BTreeSet<(String, String)> =
        advice.spans().map(|at| (at.trace.to_string(), at.span.to_string())).collect();
    for document in documents {
        visit(document, &mut |span| {
            let id = |key: &str| span[key].as_str().unwrap_or_default().to_owned();
            if !spans.contains(&(id("traceId"), id("spanId"))) {
                return;
            }
            let list = span["attributes"].as_array_mut().expect("attributes");
            for (key, value) in attributes {
                list.retain(|attribute| attribute["key"] != *key);
                let value = match serde_json::to_value(value).expect("a value") {
                    Value::Bool(flag) => json!({ "boolValue": flag }),
                    text => json!({ "stringValue": text }),
                };
                list.push(json!({ "key": key, "value": value }));
            }
        });
    }
}

/// Every object that is a span.
fn visit(value: &mut Value, each: &mut dyn FnMut(&mut Value)) {
    if value.get("spanId").is_some() && value.get("attributes").is_some() {
        each(value);
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, each)),
        Value::Object(members) => members.values_mut().for_each(|member| visit(member, each)),
        _ => {}
    }
}

/// The policy with the printed YAML pasted in: a rule after those there are, the rest as it merges.
fn pasted(policy: &Policy, yaml: &str) -> Policy {
    if yaml.is_empty() {
        return policy.clone();
    }
    let (_directory, path) = scene::file(yaml);
    let sources = Sources { files: vec![path.clone()], ..Sources::default() };
    let read = load_with(&sources, &|_| None).unwrap_or_else(|wrong| panic!("{wrong:?}\n{yaml}"));
    let mut policy = policy.clone();
    policy.evidence.extend(read.policy.evidence);
    for (server, theirs) in read.policy.servers {
        let ours = policy.servers.entry(server).or_default();
        for (tool, theirs) in theirs.tools {
            ours.tools.entry(tool).or_default().healthy_requires = theirs.healthy_requires;
        }
    }
    assert!(config::rules(&path).is_ok(), "{yaml}");
    policy
}

/// What was checked, and how.
#[derive(Default)]
struct Checked {
    calls: usize,
    unverified: usize,
    /// By what lifts the most, and by all that was advised.
    most: usize,
    lifted: usize,
    rules: usize,
}

fn check(name: &str, documents: &[Value], policy: &Arc<Policy>, checked: &mut Checked) {
    let exports = exports_of(documents);
    let before = unverified(&exports, policy);
    let recording = Recording::new(exports, Policy::clone(policy));
    let tools = coverage::tools(&recording);
    let told: u64 = tools.iter().map(|tool| tool.unverified).sum();
    assert_eq!(told as usize, before.len(), "{name}");
    checked.calls += tools.iter().map(|tool| tool.calls as usize).sum::<usize>();
    checked.unverified += before.len();
    let advised = advice::advice(&recording, &tools).into_iter();
    for (first, advice) in advised.flat_map(|one| [(true, one.most), (false, one.configured)]) {
        let Some(advice) = advice else { continue };
        let mut changed = documents.to_vec();
        if let Some(attributes) = advice.attributes() {
            record(&mut changed, &advice, attributes);
        }
        let yaml = coverage::config(&advice.parts);
        let after = unverified(&exports_of(&changed), &Arc::new(pasted(policy, &yaml)));
        let gone: BTreeSet<String> = before.difference(&after).cloned().collect();
        let claimed: BTreeSet<String> = advice.lifted.iter().map(ToString::to_string).collect();
        assert_eq!(gone, claimed, "{name}: {:?}\n{yaml}", advice.parts);
        checked.lifted += gone.len();
        checked.most += if first { gone.len() } else { 0 };
        checked.rules += advice.parts.iter().filter(|p| matches!(p, Part::Rule(_))).count();
    }
}

/// Scenario: each piece of advice over every capture and case is done as it is printed: attributes
/// into the recorded JSON, YAML through the configuration. Guarantees: exactly the calls claimed
/// leave `unverified`; no recording with unverified calls of named tools is left without advice.
#[test]
fn exactly_the_calls_claimed_are_lifted() {
    let mut checked = Checked::default();
    for recording in captures().into_iter().chain(cases()) {
        check(&recording.name, &recording.documents(), &recording.policy, &mut checked);
    }
    let Checked { calls, unverified, most, lifted, .. } = checked;
    println!("{calls} calls, {unverified} unverified, {most} lifted, with alternatives {lifted}");
    assert!(unverified > 300, "{unverified} unverified");
    assert!(most * 100 >= unverified * 99, "{most} of {unverified} are lifted");
}

/// Scenario: what tools do below their calls, in the words of the conventions. Guarantees: the
/// advice is the rule for the span that shows the outcome, or the attribute where none does, and
/// does what it claims.
#[test]
fn spans_that_are_there_become_rules() {
    let insert = json!({ "name": "INSERT reports", "kind": "client", "attributes": {
        "db.system.name": "postgresql", "db.operation.name": "INSERT" } });
    let select = json!({ "name": "SELECT reports", "kind": "client", "attributes": {
        "db.system.name": "postgresql", "db.operation.name": "SELECT",
        "db.response.returned_rows": 1 } });
    let post = json!({ "name": "POST", "kind": "client", "attributes": {
        "http.request.method": "POST", "http.response.status_code": 201 } });
    let get = json!({ "name": "GET /reports/1234", "kind": "client", "attributes": {
        "http.request.method": "GET", "http.response.status_code": 200 } });
    let failed = json!({ "name": "GET", "kind": "client", "status": "error", "attributes": {
        "http.request.method": "GET", "http.response.status_code": 200 } });
    let verify = json!({ "name": "verify report", "kind": "internal" });
    let rows: [(&str, Vec<&Value>, Option<&str>); 7] = [
        ("a look after a write", vec![&insert, &select], Some("SELECT reports")),
        ("a look before any write", vec![&select, &insert], None),
        ("a write alone", vec![&insert], None),
        ("an API read back", vec![&post, &get], Some("GET /reports/*")),
        ("a look that failed", vec![&post, &failed], None),
        ("a check by name", vec![&verify], Some("verify report")),
        ("nothing", vec![], None),
    ];
    for (what, spans, rule) in rows {
        let spans: Vec<Value> = spans.into_iter().cloned().collect();
        let documents = scene::documents(&spans);
        let recording = scene::recording(&spans, Policy::default());
        let tools = coverage::tools(&recording);
        let advice = advice::advice(&recording, &tools).remove(0).most.expect("advice");
        let name = advice.parts.iter().find_map(|part| match part {
            Part::Rule(rule) => rule.span.name.as_ref().map(|glob| glob.0.as_str()),
            _ => None,
        });
        assert_eq!((name, advice.parts.len()), (rule, 1), "{what}");
        assert_eq!(advice.to, BTreeMap::from([(State::Healthy, 1)]), "{what}");
        let mut checked = Checked::default();
        check(what, &documents, &Arc::new(Policy::default()), &mut checked);
        assert_eq!((checked.lifted, checked.rules), (1, usize::from(rule.is_some())), "{what}");
    }
}

/// Scenario: two calls of one tool, and a span that shows the outcome below one of them alone.
/// Guarantees: what lifts both comes first, an attribute; then the rule that needs no change of a
/// program, with the one call that it lifts. Neither asks for more than it needs.
#[test]
fn a_rule_that_lifts_some_is_told_beside_what_lifts_all() {
    let verify = json!({ "name": "verify report", "kind": "internal" });
    let mut documents = scene::documents(&[verify]);
    documents.extend(scene::documents(&[]).into_iter().map(scene::of_another_trace));
    let recording = Recording::new(exports_of(&documents), Policy::default());
    let tools = coverage::tools(&recording);
    assert_eq!((tools.len(), tools[0].unverified), (1, 2));
    let advised = advice::advice(&recording, &tools).remove(0);
    let (most, configured) = (advised.most.unwrap(), advised.configured.unwrap());
    assert_eq!((most.lifted.len(), configured.lifted.len()), (2, 1));
    assert!(matches!(&configured.parts[..], [Part::Rule(_)]), "{:?}", configured.parts);
    let keys: Vec<&str> = most.attributes().unwrap().iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, ["mcp_evidence.outcome.status", "mcp_evidence.outcome.method"]);
    let mut checked = Checked::default();
    check("two calls", &documents, &Arc::new(Policy::default()), &mut checked);
    assert_eq!((checked.unverified, checked.lifted, checked.rules), (2, 3, 1));
}

/// Scenario: the command over a capture, as JSON, twice. Guarantees: the same bytes, one object
/// with every tool, five layers each, and advice that names its chains.
#[test]
fn the_json_is_stable() {
    let run = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_mcp-verdict"));
        let file = fixtures::data("cases/seed-health-move-4-nobody-checked/input.jsonl");
        command.args(["coverage", "--format", "json"]).arg(file).output().expect("it runs")
    };
    let (first, second) = (run(), run());
    assert!(first.status.success(), "{first:?}");
    assert_eq!(first.stdout, second.stdout);
    let report: Value = serde_json::from_slice(&first.stdout).expect("JSON");
    let tool = &report["tools"][0];
    assert_eq!(tool["tool"], scene::TOOL);
    assert_eq!(tool["layers"].as_array().expect("layers").len(), 5);
    assert_eq!(tool["advice"]["lifts"], 1);
    assert_eq!(tool["advice"]["attributes"]["mcp_evidence.outcome.status"], "verified");
    assert_eq!(tool["advice"]["chains"].as_array().expect("chains").len(), 1);
}
