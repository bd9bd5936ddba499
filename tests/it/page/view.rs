//! The live page as a browser gets it, and what it is made from.

use serde_json::{Value, json};

use super::support::*;
use crate::edge::support::*;

/// The page's own files, by what its document names.
async fn files(program: &Program) -> Vec<String> {
    let mut found = vec!["/".to_owned()];
    let mut at = 0;
    while at < found.len() {
        let text = client().get(url(program, &found[at])).send().await.unwrap();
        assert_eq!(text.status(), 200, "{}", found[at]);
        let text = text.text().await.unwrap();
        // href="/static/…", src="/static/…", from "./…"
        let named = text.split('"').filter_map(|part| match part.strip_prefix("./") {
            Some(name) if name.ends_with(".js") => Some(format!("/static/{name}")),
            _ => part.starts_with("/static/").then(|| part.to_owned()),
        });
        for file in named {
            if !found.contains(&file) {
                found.push(file);
            }
        }
        at += 1;
    }
    found
}

/// Scenario: the document and every file that it leads to. Guarantees: all there, of the right type,
/// under a policy that runs nothing else and makes no markup of text; small; nothing from elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_whole_and_locked_up() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    let files = files(&program).await;
    assert!(files.len() > 10, "{files:?}");
    let mut bytes = 0;
    for file in &files {
        let response = client().get(url(&program, file)).send().await.unwrap();
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        let kind = match file.rsplit_once('.') {
            None => "text/html; charset=utf-8",
            Some((_, "js")) => "text/javascript; charset=utf-8",
            Some((_, "css")) => "text/css; charset=utf-8",
            Some(_) => "image/svg+xml",
        };
        assert_eq!(header("content-type"), kind, "{file}");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("x-frame-options"), "DENY");
        let policy = header("content-security-policy");
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "img-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "require-trusted-types-for 'script'",
        ] {
            assert!(policy.split("; ").any(|part| part == rule), "{file}: {rule}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        let text = response.text().await.unwrap();
        bytes += text.len();
        for banned in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!text.contains(banned), "{file}: {banned}");
        }
        let elsewhere = text.replace("http://www.w3.org/2000/svg", "").replace("http://${", "");
        assert!(!elsewhere.contains("http://") && !elsewhere.contains("https://"), "{file}");
    }
    assert!(bytes < 100_000, "{bytes} bytes");
    let missing = client().get(url(&program, "/static/nothing.js")).send().await.unwrap();
    assert_eq!(missing.status(), 404);
    let up = client().get(url(&program, "/static/..%2f..%2fmod.rs")).send().await.unwrap();
    assert_eq!(up.status(), 404);
}

/// Scenario: the same question twice, the second time with the first answer's tag. Guarantees: the
/// second answer is empty, until there is something new to say.
#[tokio::test(flavor = "multi_thread")]
async fn what_has_not_changed_is_not_sent_again() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    let ask = |tag: Option<String>| {
        let request = client().get(url(&program, "/v1/chains"));
        let request = tag.into_iter().fold(request, |r, tag| r.header("if-none-match", tag));
        async move { request.send().await.unwrap() }
    };
    let first = ask(None).await;
    let tag = first.headers()["etag"].to_str().unwrap().to_owned();
    let second = ask(Some(tag.clone())).await;
    assert_eq!(second.status(), 304);
    assert_eq!(second.text().await.unwrap(), "");
    program.send("desk", vec![failed(call(&trace(), "move"), "tool_error")]).await;
    for _ in 0..200 {
        if ask(Some(tag.clone())).await.status() == 200 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the new verdict was not seen within 10 s");
}

/// Scenario: a name and a password on the page. Guarantees: a browser is asked for them, for the
/// document as for the data, and gets in with them alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_browser_can_log_in() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users");
    // password, as htpasswd -s writes it.
    std::fs::write(&file, "ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n").unwrap();
    let backend = Backend::start(&[]).await;
    let key = format!("service.telemetry.page.auth.basic.htpasswd_file={}", file.display());
    let program = Program::start(&backend, &[&key]).await;
    for path in ["/", "/static/main.js", "/v1/overview"] {
        let get = || client().get(url(&program, path));
        let refused = get().send().await.unwrap();
        assert_eq!(refused.status(), 401, "{path}");
        assert_eq!(refused.headers()["www-authenticate"], r#"Basic realm="mcp-verdict""#);
        let wrong = get().basic_auth("ann", Some("guess")).send().await.unwrap();
        assert_eq!(wrong.status(), 401, "{path}");
        let right = get().basic_auth("ann", Some("password")).send().await.unwrap();
        assert_eq!(right.status(), 200, "{path}");
    }
}

