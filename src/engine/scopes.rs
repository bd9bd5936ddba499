//! Stratum "scope": what used to be called a session: its notifications, negotiation, catalog
//! timeline and the few things that all its requests share. A request marks its scope only where it
//! tells it something new; a scope marks those of its requests that hear something new.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::few::{self, Few};
use super::scope_view::ScopeView;
use super::tables::{Tables, insert, remove};
use crate::correlate::chain::Chain;
use crate::correlate::notes::Notes;
use crate::correlate::scope::{ScopeKey, ServerName};
use crate::model::case::ScopeSeen;
use crate::model::fact::*;
use crate::model::ids::{Name, Nanos, SpanRef, sane};
use crate::model::words::{Era, Rung};

/// Methods whose requests say something about the whole scope.
const CONTROL: [&str; 4] = ["initialize", "server/discover", "subscriptions/listen", "tools/list"];

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
    pub fn of(chain: &Arc<Chain>) -> Self {
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

/// Requests by start, or by another time.
pub type Ordered = Few<(Nanos, SpanRef)>;
/// Requests of one id or token.
pub type Namesakes = Ordered;

/// How many of its namesakes before and after it a request is compared with: an id that is used
/// over and over again speaks of its neighbours, not of all its uses.
pub const NEAR: usize = 16;
/// Requests of one id that evidence may mean; one alone is meant.
const CANDIDATES: usize = 64;

/// When the last of the namesakes that a request is compared with starts: what is said of the id
/// or token from then on is said of those that came later.
pub fn closes(all: Option<&Namesakes>, at: (Nanos, SpanRef)) -> Nanos {
    let last = all.and_then(|all| all.after(at, NEAR).nth(NEAR - 1));
    last.map_or(Nanos::MAX, |(start, _)| *start)
}

/// What a contribution may have changed for others.
#[derive(Clone, Copy)]
pub struct Moved {
    pub view: bool,
    /// An id that several requests have.
    pub ids: bool,
}

/// Control chains of forgotten traces that a scope keeps, and notes.
pub(super) const MARKS: usize = 1_024;

/// Keeps the first of many: the only one that is ever asked for.
fn thin(all: &mut Ordered) {
    if let Some(first) = all.first().copied().filter(|_| all.len() > 64) {
        *all = Few::One(first);
    }
}

#[derive(Default)]
pub struct ScopeEntry {
    /// All chains by start.
    pub chains: Ordered,
    pub calls: Ordered,
    by_id: BTreeMap<(Direction, Name), Namesakes>,
    /// Ids of more than one request.
    repeated: BTreeSet<(Direction, Name)>,
    by_token: BTreeMap<Name, Namesakes>,
    pub(super) answers: Ordered,
    pub(super) servers: BTreeMap<ServerName, Ordered>,
    pub(super) versions: BTreeMap<Name, Ordered>,
    pub(super) eras: BTreeMap<Era, Ordered>,
    pub(super) controls: BTreeMap<SpanRef, Arc<Chain>>,
    /// Control chains of forgotten traces, by start.
    pub(super) history: BTreeSet<(Nanos, SpanRef)>,
    pub note_facts: BTreeMap<FactId, Arc<Fact>>,
    /// Of the notes as they were when the view was last computed.
    pub(super) notes: Option<Arc<Notes>>,
    /// Requests by how their session layer stands.
    pub rungs: BTreeMap<Rung, usize>,
    /// Requests that were refused for a scope, with the scope.
    pub refused: BTreeMap<(Nanos, SpanRef), Name>,
    /// Answered requests without a server half.
    pub unserved: Ordered,
    pub view: Arc<ScopeView>,
    /// As whose the view's tools are counted.
    pub listed_as: Option<super::listed::Owner>,
    /// As whose they are read.
    pub reads_as: Option<super::references::Reader>,
    /// Newest sane event time of its chains.
    pub newest: Nanos,
}

impl ScopeEntry {
    /// Adds what a chain tells, or takes it back. Whether the view may be another.
    pub fn change(&mut self, key: SpanRef, c: &Contribution, add: bool) -> Moved {
        let before = self.gist(c);
        let (times, repeats) = self.shift(key, c, add);
        let view = times || c.control.is_some() || before != self.gist(c);
        Moved { view, ids: repeats }
    }

    /// What a view can show of a contribution like this.
    fn gist(&self, c: &Contribution) -> impl PartialEq + use<> {
        let version = c.version.as_ref().and_then(|version| self.versions.get(version));
        (
            self.answers.first().map(|(time, _)| *time),
            self.servers.keys().next().cloned(),
            version.and_then(|all| all.first().copied()),
            self.eras.contains_key(&c.era),
            self.by_token.is_empty(),
        )
    }

    fn shift(&mut self, key: SpanRef, c: &Contribution, add: bool) -> (bool, bool) {
        fn put<K: Ord + Clone>(
            map: &mut BTreeMap<K, Ordered>,
            at: Option<&K>,
            value: (Nanos, SpanRef),
            add: bool,
        ) {
            let Some(at) = at else { return };
            if add { few::add(map, at.clone(), value) } else { few::take(map, at, &value) }
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
        let known = |all: Option<&Namesakes>| all.map_or(0, Few::len);
        let mut repeats = false;
        if let Some(id) = &c.id {
            let before = known(self.by_id.get(id));
            match add {
                true => few::add(&mut self.by_id, id.clone(), at),
                false => few::take(&mut self.by_id, id, &at),
            }
            let now = known(self.by_id.get(id));
            repeats = before.max(now) > 1;
            match now > 1 {
                true => drop(self.repeated.insert(id.clone())),
                false => drop(self.repeated.remove(id)),
            }
        }
        match (&c.token, add) {
            (Some(token), true) => few::add(&mut self.by_token, token.clone(), at),
            (Some(token), false) => few::take(&mut self.by_token, token, &at),
            (None, _) => {}
        }
        put(&mut self.servers, c.server.as_ref(), at, add);
        put(&mut self.versions, c.version.as_ref(), at, add);
        put(&mut self.eras, Some(&c.era), at, add);
        match &c.control {
            Some(chain) if add => drop(self.controls.insert(key, chain.clone())),
            Some(_) => drop(self.controls.remove(&key)),
            None => {}
        }
        if c.control.is_some() {
            self.history.remove(&at);
        }
        // The first chain makes the scope, the last one may leave it empty.
        (self.chains.len() <= 1, repeats)
    }

    /// A chain leaves the tables; what it told the scope stays, once.
    pub fn retire(&mut self, key: SpanRef, c: &Contribution) {
        let at = (c.start, key);
        self.chains.remove(&at);
        self.calls.remove(&at);
        if let Some(id) = &c.id {
            few::take(&mut self.by_id, id, &at);
            if self.by_id.get(id).is_none_or(|all| all.len() < 2) {
                self.repeated.remove(id);
            }
        }
        if let Some(token) = &c.token {
            few::take(&mut self.by_token, token, &at);
        }
        thin(&mut self.answers);
        self.servers.values_mut().for_each(thin);
        self.versions.values_mut().for_each(thin);
        self.eras.values_mut().for_each(thin);
        if c.control.is_some() {
            self.history.insert(at);
            while self.history.len() > MARKS && self.forget_oldest() {}
        }
    }

    pub fn with_id(&self, id: &Name) -> BTreeSet<SpanRef> {
        let both = [Direction::ClientToServer, Direction::Either];
        let found = both.iter().filter_map(|d| self.by_id.get(&(*d, id.clone())));
        found.flat_map(|all| all.iter().take(CANDIDATES)).map(|(_, key)| *key).collect()
    }

    /// Requests of one direction and id, by start.
    pub fn same_id(&self, direction: Direction, id: &Name) -> Option<&Namesakes> {
        self.by_id.get(&(direction, id.clone()))
    }

    pub fn same_token(&self, token: &Name) -> Option<&Namesakes> {
        self.by_token.get(token)
    }

    /// Whether a call started in this time.
    pub fn called_between(&self, from: Nanos, to: Nanos) -> bool {
        let first = SpanRef::default();
        from < to && self.calls.range((from, first)..(to, first)).next().is_some()
    }

    /// Ids that several requests have, with their starts.
    pub(super) fn repeats(&self) -> impl Iterator<Item = Vec<Nanos>> + '_ {
        let all = self.repeated.iter().filter_map(|id| self.by_id.get(id));
        all.map(|all| all.iter().map(|(start, _)| *start).collect())
    }

    pub(super) fn records_tokens(&self) -> bool {
        !self.by_token.is_empty()
    }

    pub fn knows_token(&self, token: &Name) -> bool {
        self.by_token.contains_key(token)
    }

    pub fn count_rung(&mut self, rung: Rung, add: bool) {
        let count = self.rungs.entry(rung).or_default();
        *count = if add { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            self.rungs.remove(&rung);
        }
    }

    pub fn note(&mut self, id: FactId, fact: Arc<Fact>) {
        self.notes = None;
        self.note_facts.insert(id, fact);
    }

    pub fn unnote(&mut self, id: &FactId) {
        self.notes = None;
        self.note_facts.remove(id);
    }

    pub fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }

    pub fn controls(&self) -> impl Iterator<Item = &Arc<Chain>> {
        self.controls.values()
    }
}

