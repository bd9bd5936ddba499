//! The semantic-convention registry in `semconv/`, as weaver reads it, and `docs/attributes.md`:
//! printed from the registries in code, of the form that weaver asks for, and true of what is
//! really written.
//!
//! `UPDATE_DOCS=1 cargo test semconv` writes them anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use mcp_verdict::emit::attributes::on_event;
use mcp_verdict::emit::event;
use mcp_verdict::emit::metrics::{self, METRICS};
use mcp_verdict::emit::vocabulary::{self, Attribute, Form};
use mcp_verdict::model::attributes::REQUEST_STARTED;
use mcp_verdict::model::record::Record;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Is;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use prost::Message;
use saphyr::{LoadableYamlNode, ScalarOwned, YamlOwned};
use serde_json::{Value, json};

const HEAD: &str = "# Generated from the registries in code: UPDATE_DOCS=1 cargo test semconv\n";

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A text in YAML: JSON's form is one of its own.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn attribute(out: &mut String, row: &Attribute) {
    writeln!(out, "      - id: {}", row.key).unwrap();
    match row.form {
        Form::Word(words) => {
            out.push_str("        type:\n          members:\n");
            for word in words() {
                let word = quoted(word);
                writeln!(
                    out,
                    "            - {{ id: {word}, value: {word}, stability: development }}"
                )
                .unwrap();
            }
        }
        Form::Text(_) => out.push_str("        type: string\n"),
        Form::Texts(_) => out.push_str("        type: string[]\n"),
        Form::Int(_) => out.push_str("        type: int\n"),
        Form::Number(_) => out.push_str("        type: double\n"),
        Form::Bool => out.push_str("        type: boolean\n"),
    }
    writeln!(out, "        brief: {}", quoted(row.says)).unwrap();
    out.push_str("        stability: development\n");
    let examples = match row.form {
        Form::Text(texts) => json!(texts),
        // One example of several texts.
        Form::Texts(texts) => json!([texts]),
        Form::Int(numbers) => json!(numbers),
        Form::Number(numbers) => json!(numbers),
        Form::Word(_) | Form::Bool => return,
    };
    writeln!(out, "        examples: {examples}").unwrap();
}

fn registry(id: &str, says: &str, rows: &[Attribute]) -> String {
    let mut out = format!("  - id: registry.{id}\n    type: attribute_group\n");
    writeln!(out, "    display_name: {}", quoted(says)).unwrap();
    writeln!(out, "    brief: {}\n    attributes:", quoted(says)).unwrap();
    rows.iter().for_each(|row| attribute(&mut out, row));
    out
}

fn refs(out: &mut String, keys: &[&str]) {
    if !keys.is_empty() {
        out.push_str("    attributes:\n");
    }
    for key in keys {
        writeln!(out, "      - ref: {key}").unwrap();
    }
}

fn attributes() -> String {
    let mut out = format!("{HEAD}groups:\n");
    out += &registry("mcp_verdict", "What mcp-verdict concludes", &vocabulary::said());
    out += &registry(
        "mcp_evidence",
        "What an instrumented client may tell mcp-verdict",
        &vocabulary::heard(),
    );
    out += &registry("mcp_verdict.metric", "Labels of its metrics", vocabulary::LABELS);
    out
}

fn signals() -> String {
    let mut out = format!("{HEAD}groups:\n");
    let [compact, full] = vocabulary::enrichment();
    for (id, says, keys) in [
        ("compact", "What an MCP request span gains", &compact),
        ("full", "What it gains beside with `enrich: full`", &full),
    ] {
        writeln!(out, "  - id: attributes.mcp_verdict.{id}\n    type: attribute_group").unwrap();
        writeln!(out, "    brief: {}", quoted(says)).unwrap();
        refs(&mut out, keys);
    }
    out.push_str("  - id: span.mcp_verdict.verdict\n    type: span\n    span_kind: internal\n");
    out.push_str("    stability: development\n    brief: \"A verdict as a child of the request span that it is on; its name is `mcp verdict` and the state\"\n");
    let events = vocabulary::events();
    refs(&mut out, &events[1].attributes);
    for event in &events {
        writeln!(out, "  - id: event.{}\n    type: event\n    name: {}", event.name, event.name)
            .unwrap();
        writeln!(out, "    stability: development\n    brief: {}", quoted(event.says)).unwrap();
        refs(&mut out, &event.attributes);
    }
    let says =
        "A request has begun: a log record or an event of its span, with the request's attributes";
    writeln!(out, "  - id: event.{REQUEST_STARTED}\n    type: event\n    name: {REQUEST_STARTED}")
        .unwrap();
    writeln!(out, "    stability: development\n    brief: {}", quoted(says)).unwrap();
    out
}

