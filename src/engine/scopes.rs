//! Stratum "scope": what used to be called a session: its notifications, negotiation, catalog
//! timeline and the few things that all its requests share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::tables::{Tables, insert, remove};
use crate::catalog::convergence::{Covered, Signal, Timeline};
use crate::catalog::traversal::{Page, traversals};
use crate::correlate::chain::Chain;
use crate::correlate::notes::{INITIALIZED, LIST_CHANGED, Notes};
use crate::correlate::scope::{ScopeKey, ServerName};
use crate::model::case::{Ending, ScopeSeen};
use crate::model::fact::*;
use crate::model::ids::{Name, Nanos, SpanRef, sane};
use crate::model::words::Era;

/// Methods whose requests say something about the whole scope.
const CONTROL: [&str; 4] = ["initialize", "server/discover", "subscriptions/listen", "tools/list"];
const TOOLS_LIST_CHANGED: &str = "tools.listChanged";

/// What one chain tells its scope.
pub struct Contribution {
    pub start: Nanos,
    newest: Nanos,
    id: Option<(Direction, Name)>,
    answered: Option<Nanos>,
    token: Option<Name>,
    server: Option<ServerName>,
    version: Option<Name>,
    era: Era,
    control: Option<Arc<Chain>>,
    is_call: bool,
}

impl Contribution {
    pub fn of(_key: SpanRef, chain: &Arc<Chain>) -> Self {
        let control = CONTROL.contains(&chain.method().as_str());
        Self {
            start: chain.start(),
            newest: newest(chain),
            id: chain.request_id().map(|id| (chain.direction(), id.clone())),
            answered: answered(chain).then(|| chain.stop()),
            token: chain.sides().find_map(|side| side.half.call.progress_token.clone()),
            server: ServerName::of(chain),
            version: chain.version().cloned(),
            era: chain.era(),
            control: control.then(|| chain.clone()),
            is_call: chain.is_call(),
        }
    }
}

fn newest(chain: &Chain) -> Nanos {
    let times = chain.sides().flat_map(|side| [side.start, side.stop]);
    times.filter(|time| sane(*time)).max().unwrap_or(0)
}

/// Whether records of the chain show that an answer of any kind came.
fn answered(chain: &Chain) -> bool {
    let told = |answer: &Answer| {
        answer.is_error.is_some() || answer.result_seen || answer.code.is_some_and(|c| c != -32001)
    };
    let served = chain.answering.as_ref().is_some_and(|side| {
        side.ended && side.best().status != 2 && side.half.answer.failure.is_none()
    });
    chain.sides().any(|side| told(&side.half.answer)) || served
}

type Ordered = BTreeSet<(Nanos, SpanRef)>;

/// Control chains that a scope keeps beyond their retention.
const MARKS: usize = 1_024;

/// Keeps the first of many: the only one that is ever asked for.
fn thin(all: &mut Ordered) {
    if let Some(first) = all.first().copied().filter(|_| all.len() > 64) {
        *all = BTreeSet::from([first]);
    }
}

/// What a scope keeps of chains that were forgotten, their control chains aside.
#[derive(Default, Serialize, Deserialize)]
pub struct Residue {
    answers: Ordered,
    servers: Vec<(ServerName, Ordered)>,
    versions: Vec<(Name, Ordered)>,
    eras: Vec<(Era, Ordered)>,
    newest: Nanos,
}

#[derive(Default)]
pub struct ScopeEntry {
    /// All chains by start.
    pub chains: Ordered,
    pub calls: Ordered,
    by_id: BTreeMap<(Direction, Name), Ordered>,
    by_token: BTreeMap<Name, Ordered>,
    answers: Ordered,
    servers: BTreeMap<ServerName, Ordered>,
    versions: BTreeMap<Name, Ordered>,
    eras: BTreeMap<Era, Ordered>,
    controls: BTreeMap<SpanRef, Arc<Chain>>,
    pub note_facts: BTreeMap<FactId, Arc<Fact>>,
    pub view: Arc<ScopeView>,
    /// Newest sane event time of its chains.
    pub newest: Nanos,
}

/// What every request of the scope can ask.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ScopeView {
    pub era: Option<Era>,
    pub version: Option<Name>,
    pub server: Option<ServerName>,
    pub first_answer: Option<Nanos>,
    pub records_tokens: bool,
    pub negotiated: bool,
    pub negotiation_failed: bool,
    pub client_capabilities: Option<BTreeSet<Name>>,
    pub server_capabilities: Option<BTreeSet<Name>>,
    pub timeline: Timeline,
    pub notes: Notes,
}