impl Tables {
    pub(super) fn scope_mut(&mut self, key: &ScopeKey) -> &mut ScopeEntry {
        self.scopes.entry(key.clone()).or_default()
    }

    /// A chain joins its scope, or leaves it with all that it said.
    pub(super) fn tell_scope(
        &mut self,
        key: SpanRef,
        chain: &Arc<Chain>,
        scope: &ScopeKey,
        add: bool,
    ) {
        let contribution = Contribution::of(chain);
        let moved = self.scope_mut(scope).change(key, &contribution, add);
        if moved.view || moved.ids && !scope.keyed_by_session() {
            self.marks.scopes.insert(scope.clone());
        }
    }

    /// Forgets a scope and everything it was told.
    pub(super) fn drop_scope(&mut self, key: &ScopeKey) {
        let Some(scope) = self.scopes.remove(key) else { return };
        self.unlist(&scope);
        self.unread(key, scope.reads_as);
        if let Some(server) = &scope.view.server {
            remove(&mut self.scopes_by_server, server.name(), key);
        }
        for id in scope.note_facts.keys() {
            if let Some(note) = self.notes.get_mut(id) {
                note.scopes.remove(key);
            }
        }
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
            let notes = scope.notes_now();
            let view = scope.compute(&key, notes.clone(), &endings);
            self.scope_mut(&key).notes = Some(notes);
            let differs = self.scopes.get(&key).is_some_and(|scope| *scope.view != view);
            self.relist(&key, &view);
            self.reread(&key, &view, differs);
            if differs {
                self.mark_hearers(&key, &view);
                let Some(scope) = self.scopes.get(&key) else { continue };
                let server = view.server.clone();
                let was = scope.view.server.clone();
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
