//! A log that does not take what is said: it waits, and nothing is seen before it is logged.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_verdict::log::{Appended, Kind, Log, Mark, Memory, OutId, Pending, Record, Refused, Usage};
use mcp_verdict::model::ids::Position;

use super::killed::{Process, assert_single, events};
use super::support::*;

/// A log that refuses what is ours while it is told to.
struct Refusing {
    log: Memory,
    refuses: AtomicBool,
    refused: AtomicBool,
    logged: Mutex<Vec<OutId>>,
}

impl Log for Refusing {
    fn append(&self, record: Record) -> Appended {
        if let Kind::Out(ids) = &record.kind {
            if self.refuses.load(Ordering::Relaxed) {
                self.refused.store(true, Ordering::Relaxed);
                return Appended::Now(Some(Err(Refused::Full { limit: 1 })));
            }
            self.logged.lock().unwrap().extend(ids);
        }
        self.log.append(record)
    }

    fn read(&self, position: Position) -> std::io::Result<Option<Record>> {
        self.log.read(position)
    }

    fn mark(&self, position: Position, mark: Mark) {
        self.log.mark(position, mark);
    }

    fn page(
        &self,
        after: Position,
        bytes: u64,
        wanted: &dyn Fn(&[Mark]) -> bool,
    ) -> std::io::Result<Vec<Pending>> {
        self.log.page(after, bytes, wanted)
    }

    fn marks(&self, position: Position) -> Vec<Mark> {
        self.log.marks(position)
    }

    fn usage(&self) -> Usage {
        self.log.usage()
    }

    fn head(&self) -> Position {
        self.log.head()
    }

    fn survives(&self) -> bool {
        false
    }
}

/// Scenario: calls are judged while the log refuses what is said of them, then it takes it.
/// Guarantees: until then neither an event nor a span that names a verdict leaves, and other spans
/// do; then all of it leaves, once.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_log_refuses_waits() {
    let backend = Backend::start(&[]).await;
    let log = Arc::new(Refusing {
        log: Memory::new(64 << 20),
        refuses: AtomicBool::new(true),
        refused: AtomicBool::new(false),
        logged: Mutex::default(),
    });
    let program = Program::start_on(&backend, &[], log.clone()).await;
    let mut calls = BTreeSet::new();
    for number in 0..5 {
        let spans = vec![failed(call(&trace(), "refused"), "timeout"), span(&trace(), "plain")];
        calls.insert(spans[0].span_id.clone());
        program.send("service", spans).await;
        if number == 0 {
            // The first is refused before the others are judged.
            let end = std::time::Instant::now() + PATIENCE;
            while !log.refused.load(Ordering::Relaxed) {
                assert!(std::time::Instant::now() < end, "nothing was said");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    let names: BTreeSet<String> = backend.spans().into_iter().map(|span| span.name).collect();
    assert_eq!((names, backend.records().len()), (BTreeSet::from(["plain".into()]), 0));
    let waiting = "mcp_verdict_outputs_waiting";
    program.metric_until(waiting, &[], |count| count > 0.0).await;
    log.refuses.store(false, Ordering::Relaxed);
    let came = |b: &Backend| {
        let spans = b.spans().into_iter();
        let judged = spans.filter(|s| attribute(&s.attributes, "mcp_verdict.state").is_some());
        judged.filter(|span| calls.contains(&span.span_id)).count()
    };
    backend.until("every call", |b| came(b) == 5).await;
    backend.until("every event", |b| events(b).len() == 5).await;
    assert_single(&events(&backend));
    assert_eq!(log.logged.lock().unwrap().len(), 5);
    program.metric_until(waiting, &[], |count| count == 0.0).await;
}

/// Bytes of one call's filler, and calls of an export.
const FILLER: usize = 16_000;
const CALLS: usize = 10;

/// Scenario: a backend is away and the log is full of calls, faster than they are judged, so that
/// what is said of them finds no room; then the backend is back. Guarantees: every call that was
/// acknowledged arrives with its verdict, every verdict as an event; then the log is empty.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_log_says_everything_in_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let backend = Backend::start(&[]).await;
    backend.set_dead(true);
    let more = ["processors.mcp_verdict.settle=4s", "storage.max_size=32MiB"];
    let process = Process::start_with(&backend, directory.path(), &more);
    let client = client();
    let mut taken = BTreeSet::new();
    let mut refused = 0;
    while refused < 3 {
        let spans: Vec<_> = (0..CALLS)
            .map(|_| {
                let mut call = failed(call(&trace(), "fills"), "timeout");
                call.attributes.push(text("filler", &"x".repeat(FILLER)));
                call
            })
            .collect();
        let ids: Vec<Vec<u8>> = spans.iter().map(|span| span.span_id.clone()).collect();
        let request = client.post(&process.url).header("content-type", "application/x-protobuf");
        let body = prost::Message::encode_to_vec(&export("fills", spans));
        match request.body(body).send().await.unwrap().status().as_u16() {
            200 => taken.extend(ids),
            status => {
                assert!(status == 503 || status == 429, "{status}");
                refused += 1;
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
        }
    }
    assert!(taken.len() > 1_000, "{} calls", taken.len());
    backend.set_dead(false);
    let judged = |b: &Backend| -> BTreeSet<Vec<u8>> {
        let spans = b.spans().into_iter();
        let judged = spans.filter(|s| attribute(&s.attributes, "mcp_verdict.state").is_some());
        judged.map(|span| span.span_id).collect()
    };
    slowly(&backend, "every call", |b| judged(b).is_superset(&taken)).await;
    slowly(&backend, "every event", |b| events(b).len() == taken.len()).await;
    assert_single(&events(&backend));
    process.stop();
}

/// Looks twice a second: to read all that came takes long.
async fn slowly(backend: &Backend, what: &str, holds: impl Fn(&Backend) -> bool) {
    for _ in 0..120 {
        if holds(backend) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    panic!("{what}: not within a minute");
}
