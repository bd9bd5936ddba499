//! A reload while spans flow: the new policy judges what is first seen after it, and nothing that
//! was judged before.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;

use crate::edge::support::*;
use crate::page::support::{check, listing, tool, write_lockfile};

fn states(backend: &Backend, tool: &str) -> Vec<String> {
    let records = backend.records().into_iter().map(|(_, record)| record);
    let of_tool = records.filter(|r| attribute(&r.attributes, "mcp_verdict.tool") == Some(tool));
    of_tool
        .filter_map(|r| attribute(&r.attributes, "mcp_verdict.state").map(ToOwned::to_owned))
        .collect()
}

/// A call that nobody knows the outcome of, by a caller of a session of its own.
fn answered(tool: &str) -> opentelemetry_proto::tonic::trace::v1::Span {
    let mut span = call(&trace(), tool);
    span.attributes.push(text("mcp_evidence.call.is_error", "false"));
    span
}

/// Scenario: `healthy_requires: [request]` by reload, a call before it and one after; then the trace
/// of the first gets a late fact. Guarantees: the first stays `unverified` by the policy that it was
/// judged by, the second is `healthy`.
#[tokio::test(flavor = "multi_thread")]
async fn a_reloaded_policy_judges_what_comes_after_it() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    let before = answered("before");
    program.send("desk", vec![before.clone()]).await;
    backend.until("the first verdict", |b| !states(b, "before").is_empty()).await;
    let lenient = settings(&backend, &["processors.mcp_verdict.healthy_requires=[request]"]);
    program.app.reload(&lenient).await.unwrap();
    program.send("desk", vec![answered("after")]).await;
    backend.until("the second verdict", |b| !states(b, "after").is_empty()).await;
    // A late receipt makes a revision of the first, which is judged again.
    let mut late = span(&before.trace_id, "row written");
    late.parent_span_id = before.span_id.clone();
    late.attributes.push(text("mcp_evidence.effect.status", "confirmed"));
    program.send("desk", vec![late]).await;
    backend.until("the revision", |b| states(b, "before").len() == 2).await;
    assert_eq!(states(&backend, "before"), ["unverified", "unverified"]);
    assert_eq!(states(&backend, "after"), ["healthy"]);
}

/// Scenario: an evidence rule that comes by reload, another that goes. Guarantees: a rule speaks of
/// the spans that were received while it was in force.
#[tokio::test(flavor = "multi_thread")]
async fn rules_keep_their_meaning_over_a_reload() {
    let backend = Backend::start(&[]).await;
    let rule = |name: &str, says: &str| {
        format!(
            "processors.mcp_verdict.evidence=[{{when: {{tool: \"*\"}}, span: {{name: {name}}}, \
             says: {{outcome: {says}}}}}]"
        )
    };
    let program = Program::start(&backend, &[&rule("audit", "failed")]).await;
    let checked = |tool: &str, by: &str| {
        let asked = answered(tool);
        let mut row = span(&asked.trace_id, by);
        row.parent_span_id = asked.span_id.clone();
        vec![asked, row]
    };
    program.send("desk", checked("one", "audit")).await;
    backend.until("the first", |b| !states(b, "one").is_empty()).await;
    let other = settings(&backend, &[&rule("probe", "verified")]);
    program.app.reload(&other).await.unwrap();
    program.send("desk", checked("two", "audit")).await;
    program.send("desk", checked("three", "probe")).await;
    backend
        .until("the others", |b| !states(b, "two").is_empty() && !states(b, "three").is_empty())
        .await;
    assert_eq!(states(&backend, "one"), ["false_success"]);
    assert_eq!(states(&backend, "two"), ["unverified"], "the rule was gone");
    assert_ne!(states(&backend, "three"), ["false_success"], "its number is not the old rule's");
}

