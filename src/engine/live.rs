//! The live engine: arrival time around the tables. A chain is sent `settle` after its last change;
//! held spans leave with it; late facts revise it within `retention`; what is forgotten answers
//! late.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::claims::Claim;
use super::incidents::Incidents;
use super::limits::Limits;
use super::tables::{Now, Tables};
use crate::catalog::reference::References;
use crate::correlate::scope::ScopeKey;
use crate::model::case::Ending;
use crate::model::fact::Sighting;
use crate::model::ids::{Arrival, Digest16, Name, Nanos, Position, SpanRef, TraceId};
use crate::model::policy::Policy;
use crate::model::record::*;
use crate::model::words::*;

/// What the engine wants done.
#[derive(Clone, PartialEq, Debug)]
pub enum Effect {
    /// A new revision; revision 1 is the first.
    Verdict(Arc<Verdict>),
    /// A revision that an earlier process has said already.
    Recalled(Arc<Verdict>),
    Session(Session),
    Drift(Drift),
    Incident(Incident),
    /// An incident as an earlier process has told it already.
    RecalledIncident(Incident),
    /// A held span may leave: enriched by the latest verdict of its chain, or as it came.
    Release {
        span: SpanRef,
        position: Position,
        with: Option<Arc<Verdict>>,
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

pub(super) struct Held {
    pub position: Position,
    pub due: Nanos,
}

/// A chain's last revision.
pub(super) struct Sent {
    pub verdict: Arc<Verdict>,
    pub key: SpanRef,
    /// Of the verdict: taken once, asked for by every checkpoint.
    pub digest: Digest16,
}

impl Sent {
    pub fn new(verdict: &Arc<Verdict>, key: SpanRef) -> Self {
        Self { verdict: verdict.clone(), key, digest: verdict.digest() }
    }
}

/// Drifts of one server by tool, old and new digest: the digest of each as it was last found.
type Drifts = BTreeMap<(Name, Name, Option<Name>), Digest16>;

pub struct Engine {
    pub(super) tables: Tables,
    pub(super) held: BTreeMap<SpanRef, Held>,
    pub(super) held_due: BTreeSet<(Nanos, SpanRef)>,
    /// Chains to send, by when.
    pub(super) pending: BTreeMap<SpanRef, Nanos>,
    pub(super) pending_due: BTreeSet<(Nanos, SpanRef)>,
    pub(super) sent: BTreeMap<Digest16, Sent>,
    /// Which id each chain was last sent under.
    pub(super) sent_as: BTreeMap<SpanRef, Digest16>,
    pub(super) sessions: BTreeMap<ScopeKey, Session>,
    pub(super) sessions_due: BTreeMap<ScopeKey, Nanos>,
    /// Drifts that were told, by server.
    pub(super) drifts: BTreeMap<Name, Drifts>,
    pub(super) incidents: Incidents,
    /// What an earlier process said of chains that have not been judged again.
    pub(super) claims: BTreeMap<Digest16, Claim>,
    /// Records that an earlier process sent, by their digest.
    pub(super) said: BTreeSet<Digest16>,
    /// When these two were taken up.
    pub(super) restored: Nanos,
    pub(super) swept: Nanos,
    pub(super) recorded: Nanos,
    /// Forgotten traces, and until when what began in them is late.
    pub(super) tombstones: BTreeMap<TraceId, Nanos>,
    /// The same in the order in which they were forgotten.
    pub(super) buried: VecDeque<TraceId>,
    pub(super) late: u64,
}

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
            incidents: Incidents::default(),
            claims: BTreeMap::new(),
            said: BTreeSet::new(),
            restored: 0,
            swept: 0,
            recorded: 0,
            tombstones: BTreeMap::new(),
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

    /// Takes what belongs to forgotten requests out of a sighting; how many facts there were. A
    /// trace may go on after a pause: what began after all that was forgotten of it is not late.
    fn bury_late(&self, sighting: &mut Sighting) -> u64 {
        if self.tombstones.is_empty() {
            return 0;
        }
        let before = sighting.facts.len();
        let late = |trace: &TraceId, began: Nanos| {
            self.tombstones.get(trace).is_some_and(|until| began <= *until)
        };
        sighting.facts.retain(|fact| !late(&fact.trace(), fact.start));
        sighting.bones.retain(|bone| !late(&bone.at.trace, bone.start));
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
            let with = self.said_of(span);
            effects.push(Effect::Release { span, position: held.position, with });
        }
        self.held_due.clear();
        self.send_records(now, true, &mut effects);
        effects
    }

