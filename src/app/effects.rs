//! What the engine wants done: verdicts become events, spans and counts; held spans leave.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::outputs::{Gathered, Outputs};
use super::release::{Changes, Release};
use crate::emit::metrics::{self, Counted};
use crate::emit::{Which, event, span};
use crate::engine::{Effect, Engine};
use crate::export::{Hold, Origin, Outbox};
use crate::log::OutId;
use crate::model::ids::{Arrival, Digest16, SpanRef};
use crate::model::policy::Policy;
use crate::model::record::{Incident, Verdict};
use crate::page::board::Recorder;
use crate::telemetry::VerdictMeters;
use crate::wire::{Signal, encode};

/// Where effects go.
pub struct Effects {
    pub parts: Parts,
    told: HashMap<Digest16, Told>,
    order: VecDeque<Digest16>,
    scope: Vec<u8>,
    nowhere: Origin,
}

/// What effects are carried out with.
pub struct Parts {
    pub hold: Arc<Hold>,
    pub outbox: Arc<Outbox>,
    pub outputs: Outputs,
    pub meters: VerdictMeters,
    pub said: Said,
    /// What the page and the API read.
    pub recorder: Recorder,
}

/// What a reload may change of what is said.
pub struct Said {
    pub policy: Arc<Policy>,
    pub events: Which,
    pub spans: Which,
    pub changes: Changes,
}

/// What was said of a chain, as far as its next revision needs it.
struct Told {
    counted: Counted,
    resource: Origin,
}

/// Chains that are remembered for their counts.
const REMEMBERED: usize = 50_000;

impl Effects {
    pub fn new(parts: Parts) -> Self {
        Effects {
            parts,
            told: HashMap::new(),
            order: VecDeque::new(),
            scope: encode::scope_origin("mcp-verdict", env!("CARGO_PKG_VERSION")),
            nowhere: encode::resource_origin(&[]).into(),
        }
    }

    /// Carries out what one round of the engine asked for.
    pub fn apply(&mut self, effects: Vec<Effect>, engine: &Engine, now: Arrival) {
        let mut logs = Gathered::new(Signal::Logs);
        let mut spans = Gathered::new(Signal::Traces);
        let mut release = Release::new(self.parts.said.changes);
        for effect in effects {
            match effect {
                Effect::Verdict(verdict) => {
                    self.verdict(&verdict, now, &mut logs, &mut spans);
                    self.parts.recorder.verdict(*verdict);
                }
                Effect::Session(session) => {
                    let item = event::session(&session, session.first_start, now.wall);
                    self.event(session.span, item, &mut logs);
                    self.parts.recorder.session(session);
                }
                Effect::Drift(drift) => {
                    self.parts.meters.record(&metrics::contract_drift(&drift));
                    self.event(drift.span, event::contract_drift(&drift, now.wall), &mut logs);
                    self.parts.recorder.drift(drift);
                }
                Effect::Incident(incident) => {
                    self.parts.meters.record(&metrics::incident(&incident));
                    let contact = self.contact(&incident);
                    let item = event::incident(&incident, contact.as_deref(), now.wall);
                    self.event(incident.span, item, &mut logs);
                    self.parts.recorder.incident(incident);
                }
                Effect::Release { span, with, .. } => {
                    self.release(span, with, engine, &mut release);
                }
                Effect::Evicted { reason, count } => self.parts.meters.evicted(reason, count),
                Effect::Late { count } => self.parts.meters.late(count),
            }
            for gathered in [&mut spans, &mut logs] {
                if gathered.is_full() {
                    self.parts.outputs.push(gathered.take(&self.scope));
                }
            }
        }
        self.parts.recorder.publish();
        release.send(&self.parts.outbox);
        self.parts.outputs.push(spans.take(&self.scope));
        self.parts.outputs.push(logs.take(&self.scope));
    }

    /// From now on things are said so.
    pub fn reload(&mut self, said: Said) {
        self.parts.said = said;
    }

    /// How long a round took, in nanoseconds.
    pub fn took(&self, nanos: u64) {
        self.parts.meters.judged(nanos);
    }

    /// At the end nothing is held: what no chain names leaves as it came.
    pub fn end(&mut self) {
        let mut release = Release::new(self.parts.said.changes);
        for leaving in self.parts.hold.release_all() {
            release.add(leaving, None, &self.parts.outbox);
        }
        release.send(&self.parts.outbox);
    }

    fn verdict(
        &mut self,
        verdict: &Verdict,
        now: Arrival,
        logs: &mut Gathered,
        spans: &mut Gathered,
    ) {
        let told = self.told.get(&verdict.id);
        let (known, counted) = match told {
            Some(told) => (Some(told.resource.clone()), &told.counted),
            None => (None, &Counted::default()),
        };
        let (counted, samples) = metrics::verdict(verdict, counted);
        samples.iter().for_each(|sample| self.parts.meters.record(sample));
        let resource = known.unwrap_or_else(|| self.resource(verdict.operator.span));
        if self.parts.said.events.wants(verdict) {
            let item = event::verdict(verdict, now.wall);
            logs.add(resource.clone(), item, Some(out_id(verdict)));
        }
        if self.parts.said.spans.wants(verdict) {
            let item = span::verdict(verdict);
            spans.add(resource.clone(), item, Some(out_id(verdict)));
        }
        self.remember(verdict.id, Told { counted, resource });
    }

    fn remember(&mut self, id: Digest16, told: Told) {
        if self.told.insert(id, told).is_none() {
            self.order.push_back(id);
        }
        while self.order.len() > REMEMBERED {
            if let Some(oldest) = self.order.pop_front() {
                self.told.remove(&oldest);
            }
        }
    }

    /// What is configured for the owner of its one tool, else of its server.
    fn contact(&self, incident: &Incident) -> Option<String> {
        let tool = match &incident.tools[..] {
            [tool] => Some(tool.as_str()),
            _ => None,
        };
        self.parts.said.policy.owner_contact(&incident.server, tool, incident.owner)
    }

    fn event(&self, of: SpanRef, item: Vec<u8>, logs: &mut Gathered) {
        logs.add(self.resource(of), item, None);
    }

    fn resource(&self, of: SpanRef) -> Origin {
        self.parts.hold.resource(of).unwrap_or_else(|| self.nowhere.clone())
    }

    fn release(
        &self,
        span: SpanRef,
        with: Option<Digest16>,
        engine: &Engine,
        release: &mut Release,
    ) {
        let verdict = with.and_then(|id| engine.latest(&id));
        for leaving in self.parts.hold.release(span) {
            release.add(leaving, verdict, &self.parts.outbox);
        }
    }
}

/// Names a revision and its content; the time of judging is no part of it.
fn out_id(verdict: &Verdict) -> OutId {
    let content = event::verdict(verdict, 0);
    OutId { chain: verdict.id, revision: verdict.revision, digest: Digest16::of(&[&content]) }
}
