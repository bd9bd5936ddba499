//! The tables and what marks them. Only data and small look-ups stand here; each stratum has a file
//! of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::crossings::Crossings;
use super::few::Few;
use super::history::Kept;
use super::interned::Interned;
use super::limits::Limits;
use super::listed::Listed;
use super::lookback::LookBack;
use super::reload::Elder;
use super::scope_view::ScopeView;
use super::scopes::ScopeEntry;
use crate::catalog::reference::References;
use crate::correlate::ancestry::Bones;
use crate::correlate::chain::Chain;
use crate::correlate::join::Joined;
use crate::correlate::operation::{Operation, OperationKey};
use crate::correlate::process::Roles;
use crate::correlate::scope::ScopeKey;
use crate::correlate::trace::TraceRequest;
use crate::model::case::{Ending, Exchange};
use crate::model::fact::*;
use crate::model::ids::{Digest16, Name, Nanos, SpanId, SpanRef, TraceId};
use crate::model::policy::{Context, ContractMode, Pins, Policy, Rule};
use crate::model::record::Verdict;

/// Facts of one live trace and what the request stratum made of them.
#[derive(Default)]
pub struct TraceEntry {
    pub bones: Bones,
    /// By id.
    pub facts: Vec<Arc<Fact>>,
    /// By key.
    pub requests: Vec<Arc<TraceRequest>>,
    /// Request by span, sorted: halves, twins, wrappers.
    pub owner: Vec<(SpanId, SpanRef)>,
    pub models: Vec<(Nanos, Arc<Definitions>)>,
    pub notes: BTreeSet<FactId>,
    pub unplaced: BTreeSet<FactId>,
    /// Monotonic arrival of the newest fact.
    pub touched: Nanos,
    /// What its facts and bones take, by estimate.
    pub bytes: usize,
}

impl TraceEntry {
    /// The request that a span belongs to.
    pub fn owner(&self, span: SpanId) -> Option<SpanRef> {
        let at = self.owner.binary_search_by_key(&span, |(span, _)| *span).ok()?;
        self.owner.get(at).map(|(_, request)| *request)
    }
}

/// By what halves of different traces may find each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Anchor {
    Session(Name),
    Process(Digest16),
}

pub type IdKey = (Anchor, Name);
/// (method, last word of the tool).
pub type ToolKey = (Name, String);

/// Requests that an id may join, by what they lack.
#[derive(Default)]
pub struct SameId {
    /// Both ends are known, and it ended.
    pub whole: Few<SpanRef>,
    /// Everything else.
    pub loose: Few<SpanRef>,
    /// Of all: those that have not ended, those with one end, on either, and listings without
    /// anything above them.
    pub begun: usize,
    pub askers: usize,
    pub answerers: usize,
    pub listings: usize,
}

impl SameId {
    /// Whether any two of them could be joined at all.
    pub fn may_join(&self) -> bool {
        self.begun > 0 || self.askers > 0 && self.answerers > 0
    }

    pub fn all(&self) -> impl Iterator<Item = &SpanRef> {
        self.whole.iter().chain(self.loose.iter())
    }

    pub fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.loose.is_empty()
    }
}

/// Lone halves that do the same.
#[derive(Default)]
pub struct SameTool {
    pub askers: Few<SpanRef>,
    pub answerers: Few<SpanRef>,
}

/// A notification and the scopes it speaks to.
pub struct NoteEntry {
    pub fact: Arc<Fact>,
    /// The request it stands under in its trace.
    pub near: Option<SpanRef>,
    pub scopes: BTreeSet<ScopeKey>,
}

/// A chain with everything derived from it.
pub struct ChainEntry {
    pub chain: Arc<Chain>,
    pub scope: ScopeKey,
    pub ending: Option<Ending>,
    /// From how it ended until it is judged, within one round.
    pub exchange: Option<Box<Exchange>>,
    pub operation_keys: Vec<OperationKey>,
    /// By itself, before its operation's other attempts are looked at.
    pub alone: Option<Arc<Verdict>>,
    pub verdict: Option<Arc<Verdict>>,
}

#[derive(Default)]
pub struct OperationEntry {
    pub members: BTreeSet<SpanRef>,
    pub operations: Vec<Operation>,
}

/// Keys whose inputs changed, by stratum.
#[derive(Default)]
pub struct Marks {
    pub traces: BTreeSet<TraceId>,
    pub ids: BTreeSet<IdKey>,
    pub tools: BTreeSet<ToolKey>,
    pub chains: BTreeSet<SpanRef>,
    pub notes: BTreeSet<FactId>,
    pub scopes: BTreeSet<ScopeKey>,
    pub unplaced: BTreeSet<FactId>,
    pub endings: BTreeSet<SpanRef>,
    pub operations: BTreeSet<OperationKey>,
    pub references: BTreeSet<(Name, Context)>,
    pub verdicts: BTreeSet<SpanRef>,
}

