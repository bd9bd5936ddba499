//! Notifications (judgment.md §4.4): they have no id; they attach to a scope, and through a token
//! or a request id to a request. One notification seen at both ends is one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::case::{CancelSeen, ProgressSeen};
use crate::model::fact::*;
use crate::model::ids::{Digest16, Name, Nanos};

pub const LIST_CHANGED: &str = "notifications/tools/list_changed";
pub const INITIALIZED: &str = "notifications/initialized";
pub const CANCELLED: &str = "notifications/cancelled";
pub const PROGRESS: &str = "notifications/progress";

/// The notifications of one scope, sorted by (time, id), and what they say of requests.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    all: Vec<Arc<Fact>>,
    /// By token, in the order of time.
    progress: BTreeMap<Name, Vec<ProgressSeen>>,
    /// By the request id they name, in the order of time.
    cancels: BTreeMap<Name, Vec<Cancel>>,
}

/// A cancel, and which process recorded it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cancel {
    pub seen: CancelSeen,
    pub process: Digest16,
}

/// A fact's id names what it says.
impl PartialEq for Notes {
    fn eq(&self, other: &Self) -> bool {
        let ids = |notes: &Self| notes.all.iter().map(|fact| fact.id).collect::<Vec<_>>();
        self.all.len() == other.all.len() && ids(self) == ids(other)
    }
}

/// Whose record a notification is: a named service's, else a process's.
type Speaker<'a> = Result<&'a Name, Digest16>;

fn speaker(fact: &Fact) -> Speaker<'_> {
    let named = fact.process.service.as_ref();
    // What the SDKs call whoever has no name.
    named.filter(|name| !name.starts_with("unknown_service")).ok_or(fact.process.key)
}

fn note(fact: &Fact) -> Option<&Notification> {
    match &fact.says {
        Says::Notification(note) => Some(note),
        _ => None,
    }
}

impl Notes {
    pub fn new(facts: impl IntoIterator<Item = Arc<Fact>>) -> Self {
        let mut all: Vec<Arc<Fact>> = facts.into_iter().filter(|f| note(f).is_some()).collect();
        all.sort_by_key(|fact| (fact.start, fact.id));
        all.dedup_by_key(|fact| fact.id);
        let mut notes = Self { all, ..Self::default() };
        notes.progress = notes.progress_by_token();
        for fact in &notes.all {
            let Some(told) = note(fact).filter(|note| note.method.as_str() == CANCELLED) else {
                continue;
            };
            if let Some(id) = &told.cancelled_request_id {
                let seen = CancelSeen { at: fact.start, by: told.end };
                let cancel = Cancel { seen, process: fact.process.key };
                notes.cancels.entry(id.clone()).or_default().push(cancel);
            }
        }
        notes
    }

    fn progress_by_token(&self) -> BTreeMap<Name, Vec<ProgressSeen>> {
        let mut all: BTreeMap<Name, Vec<ProgressSeen>> = BTreeMap::new();
        let mut told: BTreeMap<Name, Digest16> = BTreeMap::new();
        for (token, fact) in self.tokens() {
            let value = note(fact).and_then(|note| note.progress.as_ref()).and_then(|p| p.value);
            let of_token = all.entry(token.clone()).or_default();
            // Both ends may run under one name: what the other one repeats is told.
            let teller = *told.entry(token.clone()).or_insert(fact.process.key);
            let repeats = || of_token.iter().any(|seen: &ProgressSeen| seen.value == value);
            if teller == fact.process.key || !repeats() {
                of_token.push(ProgressSeen { at: fact.start, value, span: fact.id.at.span });
            }
        }
        all
    }

    /// Those of one method, each once: where two ends recorded a method, the receiver's records
    /// stand below the sender's or repeat them, so the end that recorded more, then the one that
    /// was first, speaks. Processes of one service are one end: replicas take turns.
    pub fn of(&self, method: &str) -> Vec<&Arc<Fact>> {
        let mine: Vec<&Arc<Fact>> = self
            .all
            .iter()
            .filter(|fact| note(fact).is_some_and(|note| note.method.as_str() == method))
            .collect();
        let mut ends: BTreeMap<Speaker<'_>, (usize, Nanos)> = BTreeMap::new();
        for fact in &mine {
            let entry = ends.entry(speaker(fact)).or_insert((0, fact.start));
            entry.0 += 1;
        }
        let most = ends
            .into_iter()
            .min_by_key(|(end, (count, first))| (std::cmp::Reverse(*count), *first, *end))
            .map(|(end, _)| end);
        mine.into_iter().filter(|fact| Some(speaker(fact)) == most).collect()
    }

