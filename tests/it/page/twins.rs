//! gRPC beside OTLP: the twins of the HTTP API, verdicts as they are said, and the standard
//! services, health and reflection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_verdict::page::Board;
use mcp_verdict::page::board::Recorder;
use mcp_verdict::page::listing::Wanted;
use mcp_verdict::proto::{self, *};
use prost::Message;
use prost_reflect::DescriptorPool;
use serde_json::Value;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest as Ask;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse as Told;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

use super::many::verdict;
use super::support::*;
use crate::edge::support::*;
use crate::records::{as_json, plain};

const PATIENCE: Duration = Duration::from_secs(30);

/// Both answers in one form; an empty text of gRPC is the absent one of HTTP.
fn form(answer: &Value) -> Value {
    let mut answer = plain(answer);
    if let Some(members) = answer.as_object_mut() {
        let empty = ["next_page_token", "why"];
        members.retain(|key, value| !(empty.contains(&key.as_str()) && value == ""));
        for value in members.values_mut() {
            *value = form(value);
        }
    } else if let Some(items) = answer.as_array_mut() {
        items.iter_mut().for_each(|item| *item = form(item));
    }
    answer
}

/// The answer of a twin as JSON, by the descriptors.
async fn twin(program: &Program, path: &str) -> Value {
    let pool = DescriptorPool::decode(proto::DESCRIPTORS).unwrap();
    let mut grpc = grpc(program).await;
    macro_rules! ask {
        ($method:ident, $request:ident, $response:literal) => {{
            let answer = grpc.$method($request::default()).await.unwrap().into_inner();
            as_json(&pool, &format!("mcp_verdict.v1.{}", $response), &answer.encode_to_vec())
        }};
    }
    match path {
        "/v1/chains" => ask!(list_chains, ListChainsRequest, "ListChainsResponse"),
        "/v1/incidents" => ask!(list_incidents, ListIncidentsRequest, "ListIncidentsResponse"),
        "/v1/sessions" => ask!(list_sessions, ListSessionsRequest, "ListSessionsResponse"),
        "/v1/drifts" => ask!(list_drifts, ListDriftsRequest, "ListDriftsResponse"),
        "/v1/contracts" => ask!(list_contracts, ListContractsRequest, "ListContractsResponse"),
        "/v1/overview" => ask!(get_overview, GetOverviewRequest, "GetOverviewResponse"),
        "/v1/coverage" => ask!(get_coverage, GetCoverageRequest, "GetCoverageResponse"),
        "/v1/names" => ask!(get_names, GetNamesRequest, "GetNamesResponse"),
        "/v1/health" => ask!(get_health, GetHealthRequest, "GetHealthResponse"),
        other => panic!("{other} has no twin"),
    }
}

/// Counts move while they are asked for; what is counted does not.
fn without_values(mut answer: Value) -> Value {
    for metric in answer["metrics"].as_array_mut().into_iter().flatten() {
        metric.as_object_mut().unwrap().remove("value");
    }
    answer
}

