//! The live engine: arrival time around the tables. A chain is sent `settle` after its last change;
//! held spans leave with it; late facts revise it within `retention`; what is forgotten answers
//! late.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::claims::Claim;
use super::limits::Limits;
use super::records::sort_incidents;
use super::tables::{Now, Tables};
use crate::catalog::reference::References;
use crate::correlate::scope::ScopeKey;
use crate::incident::{Entry, fold};
use crate::model::case::Ending;
use crate::model::fact::Sighting;
use crate::model::findings::{Code, Finding};
use crate::model::ids::{Arrival, Digest16, Name, Nanos, Position, SpanId, SpanRef, TraceId};
use crate::model::policy::Policy;
use crate::model::record::*;
use crate::model::words::*;

/// What the engine wants done.
#[derive(Clone, PartialEq, Debug)]
pub enum Effect {
    /// A new revision; revision 1 is the first.
    Verdict(Box<Verdict>),
    /// A revision that an earlier process has said already.
    Recalled(Box<Verdict>),
    Session(Session),
    Drift(Drift),
    Incident(Incident),
    /// A held span may leave: enriched by the latest verdict of a chain, or as it came.
    Release {
        span: SpanRef,
        position: Position,
        with: Option<Digest16>,
    },
    /// State was dropped at a limit. The reason is also the metric's label.
    Evicted {
        reason: &'static str,
        count: u64,
    },
    /// Facts for a chain that was forgotten: forwarded, counted, never judged as new.
    Late {
        count: u64,
    },
}

struct Held {
    position: Position,
    due: Nanos,
}

/// A chain's last revision.
pub(super) struct Sent {
    pub verdict: Verdict,
    pub key: SpanRef,
}

pub struct Engine {
    pub(super) tables: Tables,
    held: BTreeMap<SpanRef, Held>,
    held_due: BTreeSet<(Nanos, SpanRef)>,
    /// Chains to send, by when.
    pending: BTreeMap<SpanRef, Nanos>,
    pending_due: BTreeSet<(Nanos, SpanRef)>,
    pub(super) sent: BTreeMap<Digest16, Sent>,
    /// Which id each chain was last sent under.
    pub(super) sent_as: BTreeMap<SpanRef, Digest16>,
    pub(super) sessions: BTreeMap<ScopeKey, Session>,
    pub(super) sessions_due: BTreeMap<ScopeKey, Nanos>,
    pub(super) drifts: BTreeMap<(Name, Name, Name, Option<Name>), Drift>,
    pub(super) entries: BTreeMap<Name, BTreeMap<Digest16, Entry>>,
    pub(super) incidents: BTreeMap<(Name, Name, Reason, Option<Name>), Incident>,
    pub(super) servers_due: BTreeSet<Name>,
    /// What an earlier process said of chains that have not been judged again.
    pub(super) claims: BTreeMap<Digest16, Claim>,
    /// Records that an earlier process sent, by their digest.
    pub(super) said: BTreeSet<Digest16>,
    /// When these two were taken up.
    pub(super) restored: Nanos,
    swept: Nanos,
    recorded: Nanos,
    tombstones: BTreeSet<TraceId>,
    pub(super) buried: VecDeque<TraceId>,
    late: u64,
}

/// Incident entries kept of one server, the newest.
const ENTRIES: usize = 10_000;
/// Traces remembered as forgotten.
const TOMBSTONES: usize = 100_000;

impl Engine {
    pub fn new(policy: Arc<Policy>, limits: Limits) -> Self {
        Self {
            tables: Tables::new(policy, limits),
            held: BTreeMap::new(),
            held_due: BTreeSet::new(),
            pending: BTreeMap::new(),
            pending_due: BTreeSet::new(),
            sent: BTreeMap::new(),
            sent_as: BTreeMap::new(),
            sessions: BTreeMap::new(),
            sessions_due: BTreeMap::new(),
            drifts: BTreeMap::new(),
            entries: BTreeMap::new(),
            incidents: BTreeMap::new(),
            servers_due: BTreeSet::new(),
            claims: BTreeMap::new(),
            said: BTreeSet::new(),
            restored: 0,
            swept: 0,
            recorded: 0,
            tombstones: BTreeSet::new(),
            buried: VecDeque::new(),
            late: 0,
        }
    }