/// Scenario: one failed call of one agent. Guarantees: the overview counts it, the names to filter
/// by are there, its chain says what it rests on and what would change it, in JSON as over gRPC;
/// how the pipeline does is told.
#[tokio::test(flavor = "multi_thread")]
async fn one_call_in_every_view() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    program.send("desk", vec![failed(call(&trace(), "move"), "tool_error")]).await;
    let mut overview = Value::Null;
    for _ in 0..200 {
        overview = get(&program, "/v1/overview").await.1;
        if overview["chains"] == 1 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(overview["states"], json!({"tool_failed": 1}));
    assert_eq!(overview["calls"]["attempts"], 1);
    assert_eq!(overview["minutes"][0]["states"], json!({"tool_failed": 1}));
    let start: u64 = overview["minutes"][0]["start"].as_str().unwrap().parse().unwrap();
    let now = mcp_verdict::clock::now().wall;
    // Nanoseconds, as every time: it began in this hour, not in 1970.
    assert!(start <= now && now - start < 3_600_000_000_000, "{start}, now {now}");
    let (_, names) = get(&program, "/v1/names").await;
    assert_eq!(
        names,
        json!({"servers": ["tools.example.com"], "tools": ["move"],
        "agents": ["desk"]})
    );
    for (query, found) in [
        ("agent=desk", 1),
        ("agent=another", 0),
        ("first_failed_layer=execution", 1),
        ("state=tool_failed,healthy", 1),
        ("text=TOOLS.example", 1),
        ("text=nowhere", 0),
    ] {
        let (status, page) = get(&program, &format!("/v1/chains?{query}")).await;
        assert_eq!(
            (status, page["chains"].as_array().map(Vec::len)),
            (200, Some(found)),
            "{query}"
        );
    }
    let (_, page) = get(&program, "/v1/chains").await;
    let id = page["chains"][0]["id"].as_str().unwrap().to_owned();
    let (_, chain) = get(&program, &format!("/v1/chains/{id}")).await;
    let evidence = &chain["evidence"];
    let fact = &evidence["facts"][0];
    assert_eq!((&fact["role"], &fact["service"]), (&json!("asking"), &json!("desk")));
    assert_eq!(fact["span_id"], chain["verdict"]["client_span_id"]);
    assert!(evidence["judgement"].to_string().contains("`tool_failed`"), "{evidence}");
    let request = mcp_verdict::proto::ListChainsRequest {
        agent: "desk".into(),
        first_failed_layer: "execution".into(),
        text: id[..8].into(),
        ..Default::default()
    };
    let twin = grpc(&program).await.list_chains(request).await.unwrap().into_inner();
    assert_eq!(twin.chains[0].id, id);
    let twin = grpc(&program).await;
    let request = mcp_verdict::proto::GetChainRequest { id };
    let twin = { twin }.get_chain(request).await.unwrap().into_inner().evidence.unwrap();
    assert_eq!(json!(twin.judgement), evidence["judgement"]);
    assert_eq!(twin.facts.len(), evidence["facts"].as_array().unwrap().len());
    let (_, health) = get(&program, "/v1/health").await;
    assert_eq!(health["status"], "ok", "{health}");
    let grpc_address = program.app.grpc_address().unwrap().to_string();
    assert_eq!(health["receives"]["grpc"], grpc_address);
    for (path, wrong) in [
        ("/v1/overview?minutes=100000", "minutes"),
        ("/v1/chains?first_failed_layer=x", "first_failed_layer"),
        ("/v1/incidents?owner=x", "owner"),
        ("/v1/sessions?convergence=x", "convergence"),
        ("/v1/drifts?grade=x", "grade"),
    ] {
        let (status, answer) = get(&program, path).await;
        assert_eq!(status, 400, "{path}");
        assert!(answer["message"].as_str().unwrap().contains(wrong), "{path}: {answer}");
    }
}
