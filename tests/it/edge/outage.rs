//! A backend that is away for long: what waits lies on disk, and all of it arrives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::killed::Process;
use super::overload::{Narrow, Senders, median, resident};
use super::support::*;

/// Bytes of one export's filler: they do not fit into memory together.
const FILLER: usize = 400_000;
const EXPORTS: usize = 60;

/// Scenario: a backend refuses everything while 24 MB of exports come, each with a call, and one
/// other exporter takes everything all the while; the exporters may have 4 MiB of them in memory.
/// Guarantees: every export is taken; once the backend is back it gets every span once, calls with
/// their verdict, and nothing is owed to anybody.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_into_memory_waits_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let backend = Backend::start(&[]).await;
    let other = Backend::start(&[]).await;
    let more = [
        "storage.ack=durable".to_owned(),
        format!("storage.directory={}", directory.path().display()),
        "storage.max_size=256MiB".to_owned(),
        "processors.mcp_verdict.limits.memory=64MiB".to_owned(),
        "exporters.otlp_http.retry_on_failure.max_interval=100ms".to_owned(),
        format!("exporters.otlp_http/other.endpoint=http://{}", other.address),
    ];
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let program = Program::start(&backend, &more).await;
    backend.set_dead(true);
    let mut sent = BTreeMap::new();
    for _ in 0..EXPORTS {
        let mut large = span(&trace(), "large");
        large.attributes.push(text("filler", &"x".repeat(FILLER)));
        let spans = vec![call(&trace(), "waits"), large];
        for span in &spans {
            sent.insert(span.span_id.clone(), span.kind);
        }
        program.send("service", spans).await;
    }
    let arrived = |b: &Backend| {
        let spans = b.spans();
        sent.keys().filter(|id| spans.iter().any(|span| span.span_id == **id)).count()
    };
    other.until("everything at the other backend", |b| arrived(b) == sent.len()).await;
    assert!(backend.spans().is_empty());
    let all = |count: f64| count >= EXPORTS as f64;
    program.metric_until("mcp_verdict_storage_records", &[], all).await;
    let of = |place| ["traces", "otlp_http\"", place];
    program.metric_until("otelcol_exporter_queue_size", &of("")[..2], all).await;
    let bytes = "mcp_verdict_exporter_bytes";
    program.metric_until(bytes, &of("storage"), |bytes| bytes > 15e6).await;
    program.metric_until(bytes, &of("memory"), |bytes| bytes < 5e6).await;
    backend.set_dead(false);
    backend.until("everything", |b| arrived(b) == sent.len()).await;
    for backend in [&backend, &other] {
        let mut times: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        for span in backend.spans() {
            if sent.contains_key(&span.span_id) {
                *times.entry(span.span_id.clone()).or_default() += 1;
                let judged = attribute(&span.attributes, "mcp_verdict.state").is_some();
                assert_eq!(judged, span.name != "large", "{}", span.name);
            }
        }
        assert!(times.values().all(|times| *times == 1), "{times:?}");
    }
    for owed in ["mcp_verdict_storage_records", "otelcol_exporter_queue_size"] {
        program.metric_until(owed, &[], |count| count == 0.0).await;
    }
    assert_eq!(program.app.stop().await.lost, 0);
}

/// Scenario: the same outage, and the process is stopped in the middle of it. Guarantees: the next
/// one delivers every span, though not all of them fit into its memory at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_on_disk_outlives_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let backend = Backend::start(&[]).await;
    let more = [
        "storage.max_size=256MiB",
        "processors.mcp_verdict.limits.memory=64MiB",
        "service.shutdown_timeout=2s",
    ];
    let process = Process::start_with(&backend, directory.path(), &more);
    backend.set_dead(true);
    let mut sent = Vec::new();
    for _ in 0..EXPORTS / 3 {
        let mut large = span(&trace(), "large");
        large.attributes.push(text("filler", &"x".repeat(FILLER)));
        let spans = vec![call(&trace(), "waits"), large];
        sent.extend(spans.iter().map(|span| span.span_id.clone()));
        process.send("service", spans).await;
    }
    process.stop();
    backend.set_dead(false);
    let next = Process::start_with(&backend, directory.path(), &more);
    let arrived = |b: &Backend| {
        let spans = b.spans();
        sent.iter().filter(|id| spans.iter().any(|span| span.span_id == **id)).count()
    };
    backend.until("everything", |b| arrived(b) == sent.len()).await;
    let spans = backend.spans();
    let bare = spans.iter().filter(|span| {
        span.name.starts_with("tools/call")
            && attribute(&span.attributes, "mcp_verdict.state").is_none()
    });
    assert_eq!(bare.count(), 0);
    next.stop();
}

/// Exports a second of the long outage: 1.2 MB.
const RATE: f64 = 20.0;

/// Scenario: a backend is away for ten minutes of load (six seconds in the short form), then back.
/// Guarantees: every export is taken, memory does not follow the outage, and everything arrives.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_costs_disk_and_no_memory() {
    let seconds = if long_forms() { 600 } else { 6 };
    let directory = tempfile::tempdir().unwrap();
    let (narrow, address) = Narrow::start().await;
    narrow.dead.store(true, Ordering::Relaxed);
    narrow.width.store(50 << 20, Ordering::Relaxed);
    // What is remembered of chains grows with the load, backend or not: it is kept for a shorter
    // time than the outage is.
    let more = [
        "storage.max_size=4GiB",
        "processors.mcp_verdict.limits.memory=128MiB",
        "processors.mcp_verdict.retention=30s",
        "processors.mcp_verdict.limits.remembered=1000",
    ];
    let process = Process::start_at(&format!("http://{address}"), directory.path(), &more);
    let senders = Senders::connect(&process.grpc).await;
    let until = Instant::now() + Duration::from_secs(seconds);
    let sending = tokio::spawn(senders.clone().flood(RATE, until));
    let mut memory = Vec::new();
    while Instant::now() < until {
        memory.push(resident(process.id()));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    sending.await.unwrap();
    let told = senders.told.lock().unwrap().clone();
    assert!(told.is_empty(), "there is room on disk: {told:?}");
    assert!(narrow.spans.lock().unwrap().is_empty());
    let third = memory.len() / 3;
    let (early, late) =
        (median(memory[third..2 * third].into()), median(memory[2 * third..].into()));
    let most = memory.iter().copied().fold(0.0, f64::max) / f64::from(1 << 20);
    narrow.dead.store(false, Ordering::Relaxed);
    let acknowledged: BTreeSet<Vec<u8>> = senders.acknowledged.lock().unwrap().drain(..).collect();
    let began = Instant::now();
    narrow.until(&acknowledged).await;
    report(&format!(
        "a backend away for {seconds} s: {} spans acknowledged, 0 lost, all there {} s later; RSS \
         {most:.1} MiB at most, in the last third {:.0} % of the second",
        acknowledged.len(),
        began.elapsed().as_secs(),
        late / early * 100.0,
    ));
    // Caches fill for a while: twice the budget is far below what waits on disk.
    assert!(most < 256.0, "{most} MiB");
    // What is known of chains still grows a little then, with a backend too (115 %); what waits on
    // disk grew by half.
    let flat = late < early * 1.3;
    assert!(flat || !long_forms(), "{:.0} % of before", late / early * 100.0);
    process.stop();
}