fn metric_groups() -> String {
    let mut out = format!("{HEAD}groups:\n");
    for metric in METRICS {
        let kind = match metric.kind {
            metrics::Kind::Counter => "counter",
            metrics::Kind::Gauge => "gauge",
            metrics::Kind::Histogram => "histogram",
        };
        writeln!(out, "  - id: metric.{}\n    type: metric", metric.name).unwrap();
        writeln!(out, "    metric_name: {}\n    instrument: {kind}", metric.name).unwrap();
        writeln!(out, "    unit: {}\n    stability: development", quoted(metric.unit)).unwrap();
        writeln!(out, "    brief: {}", quoted(metric.says)).unwrap();
        refs(&mut out, metric.labels);
    }
    out
}

fn table() -> String {
    let mut out = String::from(
        "# Attributes\n\nWhat mcp-verdict writes and reads, as the semantic-convention registry in \
         [semconv/](../semconv/registry) describes it, for `weaver registry live-check`, code \
         generation and documentation. This page and that registry are generated: \
         `UPDATE_DOCS=1 cargo test semconv`. What each means is in [verdicts.md](verdicts.md).\n",
    );
    for (title, rows) in [
        ("`mcp_verdict.*`: on spans and events", vocabulary::said()),
        ("`mcp_evidence.*`: what an instrumented client may tell", vocabulary::heard()),
    ] {
        writeln!(out, "\n## {title}\n\n| attribute | type | says |\n| --- | --- | --- |").unwrap();
        for row in rows {
            let form = match row.form {
                Form::Word(words) => format!("`{}`", words().join("` `")),
                Form::Text(examples) => format!("string, such as `{}`", examples[0]),
                Form::Texts(examples) => format!("string[], such as `{}`", examples[0]),
                Form::Int(_) => "int".to_owned(),
                Form::Number(_) => "double".to_owned(),
                Form::Bool => "boolean".to_owned(),
            };
            writeln!(out, "| `{}` | {form} | {} |", row.key, row.says).unwrap();
        }
    }
    out
}

fn files() -> [(&'static str, String); 4] {
    [
        ("semconv/registry/attributes.yaml", attributes()),
        ("semconv/registry/signals.yaml", signals()),
        ("semconv/registry/metrics.yaml", metric_groups()),
        ("docs/attributes.md", table()),
    ]
}

/// Scenario: the registries in code, printed. Guarantees: what is in the tree is that.
#[test]
fn semconv_files_are_those_of_the_registries() {
    for (name, text) in files() {
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::create_dir_all(place(name).parent().unwrap()).unwrap();
            std::fs::write(place(name), &text).unwrap();
        }
        let written = std::fs::read_to_string(place(name)).unwrap_or_default();
        assert!(written == text, "{name} is out of date: UPDATE_DOCS=1 cargo test semconv");
    }
}

fn json_of(node: &YamlOwned) -> Value {
    match node {
        YamlOwned::Value(ScalarOwned::String(text)) => json!(text),
        YamlOwned::Value(ScalarOwned::Integer(number)) => json!(number),
        YamlOwned::Value(ScalarOwned::FloatingPoint(number)) => json!(number.into_inner()),
        YamlOwned::Value(ScalarOwned::Boolean(flag)) => json!(flag),
        YamlOwned::Sequence(items) => items.iter().map(json_of).collect(),
        YamlOwned::Mapping(members) => {
            let member = |(key, value): (&YamlOwned, &YamlOwned)| {
                (json_of(key).as_str().unwrap().to_owned(), json_of(value))
            };
            Value::Object(members.iter().map(member).collect())
        }
        other => panic!("no such node is written: {other:?}"),
    }
}

