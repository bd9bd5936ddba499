//! Advice as text that can be pasted: YAML of the configuration, calls of the OpenTelemetry API.
//!
//! Promises: what is written reads back as what was tried.

use std::fmt::Write as _;

use super::advice::Part;
use super::recording::{Attributes, Value};
use crate::model::policy::{Glob, Rule, ValueMatcher};
use crate::model::words::{Layer, OutcomeMethod};

/// The parts that belong into the configuration, as one document; empty where none does.
pub fn config(parts: &[Part]) -> String {
    let rules = parts.iter().filter_map(|part| match part {
        Part::Rule(rule) => Some(rule),
        _ => None,
    });
    let rules: Vec<String> = rules.map(|rule| rule_lines(rule)).collect();
    let requires = parts.iter().filter_map(|part| match part {
        Part::Requires { server, tool, layers } => Some((server, tool, layers)),
        _ => None,
    });
    let mut requires = requires.peekable();
    if rules.is_empty() && requires.peek().is_none() {
        return String::new();
    }
    let mut text = "processors:\n  mcp_verdict:\n".to_string();
    if !rules.is_empty() {
        text.push_str("    evidence:\n");
        text.extend(rules);
    }
    if requires.peek().is_some() {
        text.push_str("    servers:\n");
    }
    for (server, tool, layers) in requires {
        let layers: Vec<&str> = layers.iter().map(|layer: &Layer| layer.as_str()).collect();
        let (server, tool, layers) = (quoted(server), quoted(tool), layers.join(", "));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "      {server}:\n        tools:");
        let _ = writeln!(text, "          {tool}: {{ healthy_requires: [{layers}] }}");
    }
    text
}

/// One item of `evidence`.
fn rule_lines(rule: &Rule) -> String {
    let glob = |key: &str, glob: &Option<Glob>| {
        glob.as_ref().map(|glob| format!("{key}: {}", quoted(&glob.0)))
    };
    let when = [glob("server", &rule.when_server), glob("tool", &rule.when_tool)];
    let when: Vec<String> = when.into_iter().flatten().collect();
    let span = &rule.span;
    let word = |key: &str, known: &[&str], at: Option<i32>| {
        let word = at.and_then(|at| known.get(usize::try_from(at).ok()?).copied());
        word.map(|word| format!("{key}: {word}"))
    };
    let mut matcher: Vec<String> = [
        glob("name", &span.name),
        word("kind", &KINDS, span.kind),
        word("status", &STATUSES, span.status),
        glob("scope", &span.scope),
        glob("service", &span.service),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !span.attributes.is_empty() {
        let pair = |(key, want): &(String, ValueMatcher)| {
            format!("{}: {}", quoted(key), quoted(&matched(want)))
        };
        let pairs: Vec<String> = span.attributes.iter().map(pair).collect();
        matcher.push(format!("attributes: {{ {} }}", pairs.join(", ")));
    }
    let mut says: Vec<String> = Vec::new();
    says.extend(rule.effect.map(|effect| format!("effect: {effect}")));
    if let Some(outcome) = rule.outcome {
        says.push(format!("outcome: {outcome}"));
        let method = Some(rule.method).filter(|method| *method != OutcomeMethod::Query);
        says.extend(method.map(|method| format!("method: {}", method.as_str())));
    }
    let mut text = String::new();
    let mut dash = "- ";
    for (key, pairs) in [("when", when), ("span", matcher), ("says", says)] {
        if !pairs.is_empty() {
            let _ = writeln!(text, "      {dash}{key}: {{ {} }}", pairs.join(", "));
            dash = "  ";
        }
    }
    text
}

const KINDS: [&str; 6] = ["unspecified", "internal", "server", "client", "producer", "consumer"];
const STATUSES: [&str; 3] = ["unset", "ok", "error"];

fn matched(want: &ValueMatcher) -> String {
    match want {
        ValueMatcher::Present => "present".to_string(),
        ValueMatcher::Class(hundreds) => format!("{hundreds}xx"),
        ValueMatcher::AtLeast(bound) => format!(">={bound}"),
        ValueMatcher::AtMost(bound) => format!("<={bound}"),
        ValueMatcher::Above(bound) => format!(">{bound}"),
        ValueMatcher::Below(bound) => format!("<{bound}"),
        ValueMatcher::Text(glob) => glob.0.clone(),
    }
}

/// Double quotes as JSON and YAML share them. A `$` is doubled, as variables are read first.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text.replace('$', "$$")).to_string()
}

/// A call of the OpenTelemetry API for each attribute, as Python writes it.
pub fn attribute_lines(attributes: &Attributes) -> Vec<String> {
    let value = |value: &Value| match value {
        Value::Bool(true) => "True".to_string(),
        Value::Bool(false) => "False".to_string(),
        Value::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
        other => other.to_string(),
    };
    let line = |(key, v): &(&str, Value)| format!("span.set_attribute(\"{key}\", {})", value(v));
    attributes.iter().map(line).collect()
}
