//! Whom a change of a scope's view concerns: the requests that would see another value at their
//! start, and no others.

use std::collections::BTreeSet;

use super::scope_view::ScopeView;
use super::scopes::{NEAR, Namesakes, ScopeEntry};
use super::tables::Tables;
use crate::catalog::convergence::Timeline;
use crate::correlate::notes::Notes;
use crate::correlate::operation::OperationKey;
use crate::correlate::scope::ScopeKey;
use crate::model::fact::Direction;
use crate::model::ids::{Name, Nanos, SpanId, SpanRef, TraceId};

const DIRECTIONS: [Direction; 3] =
    [Direction::ClientToServer, Direction::ServerToClient, Direction::Either];
/// After every span.
const LAST: SpanRef = SpanRef { trace: TraceId([0xff; 16]), span: SpanId([0xff; 8]) };

impl Tables {
    /// Marks the requests of a scope that its new view tells something new.
    pub(super) fn mark_hearers(&mut self, key: &ScopeKey, new: &ScopeView) {
        let Some(scope) = self.scopes.get(key) else { return };
        let old = scope.view.clone();
        if told_to_all(&old) != told_to_all(new) {
            self.marks.endings.extend(scope.chains.iter().map(|(_, key)| *key));
            return;
        }
        let mut found: Vec<SpanRef> = Vec::new();
        if let (Some(a), Some(b)) = (old.first_answer, new.first_answer) {
            let between = (a.min(b), SpanRef::default())..=(a.max(b), LAST);
            found.extend(scope.chains.range(between).map(|(_, key)| *key));
        }
        if let Some(from) = changed_from(&old.timeline, &new.timeline) {
            let later = scope.calls.range((from, SpanRef::default())..);
            found.extend(later.map(|(_, key)| *key));
        }
        heard(scope, &old.notes, &new.notes, &mut found);
        for task in tasks_changed(&old.notes, &new.notes) {
            let unknown = Name::new("unknown");
            let servers = scope.servers.keys().map(|server| server.name()).chain([&unknown]);
            let keys = servers.map(|server| OperationKey::Task(server.clone(), task.clone()));
            let operations = keys.filter_map(|key| self.operations.get(&key));
            found.extend(operations.flat_map(|operation| &operation.members));
        }
        self.marks.endings.extend(found);
    }

    /// Requests of the scope with the same id or token: their findings name each other's spans.
    pub(super) fn mark_namesakes(&mut self, at: (Nanos, SpanRef), key: &ScopeKey) {
        let Some(entry) = self.chains.get(&at.1) else { return };
        let Some(scope) = self.scopes.get(key) else { return };
        let chain = &entry.chain;
        let mut found: Vec<SpanRef> = Vec::new();
        let running = |other: &SpanRef| {
            let other = self.chains.get(other);
            other.is_some_and(|o| !o.chain.primary().ended || o.chain.stop() > at.0)
        };
        let mut near = |all: &Namesakes, spoken_of: bool| {
            let before = all.before(at, NEAR).map(|(_, key)| *key);
            found.extend(before.filter(|other| spoken_of || running(other)));
            found.extend(all.after(at, NEAR).map(|(_, key)| *key));
        };
        let notes = &scope.view.notes;
        if let Some(id) = chain.request_id()
            && let Some(all) = scope.same_id(chain.direction(), id)
        {
            near(all, notes.cancels(id));
        }
        for token in chain.sides().filter_map(|side| side.half.call.progress_token.as_ref()) {
            if let Some(all) = scope.same_token(token) {
                near(all, !notes.progress(token).is_empty());
            }
        }
        self.marks.endings.extend(found);
    }
}

/// What concerns every request of the scope; it changes a handful of times in a scope's life.
fn told_to_all(view: &ScopeView) -> impl PartialEq + '_ {
    (
        (view.era, &view.version, &view.server, view.first_answer.is_some()),
        (view.records_tokens, view.negotiated, view.negotiation_failed),
        (&view.client_capabilities, &view.server_capabilities),
        view.timeline.mixed,
    )
}

/// The earliest time at which the two catalog timelines may say different things.
fn changed_from(old: &Timeline, new: &Timeline) -> Option<Nanos> {
    fn first<T: PartialEq>(a: &[T], b: &[T], at: impl Fn(&T) -> Nanos) -> Option<Nanos> {
        let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        a.get(same).into_iter().chain(b.get(same)).map(at).min()
    }
    let traversals = first(&old.traversals, &new.traversals, |traversal| traversal.start);
    let signals = first(&old.signals, &new.signals, |signal| signal.at);
    let covered = first(&old.covered, &new.covered, |covered| covered.from);
    [traversals, signals, covered].into_iter().flatten().min()
}

/// Requests whose progress or cancel is another.
fn heard(scope: &ScopeEntry, old: &Notes, new: &Notes, found: &mut Vec<SpanRef>) {
    let mut reaches = |all: Option<&Namesakes>, time: Nanos| {
        let near = all.into_iter().flat_map(|all| all.before((time, LAST), NEAR));
        found.extend(near.map(|(_, key)| *key));
    };
    for (token, times) in Notes::progress_changed(old, new) {
        times.into_iter().for_each(|time| reaches(scope.same_token(token), time));
    }
    for (id, times) in Notes::cancels_changed(old, new) {
        for time in times {
            DIRECTIONS.iter().for_each(|way| reaches(scope.same_id(*way, id), time));
        }
    }
}

fn tasks_changed<'a>(old: &'a Notes, new: &'a Notes) -> BTreeSet<&'a Name> {
    let told = |notes: &'a Notes| -> BTreeSet<_> { notes.tasks().collect() };
    let (old, new) = (told(old), told(new));
    old.symmetric_difference(&new).map(|(task, ..)| *task).collect()
}
