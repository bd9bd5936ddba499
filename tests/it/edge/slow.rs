//! A backend that is slower than its requests' timeout: it gets less at a time, and all of it.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::killed::Process;
use super::overload::Narrow;
use super::support::*;

/// Scenario: a backend takes half a MiB a second, a request may take one second, and 8 MB wait in
/// exports of 200 kB, so that of eight requests on their way two are answered in time.
/// Guarantees: the program sends less at a time, and everything arrives in a small multiple of the
/// time that it takes at best; when the backend is fast again so is the program.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_backend_gets_everything_in_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let (narrow, address) = Narrow::start().await;
    narrow.dead.store(true, Ordering::Relaxed);
    narrow.width.store(512 << 10, Ordering::Relaxed);
    let more = [
        "exporters.otlp_http.compression=none",
        "exporters.otlp_http.timeout=1s",
        "storage.max_size=128MiB",
    ];
    let process = Process::start_at(&format!("http://{address}"), directory.path(), &more);
    let exports = |count: usize| {
        let process = &process;
        async move {
            let mut sent = BTreeSet::new();
            for _ in 0..count {
                let spans: Vec<_> = (0..2)
                    .map(|_| {
                        let mut span = span(&trace(), "slow");
                        span.attributes.push(text("filler", &"x".repeat(100_000)));
                        span
                    })
                    .collect();
                sent.extend(spans.iter().map(|span| span.span_id.clone()));
                process.send("slow", spans).await;
            }
            sent
        }
    };
    let sent = exports(40).await;
    let began = Instant::now();
    narrow.dead.store(false, Ordering::Relaxed);
    narrow.until(&sent).await;
    let took = began.elapsed();
    println!("8 MB at half a MiB a second took {} s", took.as_secs());
    assert!(took < Duration::from_secs(150), "{took:?}");
    narrow.width.store(100 << 20, Ordering::Relaxed);
    let sent = exports(40).await;
    let began = Instant::now();
    narrow.until(&sent).await;
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    process.stop();
}