impl ScopeEntry {
    pub fn add(&mut self, key: SpanRef, c: &Contribution) {
        self.change(key, c, true);
    }

    pub fn remove(&mut self, key: SpanRef, c: &Contribution) {
        self.change(key, c, false);
    }

    fn change(&mut self, key: SpanRef, c: &Contribution, add: bool) {
        fn put<K: Ord + Clone>(
            map: &mut BTreeMap<K, Ordered>,
            at: Option<&K>,
            value: (Nanos, SpanRef),
            add: bool,
        ) {
            let Some(at) = at else { return };
            if add { insert(map, at.clone(), value) } else { remove(map, at, &value) }
        }
        let at = (c.start, key);
        let toggle = |set: &mut Ordered, value| match add {
            true => set.insert(value),
            false => set.remove(&value),
        };
        toggle(&mut self.chains, at);
        self.newest = self.newest.max(c.newest);
        if c.is_call {
            toggle(&mut self.calls, at);
        }
        if let Some(time) = c.answered {
            toggle(&mut self.answers, (time, key));
        }
        put(&mut self.by_id, c.id.as_ref(), at, add);
        put(&mut self.by_token, c.token.as_ref(), at, add);
        put(&mut self.servers, c.server.as_ref(), at, add);
        put(&mut self.versions, c.version.as_ref(), at, add);
        put(&mut self.eras, Some(&c.era), at, add);
        match &c.control {
            Some(chain) if add => drop(self.controls.insert(key, chain.clone())),
            Some(_) => drop(self.controls.remove(&key)),
            None => {}
        }
    }

    /// A chain leaves the tables; what it told the scope stays, once.
    pub fn retire(&mut self, key: SpanRef, c: &Contribution) {
        let at = (c.start, key);
        self.chains.remove(&at);
        self.calls.remove(&at);
        if let Some(id) = &c.id {
            remove(&mut self.by_id, id, &at);
        }
        if let Some(token) = &c.token {
            remove(&mut self.by_token, token, &at);
        }
        thin(&mut self.answers);
        self.servers.values_mut().for_each(thin);
        self.versions.values_mut().for_each(thin);
        self.eras.values_mut().for_each(thin);
        while self.controls.len() > MARKS {
            let oldest = self.controls.iter().min_by_key(|(key, chain)| (chain.start(), **key));
            let Some(oldest) = oldest.map(|(key, _)| *key) else { break };
            self.controls.remove(&oldest);
        }
    }

    /// What is left of forgotten chains.
    pub fn residue(&self) -> Residue {
        let live: BTreeSet<SpanRef> = self.chains.iter().map(|(_, key)| *key).collect();
        let left = |all: &Ordered| -> Ordered {
            all.iter().filter(|(_, key)| !live.contains(key)).copied().collect()
        };
        fn of<K: Clone>(
            all: &BTreeMap<K, Ordered>,
            left: impl Fn(&Ordered) -> Ordered,
        ) -> Vec<(K, Ordered)> {
            let all = all.iter().map(|(key, all)| (key.clone(), left(all)));
            all.filter(|(_, all)| !all.is_empty()).collect()
        }
        Residue {
            answers: left(&self.answers),
            servers: of(&self.servers, left),
            versions: of(&self.versions, left),
            eras: of(&self.eras, left),
            newest: self.newest,
        }
    }

    fn adopt(&mut self, residue: Residue) {
        fn into<K: Ord>(all: &mut BTreeMap<K, Ordered>, more: Vec<(K, Ordered)>) {
            more.into_iter().for_each(|(key, more)| all.entry(key).or_default().extend(more));
        }
        self.answers.extend(residue.answers);
        into(&mut self.servers, residue.servers);
        into(&mut self.versions, residue.versions);
        into(&mut self.eras, residue.eras);
        self.newest = self.newest.max(residue.newest);
    }

    pub fn with_id(&self, id: &Name) -> BTreeSet<SpanRef> {
        let both = [Direction::ClientToServer, Direction::Either];
        let found = both.iter().filter_map(|d| self.by_id.get(&(*d, id.clone())));
        found.flatten().map(|(_, key)| *key).collect()
    }

