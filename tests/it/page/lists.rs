//! Chains and incidents as pages.

use mcp_verdict::proto::{GetChainRequest, ListChainsRequest, ListIncidentsRequest};
use serde_json::{Value, json};

use super::support::*;
use crate::edge::support::*;

async fn judged(program: &Program, calls: usize) {
    for number in 0..calls {
        let tool = format!("tool-{number}");
        program.send("desk", vec![failed(call(&trace(), &tool), "tool_error")]).await;
    }
    for _ in 0..200 {
        let (_, page) = get(program, "/v1/chains?limit=1000").await;
        if page["chains"].as_array().unwrap().len() == calls {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("not every call was judged within 10 s");
}

fn names(page: &Value) -> Vec<String> {
    let chains = page["chains"].as_array().unwrap().iter();
    chains.map(|chain| chain["tool"].as_str().unwrap().to_owned()).collect()
}

/// Scenario: five failed calls, read by pages of two, one more judged between two pages.
/// Guarantees: each of the five once, newest first, the sixth on no later page; the same over gRPC.
#[tokio::test(flavor = "multi_thread")]
async fn chains_come_in_stable_pages() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    judged(&program, 5).await;
    let (_, whole) = get(&program, "/v1/chains").await;
    assert_eq!(whole["next_page_token"], Value::Null);
    let (_, first) = get(&program, "/v1/chains?limit=2").await;
    let mut found = names(&first);
    program.send("desk", vec![failed(call(&trace(), "late"), "tool_error")]).await;
    for _ in 0..200 {
        let (_, page) = get(&program, "/v1/chains?limit=1").await;
        if names(&page) == ["late"] {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let mut token = first["next_page_token"].as_str().unwrap().to_owned();
    while !token.is_empty() {
        let (_, page) = get(&program, &format!("/v1/chains?limit=2&page_token={token}")).await;
        found.extend(names(&page));
        token = page["next_page_token"].as_str().unwrap_or_default().to_owned();
    }
    assert_eq!(found, names(&whole));
    let request = ListChainsRequest { state: "tool_failed".into(), limit: 1, ..Default::default() };
    let twin = grpc(&program).await.list_chains(request).await.unwrap().into_inner();
    assert_eq!(twin.chains[0].tool.as_deref(), Some("late"));
    assert!(!twin.next_page_token.is_empty());
    let (_, none) = get(&program, "/v1/chains?state=healthy").await;
    assert_eq!(none["chains"], json!([]));
}

/// Scenario: one failed call. Guarantees: its chain by id, as replay prints it; its incident; 404 and
/// NOT_FOUND for an id nobody knows, 400 for a query that cannot be read.
#[tokio::test(flavor = "multi_thread")]
async fn one_chain_and_its_incident() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    judged(&program, 1).await;
    let (_, chains) = get(&program, "/v1/chains?tool=tool-0&server=tools.example.com").await;
    let id = chains["chains"][0]["id"].as_str().unwrap().to_owned();
    let (status, chain) = get(&program, &format!("/v1/chains/{id}")).await;
    assert_eq!((status, &chain["verdict"]), (200, &chains["chains"][0]));
    assert_eq!(chain["verdict"]["state"], "tool_failed");
    assert_eq!(chain["earlier"], json!([]));
    // Records of servers follow within a settle.
    let mut incidents = Value::Null;
    for _ in 0..100 {
        incidents = get(&program, "/v1/incidents?status=open").await.1;
        if incidents["incidents"] != json!([]) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(incidents["incidents"][0]["reason"], "tool_error", "{incidents}");
    let mut grpc = grpc(&program).await;
    let twin = grpc.get_chain(GetChainRequest { id: id.clone() }).await.unwrap().into_inner();
    assert_eq!(twin.verdict.unwrap().id, id);
    let twin = grpc.list_incidents(ListIncidentsRequest::default()).await.unwrap().into_inner();
    assert_eq!(twin.incidents[0].reason, "tool_error");
    let nobody = "0".repeat(32);
    assert_eq!(get(&program, &format!("/v1/chains/{nobody}")).await.0, 404);
    let status = grpc.get_chain(GetChainRequest { id: nobody }).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::NotFound);
    for query in ["limit=x", "limit=0", "colour=red", "page_token=x", "state=none"] {
        let (status, answer) = get(&program, &format!("/v1/chains?{query}")).await;
        assert_eq!(status, 400, "{query}: {answer}");
    }
}
