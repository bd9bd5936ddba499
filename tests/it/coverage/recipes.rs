//! The recipes of docs/evidence.md: each block of rules over the spans that stand above it.

use std::path::Path;

use mcp_verdict::config;
use mcp_verdict::coverage::try_out;
use mcp_verdict::model::policy::{Policy, Rule};
use mcp_verdict::model::words::State;
use serde_json::Value;

use super::scene;
use crate::fixtures::exports_of;

struct Recipe {
    title: String,
    spans: Vec<Value>,
    rules: Vec<Rule>,
}

fn recipes() -> Vec<Recipe> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/evidence.md");
    let text = std::fs::read_to_string(path).expect("the guide");
    let sections = text.split("\n### ").skip(1);
    sections.map(|section| recipe(section.split("\n## ").next().unwrap_or_default())).collect()
}

fn recipe(section: &str) -> Recipe {
    let title = section.lines().next().expect("a title").to_owned();
    let block = |language: &str| {
        let begin = section.find(&format!("```{language}\n")).expect(&title) + language.len() + 4;
        let end = section[begin..].find("```").expect("an end") + begin;
        &section[begin..end]
    };
    let spans = serde_json::from_str(block("json")).expect(&title);
    let (_directory, path) = scene::file(block("yaml"));
    let (rules, warnings) = config::rules(&path).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    assert!(warnings.is_empty(), "{title}");
    Recipe { title, spans, rules }
}

fn state(spans: &[Value], rules: &[Rule]) -> State {
    let policy = Policy { evidence: rules.to_vec(), ..Policy::default() };
    scene::verdict(&exports_of(&scene::documents(spans)), policy).state
}

/// Scenario: each recipe as it stands in the guide; without its rules; with its spans failed; and
/// with what it looks for not found. Guarantees: `healthy` as it stands, and never otherwise; every
/// rule that speaks of a success matches a span of its own recipe.
#[test]
fn every_recipe_does_what_the_guide_says() {
    let recipes = recipes();
    assert_eq!(recipes.len(), 5);
    for Recipe { title, spans, rules } in &recipes {
        assert_eq!(state(spans, &[]), State::Unverified, "{title}");
        assert_eq!(state(spans, rules), State::Healthy, "{title}");
        let recording = scene::recording(spans, Policy::default());
        for (rule, tried) in rules.iter().zip(try_out(&recording, rules)) {
            let wrong = rule.outcome.is_some_and(|outcome| outcome.as_str() != "verified");
            assert_eq!(tried.matched, u64::from(!wrong), "{title}: {rule:?}");
        }
        let failed: Vec<Value> = spans.iter().cloned().map(failed).collect();
        assert_eq!(state(&failed, rules), State::Unverified, "{title}");
    }
    for (title, key, value) in [
        ("A file", "app.digest_equal", Value::from(false)),
        ("A read-back", "app.rows", Value::from(0)),
    ] {
        let recipe = recipes.iter().find(|recipe| recipe.title == title).expect(title);
        let mut spans = recipe.spans.clone();
        spans.last_mut().expect("a span")["attributes"][key] = value;
        assert_eq!(state(&spans, &recipe.rules), State::FalseSuccess, "{title}");
    }
}

fn failed(mut span: Value) -> Value {
    span["status"] = "error".into();
    if !span["attributes"]["http.response.status_code"].is_null() {
        span["attributes"]["http.response.status_code"] = 500.into();
    }
    span
}
