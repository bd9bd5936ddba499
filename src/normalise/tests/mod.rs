//! Invariants over every recorded capture and published case, and a way to look at one.

mod dialects;
mod frameworks;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::sight;
use crate::model::fact::{Fact, Sighting};
use crate::model::policy::Policy;
use crate::wire::Signal;
use crate::wire::json::{Limits, to_protobuf};

/// The export on one line of OTLP/JSON, with its signal.
fn export(line: &str) -> (Signal, Vec<u8>) {
    let signal = match line {
        traces if traces.contains("\"resourceSpans\"") => Signal::Traces,
        logs if logs.contains("\"resourceLogs\"") => Signal::Logs,
        _ => Signal::Metrics,
    };
    let converted =
        to_protobuf(signal, line.as_bytes(), Limits { max_bytes: 64 << 20 }).expect("OTLP/JSON");
    (signal, converted.bytes)
}

pub fn sight_line(line: &str, policy: &Policy) -> Sighting {
    let (signal, bytes) = export(line);
    sight(signal, &bytes, policy)
}

pub fn sight_file(path: &Path) -> Vec<Sighting> {
    let text = std::fs::read_to_string(path).expect("a readable fixture");
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| sight_line(line, &Policy::default())).collect()
}

fn fixtures(under: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(under)];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).expect("fixtures").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "jsonl")
                && !path.to_string_lossy().contains("groundtruth")
            {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no fixtures under {under}");
    found
}

/// One line a fact, for people and for tests that compare texts.
pub fn line(fact: &Fact) -> String {
    let mut text = format!(
        "{} {}<{} k{} st{} +{}us [{}|{}] {:?}",
        fact.start,
        &fact.id.at.span.to_string()[..6],
        fact.parent.map(|p| p.to_string()[..6].to_owned()).unwrap_or_default(),
        fact.kind,
        fact.status,
        fact.end.saturating_sub(fact.start) / 1000,
        fact.process.service.as_deref().unwrap_or_default(),
        fact.scope,
        fact.says
    );
    if fact.evidence != Default::default() {
        text.push_str(&format!(" {:?}", fact.evidence));
    }
    for finding in &fact.findings {
        text.push_str(&format!(" !{}", finding.code));
    }
    for noise in ["CallFacts ", "Answer ", "HalfFact ", "Name(", ")"] {
        text = text.replace(noise, "");
    }
    let said = text.split(", ").filter(|part| {
        !["None", "[]", ": false", "None }", "false }"].iter().any(|empty| part.ends_with(empty))
    });
    said.collect::<Vec<_>>().join(", ")
}

/// `SIGHT=path[,path] cargo test -q --lib normalise::tests::show -- --ignored --nocapture`
#[test]
#[ignore = "prints what a file says; for people"]
#[allow(clippy::print_stdout)]
fn show() {
    let Ok(paths) = std::env::var("SIGHT") else { return };
    for path in paths.split(',') {
        for sighting in sight_file(Path::new(path)) {
            sighting.facts.iter().for_each(|fact| println!("{}", line(fact)));
        }
    }
}

#[test]
fn every_fixture_is_read_the_same_way_twice_and_shows_no_content() {
    let planted = ["Alice Example", "sk-test-0000", "PLACEHOLDER"];
    for path in fixtures("captures").iter().chain(&fixtures("cases")) {
        let (once, twice) = (sight_file(path), sight_file(path));
        assert_eq!(once, twice, "{}", path.display());
        let mut named = BTreeMap::new();
        for fact in once.iter().flat_map(|sighting| &sighting.facts) {
            let text = format!("{fact:?}");
            let shown = without_structured(&text);
            for secret in planted {
                assert!(!shown.contains(secret), "{secret} of {} in {shown}", path.display());
            }
            let before = named.insert(fact.id, fact.clone());
            assert!(before.is_none_or(|b| b == *fact), "one id, two facts: {}", path.display());
        }
        for sighting in &once {
            let held = sighting.held.iter().map(|h| h.index).max().unwrap_or(0);
            assert!(sighting.bones.is_empty() || held < sighting.bones.len());
        }
    }
}

/// Bytes that strangers send: any damage to an export is read without a panic, and the same way.
#[test]
fn damaged_exports_are_read() {
    use proptest::prelude::*;
    let pick = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("a readable fixture");
        text.lines().filter(|line| !line.trim().is_empty()).take(2).map(export).collect::<Vec<_>>()
    };
    let exports: Vec<_> = fixtures("captures").iter().step_by(7).flat_map(pick).collect();
    let damage = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>());
    proptest!(ProptestConfig::with_cases(400), |(damages in prop::collection::vec(damage, 1..4))| {
        let (signal, mut bytes) = damages[0].0.get(&exports).clone();
        for (_, place, byte) in &damages {
            let at = place.index(bytes.len());
            bytes[at] = *byte;
        }
        let policy = Policy::default();
        prop_assert_eq!(sight(signal, &bytes, &policy), sight(signal, &bytes, &policy));
    });
}

/// A rule that matches nothing makes every span be read: the sighting stays the same.
#[test]
fn no_span_that_says_something_is_passed_over() {
    use crate::model::policy::{Glob, Rule, SpanMatcher};
    use crate::model::words::OutcomeMethod;
    let name = Some(Glob("no span has this name".into()));
    let rule = Rule {
        when_server: None,
        when_tool: None,
        span: SpanMatcher { name, ..SpanMatcher::default() },
        effect: None,
        outcome: None,
        method: OutcomeMethod::Query,
    };
    let whole = Policy { evidence: vec![rule], ..Policy::default() };
    for path in fixtures("captures").iter().chain(&fixtures("cases")) {
        let text = std::fs::read_to_string(path).expect("a readable fixture");
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let (some, all) = (sight_line(line, &Policy::default()), sight_line(line, &whole));
            assert_eq!(some, all, "{}", path.display());
        }
    }
}

/// Structured content is kept in memory by design; it is not what this looks for.
fn without_structured(text: &str) -> String {
    match text.split_once("structured: Some(") {
        None => text.to_owned(),
        Some((before, after)) => {
            let end = after.find("operation_attempt").unwrap_or(after.len());
            format!("{before}{}", &after[end..])
        }
    }
}