pub struct Tables {
    /// In force for what is seen from now on.
    pub policy: Arc<Policy>,
    /// By request: policies that were in force when it was first seen, and are no more.
    pub elders: BTreeMap<SpanRef, Elder>,
    /// How often the policy changed.
    pub reloads: u64,
    /// Evidence rules of every policy so far, by the numbers that facts carry.
    pub rules: BTreeMap<u16, Rule>,
    pub limits: Limits,
    pub marks: Marks,
    pub traces: BTreeMap<TraceId, Box<TraceEntry>>,
    /// Live traces by when they were last touched.
    pub ages: BTreeSet<(Nanos, TraceId)>,
    /// What the facts and bones of live traces take, by estimate.
    pub bytes: usize,
    /// What scopes keep of forgotten traces, when it was last counted.
    pub kept: Kept,
    pub roles: BTreeMap<Digest16, Roles>,
    /// Traces with records of a process that do not say which end they saw.
    pub unsure: BTreeMap<Digest16, BTreeSet<TraceId>>,
    pub ids: BTreeMap<IdKey, SameId>,
    pub tools: BTreeMap<ToolKey, SameTool>,
    pub phantoms: BTreeMap<SpanRef, BTreeSet<IdKey>>,
    pub id_joins: BTreeMap<IdKey, Vec<Joined>>,
    pub tool_joins: BTreeMap<ToolKey, Vec<Joined>>,
    /// Joins by their member; the least one counts.
    pub leaders: BTreeMap<SpanRef, BTreeSet<Joined>>,
    pub members: BTreeMap<SpanRef, BTreeSet<Joined>>,
    pub chains: BTreeMap<SpanRef, Box<ChainEntry>>,
    pub by_process: BTreeMap<Digest16, BTreeSet<SpanRef>>,
    /// In which scopes a process has how many halves.
    pub process_scopes: BTreeMap<Digest16, BTreeMap<ScopeKey, usize>>,
    /// Whom a process was seen to talk to, with the chains that show it.
    pub stdio_partners: BTreeMap<Digest16, BTreeMap<Digest16, BTreeSet<SpanRef>>>,
    pub origins: BTreeMap<Digest16, BTreeMap<Name, BTreeSet<SpanRef>>>,
    /// Session ids that a process was seen to make up, with the chains that show it.
    pub disowned: BTreeMap<Digest16, BTreeMap<Name, BTreeSet<SpanRef>>>,
    pub notes: BTreeMap<FactId, NoteEntry>,
    pub notes_by_trace: BTreeMap<TraceId, BTreeSet<FactId>>,
    pub notes_by_process: BTreeMap<Digest16, BTreeSet<FactId>>,
    pub scopes: BTreeMap<ScopeKey, ScopeEntry>,
    pub scopes_by_server: BTreeMap<Name, BTreeSet<ScopeKey>>,
    /// Evidence that other traces must place, and where it was placed.
    pub unplaced: BTreeMap<FactId, Arc<Fact>>,
    pub linked: BTreeMap<TraceId, BTreeSet<FactId>>,
    pub placed: BTreeMap<SpanRef, BTreeSet<FactId>>,
    pub ambiguous: BTreeMap<SpanRef, BTreeSet<FactId>>,
    pub placed_on: BTreeMap<FactId, BTreeSet<SpanRef>>,
    /// Evidence by operation key.
    pub keyed: BTreeMap<Digest16, BTreeSet<FactId>>,
    /// Evidence by the request id it names.
    pub waiting: BTreeMap<Name, BTreeSet<FactId>>,
    pub operations: BTreeMap<OperationKey, OperationEntry>,
    pub interned: Interned,
    pub references: BTreeMap<Name, Arc<References>>,
    /// Scopes by whose readings they show.
    pub readers: BTreeMap<(Name, Context), BTreeSet<ScopeKey>>,
    /// Servers whose drifts may be others than when they were last told.
    pub drifting: BTreeSet<Name>,
    /// Whether any of them is another than when it was last looked at.
    pub references_moved: bool,
    /// Chains whose verdict is another than before.
    pub changed: BTreeSet<SpanRef>,
    /// Live traces that got facts since the last look.
    pub touched: BTreeSet<TraceId>,
    /// Chains that are none any more: joined to another, or no request after all.
    pub dropped: BTreeSet<SpanRef>,
    pub crossings: Crossings,
    pub listed: Listed,
    pub lookback: LookBack,
    /// Newest sane event time seen.
    pub newest: Nanos,
    /// (process, instrumentation scope) whose SDK records the sampled flag.
    pub samplers: BTreeSet<(Digest16, Name)>,
    /// When a verdict changes by time alone, by event time.
    pub timers: BTreeSet<(Nanos, SpanRef)>,
    pub timer_of: BTreeMap<SpanRef, Nanos>,
}