    /// Another policy for what is first seen from now on.
    pub fn reload(&mut self, policy: Arc<Policy>) {
        self.tables.reload(policy);
        self.incidents.touch();
    }

    /// Open chains, for the gauge.
    pub fn open_requests(&self) -> u64 {
        self.tables.timers.len() as u64
    }

    /// What counts against the limit of facts, in bytes, by estimate.
    pub fn bytes(&self) -> usize {
        self.tables.all_bytes()
    }

    /// What every server's tools were read to be, if that is another than when last asked.
    pub fn moved_references(&mut self) -> Option<BTreeMap<Name, Arc<References>>> {
        let moved = std::mem::take(&mut self.tables.references_moved);
        moved.then(|| self.tables.references.clone())
    }

    /// Incidents that are open or recovering, if they are not what they were when last asked.
    pub fn moved_incidents(&mut self) -> Option<impl Iterator<Item = &Incident>> {
        self.incidents.moved()
    }

    /// [`Verdict::digest`] of a revision that was just sent.
    pub fn digest(&self, verdict: &Verdict) -> Digest16 {
        let last = self.sent.get(&verdict.id);
        let last = last.filter(|sent| sent.verdict.revision == verdict.revision);
        last.map_or_else(|| verdict.digest(), |sent| sent.digest)
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
    pub(super) fn send(&mut self, key: SpanRef, last: bool, effects: &mut Vec<Effect>) {
        let Some(entry) = self.tables.chains.get(&key) else { return self.close(key, effects) };
        let Some(mut verdict) = entry.verdict.clone() else { return };
        if last && entry.ending == Some(Ending::Open) && verdict.state == State::Working {
            Arc::make_mut(&mut verdict).lifecycle = Lifecycle::Partial;
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
        self.sent.insert(id, Sent::new(&verdict, key));
        self.sent_as.insert(key, id);
        let said = verdict.clone();
        effects.push(if news { Effect::Verdict(verdict) } else { Effect::Recalled(verdict) });
        self.release_chain(key, &said, effects);
        self.sessions_due.entry(scope).or_insert(0);
        self.incidents.note(server, id, incident);
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
            (Some(sent), ..) => sent.verdict.as_ref().clone(),
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
        let mut verdict = Arc::new(verdict);
        let news = self.number(&mut verdict);
        let server = verdict.server.clone();
        self.sent.insert(id, Sent::new(&verdict, key));
        effects.push(if news { Effect::Verdict(verdict) } else { Effect::Recalled(verdict) });
        self.incidents.note(server, id, None);
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
        let early = !all && now.monotonic < self.recorded.saturating_add(settle / 2);
        if (ready.is_empty() || early) && !self.incidents.waits(now.wall) {
            return;
        }
        self.recorded = now.monotonic;
        for key in ready {
            self.sessions_due.remove(&key);
            let Some(session) = self.tables.session(&key) else { continue };
            let told =
                |session: &Session| (session.state, session.convergence, session.findings.clone());
            if self.sessions.get(&key).is_none_or(|known| told(known) != told(&session)) {
                let said = self.said.remove(&digest_of(&session));
                effects.extend((!said).then(|| Effect::Session(session.clone())));
            }
            self.sessions.insert(key, session);
        }
        let (moved, drifts) = self.tables.moved_drifts();
        // What a server's references no longer show is not remembered as told.
        let told = moved.into_iter().filter_map(|server| self.drifts.remove_entry(&server));
        let told: BTreeMap<Name, Drifts> = told.collect();
        for drift in drifts {
            let key = (drift.tool.clone(), drift.old_digest.clone(), drift.new_digest.clone());
            let digest = digest_of(&drift);
            let of_server = self.drifts.entry(drift.server.clone()).or_default();
            let again = of_server.insert(key.clone(), digest).is_some();
            let told = told.get(&drift.server).is_some_and(|told| told.contains_key(&key));
            if !self.said.remove(&digest) && !told && !again {
                effects.push(Effect::Drift(drift));
            }
        }
        let quiet = self.tables.policy.incident_quiet;
        self.incidents.changed(now.wall, quiet, &mut self.said, effects);
    }
}
