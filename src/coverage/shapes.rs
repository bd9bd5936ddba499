//! Which spans below tool calls could prove something: what they look like by the semantic
//! conventions of databases, HTTP, messaging and files, as evidence rules that match them.
//!
//! A write that went well shows an effect. A look that follows a write in the same call, or a span
//! that calls itself a check, shows an outcome. What carried the MCP request itself shows neither.

use std::collections::{BTreeMap, BTreeSet};

use super::recording::{Recording, counts};
use crate::engine::{Explained, Role};
use crate::model::fact::Bone;
use crate::model::ids::{Digest16, Name, Nanos, SpanId, SpanRef, TraceId};
use crate::model::policy::{Glob, Rule, SpanMatcher, ValueMatcher};
use crate::model::words::{Effect, OutcomeMethod, OutcomeStatus};
use crate::wire::Signal;
use crate::wire::regroup::items;
use crate::wire::scan::{SpanView, ValueRef};

/// What a span of a shape shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Shows {
    Effect,
    Outcome(OutcomeMethod),
}

/// Rules worth trying for one tool, those that reach the most calls first.
pub type Candidates = BTreeMap<(Name, Name), Vec<Rule>>;

/// Most shapes of each kind that are tried for a tool.
const MOST: usize = 3;
/// Spans between one of interest and its call.
const DEPTH: usize = 64;

/// Candidate rules by server and tool.
pub fn candidates(recording: &Recording) -> Candidates {
    let halves = halves(&recording.explain(&counts));
    let parents = parents(recording);
    let mut spans: BTreeMap<Digest16, Vec<Seen>> = BTreeMap::new();
    let mut called: BTreeMap<Digest16, (Name, Name)> = BTreeMap::new();
    let traces = recording.exports.iter().filter(|(signal, _)| *signal == Signal::Traces);
    for item in traces.flat_map(|(_, export)| items(export)) {
        let Some(seen) = Seen::read(item.bytes) else { continue };
        let Some(half) = call_above(seen.at, &parents, &halves) else { continue };
        // The caller's own exchange carried the request.
        if seen.http && !half.answering {
            continue;
        }
        called.insert(half.chain, half.called.clone());
        spans.entry(half.chain).or_default().push(seen);
    }
    let mut reach: BTreeMap<(Name, Name), BTreeMap<Shape, BTreeSet<Digest16>>> = BTreeMap::new();
    for (chain, seen) in &spans {
        let shapes = reach.entry(called[chain].clone()).or_default();
        for one in seen.iter().filter(|one| one.counts_among(seen)) {
            shapes.entry(one.shape.clone()).or_default().insert(*chain);
        }
    }
    reach.into_iter().map(|(called, shapes)| (called.clone(), rules(&called, shapes))).collect()
}

fn rules(called: &(Name, Name), shapes: BTreeMap<Shape, BTreeSet<Digest16>>) -> Vec<Rule> {
    let mut shapes: Vec<_> = shapes.into_iter().collect();
    shapes.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then_with(|| a.0.cmp(&b.0)));
    let of = |effect: bool| {
        let wanted = shapes.iter().filter(move |(s, _)| (s.shows == Shows::Effect) == effect);
        wanted.take(MOST).map(|(shape, _)| shape.rule(called))
    };
    of(false).chain(of(true)).collect()
}

/// A half of a tool call.
struct HalfOf {
    chain: Digest16,
    called: (Name, Name),
    answering: bool,
}

fn halves(explained: &[Explained]) -> BTreeMap<SpanRef, HalfOf> {
    let mut halves = BTreeMap::new();
    for call in explained {
        let Some(tool) = &call.verdict.tool else { continue };
        for (role, fact) in &call.facts {
            let answering = match role {
                Role::Asking => false,
                Role::Answering => true,
                Role::Evidence | Role::Notification => continue,
            };
            let called = (call.verdict.server.clone(), tool.clone());
            halves.insert(fact.id.at, HalfOf { chain: call.verdict.id, called, answering });
        }
    }
    halves
}

fn parents(recording: &Recording) -> BTreeMap<SpanRef, SpanId> {
    let bones = recording.sightings.iter().flat_map(|sighting| &sighting.bones);
    let parent = |bone: &Bone| Some((bone.at, bone.parent?));
    bones.filter_map(parent).collect()
}

/// The nearest call above a span that is no half of a request itself.
fn call_above<'a>(
    at: SpanRef,
    parents: &BTreeMap<SpanRef, SpanId>,
    halves: &'a BTreeMap<SpanRef, HalfOf>,
) -> Option<&'a HalfOf> {
    if halves.contains_key(&at) {
        return None;
    }
    let up = |at: &SpanRef| Some(SpanRef { trace: at.trace, span: *parents.get(at)? });
    std::iter::successors(up(&at), up).take(DEPTH).find_map(|at| halves.get(&at))
}