    /// Requests of one direction and id, by start.
    pub fn same_id(&self, direction: Direction, id: &Name) -> impl Iterator<Item = SpanRef> + '_ {
        let found = self.by_id.get(&(direction, id.clone()));
        found.into_iter().flatten().map(|(_, key)| *key)
    }

    pub fn same_token(&self, token: &Name) -> impl Iterator<Item = SpanRef> + '_ {
        self.by_token.get(token).into_iter().flatten().map(|(_, key)| *key)
    }

    pub fn knows_token(&self, token: &Name) -> bool {
        self.by_token.contains_key(token)
    }

    pub fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }

    pub fn controls(&self) -> impl Iterator<Item = &Arc<Chain>> {
        self.controls.values()
    }

    /// Ids that two requests share without an `initialize` between them, outside a session: two
    /// connections that telemetry cannot tell apart (§4.6). Modern ids may be used again.
    fn mixed(&self, key: &ScopeKey) -> bool {
        let modern = self.eras.contains_key(&Era::Modern);
        if modern || matches!(key, ScopeKey::Session(_)) {
            return false;
        }
        let initialized: Vec<Nanos> = self
            .controls
            .values()
            .filter(|chain| chain.method().as_str() == "initialize")
            .map(|chain| chain.start())
            .collect();
        let apart =
            |first: Nanos, second: Nanos| initialized.iter().any(|at| *at > first && *at <= second);
        self.by_id.values().any(|all| {
            let starts: Vec<Nanos> = all.iter().map(|(start, _)| *start).collect();
            starts.windows(2).any(|pair| !apart(pair[0], pair[1]))
        })
    }

    fn compute(&self, key: &ScopeKey, endings: &dyn Fn(&Chain) -> Ending) -> ScopeView {
        let notes = Notes::new(self.note_facts.values().cloned());
        let era = [Era::Modern, Era::Legacy].into_iter().find(|era| self.eras.contains_key(era));
        let mut view = ScopeView {
            era,
            version: self.version(),
            server: self.servers.keys().next().cloned(),
            first_answer: self.answers.first().map(|(time, _)| *time),
            records_tokens: !self.by_token.is_empty(),
            ..ScopeView::default()
        };
        self.negotiate(&mut view, &notes, endings);
        let covered = self.covered(&view, &notes, endings);
        let signals = signals(&notes, &view, &covered);
        view.timeline = Timeline {
            traversals: traversals(self.pages(endings)),
            signals,
            covered,
            mixed: self.mixed(key),
        };
        view.notes = notes;
        view
    }

    /// The version agreed on: an `initialize` knows, else the one used first.
    fn version(&self) -> Option<Name> {
        let initialize = self.controls.values().filter(|c| c.method().as_str() == "initialize");
        let agreed = initialize.filter_map(|chain| chain.version()).min();
        let first = self.versions.iter().min_by_key(|(_, all)| all.first().copied());
        agreed.cloned().or_else(|| first.map(|(version, _)| version.clone()))
    }

    fn negotiate(&self, view: &mut ScopeView, notes: &Notes, endings: &dyn Fn(&Chain) -> Ending) {
        let mut agreed = false;
        for chain in self.controls.values() {
            let negotiations = || chain.sides().filter_map(|side| side.half.negotiation.as_deref());
            let names = |all: &Vec<Name>| -> BTreeSet<Name> { all.iter().cloned().collect() };
            for negotiation in negotiations() {
                if let Some(all) = &negotiation.client_capabilities {
                    view.client_capabilities.get_or_insert_default().extend(names(all));
                }
                if let Some(all) = &negotiation.server_capabilities {
                    view.server_capabilities.get_or_insert_default().extend(names(all));
                }
            }
            if chain.method().as_str() == "initialize" {
                match endings(chain) {
                    Ending::Result { .. } => agreed = true,
                    Ending::Incompatible { .. } => view.negotiation_failed = true,
                    _ => {}
                }
            }
        }
        view.negotiated = agreed && notes.seen(INITIALIZED);
    }

    /// When change signals would have arrived.
    fn covered(
        &self,
        view: &ScopeView,
        notes: &Notes,
        endings: &dyn Fn(&Chain) -> Ending,
    ) -> Vec<Covered> {
        let covers = |names: &[Name]| names.iter().any(|name| name.as_str() == TOOLS_LIST_CHANGED);
        if view.era != Some(Era::Modern) {
            let declared = view
                .server_capabilities
                .as_ref()
                .is_some_and(|all| all.contains(TOOLS_LIST_CHANGED));
            let always = Covered { from: 0, to: Nanos::MAX, broke: false };
            return declared.then_some(always).into_iter().collect();
        }
        let listens =
            self.controls.values().filter(|c| c.method().as_str() == "subscriptions/listen");
        let mut covered = Vec::new();
        for chain in listens {
            let acknowledged = notes.acknowledged();
            let subscribed = chain
                .sides()
                .filter_map(|side| side.half.negotiation.as_deref()?.subscribed.as_ref())
                .chain(acknowledged.iter().map(|(_, names)| names))
                .any(|names| covers(names));
            if subscribed {
                let ended = chain.sides().any(|side| side.ended);
                let ending = endings(chain);
                let kept = matches!(
                    ending,
                    Ending::Result { .. } | Ending::Open | Ending::Unobserved | Ending::Cancelled
                );
                let to = if ended { chain.stop() } else { Nanos::MAX };
                covered.push(Covered { from: chain.start(), to, broke: ended && !kept });
            }
        }
        covered.sort_by_key(|span| (span.from, span.to));
        covered
    }

    fn pages(&self, endings: &dyn Fn(&Chain) -> Ending) -> Vec<Page> {
        let lists = self.controls.values().filter(|c| c.method().as_str() == "tools/list");
        let page = |chain: &Arc<Chain>| {
            let facts = chain.sides().filter_map(|side| side.half.list.as_deref());
            let facts = facts.cloned().reduce(merge_lists).unwrap_or_default();
            let ending = endings(chain);
            Page {
                span: chain.key().span,
                start: chain.start(),
                stop: chain.stop(),
                answered: matches!(ending, Ending::Result { .. } | Ending::Unobserved),
                auth: chain.auth_context(),
                facts,
            }
        };
        lists.map(page).collect()
    }
}

