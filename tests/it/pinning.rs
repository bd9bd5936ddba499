//! Trust on first use, in a running program: what is listed first is pinned, and stays pinned.

use std::path::Path;
use std::time::{Duration, Instant};

use mcp_verdict::app::lockfile::{read, update};
use mcp_verdict::catalog::lockfile::{Holder, Lockfile};
use serde_json::{Value, json};

use crate::edge::support::*;
use crate::page::support::{check, check_until, digest, listing, tool};

fn pinning(folder: &Path, lockfile: &str) -> Vec<String> {
    vec![
        "processors.mcp_verdict.contracts.mode=pin".to_owned(),
        format!("processors.mcp_verdict.contracts.lockfile={lockfile}"),
        format!("storage.directory={}", folder.join("data").display()),
    ]
}

async fn start(backend: &Backend, more: &[String]) -> Program {
    Program::start(backend, &more.iter().map(String::as_str).collect::<Vec<_>>()).await
}

/// Reads a lockfile until it holds so many pins.
async fn pinned(path: &Path, count: usize) -> Lockfile {
    let end = Instant::now() + PATIENCE;
    loop {
        let lockfile = read(path).unwrap();
        if lockfile.pins().len() == count {
            return lockfile;
        }
        assert!(Instant::now() < end, "{} pins", lockfile.pins().len());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn find(lockfile: &Lockfile, tool: &str) -> (String, bool) {
    let pin = lockfile.find("tools.example.com", &Holder::Anyone, tool).unwrap();
    (pin.digest.to_string(), pin.approved.is_some())
}

fn question(tool: &Value) -> Value {
    json!({"server": "tools.example.com", "tool": tool["name"], "definition": tool})
}

/// Scenario: a tool is listed, then renamed, then another one comes, while somebody else writes pins
/// into the same file. Guarantees: the first definition stays the pin, unapproved; the renamed one is
/// halted, with a pointer; nobody's pins are lost; comments stay.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_definition_is_pinned_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp-tools.lock");
    std::fs::write(&path, "# kept\nversion = 1\n").unwrap();
    let backend = Backend::start(&[]).await;
    let program = start(&backend, &pinning(folder.path(), path.to_str().unwrap())).await;
    let (old, new) = (tool("find", "query", "Secret words"), tool("find", "q", "Secret words"));
    program.send("desk", vec![listing(std::slice::from_ref(&old))]).await;
    assert_eq!(find(&pinned(&path, 1).await, "find"), (digest(&old), false));
    let others = tool("theirs", "x", "");
    update(&path, |lockfile| {
        let read = mcp_verdict::catalog::projection::read_definition(&others).unwrap();
        let mark = lockfile.pins().values().next().unwrap().pinned.clone();
        let pin = mcp_verdict::catalog::lockfile::Pin::of(&read, mark, None).unwrap();
        lockfile.set(mcp_verdict::catalog::lockfile::anyones("else.example.com", &read), pin);
        Ok::<(), ()>(())
    })
    .unwrap()
    .unwrap();
    program.send("desk", vec![listing(&[new.clone(), tool("more", "y", "")])]).await;
    let lockfile = pinned(&path, 3).await;
    assert_eq!(find(&lockfile, "find"), (digest(&old), false));
    let answer = check_until(&program, &question(&new), "unpinned").await;
    assert_eq!((&answer["answer"], &answer["grade"]), (&json!("halt"), &json!("breaking")));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# kept") && !text.contains("Secret"), "{text}");
}

/// Scenario: a lockfile that cannot be written, a restart, then one that can. Guarantees: pins live
/// in the storage directory, hold after the restart, and move into the lockfile once they can.
#[tokio::test(flavor = "multi_thread")]
async fn pins_live_in_storage_where_the_lockfile_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let in_the_way = folder.path().join("file");
    std::fs::write(&in_the_way, "").unwrap();
    let path = folder.path().join("open/mcp-tools.lock");
    std::os::unix::fs::symlink(&in_the_way, folder.path().join("open")).unwrap();
    let more = pinning(folder.path(), path.to_str().unwrap());
    let backend = Backend::start(&[]).await;
    // A lockfile below a file cannot even be read: the directory is there at the start, and goes.
    let directory = folder.path().join("directory");
    std::fs::create_dir(&directory).unwrap();
    point(folder.path(), &directory);
    let program = start(&backend, &more).await;
    point(folder.path(), &in_the_way);
    let (old, new) = (tool("find", "query", ""), tool("find", "q", ""));
    program.send("desk", vec![listing(std::slice::from_ref(&old))]).await;
    let spare = folder.path().join("data/pins.lock");
    assert_eq!(find(&pinned(&spare, 1).await, "find").0, digest(&old));
    program.app.stop().await;
    point(folder.path(), &directory);
    let program = start(&backend, &more).await;
    assert_eq!(check(&program, &question(&new)).await.1["answer"], "halt");
    program.send("desk", vec![listing(&[tool("more", "y", "")])]).await;
    let lockfile = pinned(&path, 2).await;
    assert_eq!(find(&lockfile, "find").0, digest(&old));
    program.app.stop().await;
    assert!(!spare.exists());
}

/// Makes `open` lead elsewhere.
fn point(folder: &Path, to: &Path) {
    let link = folder.join("open");
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(to, &link).unwrap();
}

/// Scenario: the program's own file of pins is damaged, or a pipe. Guarantees: it starts, the file is
/// in set-aside as it was, and what is listed first is pinned.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_pins_of_ours_are_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let path = folder.path().join("mcp-tools.lock");
    let more = pinning(folder.path(), path.to_str().unwrap());
    let backend = Backend::start(&[]).await;
    std::fs::write(data.join("pins.lock"), "version = \"half").unwrap();
    start(&backend, &more).await.app.stop().await;
    let kept = std::fs::read_to_string(data.join("set-aside/pins.lock")).unwrap();
    assert_eq!((kept.as_str(), data.join("pins.lock").exists()), ("version = \"half", false));
    let pipe = data.join("pins.lock");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let program = start(&backend, &more).await;
    assert!(data.join("set-aside/pins.lock.1").exists());
    let found = tool("find", "query", "");
    program.send("desk", vec![listing(std::slice::from_ref(&found))]).await;
    assert_eq!(find(&pinned(&path, 1).await, "find"), (digest(&found), false));
    program.app.stop().await;
}

/// Scenario: `observe`, and a tool that is listed. Guarantees: no file is written.
#[tokio::test(flavor = "multi_thread")]
async fn observing_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp-tools.lock");
    let mut more = pinning(folder.path(), path.to_str().unwrap());
    more[0] = "processors.mcp_verdict.contracts.mode=observe".into();
    let backend = Backend::start(&[]).await;
    let program = start(&backend, &more).await;
    let found = tool("find", "query", "");
    program.send("desk", vec![listing(std::slice::from_ref(&found))]).await;
    assert_eq!(check_until(&program, &question(&found), "unpinned").await["reason"], "pinned");
    program.app.stop().await;
    assert!(!path.exists() && !folder.path().join("data/pins.lock").exists());
}