/// What spans of one kind have in common.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Shape {
    shows: Shows,
    name: String,
    kind: i32,
    status: i32,
    attributes: Vec<(&'static str, Matched)>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Matched {
    Text(String),
    /// 2xx.
    Succeeded,
    /// At least one.
    Some,
}

impl Shape {
    fn rule(&self, (server, tool): &(Name, Name)) -> Rule {
        let matcher = |matched: &Matched| match matched {
            Matched::Text(text) => ValueMatcher::Text(Glob(text.clone())),
            Matched::Succeeded => ValueMatcher::Class(2),
            Matched::Some => ValueMatcher::AtLeast(1.0),
        };
        let attributes = self.attributes.iter();
        let attributes = attributes.map(|(key, want)| (key.to_string(), matcher(want)));
        let (effect, outcome, method) = match self.shows {
            Shows::Effect => (Some(Effect::Confirmed), None, OutcomeMethod::Query),
            Shows::Outcome(method) => (None, Some(OutcomeStatus::Verified), method),
        };
        Rule {
            when_server: Some(Glob(server.to_string())),
            when_tool: Some(Glob(tool.to_string())),
            span: SpanMatcher {
                name: Some(Glob(self.name.clone())),
                kind: Some(self.kind),
                status: Some(self.status),
                attributes: attributes.collect(),
                ..SpanMatcher::default()
            },
            effect,
            outcome,
            method,
        }
    }
}

/// A span that may prove something.
struct Seen {
    at: SpanRef,
    start: Nanos,
    end: Nanos,
    /// An HTTP exchange.
    http: bool,
    /// It says itself that it checks.
    checks: bool,
    shape: Shape,
}

const STATUS_ERROR: i32 = 2;
const KIND_CLIENT: i32 = 3;
const KIND_PRODUCER: i32 = 4;
const KIND_INTERNAL: i32 = 1;

impl Seen {
    fn read(bytes: &[u8]) -> Option<Self> {
        let span = SpanView::parse(bytes, 0);
        let at =
            SpanRef { trace: TraceId::read(span.trace_id())?, span: SpanId::read(span.span_id())? };
        let (kind, status) = (span.kind(), span.status_code());
        let plain = [KIND_CLIENT, KIND_PRODUCER, KIND_INTERNAL].contains(&kind);
        if !plain || status == STATUS_ERROR {
            return None;
        }
        let name = pattern(span.name().as_str()?)?;
        let meaning = Meaning::of(&span, &name)?;
        let Meaning { shows, http, checks, attributes } = meaning;
        let shape = Shape { shows, name, kind, status, attributes };
        Some(Seen { at, start: span.start(), end: span.end(), http, checks, shape })
    }

    /// A write counts by itself, a look only where a write was over before it.
    fn counts_among(&self, all: &[Seen]) -> bool {
        let written = |other: &Seen| other.shape.shows == Shows::Effect && other.end <= self.start;
        self.shape.shows == Shows::Effect || self.checks || all.iter().any(written)
    }
}

/// A name that holds for all its like: numbers and long hexadecimal words become `*`.
fn pattern(name: &str) -> Option<String> {
    if name.is_empty() || name.len() > Name::MAX_BYTES || name.chars().any(char::is_control) {
        return None;
    }
    let mut out = String::new();
    for word in name.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let digits = bare.chars().filter(char::is_ascii_digit).count();
        let hex = bare.len() >= 8 && bare.chars().all(|c| c.is_ascii_hexdigit());
        match digits > 0 && (digits == bare.len() || hex) {
            true => out = out + "*" + &word[bare.len()..],
            false => out.push_str(word),
        }
    }
    Some(out)
}

