//! `coverage --try`: what each rule of a file would have matched and changed.

use std::process::Command;

use mcp_verdict::config;
use mcp_verdict::coverage::{rules, try_out};
use mcp_verdict::model::policy::Policy;
use mcp_verdict::model::words::{Layer, State};
use serde_json::{Value, json};

use super::scene;

const RULES: &str = r#"
- when: { tool: "publish_*" }
  span: { name: "SELECT reports", attributes: { db.response.returned_rows: ">=1" } }
  says: { outcome: verified }
- when: { tool: "other" }
  span: { name: "SELECT reports" }
  says: { outcome: verified }
- span: { name: "SELECT nothing" }
  says: { effect: absent }
- span: { name: "SELECT reports" }
  says: { outcome: missing }
"#;

fn spans() -> Vec<Value> {
    let look = |rows: u64| {
        json!({ "name": "SELECT reports", "kind": "client", "attributes": {
            "db.system.name": "postgresql", "db.response.returned_rows": rows } })
    };
    vec![look(1), look(0)]
}

/// Scenario: four rules over one call with two looks below it. Guarantees: each says how many spans
/// it matched, of which calls it speaks, whom `when` refused, and what becomes of the verdict.
#[test]
fn each_rule_says_what_it_does() {
    let (_directory, path) = scene::file(RULES);
    let (file, warnings) = config::rules(&path).expect("usable rules");
    assert!(warnings.is_empty());
    let recording = scene::recording(&spans(), Policy::default());
    let tried = try_out(&recording, &file);
    let counts = |number: usize| {
        let one = &tried[number];
        let calls: u64 = one.calls.iter().map(|called| called.calls).sum();
        let moved: Vec<_> = one.changes.iter().map(|m| (m.from, m.to, m.chains.len())).collect();
        (one.matched, one.without_call, one.refused, calls, moved)
    };
    let healthy = vec![(State::Unverified, State::Healthy, 1)];
    let false_success = vec![(State::Unverified, State::FalseSuccess, 1)];
    assert_eq!(counts(0), (1, 0, 0, 1, healthy));
    assert_eq!(counts(1), (2, 0, 2, 0, vec![]));
    assert_eq!(counts(2), (0, 0, 0, 0, vec![]));
    assert_eq!(counts(3), (2, 0, 0, 1, false_success.clone()));
    assert!(tried.iter().all(|one| one.still_lacking.is_empty()), "whatever it speaks of moves");
    let together = rules::together(&recording, &file);
    let moved: Vec<_> = together.changes.iter().map(|m| (m.from, m.to, m.chains.len())).collect();
    assert_eq!(moved, false_success, "the newer look decides");
}

/// Scenario: a rule for the effect over calls that need their outcome as well, and over calls of a
/// capture that lack more. Guarantees: the layers that keep them `unverified` are named.
#[test]
fn what_still_blocks_is_named() {
    let text = "- span: { name: 'SELECT reports' }\n  says: { effect: confirmed }\n";
    let (_directory, path) = scene::file(text);
    let (file, _) = config::rules(&path).expect("usable rules");
    let tried = try_out(&scene::recording(&spans(), Policy::default()), &file).remove(0);
    assert!(tried.changes.is_empty(), "{:?}", tried.changes);
    let lacking: Vec<_> = tried.still_lacking.into_iter().collect();
    assert_eq!(lacking, [(Layer::Outcome, 1)]);
}

/// Scenario: the same file through the command, in its three forms, and one with a mistake.
/// Guarantees: the three read the same; the mistake names file and line.
#[test]
fn rules_may_stand_alone_or_in_a_configuration() {
    let (directory, list) = scene::file(RULES);
    let input = directory.path().join("input.jsonl");
    let lines: Vec<String> = scene::documents(&spans()).iter().map(Value::to_string).collect();
    std::fs::write(&input, lines.join("\n")).unwrap();
    let run = |rules: &std::path::Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-verdict"));
        command.arg("coverage").arg(&input).arg("--try").arg(rules).output().expect("it runs")
    };
    let indented = |by: &str| RULES.replace('\n', &format!("\n{by}"));
    let key = scene::file(&format!("evidence:{}", indented("  ")));
    let whole = format!("processors:\n  mcp_verdict:\n    evidence:{}", indented("      "));
    let whole = scene::file(&whole);
    let first = run(&list);
    let text = String::from_utf8(first.stdout.clone()).unwrap();
    assert!(first.status.success(), "{first:?}");
    assert!(text.contains("unverified → healthy"), "{text}");
    assert!(text.contains("2 at a call that `when` does not admit"), "{text}");
    assert!(text.contains("changes no verdict") && text.contains("all 4 together"), "{text}");
    assert_eq!(run(&key.1).stdout, first.stdout);
    assert_eq!(run(&whole.1).stdout, first.stdout);
    let wrong = scene::file("- span: { nme: x }\n  says: { effect: confirmed }\n");
    let refused = run(&wrong.1);
    assert_eq!(refused.status.code(), Some(64));
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(told.contains("pasted.yaml:1") && told.contains("did you mean `name`?"), "{told}");
}
