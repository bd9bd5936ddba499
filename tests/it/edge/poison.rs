//! A backend of tonic, whose decoder refuses a whole request for one text that is not UTF-8, as
//! every reader of proto3 should: what other exports hold arrives all the same.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{
    LogsService, LogsServiceServer,
};
use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use super::support::*;

/// What a tonic server took, by one lock each.
#[derive(Clone, Default)]
struct Taken {
    spans: Arc<Mutex<Vec<Span>>>,
    records: Arc<Mutex<Vec<LogRecord>>>,
}

#[tonic::async_trait]
impl TraceService for Taken {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let scopes = request.into_inner().resource_spans.into_iter().flat_map(|r| r.scope_spans);
        self.spans.lock().unwrap().extend(scopes.flat_map(|scope| scope.spans));
        Ok(Response::new(Default::default()))
    }
}

#[tonic::async_trait]
impl LogsService for Taken {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        let scopes = request.into_inner().resource_logs.into_iter().flat_map(|r| r.scope_logs);
        self.records.lock().unwrap().extend(scopes.flat_map(|scope| scope.log_records));
        Ok(Response::new(Default::default()))
    }
}

impl Taken {
    /// Answers on a port from now on; whoever connected before has waited.
    fn serve(&self, listener: TcpListener) {
        let server = tonic::transport::Server::builder()
            .add_service(TraceServiceServer::new(self.clone()))
            .add_service(LogsServiceServer::new(self.clone()));
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    }

    fn spans(&self) -> Vec<Span> {
        self.spans.lock().unwrap().clone()
    }

    fn ids(&self) -> BTreeSet<Vec<u8>> {
        self.spans().into_iter().map(|span| span.span_id).collect()
    }
}

/// A text that is replaced by bytes of the same number that are no UTF-8.
const BAD: &str = "no-utf-8-here";

/// The request with bad bytes in it; it holds the text.
fn spoil(request: &ExportTraceServiceRequest) -> Vec<u8> {
    let mut body = request.encode_to_vec();
    let places: Vec<usize> =
        (0..=body.len() - BAD.len()).filter(|at| body[*at..].starts_with(BAD.as_bytes())).collect();
    assert!(!places.is_empty());
    for place in places {
        body[place..place + BAD.len()].fill(0xff);
    }
    body
}

/// The settings of an exporter in front of a tonic server.
fn exporter(address: SocketAddr) -> Vec<String> {
    vec![
        format!("exporters.otlp.endpoint=http://{address}"),
        "exporters.otlp.compression=none".into(),
        "exporters.otlp.timeout=1s".into(),
        "exporters.otlp.retry_on_failure.initial_interval=50ms".into(),
        "exporters.otlp.retry_on_failure.max_interval=200ms".into(),
    ]
}

async fn start(address: SocketAddr) -> Program {
    // What is not spoken of here goes to a backend that reads nothing.
    let other = Backend::start(&[]).await;
    let more = exporter(address);
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    Program::start(&other, &more).await
}

async fn wait(what: &str, holds: impl Fn() -> bool) {
    let end = std::time::Instant::now() + PATIENCE;
    while !holds() {
        assert!(std::time::Instant::now() < end, "{what}: not within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Scenario: a backend answers late, so that what waits for it is joined: 200 exports of as many
/// neighbours, half of them calls, and among them exports whose text is not UTF-8 in an attribute
/// of a plain span, in one of a call, and in the resource of a call, of which events are made.
/// Guarantees: every neighbour's span arrives, every call with its verdict and its event; the
/// poison alone is dropped, counted by exporter and reason, and its verdicts arrive.
#[tokio::test(flavor = "multi_thread")]
async fn the_neighbours_of_a_poisoned_export_arrive() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let program = start(listener.local_addr().unwrap()).await;
    let (mut plain, mut calls, mut bad) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for number in 0..100 {
        let (other, asked) = (span(&trace(), "plain"), failed(call(&trace(), "good"), "timeout"));
        plain.insert(other.span_id.clone());
        calls.insert(asked.span_id.clone());
        program.send("neighbour", vec![other]).await;
        program.send("neighbour", vec![asked]).await;
        if number % 10 == 5 {
            let mut other = span(&trace(), "bad");
            other.attributes.push(text("note", BAD));
            let mut asked = failed(call(&trace(), "bad"), "timeout");
            asked.attributes.push(text("note", BAD));
            let under = failed(call(&trace(), "bad"), "timeout");
            bad.extend([&other, &asked, &under].map(|span| span.span_id.clone()));
            for request in
                [export("a", vec![other]), export("b", vec![asked]), export(BAD, vec![under])]
            {
                let answer = program.post("/v1/traces", spoil(&request), "").await;
                assert_eq!(answer.status(), 200, "what protobuf can be read is taken");
            }
        }
    }
    // Every verdict is there before anything is taken.
    tokio::time::sleep(Duration::from_millis(2_000)).await;
    let taken = Taken::default();
    taken.serve(listener);
    wait("every neighbour's span", || {
        let ids = taken.ids();
        ids.is_superset(&plain) && ids.is_superset(&calls)
    })
    .await;
    let judged = |span: &&Span| attribute(&span.attributes, "mcp_verdict.state").is_some();
    let spans = taken.spans();
    let with: BTreeSet<_> = spans.iter().filter(judged).map(|s| s.span_id.clone()).collect();
    assert!(with.is_superset(&calls), "{} of {}", with.len(), calls.len());
    assert!(taken.ids().is_disjoint(&bad));
    let told = || -> BTreeSet<_> {
        taken.records.lock().unwrap().iter().map(|record| record.span_id.clone()).collect()
    };
    wait("every neighbour's event", || told().is_superset(&calls)).await;
    // The last of the poison may be found after the last neighbour has come.
    let of = ["exporter=\"otlp\"", "reason=\"grpc_internal\""];
    let failed = |signal: &str| format!("otelcol_exporter_send_failed_{signal}");
    // What is said of the calls among the poison can be read, under the last kind's resource too.
    wait("20 of the poisoned are told of", || told().intersection(&bad).count() == 20).await;
    program.metric_until(&failed("spans"), &of, |count| count == 30.0).await;
    program.metric_until(&failed("log_records"), &of, |count| count == 0.0).await;
    // Something was joined and had to be taken apart: else this shows nothing.
    program.metric_until("otelcol_exporter_retries", &of, |count| count > 10.0).await;
}

/// Scenario: one export of ten spans, of which one is poison. Guarantees: nine arrive.
#[tokio::test(flavor = "multi_thread")]
async fn nine_of_ten_spans_of_an_export_arrive() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let program = start(listener.local_addr().unwrap()).await;
    let taken = Taken::default();
    taken.serve(listener);
    let trace = trace();
    let mut spans: Vec<Span> = (0..10).map(|_| span(&trace, "one of ten")).collect();
    spans[3].attributes.push(text("note", BAD));
    let good: BTreeSet<_> =
        spans.iter().enumerate().filter(|(n, _)| *n != 3).map(|(_, s)| s.span_id.clone()).collect();
    assert_eq!(program.post("/v1/traces", spoil(&export("s", spans)), "").await.status(), 200);
    wait("nine", || taken.ids() == good).await;
    let failed = "otelcol_exporter_send_failed_spans";
    program.metric_until(failed, &["grpc_internal"], |count| count == 1.0).await;
    let sent = "otelcol_exporter_sent_spans";
    program.metric_until(sent, &["exporter=\"otlp\""], |count| count == 9.0).await;
}
