//! What the engine wants done: verdicts become events, spans and counts; held spans leave.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::outputs::{Gathered, Outputs};
use super::release::{Changes, Release};
use crate::emit::metrics::{self, Counted, Sample};
use crate::emit::{Which, attributes, event, span};
use crate::engine::{Effect, Engine};
use crate::export::{Hold, Origin};
use crate::log::OutId;
use crate::model::ids::{Arrival, Digest16, SpanRef};
use crate::model::policy::Policy;
use crate::model::record::{Incident, Verdict};
use crate::page::board::Recorder;
use crate::telemetry::{Exemplar, VerdictMeters};
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
    pub outputs: Outputs,
    pub meters: VerdictMeters,
    pub said: Said,
    /// What the page and the API read.
    pub recorder: Recorder,
    /// Chains that are remembered for their counts.
    pub remembered: usize,
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

/// The same, as a checkpoint holds it.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    resources: Vec<Vec<u8>>,
    /// By chain: the place of its resource, and what it has added to the counts.
    told: Vec<(Digest16, usize, Counted)>,
}

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
                    self.verdict(&verdict, engine, now, (&mut logs, &mut spans));
                    self.parts.recorder.verdict(verdict, now.wall);
                }
                Effect::Recalled(verdict) => {
                    self.recall(&verdict);
                    self.parts.recorder.recalled(verdict, now.wall);
                }
                Effect::Session(session) => {
                    let item = event::session(&session, session.first_start, now.wall);
                    self.event(session.span, item, &mut logs);
                    self.parts.recorder.session(session);
                }
                Effect::Drift(drift) => {
                    self.count(&metrics::contract_drift(&drift), (drift.span, None), now);
                    self.event(drift.span, event::contract_drift(&drift, now.wall), &mut logs);
                    self.parts.recorder.drift(drift);
                }
                Effect::Incident(incident) => {
                    self.count(&metrics::incident(&incident), (incident.span, None), now);
                    let contact = self.contact(&incident);
                    let item = event::incident(&incident, contact.as_deref(), now.wall);
                    self.event(incident.span, item, &mut logs);
                    self.parts.recorder.incident(incident);
                }
                Effect::RecalledIncident(incident) => self.parts.recorder.incident(incident),
                Effect::Release { span, with, .. } => {
                    for leaving in self.parts.hold.release(span) {
                        release.add(leaving, with.as_deref());
                    }
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
        self.parts.outputs.push(spans.take(&self.scope));
        self.parts.outputs.push(logs.take(&self.scope));
        self.parts.outputs.release(release.parcels());
    }

    /// From now on things are said so.
    pub fn reload(&mut self, said: Said) {
        self.parts.said = said;
    }

    /// These incidents stand, and no others.
    pub fn standing<'a>(&self, incidents: impl Iterator<Item = &'a Incident>) {
        let sample = |incident: &Incident| {
            metrics::standing(incident, self.contact(incident).unwrap_or_default())
        };
        self.parts.meters.standing(incidents.map(sample));
    }

    /// How long a round took, in nanoseconds.
    pub fn took(&self, nanos: u64) {
        self.parts.meters.judged(nanos);
    }

    /// At the end nothing is held: what no chain names leaves as it came.
    pub fn end(&mut self) {
        let mut release = Release::new(self.parts.said.changes);
        for leaving in self.parts.hold.release_all() {
            release.add(leaving, None);
        }
        self.parts.outputs.release(release.parcels());
    }

    fn verdict(
        &mut self,
        verdict: &Verdict,
        engine: &Engine,
        now: Arrival,
        (logs, spans): (&mut Gathered, &mut Gathered),
    ) {
        let (known, counted) = match self.told.get(&verdict.id) {
            Some(told) => (Some(told.resource.clone()), told.counted.clone()),
            // An earlier process counted it.
            None if verdict.revision > 1 => {
                (None, metrics::verdict(verdict, &Counted::default()).0)
            }
            None => (None, Counted::default()),
        };
        let (counted, samples) = metrics::verdict(verdict, &counted);
        let of = (verdict.operator.span, Some(verdict.id));
        samples.iter().for_each(|sample| self.count(sample, of, now));
        let resource = known.unwrap_or_else(|| self.resource(verdict.operator.span));
        let said = attributes::on_event(verdict);
        match self.parts.said.events.wants(verdict) {
            true => {
                let item = event::verdict(verdict, &said, now.wall);
                logs.add(resource.clone(), item, Some(out_id(verdict, engine)));
            }
            false => logs.name(out_id(verdict, engine)),
        }
        if self.parts.said.spans.wants(verdict) {
            let item = span::verdict(verdict, &said);
            spans.add(resource.clone(), item, None);
        }
        self.remember(verdict.id, Told { counted, resource });
    }

    fn count(&self, sample: &Sample, (at, chain): (SpanRef, Option<Digest16>), now: Arrival) {
        self.parts.meters.record(sample, Exemplar { at, chain, when: now.wall });
    }

    /// Said by an earlier process: neither said nor counted again.
    fn recall(&mut self, verdict: &Verdict) {
        if !self.told.contains_key(&verdict.id) {
            let (counted, _) = metrics::verdict(verdict, &Counted::default());
            let resource = self.resource(verdict.operator.span);
            self.remember(verdict.id, Told { counted, resource });
        }
    }

    /// What was said of each chain, and under which resource, for the next process.
    pub fn told(&self) -> Vec<u8> {
        let mut kept = Kept::default();
        let mut places = HashMap::new();
        for (id, told) in self.order.iter().filter_map(|id| Some((id, self.told.get(id)?))) {
            let place = *places.entry(told.resource.clone()).or_insert_with(|| {
                kept.resources.push(told.resource.to_vec());
                kept.resources.len() - 1
            });
            kept.told.push((*id, place, told.counted.clone()));
        }
        // Values in memory can always be written to memory.
        postcard::to_stdvec(&kept).unwrap_or_default()
    }

    /// Takes up what an earlier process told. Whether it could be read.
    pub fn take_up(&mut self, told: &[u8]) -> bool {
        let Ok(kept) = postcard::from_bytes::<Kept>(told) else { return false };
        let resources: Vec<Origin> = kept.resources.into_iter().map(Origin::from).collect();
        for (id, place, counted) in kept.told {
            let Some(resource) = resources.get(place).cloned() else { return false };
            self.remember(id, Told { counted, resource });
        }
        true
    }

    fn remember(&mut self, id: Digest16, told: Told) {
        if self.told.insert(id, told).is_none() {
            self.order.push_back(id);
        }
        while self.order.len() > self.parts.remembered {
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
}

/// Names a revision and its content; the time of judging is no part of it.
fn out_id(verdict: &Verdict, engine: &Engine) -> OutId {
    OutId {
        chain: verdict.id,
        span: verdict.operator.span,
        revision: verdict.revision,
        closes: verdict.operator.merged_into.is_some(),
        digest: engine.digest(verdict),
    }
}
