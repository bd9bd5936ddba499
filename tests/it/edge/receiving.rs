//! The way in, with clients generated from OTLP's own definitions.

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use tonic::Code;

use super::support::*;

/// Scenario: tonic's generated client over gRPC, in every coding. Guarantees: taken and delivered.
#[tokio::test(flavor = "multi_thread")]
async fn grpc_from_a_generated_client() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    let url = format!("http://{}", program.app.grpc_address().unwrap());
    let mut client = TraceServiceClient::connect(url).await.unwrap();
    for name in ["first", "second"] {
        let sent = export("grpc", vec![span(&trace(), name)]);
        let answer = client.export(sent).await.unwrap().into_inner();
        assert_eq!(answer.partial_success, None);
    }
    backend.until("both", |b| b.spans().len() == 2).await;
    program.metric_until("otelcol_receiver_accepted_spans", &["grpc"], |count| count == 2.0).await;
}

/// Scenario: a message over the limit on gRPC. Guarantees: refused for good, naming the limit; the
/// next request is served.
#[tokio::test(flavor = "multi_thread")]
async fn too_large_is_final() {
    let backend = Backend::start(&[]).await;
    let limit = "receivers.otlp.protocols.grpc.max_recv_msg_size=64KiB";
    let program = Program::start(&backend, &[limit]).await;
    let url = format!("http://{}", program.app.grpc_address().unwrap());
    let mut client = TraceServiceClient::connect(url).await.unwrap();
    let mut large = span(&trace(), "large");
    large.attributes.push(text("pad", &"x".repeat(100_000)));
    let refused = client.export(export("grpc", vec![large])).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("65536"), "{}", refused.message());
    assert!(!refused.details().windows(9).any(|part| part == b"RetryInfo"));
    client.export(export("grpc", vec![span(&trace(), "small")])).await.unwrap();
}

/// Scenario: bytes that are no OTLP. Guarantees: refused with a reason, nothing forwarded.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_refused() {
    let backend = Backend::start(&[]).await;
    let program = Program::start(&backend, &[]).await;
    for (body, coding) in [(&b"\xff\xff\xff"[..], ""), (b"\x0a\x10ab", ""), (b"no gzip", "gzip")] {
        let answer = program.post("/v1/traces", body, coding).await;
        assert_eq!(answer.status(), 400);
        assert_eq!(answer.headers()["content-type"], "application/x-protobuf");
    }
    assert_eq!(program.post("/v1/nothing", &b""[..], "").await.status(), 404);
    assert_eq!(program.post("/v1/traces", &b""[..], "").await.status(), 200, "empty is fine");
    assert!(backend.requests("/v1/traces").is_empty());
}
