//! Who may ask, and how.

use mcp_verdict::config::{Sources, load_with};
use mcp_verdict::proto::{CheckContractRequest, CheckContractResponse, ListChainsRequest};
use serde_json::json;

use super::support::*;
use crate::edge::support::*;

/// Scenario: every answer, right or wrong. Guarantees: headers that keep a browser from caching,
/// framing or sniffing it.
#[tokio::test(flavor = "multi_thread")]
async fn answers_are_hardened() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    for (path, status) in [("/v1/chains", 200), ("/nowhere", 404), ("/v1/contracts/check", 405)] {
        let response = client().get(url(&program, path)).send().await.unwrap();
        assert_eq!(response.status(), status, "{path}");
        for (header, value) in [
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
        ] {
            assert_eq!(response.headers()[header], value, "{path}");
        }
    }
}

/// Scenario: a site whose name points at this machine, a form of another site, a body without end.
/// Guarantees: none of them is answered.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_browser_can_be_made_to_send_is_refused() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    let chains = || client().get(url(&program, "/v1/chains"));
    assert_eq!(read(chains().header("host", "evil.example:55679")).await.0, 421);
    for host in ["localhost", "127.0.0.1:1", "[::1]:55679"] {
        assert_eq!(read(chains().header("host", host)).await.0, 200, "{host}");
    }
    let check = || client().post(url(&program, "/v1/contracts/check"));
    let question = json!({"server": "a", "tool": "b"}).to_string();
    assert_eq!(read(check().body(question.clone())).await.0, 415);
    let form = check().header("content-type", "text/plain").body(question);
    assert_eq!(read(form).await.0, 415);
    for megabytes in [2, 20] {
        let long = " ".repeat(megabytes << 20);
        let (status, answer) =
            read(check().header("content-type", "application/json").body(long)).await;
        let wanted = json!(["too_large", 8, 1 << 20]);
        assert_eq!(status, 413, "{megabytes} MiB");
        assert_eq!(json!([answer["reason"], answer["code"], answer["limit"]]), wanted);
    }
}

/// Scenario: over gRPC a message of another kind, and more header than is taken. Guarantees: both are
/// told as the asker's fault, by codes that say which.
#[tokio::test(flavor = "multi_thread")]
async fn what_grpc_cannot_read_is_the_askers_fault() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    let address = format!("http://{}", program.app.grpc_address().unwrap());
    let channel = tonic::transport::Channel::from_shared(address).unwrap().connect().await.unwrap();
    let mut raw = tonic::client::Grpc::new(channel);
    raw.ready().await.unwrap();
    // A number where the question has a text.
    let other = ListChainsRequest { limit: 7, ..ListChainsRequest::default() };
    let codec = tonic_prost::ProstCodec::<ListChainsRequest, CheckContractResponse>::default();
    let path = "/mcp_verdict.v1.McpVerdict/CheckContract".parse().unwrap();
    let status = raw.unary(tonic::Request::new(other), path, codec).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::InvalidArgument, "{status:?}");
    let mut question = tonic::Request::new(CheckContractRequest::default());
    question.metadata_mut().insert("x-long", "x".repeat(30_000).parse().unwrap());
    let status = grpc(&program).await.check_contract(question).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::ResourceExhausted, "{status:?}");
    assert!(status.message().contains("limits.header_size"), "{status:?}");
}

/// Scenario: a bearer token on the page, another on the receivers. Guarantees: each port asks for
/// its own, before it looks at the question.
#[tokio::test(flavor = "multi_thread")]
async fn each_port_asks_for_its_own_token() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, token: &str| {
        std::fs::write(folder.path().join(name), token).unwrap();
        folder.path().join(name).display().to_string()
    };
    let page = file("page", "sesame");
    let otlp = file("otlp", "abracadabra");
    let backend = Backend::start(&[]).await;
    let more = [
        format!("service.telemetry.page.auth.bearer_token_file={page}"),
        format!("receivers.otlp.auth.bearer_token_file={otlp}"),
    ];
    let program = Program::start(&backend, &[&more[0], &more[1]]).await;
    let chains = || client().get(url(&program, "/v1/chains"));
    let refused = chains().send().await.unwrap();
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["www-authenticate"]),
        (401, &"Bearer".parse().unwrap())
    );
    assert_eq!(read(chains().bearer_auth("abracadabra")).await.0, 401);
    assert_eq!(read(chains().bearer_auth("sesame")).await.0, 200);
    let with_name = chains().bearer_auth("sesame").header("host", "verdict.example.com");
    assert_eq!(read(with_name).await.0, 200, "credentials protect it under any name");
    let mut grpc = grpc(&program).await;
    let question = || {
        let (server, tool) = ("a".to_owned(), "b".to_owned());
        tonic::Request::new(CheckContractRequest { server, tool, ..Default::default() })
    };
    let status = grpc.check_contract(question()).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unauthenticated);
    let mut right = question();
    right.metadata_mut().insert("authorization", "Bearer abracadabra".parse().unwrap());
    assert_eq!(grpc.check_contract(right).await.unwrap().into_inner().answer, "proceed");
}

/// Scenario: the page on an address that strangers reach, with nothing in front. Guarantees: the
/// configuration is refused, by the name of the key.
#[test]
fn an_exposed_page_is_refused() {
    let load = |set: &[&str]| {
        let set = set.iter().map(|text| (*text).to_owned()).collect();
        load_with(&Sources { files: Vec::new(), set }, &|_| None)
    };
    let exposed = "service.telemetry.page.endpoint=0.0.0.0:55679";
    let mistakes = load(&[exposed]).unwrap_err();
    assert!(mistakes[0].to_string().contains("service.telemetry.page.endpoint"), "{mistakes:?}");
    assert!(load(&[exposed, "service.telemetry.page.allow_insecure=true"]).is_ok());
    assert!(load(&[exposed, "service.telemetry.page.auth.bearer_token_file=token"]).is_ok());
}