/// Scenario: failed, answered and drifted calls; everything that can be read over HTTP is asked over
/// gRPC too. Guarantees: the same answer, member by member, and every path has its twin.
#[tokio::test(flavor = "multi_thread")]
async fn grpc_answers_what_http_answers() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    program.send("desk", vec![listing(&[tool("find", "q", "Finds.")])]).await;
    program.send("desk", vec![failed(call(&trace(), "find"), "tool_error")]).await;
    program.send("desk", vec![call(&trace(), "find")]).await;
    program.send("desk", vec![listing(&[tool("find", "query", "Finds.")])]).await;
    let paths = mcp_verdict::page::openapi::paths();
    let read = paths.as_object().unwrap().iter().filter(|(_, how)| how.get("get").is_some());
    let alone = ["/v1/openapi.json", "/v1/chains/{id}"];
    let mut asked = 0;
    for path in read.map(|(path, _)| path.as_str()).filter(|path| !alone.contains(path)) {
        let end = Instant::now() + PATIENCE;
        loop {
            let (_, answer) = get(&program, path).await;
            let lists = answer.as_object().unwrap().values().filter_map(Value::as_array);
            let empty = lists.clone().count() > 0 && lists.clone().all(Vec::is_empty);
            let http = without_values(form(&answer));
            let grpc = without_values(form(&twin(&program, path).await));
            if !empty && http == grpc {
                break;
            }
            assert!(Instant::now() < end, "{path}\n{http:#}\n{grpc:#}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        asked += 1;
    }
    assert_eq!(asked, 9);
    let wrong = ListDriftsRequest { grade: "red".into(), ..Default::default() };
    let status = grpc(&program).await.list_drifts(wrong).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let wrong = GetOverviewRequest { minutes: 1_000_000 };
    let status = grpc(&program).await.get_overview(wrong).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
}

type Verdicts = tonic::Streaming<WatchVerdictsResponse>;

async fn watch(program: &Program, request: WatchVerdictsRequest) -> Verdicts {
    grpc(program).await.watch_verdicts(request).await.unwrap().into_inner()
}

/// The next verdict's tool and state, or how the stream ended.
async fn next(stream: &mut Verdicts) -> Result<(String, String), Status> {
    let message = tokio::time::timeout(PATIENCE, stream.message()).await;
    let message = message.expect("a message within 30 s")?.expect("no end without a status");
    let verdict = message.verdict.unwrap();
    assert_eq!(message.missed, 0);
    Ok((verdict.tool.unwrap_or_default(), verdict.state))
}

/// Scenario: one listens before anything is sent, one for one tool alone, one comes later and wants
/// what was said too; then the program stops. Guarantees: each is told what it asked for, in order
/// and once; a word that there is not is refused; the stop ends every stream with a status that asks
/// to come again.
#[tokio::test(flavor = "multi_thread")]
async fn verdicts_are_told_as_they_are_said() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    let mut all = watch(&program, WatchVerdictsRequest::default()).await;
    let second = WatchVerdictsRequest { tool: "second".into(), ..Default::default() };
    let mut one = watch(&program, second).await;
    let said = |tool: &str| (tool.to_owned(), "tool_failed".to_owned());
    for tool in ["first", "second", "third"] {
        program.send("desk", vec![failed(call(&trace(), tool), "tool_error")]).await;
        assert_eq!(next(&mut all).await.unwrap(), said(tool));
    }
    assert_eq!(next(&mut one).await.unwrap(), said("second"));
    let later = WatchVerdictsRequest { remembered: true, ..Default::default() };
    let mut later = watch(&program, later).await;
    for tool in ["first", "second", "third"] {
        assert_eq!(next(&mut later).await.unwrap(), said(tool));
    }
    let wrong = WatchVerdictsRequest { state: "none".into(), ..Default::default() };
    let status = grpc(&program).await.watch_verdicts(wrong).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    program.app.stop().await;
    for stream in [&mut all, &mut one, &mut later] {
        let status = next(stream).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    }
}

/// Scenario: many more verdicts than are remembered come while a listener does not read. Guarantees:
/// it is told of each, by the verdict or by the count of those that were forgotten.
#[tokio::test(flavor = "multi_thread")]
async fn who_reads_slowly_is_told_what_was_missed() {
    use tokio_stream::StreamExt;
    const SAID: u32 = 5000;
    let board = Arc::new(Board::default());
    let mut recorder = Recorder::new(board.clone(), 600);
    let mut stream = mcp_verdict::page::watch(board, &Wanted::default(), true).unwrap();
    for number in 0..SAID {
        recorder.verdict(verdict(number).into(), 0);
        if number % 100 == 0 {
            recorder.publish();
            tokio::task::yield_now().await;
        }
    }
    recorder.publish();
    let (mut told, mut missed, mut last) = (0, 0, String::new());
    while told + missed < u64::from(SAID) {
        let message = tokio::time::timeout(PATIENCE, stream.next()).await;
        let message = message.expect("a message within 30 s").unwrap().unwrap();
        (told, missed) = (told + 1, missed + message.missed);
        last = message.verdict.unwrap().id;
    }
    assert_eq!(told + missed, u64::from(SAID));
    assert!(missed >= u64::from(SAID) - 600 - 2 * 512, "{told} told, {missed} missed");
    assert_eq!(last, verdict(SAID - 1).id.to_string());
}

