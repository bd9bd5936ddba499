//! Stratum "notification": which scopes each notification speaks to.

use std::collections::BTreeSet;

use super::scopes::MARKS;
use super::tables::{Tables, remove};
use crate::correlate::notes::{INITIALIZED, LIST_CHANGED};
use crate::correlate::scope::ScopeKey;
use crate::model::fact::*;
use crate::model::ids::{Name, SpanRef};
use crate::model::words::Era;

impl Tables {
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
                self.scope_mut(key).unnote(&id);
                self.marks.scopes.insert(key.clone());
            }
            for key in scopes.difference(&was) {
                self.scope_mut(key).note(id, fact.clone());
                self.marks.scopes.insert(key.clone());
            }
        }
    }

    pub(super) fn drop_note(&mut self, id: &FactId) {
        let Some(entry) = self.notes.remove(id) else { return };
        remove(&mut self.notes_by_trace, &entry.fact.trace(), id);
        remove(&mut self.notes_by_process, &entry.fact.process.key, id);
        for key in entry.scopes {
            self.scope_mut(&key).unnote(id);
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
                scope.unnote(id);
            }
        }
    }

    /// §4.4: the session it names; else the scope of the request above it; else the scopes of its
    /// trace; else its process's, where there is one alone.
    fn scopes_of(&self, fact: &Fact, near: Option<SpanRef>) -> BTreeSet<ScopeKey> {
        if let Some(id) = session_of(fact) {
            return BTreeSet::from([ScopeKey::Session(id.clone())]);
        }
        let scope_of = |key: SpanRef| self.chains.get(&self.leader(key)).map(|e| e.scope.clone());
        if let Some(scope) = near.and_then(scope_of) {
            return BTreeSet::from([scope]);
        }
        let of_process = self.process_scopes.get(&fact.process.key);
        let in_trace: BTreeSet<ScopeKey> = self
            .traces
            .get(&fact.trace())
            .into_iter()
            .flat_map(|trace| trace.requests.iter().map(|request| request.key()))
            .filter_map(scope_of)
            .collect();
        if !in_trace.is_empty() {
            let known = |key: &&ScopeKey| of_process.is_some_and(|all| all.contains_key(*key));
            let mine: BTreeSet<ScopeKey> = in_trace.iter().filter(known).cloned().collect();
            return if mine.is_empty() { in_trace } else { mine };
        }
        match of_process {
            Some(all) if all.len() == 1 => all.keys().cloned().collect(),
            _ => BTreeSet::new(),
        }
    }
}

/// The session a notification names itself: no request has a say in where it belongs.
pub(super) fn session_of(fact: &Fact) -> Option<&Name> {
    let Says::Notification(note) = &fact.says else { return None };
    let era = note.version.as_ref().and_then(|v| crate::correlate::chain::era_of(v));
    match &note.session {
        Some((id, provenance)) if provenance.counts() && era != Some(Era::Modern) => Some(id),
        _ => None,
    }
}