/// The asking half's knowledge of a page first: it is what the client has.
fn merge_lists(mine: ListFacts, theirs: ListFacts) -> ListFacts {
    ListFacts {
        cursor: mine.cursor.or(theirs.cursor),
        next_cursor: mine.next_cursor.or(theirs.next_cursor),
        ttl: mine.ttl.or(theirs.ttl),
        tools: if mine.tools.is_empty() { theirs.tools } else { mine.tools },
        discovered: mine.discovered.or(theirs.discovered),
        installed: mine.installed.or(theirs.installed),
        tool_count: mine.tool_count.or(theirs.tool_count),
        definitions: mine.definitions.or(theirs.definitions),
    }
}

fn signals(notes: &Notes, view: &ScopeView, covered: &[Covered]) -> Vec<Signal> {
    let declared = view.server_capabilities.as_ref();
    let modern = view.era == Some(Era::Modern);
    let signal = |fact: &Arc<Fact>| {
        let at = fact.start;
        let counts = covered.iter().any(|span| span.from <= at && at <= span.to);
        let declared_not = declared.is_some_and(|all| !all.contains(TOOLS_LIST_CHANGED));
        // In modern, one that nobody subscribed to is undeclared only where subscriptions or the
        // declaration are known at all.
        let undeclared = !counts && (declared_not || modern && !covered.is_empty());
        Signal { at, span: fact.id.at.span, counts, undeclared }
    };
    let mut all: Vec<Signal> = notes.of(LIST_CHANGED).into_iter().map(signal).collect();
    all.sort();
    all
}

impl Tables {
    pub(super) fn scope_mut(&mut self, key: &ScopeKey) -> &mut ScopeEntry {
        self.scopes.entry(key.clone()).or_default()
    }

    /// Gives a scope what it kept of chains that an earlier process forgot.
    pub(super) fn adopt(&mut self, key: &ScopeKey, residue: Residue) {
        self.scope_mut(key).adopt(residue);
        self.marks.scopes.insert(key.clone());
    }

    /// Forgets a scope and everything it was told.
    pub(super) fn drop_scope(&mut self, key: &ScopeKey) {
        let Some(scope) = self.scopes.remove(key) else { return };
        if let Some(server) = &scope.view.server {
            remove(&mut self.scopes_by_server, server.name(), key);
            self.marks.references.insert(server.name().clone());
        }
        for id in scope.note_facts.keys() {
            if let Some(note) = self.notes.get_mut(id) {
                note.scopes.remove(key);
            }
        }
    }

    /// Which scopes each marked note speaks to.
    pub(super) fn note_stage(&mut self) {
        for id in std::mem::take(&mut self.marks.notes) {
            let scopes = match self.notes.get(&id) {
                Some(entry) => self.scopes_of(&entry.fact, entry.near),
                None => continue,
            };
            let Some(entry) = self.notes.get_mut(&id) else { continue };
            let fact = entry.fact.clone();
            let was = std::mem::replace(&mut entry.scopes, scopes.clone());
            for key in was.difference(&scopes) {
                self.scope_mut(key).note_facts.remove(&id);
                self.marks.scopes.insert(key.clone());
            }
            for key in scopes.difference(&was) {
                self.scope_mut(key).note_facts.insert(id, fact.clone());
                self.marks.scopes.insert(key.clone());
            }
        }
    }