fn read(name: &str) -> Value {
    let text = std::fs::read_to_string(place(name)).unwrap();
    json_of(&YamlOwned::load_from_str(&text).unwrap()[0])
}

/// What weaver asks of a file of groups, in the part of its form that these files use; it allows
/// nothing that it does not name.
fn form() -> Value {
    let text = json!({"type": "string", "minLength": 1});
    let stability = json!({"const": "development"});
    let member = json!({
        "type": "object", "additionalProperties": false, "required": ["id", "value", "stability"],
        "properties": {"id": text, "value": text, "stability": stability},
    });
    let enumerated = json!({
        "type": "object", "additionalProperties": false, "required": ["members"],
        "properties": {"members": {"type": "array", "minItems": 1, "items": member}},
    });
    let defined = |kind: Value, example: Option<Value>| {
        let mut members = json!({"id": {"type": "string", "pattern": "^[a-z][a-z0-9_.]*$"},
            "type": kind, "brief": text, "stability": stability});
        let mut required = vec!["id", "type", "brief", "stability"];
        if let Some(example) = example {
            members["examples"] = json!({"type": "array", "minItems": 1, "items": example});
            required.push("examples");
        }
        json!({"type": "object", "additionalProperties": false, "required": required,
            "properties": members})
    };
    let attribute = json!({"oneOf": [
        {"type": "object", "additionalProperties": false, "required": ["ref"],
            "properties": {"ref": text}},
        defined(json!({"const": "string"}), Some(text.clone())),
        defined(json!({"const": "string[]"}), Some(json!({"type": "array", "items": text}))),
        defined(json!({"const": "int"}), Some(json!({"type": "integer"}))),
        defined(json!({"const": "double"}), Some(json!({"type": "number"}))),
        defined(json!({"const": "boolean"}), None),
        defined(enumerated, None),
    ]});
    let group = |kind: &str, more: Value, must: &[&str]| {
        let mut members = json!({"id": text, "type": {"const": kind}, "brief": text,
            "attributes": {"type": "array", "minItems": 1, "items": attribute}});
        members.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let required: Vec<&str> = ["id", "type", "brief"].iter().chain(must).copied().collect();
        json!({"type": "object", "additionalProperties": false, "required": required,
            "properties": members})
    };
    let instrument = json!({"enum": ["counter", "gauge", "histogram", "updowncounter"]});
    let groups = json!({"oneOf": [
        group("attribute_group", json!({"display_name": text}), &["attributes"]),
        group("span", json!({"span_kind": {"const": "internal"}, "stability": stability}),
            &["span_kind", "stability", "attributes"]),
        group("event", json!({"name": text, "stability": stability}), &["name", "stability"]),
        group("metric", json!({"metric_name": text, "instrument": instrument,
            "unit": {"type": "string"}, "stability": stability}),
            &["metric_name", "instrument", "unit", "stability"]),
    ]});
    json!({"type": "object", "additionalProperties": false, "required": ["groups"],
        "properties": {"groups": {"type": "array", "minItems": 1, "items": groups}}})
}

