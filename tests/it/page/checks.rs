//! The check before a call, in each mode.

use mcp_verdict::proto::CheckContractRequest;
use mcp_verdict::proto::check_contract_request::Held;
use serde_json::json;

use super::support::*;
use crate::edge::support::*;

const SERVER: &str = "tools.example.com";

/// Scenario: `observe`; nobody has listed the tool, then somebody has, then it is renamed. Guarantees:
/// every answer proceeds and says what it knows, by pointer and digest and never by text.
#[tokio::test(flavor = "multi_thread")]
async fn observing_tells_and_never_halts() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    let (old, new) = (tool("find", "query", "Secret words"), tool("find", "q", "Secret words"));
    let question = json!({"server": SERVER, "tool": "find", "definition": new});
    let (_, answer) = check(&program, &question).await;
    assert_eq!((&answer["answer"], &answer["reason"]), (&json!("proceed"), &json!("unpinned")));
    program.send("desk", vec![listing(std::slice::from_ref(&old))]).await;
    let answer = check_until(&program, &question, "unpinned").await;
    assert_eq!(answer["answer"], "proceed");
    assert_eq!(
        (&answer["reason"], &answer["grade"]),
        (&json!("drift_tolerated"), &json!("breaking"))
    );
    assert_eq!(answer["expected_digest"], digest(&old));
    assert_eq!(answer["held_digest"], digest(&new));
    let renamed = answer["changes"].as_array().unwrap().iter();
    let mut renamed = renamed.filter(|change| change["kind"] == "property_renamed");
    let pointer = &renamed.next().unwrap()["pointer"];
    assert!(pointer.as_str().unwrap().starts_with("/inputSchema/properties/"), "{answer}");
    assert!(!answer.to_string().contains("Secret"), "{answer}");
    let same = json!({"server": SERVER, "tool": "find", "digest": digest(&old)});
    assert_eq!(check(&program, &same).await.1["reason"], "pinned");
}

/// Scenario: `enforce` with a lockfile that pins one tool. Guarantees: only what is pinned
/// proceeds; unpinned, unknown, drifted and what cannot be compared halt, over both protocols.
#[tokio::test(flavor = "multi_thread")]
async fn enforcing_lets_nothing_unknown_through() {
    let folder = tempfile::tempdir().unwrap();
    let lockfile = folder.path().join("mcp-tools.lock");
    let (pinned, reworded) = (tool("find", "query", "Finds."), tool("find", "query", "Finds it."));
    write_lockfile(&lockfile, &pinned);
    let backend = Backend::start(&[]).await;
    let mode = "processors.mcp_verdict.contracts.mode=enforce";
    let file = format!("processors.mcp_verdict.contracts.lockfile={}", lockfile.display());
    let program = Program::start(&backend, &[mode, &file]).await;
    let foreign = "sep-2636:sha256:00";
    for (tool, held, word, reason) in [
        ("find", json!({"definition": pinned}), "proceed", "pinned"),
        ("find", json!({"digest": digest(&pinned)}), "proceed", "pinned"),
        ("find", json!({"definition": reworded}), "halt", "contract_drift"),
        ("find", json!({"digest": digest(&reworded)}), "halt", "contract_drift"),
        ("find", json!({"digest": foreign}), "halt", "contract_unknown"),
        ("find", json!({"definition": {"name": "find"}}), "halt", "contract_unknown"),
        ("find", json!({}), "halt", "contract_unknown"),
        ("other", json!({"digest": digest(&pinned)}), "halt", "contract_unpinned"),
    ] {
        let mut question = json!({"server": SERVER, "tool": tool});
        question.as_object_mut().unwrap().extend(held.as_object().unwrap().clone());
        let (status, answer) = check(&program, &question).await;
        assert_eq!((status, answer["answer"].as_str()), (200, Some(word)), "{question} {answer}");
        assert_eq!(answer["reason"], reason, "{question}");
        let twin = CheckContractRequest {
            server: SERVER.into(),
            tool: tool.into(),
            held: match (question.get("definition"), question.get("digest")) {
                (Some(definition), _) => Some(Held::Definition(definition.to_string())),
                (_, Some(digest)) => Some(Held::Digest(digest.as_str().unwrap().into())),
                _ => None,
            },
            ..CheckContractRequest::default()
        };
        let twin = grpc(&program).await.check_contract(twin).await.unwrap().into_inner();
        assert_eq!((twin.answer.as_str(), twin.reason.as_str()), (word, reason), "{question}");
        assert_eq!(twin.changes.len(), answer["changes"].as_array().unwrap().len());
    }
    let drift = json!({"server": SERVER, "tool": "find", "definition": reworded});
    let (_, answer) = check(&program, &drift).await;
    assert_eq!(answer["grade"], "semantic", "a changed description alone: {answer}");
    assert_eq!(answer["changes"][0]["pointer"], "/description");
}

/// Scenario: questions that are none. Guarantees: 400 with a sentence that repeats nothing of them.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_question_is_refused_in_a_sentence() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    let hex = "sha256:".to_owned() + &"ab".repeat(32);
    for (question, says) in [
        (json!("hush"), "send an object"),
        (json!({"tool": "hush"}), "`server` is missing"),
        (json!({"server": "hush", "tool": 5}), "`tool` is not a text"),
        (json!({"server": "a", "tool": "b", "hush": 1}), "unknown key"),
        (json!({"server": "a", "tool": "b", "digest": "hush"}), "`digest` is none"),
        (json!({"server": "a", "tool": "b", "client": "hush"}), "`client` is the 32 hex"),
        (json!({"server": "a", "tool": "b", "client": "c", "auth_context": "hush"}), "not both"),
        (json!({"server": "a", "tool": "b", "definition": "hush"}), "`definition`, line 1"),
        (json!({"server": "a", "tool": "b", "definition": 5}), "no MCP tool"),
        (json!({"server": "a", "tool": "b", "definition": {"name": "hush"}}), "another tool"),
        (
            json!({"server": "a", "tool": "b", "digest": hex, "definition": {"name": "b"}}),
            "not both",
        ),
    ] {
        let (status, answer) = check(&program, &question).await;
        let message = answer["message"].as_str().unwrap();
        assert_eq!(status, 400, "{question} {answer}");
        assert!(message.contains(says) && !message.contains("hush"), "{question}: {message}");
    }
}
