//! What a scope keeps of chains that were forgotten: the next process needs it too.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::scopes::{Ordered, ScopeEntry};
use super::tables::Tables;
use crate::correlate::scope::{ScopeKey, ServerName};
use crate::model::ids::{Digest16, Name, Nanos, SpanRef};
use crate::model::words::Era;

/// What a scope keeps of chains that were forgotten, their control chains aside.
#[derive(Default, Serialize, Deserialize)]
pub struct Residue {
    answers: Ordered,
    servers: Vec<(ServerName, Ordered)>,
    versions: Vec<(Name, Ordered)>,
    eras: Vec<(Era, Ordered)>,
    newest: Nanos,
}

impl ScopeEntry {
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
            more.into_iter().for_each(|(key, more)| {
                all.entry(key).or_default().extend(more.iter().copied());
            });
        }
        self.answers.extend(residue.answers.iter().copied());
        into(&mut self.servers, residue.servers);
        into(&mut self.versions, residue.versions);
        into(&mut self.eras, residue.eras);
        self.newest = self.newest.max(residue.newest);
    }
}

impl Tables {
    /// Session ids that forgotten chains showed to be made up, by process.
    pub(super) fn disowned_before(&self) -> Vec<(Digest16, Name)> {
        let nobody = SpanRef::default();
        let all = self.disowned.iter().flat_map(|(process, ids)| {
            let left = ids.iter().filter(|(_, shown)| shown.contains(&nobody));
            left.map(move |(id, _)| (*process, id.clone()))
        });
        all.collect()
    }

    pub(super) fn disown_again(&mut self, disowned: Vec<(Digest16, Name)>) {
        for (process, id) in disowned {
            let ids = self.disowned.entry(process).or_default();
            ids.insert(id, BTreeSet::from([SpanRef::default()]));
        }
    }

    /// Gives a scope what it kept of chains that an earlier process forgot.
    pub(super) fn adopt(&mut self, key: &ScopeKey, residue: Residue) {
        self.scope_mut(key).adopt(residue);
        self.marks.scopes.insert(key.clone());
    }
}