/// Scenario: the files as weaver would read them. Guarantees: each is of weaver's form, every id
/// stands once, and every reference leads to an attribute.
#[test]
fn semconv_files_are_of_the_form_that_weaver_reads() {
    let form = jsonschema::validator_for(&form()).unwrap();
    let (mut groups, mut known, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
    for name in ["attributes", "signals", "metrics"] {
        let read = read(&format!("semconv/registry/{name}.yaml"));
        let wrong: Vec<String> = form.iter_errors(&read).map(|e| e.to_string()).collect();
        assert!(wrong.is_empty(), "{name}.yaml: {wrong:?}");
        for group in read["groups"].as_array().unwrap() {
            groups.push(group["id"].as_str().unwrap().to_owned());
            for attribute in group["attributes"].as_array().into_iter().flatten() {
                let text = |key: &str| attribute[key].as_str().map(str::to_owned);
                known.extend(text("id"));
                wanted.extend(text("ref"));
            }
        }
        let mut wrong = read.clone();
        wrong["groups"][0]["attributes"][0] = json!({"id": "half", "type": "string"});
        assert!(!form.is_valid(&wrong), "{name}.yaml: the form allows everything");
    }
    for ids in [&mut groups, &mut known] {
        let all = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), all, "an id is there twice");
    }
    let lost: Vec<_> = wanted.iter().filter(|key| !known.contains(key)).collect();
    assert!(lost.is_empty() && !wanted.is_empty(), "{lost:?}");
    let manifest = read("semconv/registry/manifest.yaml");
    let version = env!("CARGO_PKG_VERSION");
    let url = manifest["schema_url"].as_str().unwrap();
    assert!(url.starts_with("https://") && url.ends_with(&format!("/{version}")), "{url}");
}

/// The event of a record.
fn event_of(record: &Record) -> Option<Vec<u8>> {
    match record {
        Record::Verdict(verdict) => Some(event::verdict(verdict, &on_event(verdict), 1)),
        Record::Session(session) => Some(event::session(session, 1, 1)),
        Record::ContractDrift(drift) => Some(event::contract_drift(drift, 1)),
        Record::Incident(incident) => Some(event::incident(incident, Some("#oncall"), 1)),
        Record::Summary(_) => None,
    }
}

/// Whether a value is of its form.
fn fits(form: Form, value: &Is) -> bool {
    match (form, value) {
        (Form::Word(words), Is::StringValue(text)) => words().contains(&text.as_str()),
        (Form::Text(_), Is::StringValue(_)) | (Form::Int(_), Is::IntValue(_)) => true,
        (Form::Texts(_), Is::ArrayValue(_)) | (Form::Bool, Is::BoolValue(_)) => true,
        (Form::Number(_), Is::DoubleValue(_)) => true,
        _ => false,
    }
}

/// Scenario: the events of every record of every published case. Guarantees: each carries what the
/// registry says of it, with values of the types and words that it names; nothing that the registry
/// has of an event is never written, but what no case has.
#[test]
fn semconv_is_true_of_what_is_written() {
    let rows: BTreeMap<&str, Form> =
        vocabulary::said().iter().map(|row| (row.key, row.form)).collect();
    let events = vocabulary::events();
    let mut written: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for case in std::fs::read_dir("tests/data/cases").unwrap() {
        let case = case.unwrap().path();
        if !case.join("input.jsonl").exists() {
            continue;
        }
        for bytes in crate::records::records(&case).iter().filter_map(event_of) {
            let record = LogRecord::decode(&*bytes).unwrap();
            let event = events.iter().find(|event| event.name == record.event_name);
            let event = event.unwrap_or_else(|| panic!("no event {}", record.event_name));
            for attribute in &record.attributes {
                let key = attribute.key.as_str();
                let value = attribute.value.as_ref().and_then(|v| v.value.as_ref()).unwrap();
                assert!(event.attributes.contains(&key), "{}: {key}", event.name);
                assert!(fits(rows[key], value), "{key}: {value:?} in {}", case.display());
                written.entry(event.name.to_owned()).or_default().push(key.to_owned());
            }
        }
    }
    for event in &events {
        let written = written.get(event.name).map_or(&[][..], Vec::as_slice);
        let never: Vec<_> =
            event.attributes.iter().filter(|key| !written.iter().any(|w| w == *key)).collect();
        let allowed = ["mcp_verdict.agent.run", "mcp_verdict.owner.contact"];
        let never: Vec<_> = never.into_iter().filter(|key| !allowed.contains(key)).collect();
        assert!(event.name == event::REVISED || never.is_empty(), "{}: {never:?}", event.name);
    }
}