    /// Takes what one export showed.
    pub fn see(&mut self, position: Position, mut sighting: Sighting, now: Arrival) {
        self.late += self.bury_late(&mut sighting);
        let due = now.monotonic.saturating_add(self.settle());
        for held in &sighting.held {
            if let Some(was) = self.held.insert(held.at, Held { position, due }) {
                self.held_due.remove(&(was.due, held.at));
            }
            self.held_due.insert((due, held.at));
        }
        self.tables.see(sighting, now.monotonic);
    }

    pub(super) fn settle(&self) -> Nanos {
        self.tables.policy.settle
    }

    /// Takes facts of forgotten traces out of a sighting; how many there were.
    fn bury_late(&self, sighting: &mut Sighting) -> u64 {
        if self.tombstones.is_empty() {
            return 0;
        }
        let before = sighting.facts.len();
        sighting.facts.retain(|fact| !self.tombstones.contains(&fact.trace()));
        sighting.bones.retain(|bone| !self.tombstones.contains(&bone.at.trace));
        (before - sighting.facts.len()) as u64
    }

    /// Judges what changed, sends what has settled, releases, forgets. Call it at least twice in a
    /// `settle`.
    pub fn tick(&mut self, now: Arrival) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.judge(now);
        while let Some((due, key)) = self.pending_due.first().copied() {
            if due > now.monotonic {
                break;
            }
            self.unschedule(key);
            self.send(key, false, &mut effects);
        }
        self.release_due(now, &mut effects);
        self.send_records(now, false, &mut effects);
        self.forget(now, &mut effects);
        if self.late > 0 {
            effects.push(Effect::Late { count: std::mem::take(&mut self.late) });
        }
        effects
    }

    /// Shutdown: everything leaves with what is known. Open requests are `partial`, unless the next
    /// process `goes_on` with them.
    pub fn drain(&mut self, goes_on: bool, now: Arrival) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.judge(now);
        let all: Vec<SpanRef> = self.tables.chains.keys().copied().collect();
        for key in all {
            self.unschedule(key);
            self.send(key, !goes_on, &mut effects);
        }
        for (span, held) in std::mem::take(&mut self.held) {
            let with = self.names(span);
            effects.push(Effect::Release { span, position: held.position, with });
        }
        self.held_due.clear();
        self.send_records(now, true, &mut effects);
        effects
    }

    /// Another policy for what is first seen from now on.
    pub fn reload(&mut self, policy: Arc<Policy>) {
        self.tables.reload(policy);
    }

    /// Open chains, for the gauge.
    pub fn open_requests(&self) -> u64 {
        self.tables.timers.len() as u64
    }

    /// What every server's tools were read to be, if that is another than when last asked.
    pub fn moved_references(&mut self) -> Option<BTreeMap<Name, Arc<References>>> {
        let moved = std::mem::take(&mut self.tables.references_moved);
        moved.then(|| self.tables.references.clone())
    }

    /// The latest revision of a chain.
    pub fn latest(&self, id: &Digest16) -> Option<&Verdict> {
        self.sent.get(id).map(|sent| &sent.verdict)
    }

    fn judge(&mut self, now: Arrival) {
        self.tables.sweep(now.monotonic);
        let wall = now.wall.saturating_sub(self.tables.policy.clock_skew);
        self.tables.round(Now { event: wall, live: true });
        for key in std::mem::take(&mut self.tables.changed) {
            self.schedule(key, now.monotonic.saturating_add(self.settle()));
        }
        // A request that was sent and is none any more: it has merged into another.
        for key in std::mem::take(&mut self.tables.dropped) {
            if self.sent_as.contains_key(&key) && !self.tables.chains.contains_key(&key) {
                self.schedule(key, now.monotonic.saturating_add(self.settle()));
            }
        }
    }

    pub(super) fn schedule(&mut self, key: SpanRef, due: Nanos) {
        self.unschedule(key);
        self.pending.insert(key, due);
        self.pending_due.insert((due, key));
    }

    pub(super) fn unschedule(&mut self, key: SpanRef) {
        if let Some(was) = self.pending.remove(&key) {
            self.pending_due.remove(&(was, key));
        }
    }

    /// Sends a chain's verdict if it says something new, and lets its spans go.
    fn send(&mut self, key: SpanRef, last: bool, effects: &mut Vec<Effect>) {
        let Some(entry) = self.tables.chains.get(&key) else { return self.close(key, effects) };
        let Some(verdict) = entry.verdict.as_deref() else { return };
        let mut verdict = verdict.clone();
        if last && entry.ending == Some(Ending::Open) && verdict.state == State::Working {
            verdict.lifecycle = Lifecycle::Partial;
        }
        let scope = entry.scope.clone();
        let incident = self.tables.incident_entry(entry);
        let (id, server) = (verdict.id, verdict.server.clone());
        if self.sent_as.get(&key).is_some_and(|known| *known != id) {
            self.close(key, effects);
        }
        let claimed = self.claims.contains_key(&id);
        let news = self.number(&mut verdict);
        if !news && !claimed {
            return;
        }
        self.sent.insert(id, Sent { verdict: verdict.clone(), key });
        self.sent_as.insert(key, id);
        let verdict = Box::new(verdict);
        effects.push(if news { Effect::Verdict(verdict) } else { Effect::Recalled(verdict) });
        self.release_chain(key, id, effects);
        self.sessions_due.entry(scope).or_insert(0);
        self.note_incident(server, id, incident);
    }

    /// Two chains that were sent turned out to be one: the one that is gone says so, once.
    fn close(&mut self, key: SpanRef, effects: &mut Vec<Effect>) {
        let Some(id) = self.sent_as.remove(&key) else { return };
        let stands = |at: &SpanRef| self.tables.chains.contains_key(at);
        let joined = self.tables.chain_of(key).filter(stands);
        let survivor = joined.or_else(|| self.tables.call_behind(key));
        let survivor = survivor.and_then(|key| self.tables.chains.get(&key));
        let survivor = survivor.and_then(|entry| entry.verdict.as_deref());
        let merged_into = survivor.map(|verdict| verdict.id);
        let sent = self.sent.get(&id).filter(|sent| sent.key == key);
        let mut verdict = match (sent, self.claims.get(&id), survivor) {
            (_, Some(claim), _) if claim.closes => return,
            (Some(sent), ..) => sent.verdict.clone(),
            // What an earlier process said is known by name alone: the survivor speaks for it.
            (None, Some(_), Some(survivor)) => {
                let mut verdict = survivor.clone();
                (verdict.id, verdict.operator.span) = (id, key);
                verdict
            }
            (None, ..) => return,
        };
        if merged_into == Some(id) || sent.is_some() && verdict.lifecycle == Lifecycle::Superseded {
            return;
        }
        verdict.lifecycle = Lifecycle::Superseded;
        verdict.reason = Some(Reason::Superseded);
        verdict.operator.merged_into = merged_into;
        let news = self.number(&mut verdict);
        let server = verdict.server.clone();
        self.sent.insert(id, Sent { verdict: verdict.clone(), key });
        let verdict = Box::new(verdict);
        effects.push(if news { Effect::Verdict(verdict) } else { Effect::Recalled(verdict) });
        self.note_incident(server, id, None);
    }

    fn note_incident(&mut self, server: Name, id: Digest16, entry: Option<Entry>) {
        let entries = self.entries.entry(server.clone()).or_default();
        match entry {
            Some(entry) => drop(entries.insert(id, entry)),
            None => drop(entries.remove(&id)),
        }
        if entries.len() > ENTRIES {
            let oldest = entries.iter().min_by_key(|(id, entry)| (entry.time, **id));
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                entries.remove(&oldest);
            }
        }
        self.servers_due.insert(server);
    }

    /// The spans of a chain: the two that its record names leave enriched, twins as they came.
    fn release_chain(&mut self, key: SpanRef, id: Digest16, effects: &mut Vec<Effect>) {
        let Some(entry) = self.tables.chains.get(&key) else { return };
        let mut spans = Vec::new();
        for side in entry.chain.sides() {
            let named = side.at();
            spans.push((named, true));
            let twins = side.facts.iter().map(|fact| fact.id.at).filter(|at| *at != named);
            spans.extend(twins.map(|at| (at, false)));
        }
        for (span, named) in spans {
            if let Some(held) = self.held.remove(&span) {
                self.held_due.remove(&(held.due, span));
                let with = named.then_some(id);
                effects.push(Effect::Release { span, position: held.position, with });
            }
        }
    }

    /// The id under which a span's chain was sent, if its record names the span.
    fn names(&self, span: SpanRef) -> Option<Digest16> {
        let key = self.tables.chain_of(span)?;
        let entry = self.tables.chains.get(&key)?;
        let named = entry.chain.sides().any(|side| side.at() == span);
        self.sent_as.get(&key).copied().filter(|_| named)
    }

    /// Held spans whose time is up and whose chain is not about to be sent.
    fn release_due(&mut self, now: Arrival, effects: &mut Vec<Effect>) {
        while let Some((due, span)) = self.held_due.first().copied() {
            if due > now.monotonic {
                break;
            }
            self.held_due.remove(&(due, span));
            let waits = self.tables.chain_of(span).and_then(|key| self.pending.get(&key)).copied();
            match (waits, self.held.remove(&span)) {
                (Some(later), Some(held)) if later > now.monotonic => {
                    self.held_due.insert((later, span));
                    self.held.insert(span, Held { due: later, ..held });
                }
                (_, Some(held)) => {
                    let with = self.names(span);
                    effects.push(Effect::Release { span, position: held.position, with });
                }
                (_, None) => {}
            }
        }
    }

    fn send_records(&mut self, now: Arrival, all: bool, effects: &mut Vec<Effect>) {
        let settle = self.settle();
        for due in self.sessions_due.values_mut().filter(|due| **due == 0) {
            *due = now.monotonic.saturating_add(settle);
        }
        let ready: Vec<ScopeKey> = self
            .sessions_due
            .iter()
            .filter(|(_, due)| all || **due <= now.monotonic)
            .map(|(key, _)| key.clone())
            .collect();
        // Records of scopes and servers are computed at most twice in a settle.
        if ready.is_empty() || !all && now.monotonic < self.recorded.saturating_add(settle / 2) {
            return;
        }
        self.recorded = now.monotonic;
        let collisions = self.tables.collisions();
        for key in ready {
            self.sessions_due.remove(&key);
            let Some(session) = self.tables.session(&key, &collisions) else { continue };
            let told =
                |session: &Session| (session.state, session.convergence, session.findings.clone());
            if self.sessions.get(&key).is_none_or(|known| told(known) != told(&session)) {
                let said = self.said.remove(&digest_of(&session));
                effects.extend((!said).then(|| Effect::Session(session.clone())));
            }
            self.sessions.insert(key, session);
        }
        for drift in self.tables.drifts() {
            let key = (
                drift.server.clone(),
                drift.tool.clone(),
                drift.old_digest.clone(),
                drift.new_digest.clone(),
            );
            let said = self.said.remove(&digest_of(&drift));
            if self.drifts.insert(key, drift.clone()).is_none() && !said {
                effects.push(Effect::Drift(drift));
            }
        }
        self.send_incidents(now, effects);
    }

    fn send_incidents(&mut self, now: Arrival, effects: &mut Vec<Effect>) {
        let quiet = self.tables.policy.incident_quiet;
        let mut found = Vec::new();
        for server in std::mem::take(&mut self.servers_due) {
            let entries: Vec<Entry> = self
                .entries
                .get(&server)
                .into_iter()
                .flat_map(|all| all.values().cloned())
                .collect();
            found.extend(fold(&entries, now.wall, quiet));
        }
        for incident in sort_incidents(found) {
            let key = (
                incident.server.clone(),
                incident.layer.clone(),
                incident.reason,
                incident.discriminator.clone(),
            );
            let same = self.incidents.get(&key) == Some(&incident);
            if !same {
                let said = self.said.remove(&digest_of(&incident));
                self.incidents.insert(key, incident.clone());
                effects.extend((!said).then_some(Effect::Incident(incident)));
            }
        }
    }

    /// Drops traces `retention` after their last fact, and the least recently touched ones where
    /// memory runs out; an endless trace before others.
    fn forget(&mut self, now: Arrival, effects: &mut Vec<Effect>) {
        let oldest = now.monotonic.saturating_sub(self.tables.policy.retention);
        while let Some((touched, trace)) = self.tables.ages.first().copied() {
            if touched >= oldest || now.monotonic <= self.tables.policy.retention {
                break;
            }
            self.bury(trace, false, effects);
        }
        let mut evicted = self.bury_endless(effects);
        while self.tables.bytes > self.tables.limits.facts {
            let Some((_, trace)) = self.tables.ages.first().copied() else { break };
            self.bury(trace, true, effects);
            evicted += 1;
        }
        if evicted > 0 {
            effects.push(Effect::Evicted { reason: "facts", count: evicted });
        }
        if now.monotonic >= self.swept.saturating_add(self.settle()) {
            self.swept = now.monotonic;
            self.tables.lookback.forget(oldest);
            self.thin(effects);
        }
    }

    fn bury_endless(&mut self, effects: &mut Vec<Effect>) -> u64 {
        let most = self.tables.limits.facts_per_trace;
        let endless: Vec<TraceId> = self
            .tables
            .touched
            .iter()
            .filter(|trace| self.tables.traces.get(trace).is_some_and(|e| e.facts.len() > most))
            .copied()
            .collect();
        self.tables.touched.clear();
        for trace in &endless {
            self.bury(*trace, true, effects);
        }
        endless.len() as u64
    }

    /// Bounds of what outlives traces: scopes without chains, incident entries, process roles.
    fn thin(&mut self, effects: &mut Vec<Effect>) {
        let limits = self.tables.limits;
        let mut idle: Vec<(Nanos, ScopeKey)> = Vec::new();
        if self.tables.scopes.len() > limits.idle_scopes {
            let without = self.tables.scopes.iter().filter(|(_, scope)| scope.is_empty());
            idle.extend(without.map(|(key, scope)| (scope.newest, key.clone())));
            idle.sort();
            let over = idle.len().saturating_sub(limits.idle_scopes);
            idle.truncate(over);
        }
        for (_, key) in &idle {
            self.tables.drop_scope(key);
            self.sessions.remove(key);
            self.sessions_due.remove(key);
        }
        if !idle.is_empty() {
            effects.push(Effect::Evicted { reason: "scopes", count: idle.len() as u64 });
        }
        self.tables.thin_processes();
        self.thin_incidents(effects);
        if self.swept >= self.restored.saturating_add(self.tables.policy.retention) {
            // Whoever was not judged again by now never will be.
            self.claims.clear();
            self.said.clear();
        }
    }

    /// The servers that were quiet longest leave first.
    fn thin_incidents(&mut self, effects: &mut Vec<Effect>) {
        let total: usize = self.entries.values().map(BTreeMap::len).sum();
        if total <= self.tables.limits.incidents {
            return;
        }
        let newest = |entries: &BTreeMap<Digest16, Entry>| {
            entries.values().map(|entry| entry.time).max().unwrap_or(0)
        };
        let mut servers: Vec<(Nanos, Name)> =
            self.entries.iter().map(|(name, all)| (newest(all), name.clone())).collect();
        servers.sort();
        servers.truncate(servers.len().div_ceil(4));
        for (_, server) in &servers {
            self.entries.remove(server);
            self.incidents.retain(|(of, ..), _| of != server);
        }
        effects.push(Effect::Evicted { reason: "incidents", count: servers.len() as u64 });
    }

    /// A trace leaves the tables. What was not sent yet is sent now, as far as it is known.
    fn bury(&mut self, trace: TraceId, evicted: bool, effects: &mut Vec<Effect>) {
        let keys: Vec<SpanRef> = self
            .tables
            .traces
            .get(&trace)
            .into_iter()
            .flat_map(|entry| entry.requests.keys().copied())
            .collect();
        for key in &keys {
            if evicted
                && let Some(entry) = self.tables.chains.get_mut(key)
                && let Some(verdict) = &entry.verdict
            {
                let mut partial = verdict.as_ref().clone();
                partial.findings.push(Finding::new(Code::Evicted, vec![key.span]));
                partial.findings.sort();
                if entry.ending == Some(Ending::Open) {
                    partial.lifecycle = Lifecycle::Partial;
                }
                entry.verdict = Some(Arc::new(partial));
            }
            if self.pending.contains_key(key) || evicted {
                self.unschedule(*key);
                self.send(*key, false, effects);
            }
            if let Some(id) = self.sent_as.remove(key) {
                self.sent.remove(&id);
            }
        }
        let (first, last) = (SpanId([0; 8]), SpanId([0xff; 8]));
        let of_trace = SpanRef { trace, span: first }..=SpanRef { trace, span: last };
        let held: Vec<SpanRef> = self.held.range(of_trace).map(|(span, _)| *span).collect();
        for span in held {
            if let Some(held) = self.held.remove(&span) {
                self.held_due.remove(&(held.due, span));
                effects.push(Effect::Release { span, position: held.position, with: None });
            }
        }
        self.tables.forget_trace(&trace);
        self.remember_buried(trace);
    }

    pub(super) fn remember_buried(&mut self, trace: TraceId) {
        if self.tombstones.insert(trace) {
            self.buried.push_back(trace);
        }
        while self.buried.len() > TOMBSTONES {
            if let Some(oldest) = self.buried.pop_front() {
                self.tombstones.remove(&oldest);
            }
        }
    }
}
