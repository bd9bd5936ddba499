//! From an item to its facts: what the dialect read, evidence attributes, rules, and the defects
//! that one record alone shows.

use std::sync::Arc;

use super::conventions as key;
use super::dialects;
use super::draft::{self, Draft, Shape};
use super::item::{Bag, Event, Item, json};
use super::{content, evidence, http, rules, secrets};
use crate::model::attributes::{self, REQUEST_STARTED};
use crate::model::fact::*;
use crate::model::findings::{Code, Detail, Finding};
use crate::model::ids::{Digest16, Name, SpanId, sane};
use crate::model::policy::Policy;

/// Keys whose value joins records: two different values on one record are said, not picked from.
const CORRELATION: &[&[&str]] =
    &[key::METHOD, key::SESSION, key::REQUEST_ID, key::VERSION, &[attributes::OPERATION_KEY]];

/// Most keys that are named as holding a secret.
const MAX_SECRETS: usize = 8;

/// Everything an item says, as facts.
pub fn facts(item: &Item<'_>, policy: &Policy) -> Vec<Fact> {
    let mut maker = Maker { item, facts: Vec::new(), record: None };
    let drafts = dialects::read(item);
    let (tools, messages): (Vec<_>, Vec<_>) =
        drafts.into_iter().partition(|draft| draft.shape == Shape::Tool);
    messages.into_iter().for_each(|draft| maker.message(draft));
    if maker.facts.is_empty() {
        maker.plain();
    }
    tools.into_iter().for_each(|draft| maker.tool(draft));
    maker.agent();
    maker.model();
    maker.events();
    maker.rules(policy);
    maker.facts
}

struct Maker<'i, 'a> {
    item: &'i Item<'a>,
    facts: Vec<Fact>,
    /// Digest of the record, once a fact needs it.
    record: Option<Digest16>,
}

