//! What the final verdicts of each server contribute to its incidents, and the incidents told.

use std::collections::{BTreeMap, BTreeSet};

use super::live::Effect;
use super::records::sort_incidents;
use crate::incident::{Entry, fold};
use crate::model::ids::{Digest16, Name, Nanos};
use crate::model::record::{Incident, digest_of};
use crate::model::words::Reason;

/// Entries kept of one server, the newest.
const ENTRIES: usize = 10_000;

#[derive(Default)]
struct OfServer {
    entries: BTreeMap<Digest16, Entry>,
    by_time: BTreeSet<(Nanos, Digest16)>,
    /// How many of them are failures.
    failed: usize,
}

impl OfServer {
    fn insert(&mut self, id: Digest16, entry: Entry) {
        self.remove(&id);
        self.by_time.insert((entry.time, id));
        self.failed += usize::from(entry.failure.is_some());
        self.entries.insert(id, entry);
    }

    fn remove(&mut self, id: &Digest16) {
        if let Some(entry) = self.entries.remove(id) {
            self.by_time.remove(&(entry.time, *id));
            self.failed -= usize::from(entry.failure.is_some());
        }
    }
}

/// Server, layer, reason, discriminator.
type Key = (Name, Name, Reason, Option<Name>);

#[derive(Default)]
pub struct Incidents {
    servers: BTreeMap<Name, OfServer>,
    told: BTreeMap<Key, Incident>,
    due: BTreeSet<Name>,
}

impl Incidents {
    /// The last word of one chain; `None` takes back what it said before.
    pub fn note(&mut self, server: Name, id: Digest16, entry: Option<Entry>) {
        let of = self.servers.entry(server.clone()).or_default();
        match entry {
            Some(entry) => of.insert(id, entry),
            None => of.remove(&id),
        }
        if of.entries.len() > ENTRIES
            && let Some((_, oldest)) = of.by_time.first().copied()
        {
            of.remove(&oldest);
        }
        self.due.insert(server);
    }

    /// Incidents that are not what they were when they were last told.
    /// What stands in `said` an earlier process has told.
    pub fn changed(
        &mut self,
        now: Nanos,
        quiet: Nanos,
        said: &mut BTreeSet<Digest16>,
        effects: &mut Vec<Effect>,
    ) {
        let mut found = Vec::new();
        for server in std::mem::take(&mut self.due) {
            if let Some(of) = self.servers.get(&server).filter(|of| of.failed > 0) {
                found.extend(fold(of.entries.values(), now, quiet));
            }
        }
        for incident in sort_incidents(found) {
            let Incident { server, layer, reason, discriminator, .. } = incident.clone();
            let key = (server, layer, reason, discriminator);
            if self.told.get(&key) != Some(&incident) {
                let known = said.remove(&digest_of(&incident));
                self.told.insert(key, incident.clone());
                effects.extend((!known).then_some(Effect::Incident(incident)));
            }
        }
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.servers.values().flat_map(|of| of.entries.values())
    }

    /// Every incident as it was last told.
    pub fn told(&self) -> impl Iterator<Item = &Incident> {
        self.told.values()
    }

    /// Where there are more than `most` entries, the servers that were quiet longest leave; how
    /// many did.
    pub fn thin(&mut self, most: usize) -> u64 {
        let total: usize = self.servers.values().map(|of| of.entries.len()).sum();
        if total <= most {
            return 0;
        }
        let newest = |of: &OfServer| of.by_time.last().map_or(0, |(time, _)| *time);
        let mut servers: Vec<(Nanos, Name)> =
            self.servers.iter().map(|(name, of)| (newest(of), name.clone())).collect();
        servers.sort();
        servers.truncate(servers.len().div_ceil(4));
        for (_, server) in &servers {
            self.servers.remove(server);
            self.told.retain(|(of, ..), _| of != server);
        }
        servers.len() as u64
    }
}
