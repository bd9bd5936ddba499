//! Folding facts into the tables: which traces are live, which facts only wait in the look-back,
//! and what each fact marks. Adding a fact twice is adding it once.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::lookback::Remembered;
use super::tables::{Tables, insert, remove};
use crate::correlate::process::role_of;
use crate::model::fact::*;
use crate::model::ids::{Digest16, Nanos, SECOND, SpanId, SpanRef, TraceId, sane};

/// Bones overwritten younger than this after `settle` are counted.
const YOUNG: Nanos = 30 * SECOND;
/// What a bone and a fact take with everything derived from them, in bytes, by estimate.
const BONE: usize = 256;
const FACT: usize = 3_072;

impl Tables {
    /// Takes what one export showed. `now` is monotonic arrival.
    pub fn see(&mut self, sighting: Sighting, now: Nanos) {
        let Sighting { bones, facts, .. } = sighting;
        let facts = facts.into_iter().map(|fact| self.interned.share(placed_apart(fact)));
        let facts: Vec<Arc<Fact>> = facts.collect();
        for fact in &facts {
            self.learn(fact);
            if anchors(fact) && !self.traces.contains_key(&fact.trace()) {
                self.traces.entry(fact.trace()).or_default();
                self.ages.insert((0, fact.trace()));
                self.lookback.want(fact.trace());
            }
        }
        for fact in facts {
            self.place(Remembered::Fact(fact), now);
        }
        for bone in bones {
            self.place(Remembered::Bone(bone), now);
        }
    }

    /// Brings what the look-back holds of newly live traces to them.
    pub fn sweep(&mut self, now: Nanos) {
        for item in self.lookback.sweep() {
            self.place(item, now);
        }
    }

    fn place(&mut self, item: Remembered, now: Nanos) {
        let trace = item.trace();
        if !self.traces.contains_key(&trace) {
            let (limit, young) = (self.limits.lookback, self.policy.settle + YOUNG);
            self.lookback.keep(item, now, limit, young);
            return;
        }
        let added = match item {
            Remembered::Bone(bone) => self.add_bone(bone),
            Remembered::Fact(fact) => self.add_fact(fact),
        };
        if added > 0 {
            self.marks.traces.insert(trace);
            self.touched.insert(trace);
            self.bytes += added;
            if let Some(entry) = self.traces.get_mut(&trace) {
                entry.bytes += added;
                self.ages.remove(&(entry.touched, trace));
                entry.touched = entry.touched.max(now);
                self.ages.insert((entry.touched, trace));
            }
        }
    }

    /// Two records of one span id: the bone that sorts last stays, whatever came first.
    /// The bytes that came with it; none for what was known.
    fn add_bone(&mut self, bone: Bone) -> usize {
        let Some(entry) = self.traces.get_mut(&bone.at.trace) else { return 0 };
        let order = |b: &Bone| (b.end, b.start, b.status, b.kind, b.parent, b.http);
        match entry.bones.get(bone.at.span) {
            Some(known) if order(known) >= order(&bone) => 0,
            known => {
                let more = if known.is_none() { BONE } else { 1 };
                entry.bones.put(bone);
                more
            }
        }
    }

    fn add_fact(&mut self, fact: Arc<Fact>) -> usize {
        let Some(entry) = self.traces.get_mut(&fact.trace()) else { return 0 };
        let Err(at) = entry.facts.binary_search_by_key(&fact.id, |fact| fact.id) else { return 0 };
        entry.facts.insert(at, fact);
        FACT
    }

    /// What every fact says of its process, wherever it will be filed.
    fn learn(&mut self, fact: &Arc<Fact>) {
        for time in [fact.start, fact.end].into_iter().filter(|time| sane(*time)) {
            self.newest = self.newest.max(time);
        }
        let process = fact.process.key;
        if let Some(role) = role_of(fact) {
            let roles = self.roles.entry(process).or_default();
            let before = *roles;
            roles.client |= role.client;
            roles.server |= role.server;
            if *roles != before {
                let unsure = self.unsure.get(&process).into_iter().flatten();
                self.marks.traces.extend(unsure.copied());
                let chains = self.by_process.get(&process).into_iter().flatten();
                self.marks.chains.extend(chains.copied());
            }
        }
        if fact.half().is_some_and(|half| half.end == End::Unknown) {
            insert(&mut self.unsure, process, fact.trace());
        }
        if fact.sampling.sampled_bit && self.samplers.insert((process, fact.scope.clone())) {
            let chains = self.by_process.get(&process).into_iter().flatten();
            self.marks.endings.extend(chains.copied());
        }
    }

    /// Forgets what was learnt of processes without a live chain, where there are too many.
    pub(super) fn thin_processes(&mut self) {
        let (live, most) = (&self.by_process, self.limits.names);
        fn thin<T, L>(all: &mut BTreeMap<Digest16, T>, live: &BTreeMap<Digest16, L>, most: usize) {
            if all.len() > most {
                all.retain(|process, _| live.contains_key(process));
            }
        }
        thin(&mut self.roles, live, most);
        thin(&mut self.disowned, live, most);
        thin(&mut self.stdio_partners, live, most);
        thin(&mut self.origins, live, most);
        if self.samplers.len() > most {
            self.samplers.retain(|(process, _)| live.contains_key(process));
        }
    }

    /// Takes a trace out of the tables; what its chains told their scopes stays there.
    pub(super) fn forget_trace(&mut self, trace: &TraceId) {
        let Some(entry) = self.traces.remove(trace) else { return };
        self.ages.remove(&(entry.touched, *trace));
        self.bytes = self.bytes.saturating_sub(entry.bytes);
        for fact in &entry.facts {
            remove(&mut self.unsure, &fact.process.key, trace);
        }
        for request in &entry.requests {
            let key = request.key();
            self.retire_chain(key);
            for joined in self.members.remove(&key).into_iter().flatten() {
                self.leaders.remove(&joined.member);
            }
            self.leaders.remove(&key);
            self.phantoms.remove(&key);
        }
        for request in &entry.requests {
            self.forget_indexes(request.key(), request);
        }
        for id in entry.notes {
            self.retire_note(&id);
        }
        for id in entry.unplaced {
            self.drop_unplaced(&id);
        }
        self.marks.unplaced.retain(|id| id.at.trace != *trace);
        self.forget_elders(*trace);
    }
}

/// A record without a trace stands in one of its own, named after what it says. Its span id stays
/// zero, so that nobody takes it for a span that was recorded.
fn placed_apart(fact: Arc<Fact>) -> Arc<Fact> {
    if fact.trace() != TraceId::default() {
        return fact;
    }
    let mut apart = fact.as_ref().clone();
    apart.id.at = SpanRef { trace: TraceId(fact.id.digest.0), span: SpanId::default() };
    Arc::new(apart)
}

/// Whether a fact alone makes its trace one to look at.
fn anchors(fact: &Fact) -> bool {
    let elsewhere = !fact.links.is_empty()
        || fact.evidence.operation_key.is_some()
        || fact.evidence.session.is_some() && fact.evidence.request_id.is_some();
    match &fact.says {
        Says::Half(_) | Says::Started(_) | Says::Notification(_) | Says::Connection(_) => true,
        Says::Tool => false,
        _ => fact.evidence.speaks() && elsewhere,
    }
}
