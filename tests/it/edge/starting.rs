//! Start and health: sentences that name the key, and readiness that means progress.

use std::time::Duration;

use mcp_verdict::app::App;
use mcp_verdict::emit;
use mcp_verdict::telemetry::registry;

use super::support::*;

/// Scenario: the port is taken. Guarantees: a sentence that names the key and the address.
#[tokio::test(flavor = "multi_thread")]
async fn a_taken_port_names_its_key() {
    let backend = Backend::start(&[]).await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for key in ["receivers.otlp.protocols.grpc.endpoint", "service.telemetry.health.endpoint"] {
        let set = format!("{key}={address}");
        let error = App::start(&settings(&backend, &[&set])).await.err().unwrap().to_string();
        assert!(error.contains(key) && error.contains(&address), "{error}");
    }
}

/// Scenario: a backend that hangs, with work for it. Guarantees: not ready within ten seconds, and
/// alive all the time; the body names the part.
#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_exporter_is_not_ready() {
    let backend = Backend::slow(&[], Duration::from_secs(60)).await;
    let program = Program::start(&backend, &["service.shutdown_timeout=1s"]).await;
    assert_eq!(program.health("/readyz").await.0, 200);
    program.send("stuck", vec![span(&trace(), "stuck")]).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (status, body) = program.health("/readyz").await;
    assert_eq!(status, 503, "{body}");
    let parts = body["parts"].as_array().unwrap();
    let still = parts.iter().find(|part| part["status"] == "not_ready").unwrap();
    assert_eq!(still["part"], "exporter/otlp_http/traces");
    assert_eq!(program.health("/livez").await.0, 200);
}

/// Scenario: traffic of every kind, then `/metrics`. Guarantees: every metric of ours stands in a
/// registry, by its Prometheus name.
#[tokio::test(flavor = "multi_thread")]
async fn every_metric_stands_in_a_registry() {
    let backend = Backend::start(&[(400, b"")]).await;
    let program = Program::start(&backend, &[]).await;
    program.send("refused", vec![span(&trace(), "refused")]).await;
    program.send("judged", vec![failed(call(&trace(), "judged"), "timeout")]).await;
    backend.until("the verdict", |b| !b.records().is_empty()).await;
    let names: Vec<String> = emit::metrics::METRICS
        .iter()
        .map(|metric| metric.name)
        .chain(registry::PROCESS_METRICS.iter().map(|row| row.name))
        .map(|name| name.replace('.', "_"))
        .collect();
    let text = program.metrics().await;
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let told: Vec<&str> = types.filter_map(|line| line.split(' ').next()).collect();
    assert!(told.contains(&"mcp_verdict_verdicts_total"), "{told:?}");
    for name in told {
        let bare = name.trim_end_matches("_total").trim_end_matches("_seconds");
        assert!(names.iter().any(|known| known == bare), "{name} is in no registry");
    }
}
