//! The way out: bytes as they came, retries, partial success, overload, the end.

use std::io::Write;
use std::time::Duration;

use prost::Message;

use super::support::*;

/// A request with an unknown field in every place that a generated decoder would lose it.
fn odd_export() -> Vec<u8> {
    let mut body = export("odd", vec![span(&trace(), "odd")]).encode_to_vec();
    // Field 2000, length-delimited, after the resources.
    body.extend_from_slice(b"\x82\x7d\x07unknown");
    body
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Scenario: an export without MCP, plain and compressed, to a backend of the same coding.
/// Guarantees: it leaves with the very bytes it came with, still compressed.
#[tokio::test(flavor = "multi_thread")]
async fn untouched_means_untouched() {
    for (coding, body) in [("", odd_export()), ("gzip", gzip(&odd_export()))] {
        let backend = Backend::start(&[]).await;
        let compression = if coding.is_empty() { "none" } else { coding };
        let more = format!("exporters.otlp_http.compression={compression}");
        let program = Program::start(&backend, &[&more]).await;
        assert_eq!(program.post("/v1/traces", body.clone(), coding).await.status(), 200);
        backend.until("the export", |b| !b.requests("/v1/traces").is_empty()).await;
        let got = backend.requests("/v1/traces").remove(0);
        assert_eq!((got.body.as_ref(), got.coding.as_str()), (body.as_slice(), coding));
    }
}

/// Scenario: the backend refuses a batch three times in a retryable way. Guarantees: it is
/// delivered, taken once, counted once.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_batch_comes_again() {
    let backend = Backend::start(&[(503, b""), (429, b""), (502, b"")]).await;
    let program = Program::start(&backend, &[]).await;
    program.send("again", vec![span(&trace(), "again")]).await;
    backend.until("the fourth try", |b| b.requests("/v1/traces").len() == 4).await;
    assert_eq!(program.app.stop().await.lost, 0);
    assert_eq!(backend.requests("/v1/traces").len(), 4);
}

/// Scenario: a batch that is refused for good, with another signal and another batch behind it.
/// Guarantees: it is tried once and counted by reason; nothing waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_poison_batch_blocks_nothing() {
    let backend = Backend::start(&[(400, b"")]).await;
    let program = Program::start(&backend, &[]).await;
    program.send("poison", vec![span(&trace(), "poison")]).await;
    backend.until("the try", |b| b.requests("/v1/traces").len() == 1).await;
    program.send("good", vec![span(&trace(), "good")]).await;
    backend.until("the next", |b| b.requests("/v1/traces").len() == 2).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(backend.requests("/v1/traces").len(), 2, "no third try");
    let failed = "otelcol_exporter_send_failed_spans";
    program.metric_until(failed, &["http_400"], |count| count == 1.0).await;
    program.metric_until("otelcol_exporter_sent_spans", &[], |count| count == 1.0).await;
}

/// Scenario: the backend takes seven of ten. Guarantees: final, and counted as such.
#[tokio::test(flavor = "multi_thread")]
async fn partial_success_is_final_and_counted() {
    let backend = Backend::start(&[(200, b"\x0a\x05\x08\x03\x12\x01x")]).await;
    let program = Program::start(&backend, &[]).await;
    let trace = trace();
    program.send("ten", (0..10).map(|_| span(&trace, "ten")).collect()).await;
    backend.until("the try", |b| b.requests("/v1/traces").len() == 1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let failed = "otelcol_exporter_send_failed_spans";
    program.metric_until(failed, &["partial_success"], |count| count == 3.0).await;
    program.metric_until("otelcol_exporter_sent_spans", &[], |count| count == 7.0).await;
    assert_eq!(backend.requests("/v1/traces").len(), 1);
}

/// Scenario: a dead backend, a small log, then the backend recovers. Guarantees: the refusal says
/// when to come back; everything that was acknowledged arrives.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_log_refuses_and_loses_nothing() {
    let backend = Backend::start(&[]).await;
    backend.set_dead(true);
    let more =
        ["storage.max_size=32MiB", "exporters.otlp_http.retry_on_failure.max_interval=100ms"];
    let program = Program::start(&backend, &more).await;
    let mut acknowledged = 0;
    let refusal = loop {
        let mut large = span(&trace(), "large");
        large.attributes.push(text("pad", &"x".repeat(1 << 20)));
        let response =
            program.post("/v1/traces", export("s", vec![large]).encode_to_vec(), "").await;
        match response.status().as_u16() {
            200 => acknowledged += 1,
            _ => break response,
        }
        assert!(acknowledged < 100, "nothing was refused");
    };
    assert_eq!(refusal.status(), 429);
    assert!(refusal.headers().contains_key("retry-after"));
    backend.set_dead(false);
    // Each span is a little over one MiB: cheaper to tell by length than by decoding.
    let arrived = |b: &Backend| {
        b.requests("/v1/traces").iter().map(|got| got.body.len() >> 20).sum::<usize>()
    };
    backend.until("what was acknowledged", |b| arrived(b) >= acknowledged).await;
    let ids: std::collections::BTreeSet<_> =
        backend.spans().into_iter().map(|span| span.span_id).collect();
    assert_eq!(ids.len(), acknowledged);
    assert_eq!(program.app.stop().await.lost, 0);
}

/// Scenario: the backend never answers and the program is told to stop. Guarantees: it ends in
/// time and says what it lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_backend_does_not_keep_the_program() {
    let backend = Backend::slow(&[], Duration::from_secs(60)).await;
    let program = Program::start(&backend, &["service.shutdown_timeout=2s"]).await;
    for _ in 0..3 {
        program.send("lost", vec![span(&trace(), "lost")]).await;
    }
    let began = std::time::Instant::now();
    let ended = program.app.stop().await;
    assert!(began.elapsed() < Duration::from_secs(30), "it took {:?}", began.elapsed());
    assert_eq!(ended.lost, 3);
}
