//! What outlives the process: the facts of live traces, what forgotten ones left behind, and what
//! was said of whom.
//!
//! Promises: derived tables are not in it. An engine that takes it up computes them anew from the
//! same facts; a chain whose verdict comes out as it was last said is not said again, any other
//! gets the next revision. A slice that cannot be read refuses the whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::claims::Claim;
use super::live::{Effect, Engine};
use super::lookback::Remembered;
use super::residue::Residue;
use super::tables::Now;
use crate::correlate::process::Roles;
use crate::correlate::scope::ScopeKey;
use crate::incident::Entry;
use crate::model::fact::{Bone, Fact, FactId, Process, Sighting};
use crate::model::ids::{Arrival, Digest16, Name, Nanos, TraceId};

/// Changes whenever the bytes below mean something else: an older checkpoint is refused then.
pub const FORMAT: u32 = 4;

/// State as a set of facts.
#[derive(Default)]
pub struct Checkpoint {
    remains: Remains,
    /// The newest first.
    traces: Vec<LiveTrace>,
}

/// All but the facts of live traces.
#[derive(Default, Serialize, Deserialize)]
struct Remains {
    roles: Vec<(Digest16, Roles)>,
    samplers: Vec<(Digest16, Name)>,
    disowned: Vec<(Digest16, Name)>,
    newest: Nanos,
    scopes: Vec<(ScopeKey, Residue)>,
    /// Facts of forgotten traces that a scope or a chain still rests on.
    forgotten: Vec<Arc<Fact>>,
    /// The one that was forgotten first comes first.
    buried: Vec<(TraceId, Nanos)>,
    claims: Vec<(Digest16, Claim)>,
    entries: Vec<Entry>,
    said: BTreeSet<Digest16>,
}

#[derive(Serialize, Deserialize)]
struct LiveTrace {
    /// How long ago its newest fact came.
    age: Nanos,
    bones: Vec<Bone>,
    facts: Vec<Arc<Fact>>,
}

#[derive(Serialize, Deserialize)]
enum Slice {
    Remains(Box<Remains>),
    Traces(Vec<LiveTrace>),
}

/// Traces of one slice.
const TRACES: usize = 512;

impl Checkpoint {
    /// The bytes, the most needed first.
    pub fn into_slices(self) -> impl Iterator<Item = Vec<u8>> {
        let mut traces = self.traces.into_iter();
        let more = std::iter::from_fn(move || {
            let slice: Vec<LiveTrace> = traces.by_ref().take(TRACES).collect();
            (!slice.is_empty()).then_some(Slice::Traces(slice))
        });
        let first = Slice::Remains(Box::new(self.remains));
        // Values in memory can always be written to memory.
        std::iter::once(first)
            .chain(more)
            .map(|slice| postcard::to_stdvec(&slice).unwrap_or_default())
    }

    /// Reads the bytes back; `None` where they are not what this version writes.
    pub fn from_slices(slices: &[Vec<u8>]) -> Option<Self> {
        let mut checkpoint = Self::default();
        let mut processes = BTreeSet::new();
        for (number, bytes) in slices.iter().enumerate() {
            match (number, postcard::from_bytes(bytes).ok()?) {
                (0, Slice::Remains(remains)) => checkpoint.remains = *remains,
                (1.., Slice::Traces(mut traces)) => {
                    traces.iter_mut().for_each(|trace| trace.share(&mut processes));
                    checkpoint.traces.extend(traces);
                }
                _ => return None,
            }
        }
        Some(checkpoint)
    }
}

impl LiveTrace {
    /// Records of one process name it once in memory, as they did before.
    fn share(&mut self, known: &mut BTreeSet<Arc<Process>>) {
        let mut share = |process: &mut Arc<Process>| match known.get(process) {
            Some(same) => *process = same.clone(),
            None => drop(known.insert(process.clone())),
        };
        self.bones.iter_mut().for_each(|bone| share(&mut bone.process));
        self.facts.iter_mut().filter_map(Arc::get_mut).for_each(|fact| share(&mut fact.process));
    }
}