/// What a span does, by the conventions.
struct Meaning {
    shows: Shows,
    http: bool,
    checks: bool,
    attributes: Vec<(&'static str, Matched)>,
}

const WRITES: &[&str] = &[
    "INSERT",
    "UPDATE",
    "DELETE",
    "MERGE",
    "UPSERT",
    "REPLACE",
    "PUT",
    "SET",
    "HSET",
    "INSERTONE",
    "INSERTMANY",
    "UPDATEONE",
    "UPDATEMANY",
    "DELETEONE",
    "DELETEMANY",
    "PUTITEM",
    "UPDATEITEM",
];
const READS: &[&str] =
    &["SELECT", "FIND", "FINDONE", "GET", "HGET", "QUERY", "SCAN", "COUNT", "EXISTS", "GETITEM"];
const SENDS: &[&str] = &["send", "publish", "create"];
const CHECKS: &[&str] =
    &["check", "verify", "validate", "confirm", "assert", "readback", "reconcile"];
const FILES: &[&str] = &["write", "save", "upload"];

impl Meaning {
    fn of(span: &SpanView<'_>, name: &str) -> Option<Self> {
        let words: Vec<String> =
            name.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_ascii_lowercase).collect();
        let named = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
        let text = |keys: &[&'static str]| {
            let found = keys.iter().find_map(|key| Some((*key, text(span, key)?)));
            found.map(|(key, text)| (key, text.to_string()))
        };
        let meaning = database(span, &text, name)
            .or_else(|| http(span, &text))
            .or_else(|| messaging(&text, span.kind()));
        if named(CHECKS) {
            let http = meaning.as_ref().is_some_and(|meaning| meaning.http);
            let attributes = meaning.map(|meaning| meaning.attributes).unwrap_or_default();
            let shows = Shows::Outcome(OutcomeMethod::Query);
            return Some(Meaning { shows, http, checks: true, attributes });
        }
        let file = || named(FILES) || text(&["file.path", "file.name"]).is_some();
        meaning.or_else(|| (file() && !named(&["read", "open", "stat"])).then(Meaning::written))
    }

    fn written() -> Self {
        Meaning { shows: Shows::Effect, http: false, checks: false, attributes: Vec::new() }
    }
}

/// Looks up the first of some keys that holds a text.
type Text<'a> = &'a dyn Fn(&[&'static str]) -> Option<(&'static str, String)>;

fn database(span: &SpanView<'_>, text: Text<'_>, name: &str) -> Option<Meaning> {
    text(&["db.system.name", "db.system"])?;
    let said = text(&["db.operation.name", "db.operation"]);
    let first = || name.split_whitespace().next().unwrap_or_default().to_string();
    let operation = said.as_ref().map_or_else(first, |(_, operation)| operation.clone());
    let upper = operation.to_ascii_uppercase();
    let mut attributes: Vec<_> =
        said.into_iter().map(|(key, operation)| (key, Matched::Text(operation))).collect();
    if WRITES.contains(&upper.as_str()) {
        return Some(Meaning { attributes, ..Meaning::written() });
    }
    if !READS.contains(&upper.as_str()) {
        return None;
    }
    const ROWS: &str = "db.response.returned_rows";
    if let Some(rows) = number(span, ROWS) {
        if rows < 1 {
            return None;
        }
        attributes.push((ROWS, Matched::Some));
    }
    let shows = Shows::Outcome(OutcomeMethod::Query);
    Some(Meaning { shows, http: false, checks: false, attributes })
}

fn http(span: &SpanView<'_>, text: Text<'_>) -> Option<Meaning> {
    let (key, method) = text(&["http.request.method", "http.method"])?;
    let status = ["http.response.status_code", "http.status_code"].into_iter();
    let (answer, code) = status.filter_map(|key| Some((key, number(span, key)?))).next()?;
    let attributes = vec![(key, Matched::Text(method.clone())), (answer, Matched::Succeeded)];
    let shows = match method.as_str() {
        "POST" | "PUT" | "PATCH" | "DELETE" => Shows::Effect,
        "GET" | "HEAD" => Shows::Outcome(OutcomeMethod::HttpStatus),
        _ => return None,
    };
    (200..300).contains(&code).then_some(Meaning { shows, http: true, checks: false, attributes })
}

fn messaging(text: Text<'_>, kind: i32) -> Option<Meaning> {
    text(&["messaging.system"])?;
    let said = text(&["messaging.operation.type", "messaging.operation"]);
    let sends = said.as_ref().is_some_and(|(_, operation)| SENDS.contains(&operation.as_str()));
    if !sends && kind != KIND_PRODUCER {
        return None;
    }
    let attributes = said.filter(|_| sends).into_iter();
    let attributes = attributes.map(|(key, text)| (key, Matched::Text(text))).collect();
    Some(Meaning { attributes, ..Meaning::written() })
}

fn text<'a>(span: &SpanView<'a>, key: &str) -> Option<&'a str> {
    let mut found = span.attributes().filter(|attribute| attribute.key.as_str() == Some(key));
    found.find_map(|attribute| match attribute.value {
        ValueRef::Str(text) => Some(text),
        _ => None,
    })
}

fn number(span: &SpanView<'_>, key: &str) -> Option<i64> {
    let mut found = span.attributes().filter(|attribute| attribute.key.as_str() == Some(key));
    found.find_map(|attribute| match attribute.value {
        ValueRef::Int(number) => Some(number),
        ValueRef::Str(text) => text.parse().ok(),
        _ => None,
    })
}
