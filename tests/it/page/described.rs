//! The OpenAPI document: what it says is what is answered.

use mcp_verdict::page::openapi;
use serde_json::{Value, json};

use super::support::*;
use crate::edge::support::*;

/// Every answer that the document describes, as its schema.
fn validator(document: &Value, path: &str) -> jsonschema::Validator {
    let method = if path.ends_with("/check") { "post" } else { "get" };
    let answer = &document["paths"][path][method]["responses"]["200"];
    let schema = answer["content"]["application/json"]["schema"].clone();
    // The whole document beside it, for its references.
    let schema = json!({"allOf": [schema], "components": document["components"]});
    jsonschema::validator_for(&schema).unwrap()
}

fn fits(document: &Value, path: &str, answer: &Value) {
    let validator = validator(document, path);
    let wrong: Vec<String> = validator.iter_errors(answer).map(|e| e.to_string()).collect();
    assert!(wrong.is_empty(), "{path}: {wrong:?}\n{answer}");
}

/// Scenario: failed, answered and drifted calls; every path of the document is asked. Guarantees:
/// every answer is of its schema, which allows nothing that it does not name; every path is there,
/// and every parameter is taken; wrong ones are answered by the schema of errors.
#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_as_described() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    program.send("desk", vec![listing(&[tool("find", "q", "Finds.")])]).await;
    program.send("desk", vec![failed(call(&trace(), "find"), "tool_error")]).await;
    program.send("desk", vec![call(&trace(), "find")]).await;
    program.send("desk", vec![listing(&[tool("find", "query", "Finds.")])]).await;
    let wanted = ["/v1/drifts", "/v1/incidents", "/v1/sessions", "/v1/contracts", "/v1/chains"];
    for path in wanted {
        let key = path.trim_start_matches("/v1/");
        for round in 0.. {
            if get(&program, path).await.1[key] != json!([]) {
                break;
            }
            assert!(round < 200, "nothing on {path} within 10 s");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
    let (_, document) = get(&program, "/v1/openapi.json").await;
    assert_eq!(document, openapi::document());
    let (_, chains) = get(&program, "/v1/chains").await;
    let id = chains["chains"][0]["id"].as_str().unwrap().to_owned();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let Some(described) = methods.get("get") else { continue };
        let (status, answer) = get(&program, &path.replace("{id}", &id)).await;
        assert_eq!(status, 200, "{path}: {answer}");
        fits(&document, path, &answer);
        let parameters = described["parameters"].as_array().into_iter().flatten();
        for parameter in parameters.filter(|parameter| parameter["in"] == "query") {
            let name = parameter["name"].as_str().unwrap();
            let (status, answer) = get(&program, &format!("{path}?{name}=")).await;
            let numbers = ["limit", "minutes"].contains(&name);
            assert_eq!(status, if numbers { 400 } else { 200 }, "{path}?{name}=: {answer}");
        }
        if !path.contains("{id}")
            && path != "/v1/openapi.json"
            && path != "/v1/names"
            && path != "/v1/health"
        {
            let (status, answer) = get(&program, &format!("{path}?colour=red")).await;
            assert_eq!(status, 400, "{path}");
            let schema = &document["components"]["schemas"]["Error"];
            assert!(jsonschema::is_valid(schema, &answer), "{answer}");
        }
    }
    let held = tool("find", "other", "Finds.");
    let question = json!({"server": "tools.example.com", "tool": "find", "definition": held});
    let (_, answer) = check(&program, &question).await;
    assert!(!answer["changes"].as_array().unwrap().is_empty(), "{answer}");
    fits(&document, "/v1/contracts/check", &answer);
    let schema = &document["components"]["schemas"]["Question"];
    assert!(jsonschema::is_valid(schema, &question));
    // The schemas would tell.
    let mut more = chains.clone();
    more["chains"][0]["colour"] = json!("red");
    assert!(!validator(&document, "/v1/chains").is_valid(&more));
}