impl<'a> Maker<'_, 'a> {
    fn add(&mut self, says: Says, evidence: Evidence, part: &[u8]) {
        let item = self.item;
        let record = *self.record.get_or_insert_with(|| super::digest::record(item));
        let digest = Digest16::of(&[&record.0, part]);
        self.facts.push(Fact {
            id: FactId { signal: item.signal, at: item.at, digest },
            process: item.process.clone(),
            scope: Name::new(item.scope),
            parent: item.parent,
            kind: item.kind,
            status: item.status,
            start: item.start,
            end: item.end,
            links: item.links.clone(),
            sampling: item.sampling,
            says,
            evidence: evidence.into(),
            findings: Vec::new(),
        });
    }

    /// A request, notification or connection, with what its own attributes and events add.
    fn message(&mut self, mut draft: Draft) {
        let item = self.item;
        evidence::apply(&item.attributes, &mut draft);
        self.events_of_request(&mut draft);
        modern_session(&mut draft);
        modern_label(&mut draft);
        draft.half.call.tidy();
        let place = draft.place;
        let found = defects(item);
        let mut evidence = evidence::read(&item.attributes, item.end);
        evidence.operation_key = evidence.operation_key.or_else(|| self.key_of_events());
        let started = item.signal == Signal::Log && item.name == REQUEST_STARTED;
        let says = match draft.shape {
            Shape::Connection => Says::Connection(Arc::new(draft.half)),
            Shape::Start => Says::Started(Arc::new(started_half(draft))),
            Shape::Supplement | Shape::Tool => {
                evidence.request = Some(Box::new(draft.half));
                Says::Evidence
            }
            Shape::Message if key::is_notification(&draft.half.method) => {
                Says::Notification(Box::new(draft::notification(draft)))
            }
            Shape::Message if started => Says::Started(Arc::new(started_half(draft))),
            Shape::Message if item.signal == Signal::Log => {
                evidence.request = Some(Box::new(draft.half));
                self.keys(&mut evidence);
                Says::Evidence
            }
            Shape::Message => Says::Half(Arc::new(draft.half)),
        };
        let part = place.map(|place| place.at.span.0).unwrap_or_default();
        self.add(says, evidence, &[b"message".as_slice(), &part].concat());
        if let Some(fact) = self.facts.last_mut() {
            fact.findings = found;
            if let Some(place) = place {
                fact.id.at = place.at;
                fact.parent = place.parent;
                (fact.start, fact.end) = (place.start, place.end);
            }
        }
    }

    /// How a framework's tool ended, for the call below it.
    fn tool(&mut self, draft: Draft) {
        let HalfFact { tool, answer, .. } = draft.half;
        let request = HalfFact { tool, answer, ..draft::blank("tools/call") };
        let evidence = Evidence { request: Some(Box::new(request)), ..Evidence::default() };
        self.add(Says::Tool, evidence, b"tool");
    }

    /// A span that names the agent of what is below it; some of them are its run.
    fn agent(&mut self) {
        let item = self.item;
        let operation = item.attributes.text(&[key::OPERATION]);
        let openinference = item.attributes.text(&["openinference.span.kind"]);
        let run = operation.as_deref() == Some("invoke_agent")
            || openinference.as_deref() == Some("AGENT");
        let name = item.attributes.text(&[key::AGENT_NAME]).and_then(|n| Name::some(&n));
        // A request names its own.
        let names = name.is_some() && !self.facts.iter().any(|fact| fact.half().is_some());
        if item.signal == Signal::Span && (run || names) {
            self.add(Says::Agent { name, run }, Evidence::default(), b"agent");
        }
    }

    fn model(&mut self) {
        let offered = self.item.attributes.first(key::MODEL_TOOLS).and_then(json);
        let Some(serde_json::Value::Array(tools)) = offered else { return };
        let tools = content::definitions(&tools);
        if !tools.tools.is_empty() {
            self.add(Says::Model { tools }, Evidence::default(), b"model");
        }
    }

    /// Events that are facts of their own, with their own time.
    fn events(&mut self) {
        let item = self.item;
        for (index, event) in item.events.iter().enumerate() {
            if !has_own_fact(event) {
                continue;
            }
            let time = if sane(event.time) { event.time } else { item.end };
            let part = super::digest::event(event, index);
            let mut evidence = evidence::read(&event.attributes, time);
            evidence.outcomes.extend(evidence::evaluation(&event.attributes, time));
            let says = self.event_says(event).unwrap_or(Says::Evidence);
            self.add(says, evidence, &part.0);
            if let Some(fact) = self.facts.last_mut() {
                (fact.start, fact.end) = (time, time);
            }
        }
    }

    fn event_says(&self, event: &Event<'a>) -> Option<Says> {
        if event.name == REQUEST_STARTED {
            let at_event = self.item.of_event(event);
            let mut draft = dialects::read(&at_event).into_iter().next()?;
            evidence::apply(&event.attributes, &mut draft);
            modern_session(&mut draft);
            draft.half.call.tidy();
            return Some(Says::Started(Arc::new(started_half(draft))));
        }
        let progress = evidence::progress(&event.attributes)?;
        let mut draft = Draft::blank("notifications/progress");
        draft.note.progress = Some(progress);
        Some(Says::Notification(Box::new(draft::notification(draft))))
    }

    /// What the events of a record say of its request, beside facts of their own; what a start says
    /// is its own alone.
    fn events_of_request(&self, draft: &mut Draft) {
        let progress = draft.note.progress.clone();
        for event in self.item.events.iter().filter(|event| event.name != REQUEST_STARTED) {
            evidence::apply(&event.attributes, draft);
        }
        draft.note.progress = progress;
    }

    fn key_of_events(&self) -> Option<Digest16> {
        let events = self.item.events.iter().filter(|event| event.name != REQUEST_STARTED);
        events.filter_map(|event| evidence::operation_key(&event.attributes)).min()
    }

    /// Evidence rules: on the fact that speaks of the whole item, else on one of their own. What a
    /// notification or a framework's tool says goes another way than evidence.
    fn rules(&mut self, policy: &Policy) {
        let item = self.item;
        if item.signal != Signal::Span {
            return;
        }
        let matched = rules::matches(item, policy);
        if matched.is_empty() {
            return;
        }
        let whole = |fact: &Fact| {
            let apart = matches!(fact.says, Says::Notification(_) | Says::Tool);
            fact.start == item.start && !apart
        };
        let place = self.facts.iter().position(whole).unwrap_or_else(|| {
            let evidence = evidence::read(&item.attributes, item.end);
            self.add(Says::Evidence, evidence, b"rule");
            self.facts.len() - 1
        });
        let evidence = &mut self.facts[place].evidence;
        evidence.effects.extend(matched.effects);
        evidence.outcomes.extend(matched.outcomes);
        let hits = format!("{:?}{:?}", evidence.effects, evidence.outcomes);
        let id = &mut self.facts[place].id.digest;
        *id = Digest16::of(&[&id.0, hits.as_bytes()]);
    }

    /// A record that is nothing of MCP's own: evidence attributes, or HTTP in a log.
    fn plain(&mut self) {
        let item = self.item;
        let mut evidence = evidence::read(&item.attributes, item.end);
        if item.name == "gen_ai.evaluation.result" {
            evidence.outcomes.extend(evidence::evaluation(&item.attributes, item.end));
        }
        if let Some(progress) = evidence::progress(&item.attributes) {
            let mut draft = Draft::blank("notifications/progress");
            draft.note.progress = Some(progress);
            let says = Says::Notification(Box::new(draft::notification(draft)));
            return self.add(says, evidence, b"progress");
        }
        let mut draft = Draft::blank("");
        evidence::apply(&item.attributes, &mut draft);
        self.events_of_request(&mut draft);
        draft.half.call.tidy();
        if draft.half != draft::blank("") {
            evidence.request = Some(Box::new(draft.half));
        }
        evidence.operation_key = evidence.operation_key.or_else(|| self.key_of_events());
        if evidence != Evidence::default() {
            self.keys(&mut evidence);
            return self.add(Says::Evidence, evidence, b"evidence");
        }
        if item.signal == Signal::Log
            && item.at.span != SpanId::default()
            && let Some(http) = http::read(item)
        {
            self.add(Says::Http(http), evidence, b"http");
        }
    }

    /// The ids by which a record that is no half itself finds its request.
    fn keys(&self, evidence: &mut Evidence) {
        let text = |keys: &[&str]| self.item.attributes.text(keys);
        evidence.session = text(key::SESSION).and_then(|id| Name::some(&id));
        evidence.request_id = text(key::REQUEST_ID).and_then(|id| Name::some(&id));
    }
}