impl Tables {
    pub fn new(policy: Arc<Policy>, limits: Limits) -> Self {
        let rules = policy.numbered_rules().map(|(number, rule)| (number, rule.clone()));
        Self {
            rules: rules.collect(),
            elders: BTreeMap::new(),
            reloads: 0,
            policy,
            limits,
            marks: Marks::default(),
            traces: BTreeMap::new(),
            ages: BTreeSet::new(),
            bytes: 0,
            kept: Kept::default(),
            roles: BTreeMap::new(),
            unsure: BTreeMap::new(),
            ids: BTreeMap::new(),
            tools: BTreeMap::new(),
            phantoms: BTreeMap::new(),
            id_joins: BTreeMap::new(),
            tool_joins: BTreeMap::new(),
            leaders: BTreeMap::new(),
            members: BTreeMap::new(),
            chains: BTreeMap::new(),
            by_process: BTreeMap::new(),
            process_scopes: BTreeMap::new(),
            stdio_partners: BTreeMap::new(),
            origins: BTreeMap::new(),
            disowned: BTreeMap::new(),
            notes: BTreeMap::new(),
            notes_by_trace: BTreeMap::new(),
            notes_by_process: BTreeMap::new(),
            scopes: BTreeMap::new(),
            scopes_by_server: BTreeMap::new(),
            unplaced: BTreeMap::new(),
            linked: BTreeMap::new(),
            placed: BTreeMap::new(),
            ambiguous: BTreeMap::new(),
            placed_on: BTreeMap::new(),
            keyed: BTreeMap::new(),
            waiting: BTreeMap::new(),
            operations: BTreeMap::new(),
            interned: Interned::default(),
            references: BTreeMap::new(),
            readers: BTreeMap::new(),
            drifting: BTreeSet::new(),
            references_moved: false,
            changed: BTreeSet::new(),
            touched: BTreeSet::new(),
            dropped: BTreeSet::new(),
            crossings: Crossings::default(),
            listed: Listed::default(),
            lookback: LookBack::default(),
            newest: 0,
            samplers: BTreeSet::new(),
            timers: BTreeSet::new(),
            timer_of: BTreeMap::new(),
        }
    }

    /// The request that leads the one named, itself if nothing joined it to another.
    pub fn leader(&self, key: SpanRef) -> SpanRef {
        let mut here = key;
        // A start record may lead to its span and that to nothing further: two steps at most.
        for _ in 0..4 {
            match self.leaders.get(&here).and_then(|joins| joins.first()) {
                Some(joined) => here = joined.leader,
                None => break,
            }
        }
        here
    }

    /// A request by its key.
    pub fn request(&self, key: &SpanRef) -> Option<&Arc<TraceRequest>> {
        let all = &self.traces.get(&key.trace)?.requests;
        all.get(all.binary_search_by_key(key, |request| request.key()).ok()?)
    }

    /// The chain a span belongs to, if its trace is live and the span is some request's.
    pub fn chain_of(&self, span: SpanRef) -> Option<SpanRef> {
        let owner = self.traces.get(&span.trace)?.owner(span.span)?;
        Some(self.leader(owner))
    }

    pub fn scope_view(&self, key: &ScopeKey) -> Arc<ScopeView> {
        self.scopes.get(key).map(|scope| scope.view.clone()).unwrap_or_default()
    }

    /// What counts against the limit of facts, in bytes, by estimate.
    pub fn all_bytes(&self) -> usize {
        self.bytes + self.kept.own + self.interned.bytes()
    }

    /// Runs every stratum over what is marked, from top to bottom.
    pub fn round(&mut self, now: Now) {
        self.ring_timers(now);
        self.trace_stage();
        self.id_stage();
        self.tool_stage();
        self.chain_stage();
        self.note_stage();
        self.placement_stage();
        self.scope_stage();
        self.reference_stage();
        self.ending_stage();
        self.operation_stage();
        self.verdict_stage(now);
    }
}

/// What the lockfile holds of a server, where the mode looks at it.
pub fn pins<'a>(policy: &'a Policy, server: &Name) -> &'a Pins {
    static NONE: Pins = Pins::new();
    let contracts = &policy.contracts;
    match contracts.mode {
        ContractMode::Pin | ContractMode::Enforce => contracts.pins.get(server).unwrap_or(&NONE),
        ContractMode::Observe | ContractMode::Off => &NONE,
    }
}

/// The moment verdicts are judged at: matters to open requests only.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    pub event: Nanos,
    /// Live, a scope's own newest event time counts where it is ahead.
    pub live: bool,
}

/// Adds to or removes from a set in a map, leaving no empty sets behind.
pub fn insert<K: Ord, V: Ord>(map: &mut BTreeMap<K, BTreeSet<V>>, key: K, value: V) {
    map.entry(key).or_default().insert(value);
}

pub fn remove<K: Ord, V: Ord>(map: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    if let Some(set) = map.get_mut(key) {
        set.remove(value);
        if set.is_empty() {
            map.remove(key);
        }
    }
}
