//! What somebody on call reads of a backend that is away, of a stop, and of what was lost: the real
//! program's log lines, health and exit code.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::killed::Process;
use super::support::*;

/// Waits until the program has said something; the lines.
async fn said(process: &Process, what: &str) -> Vec<Value> {
    let end = Instant::now() + PATIENCE;
    loop {
        let lines = process.said(what);
        if !lines.is_empty() {
            return lines;
        }
        let told = process.told.lock().unwrap().join("\n");
        assert!(Instant::now() < end, "`{what}` was not said within {PATIENCE:?}: {told}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn get(url: &str) -> String {
    client().get(url).send().await.unwrap().text().await.unwrap()
}

/// Values of a metric whose labels hold these texts, summed up.
fn metric(text: &str, name: &str, labels: &[&str]) -> f64 {
    let lines = text.lines().filter(|line| line.starts_with(name));
    let wanted = lines.filter(|line| labels.iter().all(|label| line.contains(label)));
    wanted.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

const AWAY: &str = "the backend does not take what is sent";
const BACK: &str = "the backend answers again";

/// Scenario: a backend answers 503 to dozens of attempts, then takes them. Guarantees: it is said
/// once for each signal, with exporter, endpoint, cause and what waits; so is the end of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_refuses_is_said_once_and_so_is_its_return() {
    let directory = tempfile::tempdir().unwrap();
    let backend = Backend::start(&[]).await;
    backend.set_dead(true);
    let process = Process::start_with(&backend, directory.path(), &[]);
    for _ in 0..5 {
        process.send("waits", vec![span(&trace(), "waits")]).await;
    }
    let traces = |lines: Vec<Value>| -> Vec<Value> {
        lines.into_iter().filter(|line| line["signal"] == "traces").collect()
    };
    said(&process, AWAY).await;
    // Some five attempts a second.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let away = traces(process.said(AWAY));
    assert_eq!(away.len(), 1, "{away:?}");
    let line = &away[0];
    assert_eq!((&line["level"], &line["exporter"]), (&"WARN".into(), &"otlp_http".into()));
    assert_eq!(line["endpoint"], format!("http://{}", backend.address));
    assert_eq!(line["cause"], "http_503");
    assert!(line["waiting_exports"].as_u64() >= Some(1), "{line}");
    assert!(line["waiting_bytes"].as_u64() >= Some(50), "{line}");
    assert!(traces(process.said(BACK)).is_empty());
    backend.set_dead(false);
    said(&process, BACK).await;
    backend.until("all five", |b| b.spans().len() == 5).await;
    let back = traces(process.said(BACK));
    assert_eq!(back.len(), 1, "{back:?}");
    let line = &back[0];
    assert_eq!((&line["level"], &line["exporter"]), (&"INFO".into(), &"otlp_http".into()));
    assert!(line["seconds"].as_u64() >= Some(2) && line["attempts"].as_u64() >= Some(5), "{line}");
    process.stop();
}

/// Scenario: nobody listens where the backend should be; exports come, then SIGTERM. Guarantees:
/// metrics, `/readyz` and the stop say what waits, for whom and why; the stop at once; what is left
/// is in the log and said. Nowhere stands what is a secret of the endpoint.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_can_be_read_off_and_a_stop_says_what_it_waits_for() {
    let directory = tempfile::tempdir().unwrap();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{closed}/token-in-a-path?key=token-in-a-query");
    let process = Process::start_at(&url, directory.path(), &["service.shutdown_timeout=4s"]);
    for _ in 0..20 {
        process.send("waits", vec![span(&trace(), "waits")]).await;
    }
    let away = said(&process, AWAY).await;
    let cause = away[0]["cause"].as_str().unwrap();
    assert!(cause.starts_with("unreachable: ") && cause.contains("refused"), "{cause}");
    let metrics = get(&format!("{}/metrics", process.metrics)).await;
    let traces = ["exporter=\"otlp_http\"", "signal=\"traces\""];
    assert_eq!(metric(&metrics, "otelcol_exporter_queue_size", &traces), 20.0);
    assert!(metric(&metrics, "mcp_verdict_exporter_bytes", &traces) > 1_000.0);
    assert!(metric(&metrics, "mcp_verdict_storage_pending_bytes", &[]) > 1_000.0);
    tokio::time::sleep(Duration::from_secs(9)).await;
    let ready = get(&format!("{}/readyz", process.health)).await;
    let answer: Value = serde_json::from_str(&ready).unwrap();
    let part = answer["parts"].as_array().unwrap().iter().find(|part| part["status"] != "ok");
    let part = part.expect("somebody is not ready");
    assert_eq!(part["part"], "exporter/otlp_http/traces");
    let why = part["why"].as_str().unwrap();
    let waits = format!("http://{closed}: {cause}; 20 exports of ");
    assert!(why.contains(&waits), "{why}");
    process.ask_to_end();
    let asked = Instant::now();
    let stopping = said(&process, "stopping: ").await;
    assert!(stopping[0]["waits_for"].as_str().unwrap().contains(&waits), "{stopping:?}");
    assert_eq!(stopping[0]["at_most_seconds"], 4);
    let left = said(&process, "left in storage.directory").await;
    assert!(left[0]["exports"].as_u64() >= Some(20), "{left:?}");
    assert!(asked.elapsed() < Duration::from_secs(30));
    let told = process.told.clone();
    assert_eq!(process.end(), Some(0), "what is stored is not lost");
    let told = told.lock().unwrap().join("\n");
    assert!(!told.contains("token") && !ready.contains("token"), "{told}");
}

/// Scenario: a backend refuses one span for good, another does not take the signal at all.
/// Guarantees: the first is something accepted that was lost, and the exit code 70 says so; the
/// second is how somebody configured it, and the exit code is 0.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_dropped_for_good_shows_in_the_exit_code() {
    for (status, code) in [(400, 70), (404, 0)] {
        let directory = tempfile::tempdir().unwrap();
        let backend = Backend::start(&[(status, b"")]).await;
        let process = Process::start_with(&backend, directory.path(), &[]);
        process.send("one", vec![span(&trace(), "one")]).await;
        backend.until("the try", |b| b.requests("/v1/traces").len() == 1).await;
        process.send("two", vec![span(&trace(), "two")]).await;
        backend.until("the next", |b| b.requests("/v1/traces").len() == 2).await;
        let told = process.told.clone();
        assert_eq!(process.end(), Some(code));
        let told = told.lock().unwrap().join("\n");
        assert_eq!(told.contains("were dropped while it ran"), code == 70, "{told}");
    }
}
