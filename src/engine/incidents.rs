//! What the final verdicts of each server contribute to its incidents, and the incidents told.

use std::collections::{BTreeMap, BTreeSet};

use super::live::Effect;
use super::records::sort_incidents;
use crate::incident::{Entry, fold};
use crate::model::ids::{Digest16, Name, Nanos};
use crate::model::record::{Incident, digest_of};
use crate::model::words::{IncidentStatus, Reason};

/// Entries kept of one server, the newest.
const ENTRIES: usize = 10_000;
/// Entries beside these that incidents of one server keep.
const KEPT: usize = 2_000;
/// How often those that stand are looked at within `incident_quiet`, though nothing is heard.
const LOOKS: u64 = 24;

#[derive(Default)]
struct OfServer {
    entries: BTreeMap<Digest16, Box<Entry>>,
    by_time: BTreeSet<(Nanos, Digest16)>,
    /// How many of them are failures.
    failed: usize,
    /// What incidents that stand rest on: it outlives newer entries.
    kept: BTreeSet<Digest16>,
}

/// How much of a server's entries incidents that stand rest on.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    Nothing,
    InPart,
    Wholly,
}

impl OfServer {
    fn insert(&mut self, id: Digest16, entry: Entry) {
        self.remove(&id);
        self.by_time.insert((entry.time, id));
        self.failed += usize::from(entry.failure.is_some());
        self.entries.insert(id, Box::new(entry));
    }

    fn remove(&mut self, id: &Digest16) {
        if let Some(entry) = self.entries.remove(id) {
            self.by_time.remove(&(entry.time, *id));
            self.failed -= usize::from(entry.failure.is_some());
        }
    }

    fn worth(&self) -> Worth {
        match self.kept.len() {
            0 => Worth::Nothing,
            kept if self.entries.len() > kept => Worth::InPart,
            _ => Worth::Wholly,
        }
    }

    fn newest(&self) -> Nanos {
        let kept = || self.entries.values().map(|entry| entry.time).max();
        self.by_time.last().map(|(time, _)| *time).or_else(kept).unwrap_or(0)
    }

    /// Lets the oldest go that nothing rests on, until so many are left beside what is kept.
    fn shrink(&mut self, most: usize) {
        while self.entries.len() > most + self.kept.len() {
            match self.by_time.pop_first() {
                Some((_, id)) if self.kept.contains(&id) => {}
                Some((_, id)) => self.remove(&id),
                None => return,
            }
        }
    }

