//! `kill -9` at every phase of a record's way, under load and with a backend that comes and goes. Six
//! kills are a short run; `LONG_FORMS=1` asks for a hundred.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcp_verdict::log::Kind;
use mcp_verdict::log::record::{Entry, Found, Marker, Noted, walk};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use super::killed::{Process, assert_single, delivered, events};
use super::support::*;

/// Where a kill met something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// An export was received, and is not or only in part in the log.
    Append,
    /// It is whole in the log, and its sender had no answer.
    BeforeAck,
    /// The backend had a request and had not answered.
    Export,
    /// The backend had answered, and the log has no mark of it.
    Mark,
    /// A checkpoint was half written.
    Checkpoint,
    /// A checkpoint was just written, and segments were being removed.
    Delete,
}

const PHASES: [Phase; 6] =
    [Phase::Append, Phase::BeforeAck, Phase::Export, Phase::Mark, Phase::Checkpoint, Phase::Delete];

/// A small log writes checkpoints and removes segments soon: 4 MiB after the last.
const SETTINGS: [&str; 2] = ["storage.max_size=32MiB", "service.shutdown_timeout=5s"];
/// As it stands there.
const SHUTDOWN: Duration = Duration::from_secs(5);

/// What is sent: exports that nobody has acknowledged wait in the queue, also across lives.
#[derive(Default)]
struct Load {
    waiting: Mutex<VecDeque<Vec<Span>>>,
    acknowledged: Mutex<Vec<Vec<Span>>>,
    /// Span ids of exports whose senders wait.
    in_flight: Mutex<BTreeSet<Vec<u8>>>,
    ending: AtomicBool,
}

/// The halves of a call come in two exports, every third call fails, and each is with a span that is
/// none.
fn exports_of_a_call(number: usize) -> [Vec<Span>; 2] {
    let trace = trace();
    let mut asking = call(&trace, "load");
    let mut answering = Span {
        parent_span_id: asking.span_id.clone(),
        kind: 2,
        attributes: asking.attributes.clone(),
        ..span(&trace, "tools/call load")
    };
    if number.is_multiple_of(3) {
        asking = failed(asking, "tool_error");
        answering = failed(answering, "tool_error");
    }
    let mut other = span(&trace, "other");
    other.attributes.push(text("filler", &"x".repeat(16_000)));
    [vec![answering, other], vec![asking]]
}

impl Load {
    fn next(&self) -> Option<Vec<Span>> {
        let mut waiting = self.waiting.lock().unwrap();
        if waiting.is_empty() && !self.ending.load(Ordering::Relaxed) {
            waiting.extend(exports_of_a_call(fresh() as usize));
        }
        waiting.pop_front()
    }

