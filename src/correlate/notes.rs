//! Notifications (judgment.md §4.4): they have no id; they attach to a scope, and through a token
//! or a request id to a request. One notification seen at both ends is one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::case::{CancelSeen, ProgressSeen};
use crate::model::fact::*;
use crate::model::ids::{Digest16, Name, Nanos};

pub const LIST_CHANGED: &str = "notifications/tools/list_changed";
pub const INITIALIZED: &str = "notifications/initialized";
pub const CANCELLED: &str = "notifications/cancelled";
pub const PROGRESS: &str = "notifications/progress";

/// The notifications of one scope, sorted by (time, id).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Notes {
    all: Vec<Arc<Fact>>,
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
        Self { all }
    }

    /// Those of one method, each once: where two processes recorded a method, the receiver's
    /// records stand below the sender's or repeat them, so the process that recorded more, then
    /// the one that was first, speaks.
    pub fn of(&self, method: &str) -> Vec<&Arc<Fact>> {
        let mine: Vec<&Arc<Fact>> = self
            .all
            .iter()
            .filter(|fact| note(fact).is_some_and(|note| note.method.as_str() == method))
            .collect();
        let mut by_process: BTreeMap<Digest16, (usize, Nanos)> = BTreeMap::new();
        for fact in &mine {
            let entry = by_process.entry(fact.process.key).or_insert((0, fact.start));
            entry.0 += 1;
        }
        let speaker = by_process
            .into_iter()
            .min_by_key(|(key, (count, first))| (std::cmp::Reverse(*count), *first, *key))
            .map(|(key, _)| key);
        mine.into_iter().filter(|fact| Some(fact.process.key) == speaker).collect()
    }

    pub fn progress(&self, token: &Name) -> Vec<ProgressSeen> {
        let of_token = |fact: &&Arc<Fact>| {
            let progress = note(fact).and_then(|note| note.progress.as_ref());
            progress.is_some_and(|progress| progress.token == *token)
        };
        let seen = self.of(PROGRESS).into_iter().filter(of_token).map(|fact| ProgressSeen {
            at: fact.start,
            value: note(fact).and_then(|note| note.progress.as_ref()).and_then(|p| p.value),
            span: fact.id.at.span,
        });
        seen.collect()
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

    /// The first cancel that names this request. Who sent it: the end of the notification's
    /// record, as far as it is known.
    pub fn cancel(&self, request_id: &Name, from: Nanos, to: Nanos) -> Option<CancelSeen> {
        let named = |fact: &&Arc<Fact>| {
            note(fact).is_some_and(|note| {
                note.method.as_str() == CANCELLED
                    && note.cancelled_request_id.as_ref() == Some(request_id)
            })
        };
        let first = self.all.iter().find(|f| named(f) && f.start >= from && f.start <= to)?;
        let by = note(first).map_or(End::Unknown, |note| note.end);
        Some(CancelSeen { at: first.start, by })
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