impl Engine {
    /// All that an engine must know to go on from here.
    pub fn checkpoint(&self, now: Arrival) -> Checkpoint {
        let tables = &self.tables;
        let age = |touched: Nanos| now.monotonic.saturating_sub(touched);
        let live = tables.ages.iter().rev();
        let mut traces: Vec<LiveTrace> = live
            .filter_map(|(touched, trace)| Some((touched, tables.traces.get(trace)?)))
            .map(|(touched, entry)| LiveTrace {
                age: age(*touched),
                bones: entry.bones.iter().cloned().collect(),
                facts: entry.facts.clone(),
            })
            .collect();
        traces.extend(tables.lookback.items().map(|(at, item)| {
            let (bones, facts) = match item.clone() {
                Remembered::Bone(bone) => (vec![bone], Vec::new()),
                Remembered::Fact(fact) => (Vec::new(), vec![fact]),
            };
            LiveTrace { age: age(at), bones, facts }
        }));
        let scopes = tables.scopes.iter();
        let remains = Remains {
            roles: tables.roles.iter().map(|(process, roles)| (*process, *roles)).collect(),
            samplers: tables.samplers.iter().cloned().collect(),
            disowned: tables.disowned_before(),
            newest: tables.newest,
            scopes: scopes.map(|(key, scope)| (key.clone(), scope.residue())).collect(),
            forgotten: self.forgotten().into_values().collect(),
            buried: self
                .buried
                .iter()
                .filter_map(|trace| Some((*trace, *self.tombstones.get(trace)?)))
                .collect(),
            claims: self.claims_made(),
            entries: self.incidents.entries().cloned().collect(),
            said: self.records_said(),
        };
        Checkpoint { remains, traces }
    }

    /// Facts that scopes and chains hold although their trace was forgotten.
    fn forgotten(&self) -> BTreeMap<FactId, Arc<Fact>> {
        let tables = &self.tables;
        let controls = tables.scopes.values().flat_map(|scope| scope.controls());
        let chains = controls.chain(tables.chains.values().map(|entry| &entry.chain));
        let halves = chains.flat_map(|chain| chain.sides()).flat_map(|side| side.facts.iter());
        let notes = tables.scopes.values().flat_map(|scope| scope.note_facts.values());
        let gone = |fact: &&Arc<Fact>| !tables.traces.contains_key(&fact.trace());
        halves.chain(notes).filter(gone).map(|fact| (fact.id, fact.clone())).collect()
    }

    /// Takes up what an earlier engine knew. To be called once, before anything is seen. Chains
    /// that stand as they were last said come back as [`Effect::Recalled`].
    pub fn restore(&mut self, checkpoint: Checkpoint, now: Arrival) -> Vec<Effect> {
        let Checkpoint { remains, traces } = checkpoint;
        self.tables.roles = remains.roles.into_iter().collect();
        self.tables.samplers = remains.samplers.into_iter().collect();
        self.tables.disown_again(remains.disowned);
        for LiveTrace { age, bones, facts } in traces {
            let sighting = Sighting { bones, facts, held: Vec::new() };
            self.tables.see(sighting, now.monotonic.saturating_sub(age));
        }
        let forgotten: BTreeSet<TraceId> =
            remains.forgotten.iter().map(|fact| fact.trace()).collect();
        let of_forgotten = Sighting { facts: remains.forgotten, ..Sighting::default() };
        self.tables.see(of_forgotten, 0);
        self.tables.newest = self.tables.newest.max(remains.newest);
        self.said = remains.said;
        self.restored = now.monotonic;
        self.recompute(now);
        for (id, claim) in remains.claims {
            self.claim(id, claim, now);
        }
        // They leave as they left before: what they told their scopes stays.
        forgotten.iter().for_each(|trace| self.tables.forget_trace(trace));
        for (key, residue) in remains.scopes {
            self.tables.adopt(&key, residue);
            self.sessions_due.insert(key, 0);
        }
        for (trace, until) in remains.buried {
            self.remember_buried(trace, until);
        }
        self.incidents.restore(remains.entries);
        self.recall(now)
    }

    fn recompute(&mut self, now: Arrival) {
        self.tables.sweep(now.monotonic);
        let event = now.wall.saturating_sub(self.tables.policy.clock_skew);
        self.tables.round(Now { event, live: true });
    }

    /// Chains that are as they were last said are taken for said.
    fn recall(&mut self, now: Arrival) -> Vec<Effect> {
        let mut effects = Vec::new();
        for key in std::mem::take(&mut self.tables.changed) {
            match self.recall_chain(key, &mut effects) {
                true => self.unschedule(key),
                false => self.schedule(key, now.monotonic.saturating_add(self.settle())),
            }
        }
        self.tables.dropped.clear();
        effects
    }
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;
