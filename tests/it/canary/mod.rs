//! Content never leaks: with a canary in every content value of every recording, nothing that leaves
//! the program but the forwarded telemetry itself holds it. Not a verdict, event, span, metric,
//! table, explanation, error or log line.

mod plant;
mod program;

use std::fmt::Write as _;

use mcp_verdict::cli::{explain, table};
use mcp_verdict::coverage;
use mcp_verdict::emit::{Enrich, attributes, event, metrics, span};
use mcp_verdict::engine::{Effect, Engine, Limits, Revisions, replay};
use mcp_verdict::model::fact::Sighting;
use mcp_verdict::model::ids::{Arrival, Position, SECOND};
use mcp_verdict::model::policy::Policy;
use mcp_verdict::model::record::{Record, Verdict};
use mcp_verdict::wire::Signal;
use serde_json::Value;

use crate::fixtures::{self, Recording, captures, cases, exports_of};
use plant::{CANARY, How, KINDS, Plant};

/// What was looked through, and where the canary was seen.
#[derive(Default)]
struct Watch {
    bytes: usize,
    seen: Vec<String>,
}

impl Watch {
    fn text(&mut self, what: &str, text: &str) {
        self.bytes(what, text.as_bytes());
    }

    fn bytes(&mut self, what: &str, bytes: &[u8]) {
        self.bytes += bytes.len();
        let text = String::from_utf8_lossy(bytes);
        if let Some(at) = text.find(CANARY) {
            let before: String = text[..at].chars().rev().take(100).collect();
            let before: String = before.chars().rev().collect();
            self.seen.push(format!("{what}: …{before}{CANARY}…"));
        }
    }

    /// A verdict in every form in which it leaves.
    fn verdict(&mut self, verdict: &Verdict) {
        self.bytes("event", &event::verdict(verdict, &attributes::on_event(verdict), 1));
        self.bytes("verdict span", &span::verdict(verdict, &attributes::on_event(verdict)));
        let added = attributes::on_span(verdict, Enrich::Full);
        self.text("attributes", &format!("{added:?}"));
        let (_, samples) = metrics::verdict(verdict, &metrics::Counted::default());
        self.text("metrics", &format!("{samples:?}"));
    }

    fn record(&mut self, record: &Record) {
        self.text("record", &serde_json::to_string(record).unwrap());
        match record {
            Record::Verdict(verdict) => self.verdict(verdict),
            Record::Session(session) => self.bytes("event", &event::session(session, 1, 1)),
            Record::ContractDrift(drift) => {
                self.bytes("event", &event::contract_drift(drift, 1));
                self.text("metrics", &format!("{:?}", metrics::contract_drift(drift)));
            }
            Record::Incident(incident) => {
                self.bytes("event", &event::incident(incident, None, 1));
                self.text("metrics", &format!("{:?}", metrics::incident(incident)));
            }
            Record::Summary(_) => {}
        }
    }

    fn replayed(&mut self, recording: &Recording, sightings: &[Sighting]) {
        let records = replay(sightings.to_vec(), &recording.policy, Revisions::Final);
        records.iter().for_each(|record| self.record(record));
        let mut out = Vec::new();
        table::write(&mut out, &records, None).unwrap();
        self.bytes("table", &out);
    }

    fn coverage(&mut self, exports: Vec<(Signal, Vec<u8>)>, policy: &Policy) {
        let recording = coverage::Recording::new(exports, policy.clone());
        let tools = coverage::tools(&recording);
        self.text("coverage", &serde_json::to_string(&tools).unwrap());
        let advised = coverage::advice::advice(&recording, &tools).into_iter();
        for advice in advised.flat_map(|one| [one.most, one.configured]).flatten() {
            self.text("advice", &format!("{advice:?}"));
            self.text("advice, to paste", &coverage::config(&advice.parts));
        }
    }

    fn live(&mut self, recording: &Recording, sightings: &[Sighting]) {
        let mut engine = Engine::new(recording.policy.clone(), Limits::default());
        let mut now = Arrival { monotonic: SECOND, wall: 2_000_000_000 * SECOND };
        for sighting in sightings {
            engine.see(Position(1), sighting.clone(), now);
        }
        let mut effects: Vec<Effect> = Vec::new();
        for _ in 0..3 {
            now.monotonic += 7 * SECOND;
            effects.extend(engine.tick(now));
        }
        let mut text = String::new();
        effects.iter().for_each(|effect| write!(text, "{effect:?}").unwrap());
        self.text("effects, as debug", &text);
    }
}

/// A recording with its documents, read once for every kind of content.
type Read = (Recording, Vec<Value>);

fn read(recordings: Vec<Recording>) -> Vec<Read> {
    let read = |recording: Recording| {
        let documents = recording.documents();
        (recording, documents)
    };
    recordings.into_iter().map(read).collect()
}

fn plant(documents: &[Value], plant: &mut Plant) -> Vec<Value> {
    let mut documents = documents.to_vec();
    documents.iter_mut().for_each(|document| plant.document(document));
    documents
}

/// Plants in every recording, judges it, and looks at all that comes out.
fn check(recordings: &[Read], kind: Option<&'static str>, how: How) -> u64 {
    let (mut planted, mut wrong) = (0, Vec::new());
    for (recording, documents) in recordings {
        let mut plants = Plant::new(kind, how);
        let documents = plant(documents, &mut plants);
        if plants.planted == 0 {
            continue;
        }
        planted += plants.planted;
        let exports = exports_of(&documents);
        let sightings = fixtures::sightings(&exports, &recording.policy);
        let mut watch = Watch::default();
        watch.replayed(recording, &sightings);
        if kind.is_none() {
            watch.live(recording, &sightings);
            watch.coverage(exports, &recording.policy);
        }
        assert!(watch.bytes > 0, "{}: nothing came out", recording.name);
        let name = format!("{} ({}, {how:?})", recording.name, kind.unwrap_or("all"));
        wrong.extend(watch.seen.first().map(|seen| format!("{name}\n  {seen}")));
    }
    assert!(wrong.is_empty(), "{} recordings leak:\n{}", wrong.len(), wrong.join("\n"));
    planted
}

/// Scenario: each kind of content in turn. Guarantees: none of it comes out of the judge.
#[test]
fn no_kind_of_content_comes_out() {
    let recordings = read(captures().into_iter().chain(cases()).collect());
    for (kind, _) in KINDS {
        assert!(check(&recordings, Some(kind), How::Beside) > 0, "no {kind} in any recording");
    }
}

/// Scenario: all content at once, replaced, and beside what it was.
#[test]
fn no_content_comes_out() {
    let recordings = read(captures().into_iter().chain(cases()).collect());
    check(&recordings, None, How::Instead);
    check(&recordings, None, How::Beside);
}

/// Scenario: the first chain of every case explained, with its facts and what would change it.
#[test]
fn no_content_is_explained() {
    let mut wrong = Vec::new();
    for (recording, documents) in read(cases()) {
        let documents = plant(&documents, &mut Plant::new(None, How::Beside));
        let policy = recording.policy.as_ref().clone();
        let whole = explain::Recording::new(exports_of(&documents), policy);
        let mut out = Vec::new();
        let mut explained = whole.explain(&|_| true);
        explained.truncate(1);
        explain::print_text(&mut out, &whole, &explained).unwrap();
        let mut watch = Watch::default();
        watch.bytes("explanation", &out);
        wrong.extend(watch.seen.into_iter().map(|seen| format!("{}\n  {seen}", recording.name)));
    }
    assert!(wrong.is_empty(), "{} recordings leak:\n{}", wrong.len(), wrong.join("\n"));
}