/// Scenario: the standard health service of a running program. Guarantees: it and its services serve,
/// what there is not is not found, and a watch says how it stands at once.
#[tokio::test(flavor = "multi_thread")]
async fn the_standard_health_service_answers() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    let mut health = HealthClient::new(channel(&program).await);
    let named = |service: &str| HealthCheckRequest { service: service.into() };
    for service in ["", "livez", "mcp_verdict.v1.McpVerdict"] {
        let end = Instant::now() + PATIENCE;
        loop {
            let status = health.check(named(service)).await.unwrap().into_inner().status();
            if status == ServingStatus::Serving {
                break;
            }
            assert!(Instant::now() < end, "{service}: {status:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    let status = health.check(named("other")).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    for (service, wanted) in
        [("livez", ServingStatus::Serving), ("other", ServingStatus::ServiceUnknown)]
    {
        let mut watch = health.watch(named(service)).await.unwrap().into_inner();
        let said = tokio::time::timeout(PATIENCE, watch.message()).await.unwrap().unwrap();
        assert_eq!(said.unwrap().status(), wanted, "{service}");
    }
}

async fn reflect(program: &Program, asks: Vec<Ask>) -> Vec<ServerReflectionResponse> {
    let mut client = ServerReflectionClient::new(channel(program).await);
    let requests = asks
        .into_iter()
        .map(|ask| ServerReflectionRequest { host: String::new(), message_request: Some(ask) });
    let requests = tokio_stream::iter(requests.collect::<Vec<_>>());
    let mut stream = client.server_reflection_info(requests).await.unwrap().into_inner();
    let mut told = Vec::new();
    while let Some(one) = stream.message().await.unwrap() {
        told.push(one);
    }
    told
}

/// Scenario: a tool that knows nothing of us asks what there is. Guarantees: the services by name,
/// and the descriptor of each message, by which a call can be made.
#[tokio::test(flavor = "multi_thread")]
async fn reflection_tells_what_there_is() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    let verdict = "mcp_verdict.v1.Verdict".to_owned();
    let asks = vec![Ask::ListServices(String::new()), Ask::FileContainingSymbol(verdict)];
    let told = reflect(&program, asks).await;
    let Some(Told::ListServicesResponse(services)) = &told[0].message_response else {
        panic!("{told:?}")
    };
    let names: Vec<&str> = services.service.iter().map(|service| service.name.as_str()).collect();
    for name in [
        "mcp_verdict.v1.McpVerdict",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    let Some(Told::FileDescriptorResponse(file)) = &told[1].message_response else {
        panic!("{told:?}")
    };
    let mut pool = DescriptorPool::new();
    pool.decode_file_descriptor_proto(&*file.file_descriptor_proto[0]).unwrap();
    assert!(pool.get_message_by_name("mcp_verdict.v1.Verdict").is_some());
}

/// Scenario: a bearer token on the receivers; everything beside OTLP is asked without it. Guarantees:
/// nothing answers.
#[tokio::test(flavor = "multi_thread")]
async fn the_receivers_credentials_protect_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "abracadabra").unwrap();
    let auth = format!("receivers.otlp.auth.bearer_token_file={}", token.display());
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[&auth]).await;
    let refused = |status: Status| assert_eq!(status.code(), Code::Unauthenticated, "{status:?}");
    refused(
        grpc(&program).await.watch_verdicts(WatchVerdictsRequest::default()).await.unwrap_err(),
    );
    refused(grpc(&program).await.get_overview(GetOverviewRequest::default()).await.unwrap_err());
    let mut health = HealthClient::new(channel(&program).await);
    refused(health.check(HealthCheckRequest::default()).await.unwrap_err());
    refused(health.watch(HealthCheckRequest::default()).await.unwrap_err());
    let mut reflection = ServerReflectionClient::new(channel(&program).await);
    let ask = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(Ask::ListServices(String::new())),
    };
    refused(reflection.server_reflection_info(tokio_stream::once(ask)).await.unwrap_err());
    let mut right = tonic::Request::new(WatchVerdictsRequest::default());
    right.metadata_mut().insert("authorization", "Bearer abracadabra".parse().unwrap());
    assert!(grpc(&program).await.watch_verdicts(right).await.is_ok());
}
