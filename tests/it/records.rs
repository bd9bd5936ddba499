//! The printed record and the protobuf message say the same, field by field.

use std::path::PathBuf;
use std::sync::Arc;

use mcp_verdict::cli::input;
use mcp_verdict::config::{Sources, load_with};
use mcp_verdict::engine::{Revisions, replay};
use mcp_verdict::model::record::Record;
use mcp_verdict::{normalise, proto};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use serde_json::Value;

pub fn records(case: &std::path::Path) -> Vec<Record> {
    let config = case.join("config.yaml");
    let files: Vec<PathBuf> = [config].into_iter().filter(|file| file.exists()).collect();
    let settings = load_with(&Sources { files, set: Vec::new() }, &|_| None).expect("settings");
    let mut sightings = Vec::new();
    let mut take = |signal, export: &[u8]| {
        sightings.push(normalise::sight(signal, export, &settings.policy));
    };
    input::read(&[case.join("input.jsonl")], &mut take).expect("input");
    replay(sightings, &Arc::new(settings.policy), Revisions::Final)
}

/// One form for both: no nulls, numbers as text.
pub fn plain(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(_, member)| !member.is_null())
            .map(|(key, member)| (key.clone(), plain(member)))
            .collect(),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 => Value::String(format!("{float:.0}")),
            _ => Value::String(number.to_string()),
        },
        other => other.clone(),
    }
}

fn as_message(pool: &DescriptorPool, record: &Record) -> Value {
    as_json(pool, "mcp_verdict.v1.Record", &proto::Record::from(record).encode_to_vec())
}

/// An encoded message as its canonical JSON, by its descriptor.
pub fn as_json(pool: &DescriptorPool, name: &str, bytes: &[u8]) -> Value {
    let kind = pool.get_message_by_name(name).expect("message");
    let message = DynamicMessage::decode(kind, bytes).expect("decodes");
    let options = SerializeOptions::new().use_proto_field_name(true).skip_default_fields(false);
    let mut out = Vec::new();
    let mut writer = serde_json::Serializer::new(&mut out);
    message.serialize_with_options(&mut writer, &options).expect("serialises");
    serde_json::from_slice(&out).expect("JSON")
}

#[test]
fn json_and_protobuf_agree_on_every_record_of_every_case() {
    let pool = DescriptorPool::decode(proto::DESCRIPTORS).expect("descriptors");
    let mut kinds = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir("tests/data/cases").expect("cases") {
        let case = entry.expect("case").path();
        if !case.join("input.jsonl").exists() {
            continue;
        }
        for record in records(&case) {
            let mut printed = serde_json::to_value(&record).expect("JSON");
            let kind = printed["record"].as_str().expect("kind").to_string();
            printed.as_object_mut().expect("object").shift_remove("record");
            let message = as_message(&pool, &record);
            assert_eq!(plain(&message[&kind]), plain(&printed), "{}", case.display());
            *kinds.entry(kind).or_insert(0) += 1;
        }
    }
    let seen: Vec<_> = kinds.keys().map(String::as_str).collect();
    assert_eq!(seen, ["contract_drift", "incident", "session", "summary", "verdict"]);
}