/// An event that says something of its own, at its own time: an effect, an outcome, progress, a
/// start, an opinion. Any other evidence on an event speaks of the span.
fn has_own_fact(event: &Event<'_>) -> bool {
    let own = [
        attributes::EFFECT_STATUS,
        attributes::OUTCOME_STATUS,
        attributes::OUTCOME_OBSERVED,
        attributes::PROGRESS_TOKEN,
        "gen_ai.evaluation.score.label",
    ];
    event.name == REQUEST_STARTED || own.iter().any(|key| event.attributes.has(key))
}

/// Records of a start come from who asks; what was not said of the answer is not known yet.
fn started_half(draft: Draft) -> HalfFact {
    let mut half = draft.half;
    if half.end == End::Unknown {
        half.end = End::Asking;
    }
    half
}

/// No session exists on the wire from 2026-07-28 on: an id seen there was made up (§2).
fn modern_session(draft: &mut Draft) {
    let modern = draft.half.version.as_deref().is_some_and(key::is_modern);
    if modern || draft.half.method.as_str() == "server/discover" {
        draft.synthetic_session();
    }
}

/// An `initialize` with a modern version is a framework's label on a connection: that era has no
/// such request (§2).
fn modern_label(draft: &mut Draft) {
    let modern = draft.half.version.as_deref().is_some_and(key::is_modern);
    if modern && draft.half.method.as_str() == "initialize" && draft.shape == Shape::Message {
        draft.shape = Shape::Connection;
    }
}

/// What one record alone shows to be wrong with it.
fn defects(item: &Item<'_>) -> Vec<Finding> {
    let spans = || match item.at.span {
        none if none == SpanId::default() => Vec::new(),
        span => vec![span],
    };
    let keyed =
        |code: Code, key: &str| Finding::new(code, spans()).detail(Detail::Key(Name::new(key)));
    let mut found = Vec::new();
    let believable = sane(item.start) && sane(item.end) && item.start <= item.end;
    if item.signal == Signal::Span && !believable {
        found.push(Finding::new(Code::BadTimestamp, spans()));
    }
    for key in CORRELATION.iter().copied().flatten() {
        if is_ambiguous(&item.attributes, key) {
            found.push(keyed(Code::AmbiguousAttribute, key));
        }
    }
    for key in secrets::keys(&item.attributes, MAX_SECRETS) {
        found.push(keyed(Code::SecretInAttribute, key));
    }
    found
}

fn is_ambiguous(bag: &Bag<'_>, key: &str) -> bool {
    let mut values =
        bag.0.iter().filter(|(name, _)| *name == key).map(|(_, v)| evidence::comparable(v));
    let Some(first) = values.next() else { return false };
    values.any(|other| other != first)
}