    /// Sends until nobody answers, or nothing is left.
    async fn send(self: Arc<Self>, url: String) {
        let client = client();
        while let Some(spans) = self.next() {
            let id = spans[0].span_id.clone();
            let body = export("loaded", spans.clone()).encode_to_vec();
            let request = client.post(&url).header("content-type", "application/x-protobuf");
            self.in_flight.lock().unwrap().insert(id.clone());
            let answer = request.body(body).send().await.map(|answer| answer.status().as_u16());
            if answer.as_ref().is_ok_and(|status| *status == 200) {
                self.in_flight.lock().unwrap().remove(&id);
                self.acknowledged.lock().unwrap().push(spans);
                continue;
            }
            self.waiting.lock().unwrap().push_back(spans);
            if answer.is_err() {
                return;
            }
            self.in_flight.lock().unwrap().remove(&id);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// What a directory held right after a kill.
#[derive(Default)]
struct Left {
    /// By position, the first and the last span of each export in the log.
    exports: BTreeMap<u64, [Vec<u8>; 2]>,
    marked: BTreeSet<u64>,
    unfinished_checkpoint: bool,
}

fn segments(directory: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name());
    entries.map(|n| n.into_string().unwrap()).filter(|n| n.ends_with(".log1")).collect()
}

impl Left {
    fn look(directory: &Path) -> Left {
        let mut left = Left {
            unfinished_checkpoint: directory.join("checkpoint.new").exists(),
            ..Left::default()
        };
        for name in segments(directory) {
            let bytes = std::fs::read(directory.join(&name)).unwrap();
            let marker = name.trim_end_matches(".log1").rsplit('-').next().unwrap();
            let marker = Marker(u64::from_str_radix(marker, 16).unwrap());
            for found in walk(marker, &bytes) {
                let Found::Entry { entry, .. } = found else { continue };
                left.entry(entry);
            }
        }
        left
    }

    fn entry(&mut self, entry: Entry<'_>) {
        match entry {
            Entry::Record { position, kind: Kind::In, payload, .. } => {
                let Ok(export) = ExportTraceServiceRequest::decode(payload) else { return };
                let spans = &export.resource_spans[0].scope_spans[0].spans;
                let ends = [0, spans.len() - 1].map(|at| spans[at].span_id.clone());
                self.exports.insert(position.0, ends);
            }
            Entry::Record { .. } => {}
            Entry::Marks(marks) => {
                for mark in marks {
                    match mark {
                        Noted::Done { from, to } => self.marked.extend(from.0..=to.0),
                        Noted::Delivered { position, .. } => drop(self.marked.insert(position.0)),
                    }
                }
            }
        }
    }
}

/// Waits until a directory shows that a phase began; at a random moment for the others. Whether it
/// did within the patience of a test.
fn wait_for(phase: Phase, directory: &Path, moment: u64) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    let size = || {
        let last = segments(directory).pop_last().map(|name| directory.join(name));
        last.and_then(|path| path.metadata().ok()).map_or(0, |of| of.len())
    };
    let (before, mut known) = (size(), segments(directory));
    while Instant::now() < end {
        let now = match phase {
            Phase::Append | Phase::Export | Phase::Mark => {
                std::thread::sleep(Duration::from_millis(moment));
                true
            }
            Phase::BeforeAck => size() > before + 4_000,
            Phase::Checkpoint => directory.join("checkpoint.new").exists(),
            Phase::Delete => {
                let is = segments(directory);
                let gone = !is.is_superset(&known);
                known = is;
                gone
            }
        };
        if now {
            return true;
        }
    }
    false
}

/// Which phases a kill met, by what is on disk and at the backend.
fn met(directory: &Path, load: &Load, backend: &Backend, open: &Open) -> BTreeSet<Phase> {
    let left = Left::look(directory);
    let in_flight = std::mem::take(&mut *load.in_flight.lock().unwrap());
    let logged: BTreeSet<&Vec<u8>> = left.exports.values().map(|ends| &ends[0]).collect();
    let mut met = BTreeSet::new();
    if in_flight.iter().any(|id| !logged.contains(id)) {
        met.insert(Phase::Append);
    }
    if in_flight.iter().any(|id| logged.contains(id)) {
        met.insert(Phase::BeforeAck);
    }
    if open.requests > 0 {
        met.insert(Phase::Export);
    }
    // What leaves at once is the last span of an export that has two.
    let answered = backend.answered_since(open);
    let unmarked = left.exports.iter().filter(|(position, _)| !left.marked.contains(position));
    let mut unmarked = unmarked.filter(|(_, ends)| ends[0] != ends[1]);
    if unmarked.any(|(_, ends)| answered.contains(&ends[1])) {
        met.insert(Phase::Mark);
    }
    if left.unfinished_checkpoint {
        met.insert(Phase::Checkpoint);
    }
    met
}

/// The last event of each chain without what counts how often it was said.
fn last(backend: &Backend) -> BTreeMap<String, Vec<u8>> {
    let mut last = BTreeMap::new();
    for (_, mut record) in backend.records() {
        let id = attribute(&record.attributes, "mcp_verdict.chain.id").map(str::to_owned);
        let Some(id) = id else { continue };
        let number = int(&record.attributes, "mcp_verdict.revision").unwrap_or(1);
        record.observed_time_unix_nano = 0;
        // It tells a revision from a first verdict.
        record.event_name.clear();
        record.attributes.retain(|attribute| {
            !["mcp_verdict.revision", "mcp_verdict.supersedes"].contains(&attribute.key.as_str())
        });
        let content = (number, record.encode_to_vec());
        let known = last.entry(id).or_insert_with(|| content.clone());
        if known.0 <= number {
            *known = content;
        }
    }
    last.into_iter().map(|(id, (_, content))| (id, content)).collect()
}

/// Every chain ends as in the uninterrupted run.
async fn same_in_the_end(backend: &Backend, uninterrupted: &Backend) {
    let mut differ = Vec::new();
    for _ in 0..60 {
        let (got, want) = (last(backend), last(uninterrupted));
        let ids: BTreeSet<&String> = got.keys().chain(want.keys()).collect();
        let of = ids.into_iter().filter(|id| got.get(*id) != want.get(*id));
        differ = of.map(|id| difference(id, got.get(id), want.get(id))).collect();
        if differ.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("{} chains end otherwise:\n{}", differ.len(), differ.join("\n"));
}

/// What one of two events has and the other has not.
fn difference(id: &str, got: Option<&Vec<u8>>, want: Option<&Vec<u8>>) -> String {
    let lines = |content: Option<&Vec<u8>>| -> BTreeSet<String> {
        let Some(content) = content else { return BTreeSet::from(["nothing".into()]) };
        let record = LogRecord::decode(&content[..]).unwrap();
        let value = |a: &KeyValue| a.value.as_ref().and_then(|v| v.value.clone());
        let attributes = record.attributes.iter().map(|a| format!("{}={:?}", a.key, value(a)));
        let attributes: Vec<String> = attributes.collect();
        let rest = LogRecord { attributes: Vec::new(), ..record };
        attributes.into_iter().chain([format!("{rest:?}")]).collect()
    };
    let (got, want) = (lines(got), lines(want));
    let only = |of: &BTreeSet<String>, not: &BTreeSet<String>| -> Vec<String> {
        of.difference(not).cloned().collect()
    };
    format!("{id}: {:?} / {:?}", only(&got, &want), only(&want, &got))
}

async fn drain(load: &Arc<Load>, process: &Process) {
    load.ending.store(true, Ordering::Relaxed);
    let senders: Vec<_> =
        (0..8).map(|_| tokio::spawn(load.clone().send(process.url.clone()))).collect();
    for sender in senders {
        sender.await.unwrap();
    }
    assert!(load.waiting.lock().unwrap().is_empty(), "not everything was taken");
}

/// Asks twice a second: to look through all that came takes long.
async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..240 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    panic!("{what}: not within two minutes");
}

async fn live(life: u64, directory: &Path, backend: &Backend, load: &Arc<Load>) -> BTreeSet<Phase> {
    let phase = PHASES[(life % 6) as usize];
    let before = backend.open();
    let process = Process::start_with(backend, directory, &SETTINGS);
    let flaps = phase <= Phase::BeforeAck;
    let senders: Vec<_> =
        (0..8).map(|_| tokio::spawn(load.clone().send(process.url.clone()))).collect();
    let taken = || load.acknowledged.lock().unwrap().len();
    let enough = taken() + 20;
    backend.until("work", |_| taken() >= enough).await;
    backend.set_dead(flaps && life % 12 < 6);
    let moment = 20 + (life + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 400;
    let of = directory.to_path_buf();
    let came = tokio::task::spawn_blocking(move || wait_for(phase, &of, moment)).await.unwrap();
    let open = Open { requests: backend.open().requests, ..before };
    process.kill();
    backend.set_dead(false);
    for sender in senders {
        sender.await.unwrap();
    }
    let mut met = met(directory, load, backend, &open);
    if came && phase == Phase::Delete {
        met.insert(Phase::Delete);
    }
    met
}

/// Scenario: eight senders whose exports are halves of calls, a backend that comes and goes, and a
/// kill at each phase in turn. Guarantees: every span that was acknowledged arrives; each revision
/// has one content; every chain ends as in a run that nobody interrupts; no phase was spared.
#[tokio::test(flavor = "multi_thread")]
async fn kills_at_every_phase_lose_nothing() {
    let kills = if long_forms() { 100 } else { 6 };
    let directory = tempfile::tempdir().unwrap();
    let backend = Backend::slow(&[], Duration::from_millis(15)).await;
    let load = Arc::new(Load::default());
    let mut phases: BTreeMap<Phase, u64> = BTreeMap::new();
    for life in 0..kills {
        let met = live(life, directory.path(), &backend, &load).await;
        met.into_iter().for_each(|phase| *phases.entry(phase).or_default() += 1);
    }
    let process = Process::start_with(&backend, directory.path(), &SETTINGS);
    drain(&load, &process).await;
    let sent: Vec<Vec<Span>> = load.acknowledged.lock().unwrap().clone();
    let spans: BTreeSet<Vec<u8>> = sent.iter().flatten().map(|span| span.span_id.clone()).collect();
    until("every acknowledged span", || delivered(&backend).is_superset(&spans)).await;
    let calm = tempfile::tempdir().unwrap();
    let other = Backend::start(&[]).await;
    let uninterrupted = Process::start_with(&other, calm.path(), &SETTINGS);
    let again = Arc::new(Load { waiting: Mutex::new(sent.clone().into()), ..Load::default() });
    drain(&again, &uninterrupted).await;
    until("every span again", || delivered(&other).is_superset(&spans)).await;
    same_in_the_end(&backend, &other).await;
    let mut said = events(&backend);
    said.values_mut().for_each(|events| events.sort_unstable());
    assert_single(&said);
    report(&format!(
        "{kills} kill -9: {} exports and {} spans acknowledged, 0 lost; {} chains end as in an \
         uninterrupted run; kills by phase: {phases:?}",
        sent.len(),
        spans.len(),
        last(&backend).len(),
    ));
    assert!(kills < 100 || phases.len() == PHASES.len(), "a phase was spared: {phases:?}");
}

/// Scenario: the same load, and SIGTERM at random moments. Guarantees: it ends by itself with exit
/// code 0 within its `shutdown_timeout`, and nothing that was acknowledged is lost.
#[tokio::test(flavor = "multi_thread")]
async fn stops_under_load_lose_nothing() {
    let stops = if long_forms() { 50 } else { 3 };
    let directory = tempfile::tempdir().unwrap();
    let backend = Backend::slow(&[], Duration::from_millis(15)).await;
    let load = Arc::new(Load::default());
    let mut longest = Duration::ZERO;
    for life in 0..stops {
        let process = Process::start_with(&backend, directory.path(), &SETTINGS);
        let senders: Vec<_> =
            (0..8).map(|_| tokio::spawn(load.clone().send(process.url.clone()))).collect();
        let taken = || load.acknowledged.lock().unwrap().len();
        let enough = taken() + 20;
        backend.until("work", |_| taken() >= enough).await;
        backend.set_dead(life % 5 == 4);
        let moment = (life + 1_u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 300;
        tokio::time::sleep(Duration::from_millis(moment)).await;
        let began = Instant::now();
        tokio::task::spawn_blocking(move || process.stop()).await.unwrap();
        longest = longest.max(began.elapsed());
        backend.set_dead(false);
        for sender in senders {
            sender.await.unwrap();
        }
    }
    let process = Process::start_with(&backend, directory.path(), &SETTINGS);
    drain(&load, &process).await;
    let sent = load.acknowledged.lock().unwrap().clone();
    let spans: BTreeSet<Vec<u8>> = sent.iter().flatten().map(|span| span.span_id.clone()).collect();
    until("every acknowledged span", || delivered(&backend).is_superset(&spans)).await;
    assert!(longest < SHUTDOWN + Duration::from_secs(20), "a stop took {longest:?}");
    report(&format!(
        "{stops} SIGTERM under load: {} spans acknowledged, 0 lost, exit code 0 each time, the \
         longest took {} ms",
        spans.len(),
        longest.as_millis(),
    ));
}