    /// From now on these are kept; what was kept before and is old leaves.
    fn keep(&mut self, kept: BTreeSet<Digest16>) {
        for id in std::mem::replace(&mut self.kept, kept) {
            let place = self.entries.get(&id).map(|entry| (entry.time, id));
            let old = place.is_some_and(|place| !self.by_time.contains(&place));
            if old && !self.kept.contains(&id) {
                self.remove(&id);
            }
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
    /// Of each server, those that are neither resolved nor expired.
    standing: BTreeMap<Name, Vec<Incident>>,
    /// Whether `standing` is not what it was when last asked for.
    moved: bool,
    /// What an earlier process left is to be looked at without waiting for news.
    restored: bool,
    /// When those that stand are looked at again, in Unix nanoseconds: time alone ends some.
    again: Nanos,
}

impl Incidents {
    /// The last word of one chain; `None` takes back what it said before.
    pub fn note(&mut self, server: Name, id: Digest16, entry: Option<Entry>) {
        let of = self.servers.entry(server.clone()).or_default();
        match entry {
            Some(entry) => of.insert(id, entry),
            None => of.remove(&id),
        }
        of.shrink(ENTRIES);
        self.due.insert(server);
    }

    /// Takes up what an earlier process left: all of it, until it is known what rests on it.
    pub fn restore(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            self.due.insert(entry.server.clone());
            self.servers.entry(entry.server.clone()).or_default().insert(entry.id, entry);
        }
        self.restored = true;
    }

    /// Whether there is something to look at though nothing was noted.
    pub fn waits(&self, now: Nanos) -> bool {
        self.restored || !self.standing.is_empty() && now >= self.again
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
        if std::mem::take(&mut self.restored) || now >= self.again {
            self.due.extend(self.standing.keys().cloned());
            self.again = now.saturating_add(quiet / LOOKS);
        }
        for server in std::mem::take(&mut self.due) {
            let of = self.servers.get(&server).filter(|of| of.failed > 0);
            let fold = |of: &OfServer| fold(of.entries.values().map(|entry| &**entry), now, quiet);
            let mut all = of.map_or_else(Vec::new, fold);
            all.extend(self.gone(&server, &all));
            self.stand(server, &all);
            found.extend(all);
        }
        for incident in sort_incidents(found) {
            let Incident { server, layer, reason, discriminator, .. } = incident.clone();
            let key = (server, layer, reason, discriminator);
            if self.told.get(&key) != Some(&incident) {
                let known = said.remove(&digest_of(&incident));
                self.told.insert(key, incident.clone());
                effects.push(match known {
                    true => Effect::RecalledIncident(incident),
                    false => Effect::Incident(incident),
                });
            }
        }
    }

    /// Those that stood and of which no failure is left, as each was revised into something else.
    fn gone(&self, server: &Name, all: &[Incident]) -> Vec<Incident> {
        let of = |i: &Incident| (i.layer.clone(), i.reason, i.discriminator.clone());
        let left: BTreeSet<_> = all.iter().map(of).collect();
        let stood = self.standing.get(server).into_iter().flatten();
        let gone = stood.filter(|incident| !left.contains(&of(incident)));
        gone.map(|incident| Incident {
            status: IncidentStatus::Expired,
            count: 0,
            ..incident.clone()
        })
        .collect()
    }

    fn stand(&mut self, server: Name, all: &[Incident]) {
        let stands = |incident: &&Incident| {
            matches!(incident.status, IncidentStatus::Open | IncidentStatus::Recovering)
        };
        let standing: Vec<Incident> = all.iter().filter(stands).cloned().collect();
        if self.standing.get(&server).map_or(&[][..], |known| known) == standing {
            return;
        }
        self.moved = true;
        if let Some(of) = self.servers.get_mut(&server) {
            let rests_on = standing.iter().flat_map(|incident| &incident.rests_on);
            of.keep(rests_on.copied().take(KEPT).collect());
        }
        match standing.is_empty() {
            true => self.standing.remove(&server),
            false => self.standing.insert(server, standing),
        };
    }

    /// Those that stand, if they are not those that stood when last asked.
    pub fn moved(&mut self) -> Option<impl Iterator<Item = &Incident>> {
        let moved = std::mem::take(&mut self.moved);
        moved.then(|| self.standing.values().flatten())
    }

    /// They are to be given out again, as what is said of them may be another.
    pub fn touch(&mut self) {
        self.moved = true;
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.servers.values().flat_map(|of| of.entries.values().map(|entry| &**entry))
    }

    /// Every incident as it was last told.
    pub fn told(&self) -> impl Iterator<Item = &Incident> {
        self.told.values()
    }

    /// Where there are more than `most` entries, a quarter of the servers leaves, or all of it that
    /// no incident rests on: first those where none stands, and of these those that were quiet
    /// longest. How many servers lost something.
    pub fn thin(&mut self, most: usize) -> u64 {
        let total: usize = self.servers.values().map(|of| of.entries.len().max(1)).sum();
        if total <= most {
            return 0;
        }
        let mut servers: Vec<(Worth, Nanos, Name)> =
            self.servers.iter().map(|(name, of)| (of.worth(), of.newest(), name.clone())).collect();
        servers.sort();
        servers.truncate(servers.len().div_ceil(4));
        let mut gone = BTreeSet::new();
        for (worth, _, server) in &servers {
            match (worth, self.servers.get_mut(server)) {
                (Worth::InPart, Some(of)) => of.shrink(0),
                _ => {
                    self.servers.remove(server);
                    self.moved |= self.standing.remove(server).is_some();
                    gone.insert(server);
                }
            }
        }
        self.told.retain(|(of, ..), _| !gone.contains(of));
        servers.len() as u64
    }
}

#[cfg(test)]
#[path = "incidents_tests.rs"]
mod tests;