    pub(super) fn drop_note(&mut self, id: &FactId) {
        let Some(entry) = self.notes.remove(id) else { return };
        remove(&mut self.notes_by_trace, &entry.fact.trace(), id);
        remove(&mut self.notes_by_process, &entry.fact.process.key, id);
        for key in entry.scopes {
            self.scope_mut(&key).note_facts.remove(id);
            self.marks.scopes.insert(key);
        }
    }

    /// A note leaves with its trace; signals and handshakes stay with the scope.
    pub(super) fn retire_note(&mut self, id: &FactId) {
        let Some(entry) = self.notes.remove(id) else { return };
        remove(&mut self.notes_by_trace, &entry.fact.trace(), id);
        remove(&mut self.notes_by_process, &entry.fact.process.key, id);
        let Says::Notification(note) = &entry.fact.says else { return };
        let stays = [LIST_CHANGED, INITIALIZED].contains(&note.method.as_str())
            || note.subscribed.is_some();
        for key in entry.scopes {
            let scope = self.scope_mut(&key);
            if !stays || scope.note_facts.len() > MARKS {
                scope.note_facts.remove(id);
            }
        }
    }

    /// §4.4: the session it names; else the scope of the request above it; else the scopes of its
    /// trace; else its process's, where there is one alone.
    fn scopes_of(&self, fact: &Fact, near: Option<SpanRef>) -> BTreeSet<ScopeKey> {
        let Says::Notification(note) = &fact.says else { return BTreeSet::new() };
        let era = note.version.as_ref().and_then(|v| crate::correlate::chain::era_of(v));
        if let Some((id, Provenance::Wire)) = &note.session
            && era != Some(Era::Modern)
        {
            return BTreeSet::from([ScopeKey::Session(id.clone())]);
        }
        let scope_of = |key: SpanRef| self.chains.get(&self.leader(key)).map(|e| e.scope.clone());
        if let Some(scope) = near.and_then(scope_of) {
            return BTreeSet::from([scope]);
        }
        let of_process = || -> BTreeSet<ScopeKey> {
            let chains = self.by_process.get(&fact.process.key).into_iter().flatten();
            chains.filter_map(|key| scope_of(*key)).collect()
        };
        let in_trace: BTreeSet<ScopeKey> = self
            .traces
            .get(&fact.trace())
            .into_iter()
            .flat_map(|trace| trace.requests.keys())
            .filter_map(|key| scope_of(*key))
            .collect();
        if !in_trace.is_empty() {
            let mine: BTreeSet<ScopeKey> = of_process().intersection(&in_trace).cloned().collect();
            return if mine.is_empty() { in_trace } else { mine };
        }
        let all = of_process();
        if all.len() == 1 { all } else { BTreeSet::new() }
    }

    pub(super) fn scope_stage(&mut self) {
        for key in std::mem::take(&mut self.marks.scopes) {
            let Some(scope) = self.scopes.get(&key) else { continue };
            if scope.is_empty() && scope.note_facts.is_empty() && scope.controls.is_empty() {
                self.drop_scope(&key);
                continue;
            }
            let base =
                ScopeSeen { keyed_by_session: key.keyed_by_session(), ..ScopeSeen::default() };
            let endings = |chain: &Chain| {
                let answered = scope.answers.first().is_some_and(|(time, _)| *time < chain.start());
                let seen = ScopeSeen { answered_before: answered, ..base.clone() };
                let exchange = self.bare_exchange(chain);
                crate::judge::ending(&exchange, &seen)
            };
            let view = scope.compute(&key, &endings);
            if *scope.view != view {
                let server = view.server.clone();
                let chains: Vec<SpanRef> = scope.chains.iter().map(|(_, key)| *key).collect();
                self.marks.endings.extend(chains);
                let was = scope.view.server.clone();
                for name in server.iter().chain(&was) {
                    self.marks.references.insert(name.name().clone());
                }
                if let Some(was) = was {
                    remove(&mut self.scopes_by_server, was.name(), &key);
                }
                if let Some(server) = server {
                    insert(&mut self.scopes_by_server, server.name().clone(), key.clone());
                }
                self.scope_mut(&key).view = Arc::new(view);
            }
        }
    }
}