    /// Progress of one token, in the order of time.
    pub fn progress(&self, token: &Name) -> &[ProgressSeen] {
        self.progress.get(token).map_or(&[], Vec::as_slice)
    }

    /// Tokens whose progress differs, with the times from which it does.
    pub fn progress_changed<'a>(old: &'a Self, new: &'a Self) -> Vec<(&'a Name, Vec<Nanos>)> {
        changed(&old.progress, &new.progress, |seen| seen.at)
    }

    /// Request ids whose cancels differ, with the times from which they do.
    pub fn cancels_changed<'a>(old: &'a Self, new: &'a Self) -> Vec<(&'a Name, Vec<Nanos>)> {
        changed(&old.cancels, &new.cancels, |cancel| cancel.seen.at)
    }

    /// Tokens that progress notifications carried.
    pub fn tokens(&self) -> Vec<(&Name, &Arc<Fact>)> {
        let token = |fact: &'_ Arc<Fact>| -> bool {
            note(fact).is_some_and(|note| note.progress.is_some())
        };
        self.of(PROGRESS)
            .into_iter()
            .filter(|fact| token(fact))
            .filter_map(|fact| match &fact.says {
                Says::Notification(note) => note.progress.as_ref().map(|p| (&p.token, fact)),
                _ => None,
            })
            .collect()
    }

    /// The first cancel that names this request id and `means` the request: the other end may have
    /// one of the same id.
    pub fn cancel(
        &self,
        request_id: &Name,
        from: Nanos,
        to: Nanos,
        means: impl Fn(&Cancel) -> bool,
    ) -> Option<CancelSeen> {
        let named = self.cancels.get(request_id)?;
        let first = named.partition_point(|cancel| cancel.seen.at < from);
        let in_time = named[first..].iter().take_while(|cancel| cancel.seen.at <= to);
        in_time.into_iter().find(|cancel| means(cancel)).map(|cancel| cancel.seen)
    }

    /// Whether any cancel names this request id.
    pub fn cancels(&self, request_id: &Name) -> bool {
        self.cancels.contains_key(request_id)
    }

    pub fn seen(&self, method: &str) -> bool {
        self.all.iter().any(|f| note(f).is_some_and(|n| n.method.as_str() == method))
    }

    pub fn last(&self) -> Option<&Arc<Fact>> {
        self.all.last()
    }

    /// Subscriptions acknowledged in a notification.
    pub fn acknowledged(&self) -> Vec<(Nanos, Vec<Name>)> {
        let acknowledged = self.all.iter().filter_map(|fact| {
            let subscribed = note(fact)?.subscribed.clone()?;
            Some((fact.start, subscribed))
        });
        acknowledged.collect()
    }

    /// Status of a task as its notifications tell it.
    pub fn tasks(&self) -> impl Iterator<Item = (&Name, crate::model::words::TaskStatus, Nanos)> {
        self.all.iter().filter_map(|fact| {
            let note = note(fact)?;
            Some((note.task_id.as_ref()?, note.task_status?, fact.start))
        })
    }
}

type ByName<T> = BTreeMap<Name, Vec<T>>;

/// Names whose lists differ, with the times of what stands in one list only or behind it.
fn changed<'a, T: PartialEq>(
    old: &'a ByName<T>,
    new: &'a ByName<T>,
    at: impl Fn(&T) -> Nanos,
) -> Vec<(&'a Name, Vec<Nanos>)> {
    let names: BTreeSet<&Name> = old.keys().chain(new.keys()).collect();
    let mut found = Vec::new();
    for name in names {
        let of = |all: &'a ByName<T>| all.get(name).map_or(&[][..], Vec::as_slice);
        let (old, new) = (of(old), of(new));
        let same = old.iter().zip(new).take_while(|(a, b)| a == b).count();
        let rest = old.iter().skip(same).chain(new.iter().skip(same));
        let times: Vec<Nanos> = rest.map(&at).collect();
        if !times.is_empty() {
            found.push((name, times));
        }
    }
    found
}
