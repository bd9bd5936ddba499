//! `lock … --from-instance`: contracts from what a running program has seen.

use std::path::Path;

use mcp_verdict::cli::{self, Exit};
use serde_json::json;

use super::support::*;
use crate::edge::support::*;

/// Runs a command on a thread that may wait.
async fn lock(words: &[&str], lockfile: &Path) -> Exit {
    let words = ["mcp-verdict", "lock"].iter().chain(words);
    let mut words: Vec<std::ffi::OsString> = words.map(Into::into).collect();
    words.extend(["--lockfile".into(), lockfile.into()]);
    tokio::task::spawn_blocking(move || cli::run(words)).await.unwrap()
}

async fn seen(program: &Program, tools: &[serde_json::Value], auth: &str) {
    let mut listing = listing(tools);
    if !auth.is_empty() {
        listing.attributes.push(text("mcp_evidence.session.auth_context", auth));
    }
    program.send(&format!("desk {auth}"), vec![listing]).await;
    for tool in tools {
        for _ in 0..200 {
            let known =
                read(client().get(url(program, "/v1/contracts?limit=1000")).bearer_auth("sesame"))
                    .await
                    .1;
            if known.to_string().contains(&digest(tool)) {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}

/// Scenario: a program behind a token has seen two tools; they are pinned from it, one is renamed,
/// reviewed and approved. Guarantees: exit codes as from files; a drift is located though no text was
/// asked for; the token is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn pins_come_from_a_running_instance() {
    let folder = tempfile::tempdir().unwrap();
    let lockfile = folder.path().join("mcp-tools.lock");
    let token = folder.path().join("token");
    std::fs::write(&token, "sesame\n").unwrap();
    let backend = Backend::start(&[]).await;
    let auth = format!("service.telemetry.page.auth.bearer_token_file={}", token.display());
    let program = Program::start(&backend, &[&auth]).await;
    let (old, new) = (tool("find", "query", "Secret words"), tool("find", "q", "Secret words"));
    let other = tool("put", "x", "");
    seen(&program, &[old, other.clone()], "").await;
    let base = url(&program, "");
    let token = token.display().to_string();
    let from = ["--from-instance", base.as_str()];
    assert_eq!(lock(&["init", from[0], from[1]], &lockfile).await, Exit::Input, "no token");
    let asked = |command: &'static str| {
        vec![command, "--from-instance", base.as_str(), "--bearer-token-file", token.as_str()]
    };
    assert_eq!(lock(&asked("init"), &lockfile).await, Exit::Done);
    let text = std::fs::read_to_string(&lockfile).unwrap();
    assert!(text.contains("tools.example.com") && !text.contains("Secret"), "{text}");
    assert_eq!(lock(&asked("check"), &lockfile).await, Exit::Done);
    seen(&program, &[new.clone(), other], "").await;
    assert_eq!(lock(&asked("check"), &lockfile).await, Exit::No);
    assert_eq!(lock(&asked("approve"), &lockfile).await, Exit::Done);
    assert_eq!(lock(&asked("check"), &lockfile).await, Exit::Done);
    let pinned = mcp_verdict::app::lockfile::read(&lockfile).unwrap();
    let anyone = mcp_verdict::catalog::lockfile::Holder::Anyone;
    let pin = pinned.find("tools.example.com", &anyone, "find").unwrap();
    assert_eq!(pin.digest.to_string(), digest(&new));
    assert!(pin.members.contains_key("inputSchema/properties/q"), "{:?}", pin.members);
}

/// Scenario: a server that shows two authorization contexts two definitions. Guarantees: the command
/// chooses neither; told which, it pins for that context alone, and the check API goes by it.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_several_lines_needs_a_choice() {
    let folder = tempfile::tempdir().unwrap();
    let lockfile = folder.path().join("mcp-tools.lock");
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    let (admin, guest) = (tool("find", "query", "All."), tool("find", "query", "Some."));
    seen(&program, std::slice::from_ref(&admin), "admin").await;
    seen(&program, std::slice::from_ref(&guest), "guest").await;
    let base = url(&program, "");
    let from = ["--from-instance", base.as_str()];
    assert_eq!(lock(&["init", from[0], from[1]], &lockfile).await, Exit::Input, "which?");
    assert!(!lockfile.exists());
    let init = ["init", from[0], from[1], "--auth", "guest"];
    assert_eq!(lock(&init, &lockfile).await, Exit::Done);
    let more = [
        "processors.mcp_verdict.contracts.mode=enforce".to_owned(),
        format!("processors.mcp_verdict.contracts.lockfile={}", lockfile.display()),
    ];
    let strict = Program::start(&backend, &[&more[0], &more[1]]).await;
    for (held, context, reason) in [
        (&guest, Some("guest"), "pinned"),
        (&admin, Some("guest"), "contract_drift"),
        (&guest, Some("admin"), "contract_unpinned"),
        (&guest, None, "contract_unpinned"),
    ] {
        let question = json!({"server": "tools.example.com", "tool": "find", "definition": held,
            "auth_context": context});
        assert_eq!(check(&strict, &question).await.1["reason"], reason, "{context:?}");
    }
}

/// Scenario: 25 tools read by pages of 10. Guarantees: each once, by its digest, in one order.
#[tokio::test(flavor = "multi_thread")]
async fn contracts_come_in_pages() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    let tools: Vec<_> = (0..25).map(|number| tool(&format!("t{number:02}"), "x", "")).collect();
    seen(&program, &tools, "").await;
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/contracts?limit=10&server=tools.example.com&page_token={token}");
        let (status, page) = get(&program, &path).await;
        assert_eq!(status, 200, "{page}");
        let names = page["contracts"].as_array().unwrap().iter();
        found.extend(names.map(|line| line["digest"].as_str().unwrap().to_owned()));
        match page["next_page_token"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(found, tools.iter().map(digest).collect::<Vec<_>>());
    assert_eq!(get(&program, "/v1/contracts?page_token=x").await.0, 400);
}