/// Scenario: a lockfile that changes under a running program; then one that is damaged. Guarantees:
/// checks and calls go by the new pins after the reload; the damaged file is told with its line, and
/// the pins stay.
#[tokio::test(flavor = "multi_thread")]
async fn pins_come_by_reload_and_damage_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp-tools.lock");
    let (old, new) = (tool("find", "query", ""), tool("find", "q", ""));
    write_lockfile(&path, &old);
    let backend = Backend::start(&[]).await;
    let more = [
        "processors.mcp_verdict.contracts.mode=enforce".to_owned(),
        format!("processors.mcp_verdict.contracts.lockfile={}", path.display()),
    ];
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let program = Program::start(&backend, &more).await;
    let question = json!({"server": "tools.example.com", "tool": "find", "definition": new});
    assert_eq!(check(&program, &question).await.1["answer"], "halt");
    let session = |tool: &serde_json::Value| {
        let list = listing(std::slice::from_ref(tool));
        let mut call = answered("find");
        let of_list = |key: &str| attribute(&list.attributes, key).unwrap().to_owned();
        for pair in &mut call.attributes {
            if pair.key == "mcp.session.id" {
                *pair = text("mcp.session.id", &of_list("mcp.session.id"));
            }
        }
        call.start_time_unix_nano = list.end_time_unix_nano + 1000;
        call.end_time_unix_nano = list.end_time_unix_nano + 2000;
        vec![list, call]
    };
    program.send("desk", session(&new)).await;
    backend.until("the first call", |b| states(b, "find").len() == 1).await;
    write_lockfile(&path, &new);
    program.app.reload(&settings(&backend, &more)).await.unwrap();
    assert_eq!(check(&program, &question).await.1["answer"], "proceed");
    program.send("desk", session(&new)).await;
    backend.until("the second call", |b| states(b, "find").len() == 2).await;
    assert_eq!(states(&backend, "find"), ["stale_catalog", "unverified"]);
    std::fs::write(&path, "version = 1\n<<<<<<< ours\n").unwrap();
    let faults = program.app.reload(&settings(&backend, &more)).await.unwrap_err();
    assert!(faults[0].contains("line 2"), "{faults:?}");
    assert_eq!(check(&program, &question).await.1["answer"], "proceed", "the pins stay");
}

/// The built program with one configuration file, and what it logs.
struct Configured {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Configured {
    fn start(config: &std::path::Path, directory: &std::path::Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-verdict"));
        command.arg("run").arg("--config").arg(config);
        let more: [&str; 2] = [
            &format!("storage.directory={}", directory.display()),
            &format!("exporters.file.path={}", directory.join("out.jsonl").display()),
        ];
        for set in crate::ports::FREE.into_iter().chain(more) {
            command.args(["--set", set]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (send, lines) = mpsc::channel();
        let stderr = child.stderr.take().unwrap();
        std::thread::spawn(move || {
            BufReader::new(stderr).lines().map_while(Result::ok).all(|line| send.send(line).is_ok())
        });
        Configured { child, lines }
    }

    /// Waits for a line that holds `word`, and gives all up to it.
    fn until(&self, word: &str) -> String {
        let mut told = String::new();
        while !told.contains(word) {
            let line = self.lines.recv_timeout(Duration::from_secs(30));
            told += &line.unwrap_or_else(|_| panic!("no {word:?} in 30 s:\n{told}"));
            told.push('\n');
        }
        told
    }

    fn reload(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    }
}

impl Drop for Configured {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Scenario: the configuration file of a running program is cut off to nothing, then written as `{}`,
/// then emptied again. Guarantees: nothing is no configuration where there was one, and keeps the old
/// one with a sentence; `{}` is the defaults. A program that starts on an empty file says so.
#[test]
fn a_file_that_was_cut_off_is_no_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yaml");
    let write = |text: &str| std::fs::write(&path, text).unwrap();
    write("processors: { mcp_verdict: { contracts: { mode: enforce } } }\n");
    let program = Configured::start(&path, folder.path());
    program.until("\"ready\"");
    write("");
    program.reload();
    let told = program.until("stays as it was");
    assert!(told.contains("config.yaml: holds nothing any more"), "{told}");
    write("{}\n");
    program.reload();
    program.until("reloaded");
    write("# nothing but this\n");
    program.reload();
    program.until("stays as it was");
    drop(program);
    let other = tempfile::tempdir().unwrap();
    let program = Configured::start(&path, other.path());
    let told = program.until("\"ready\"");
    assert!(told.contains("holds nothing, so that it changes nothing"), "{told}");
    program.reload();
    program.until("reloaded");
}
