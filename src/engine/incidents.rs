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
/// How often those that stand are looked at within `incident_quiet`, though nothing is heard.
const LOOKS: u64 = 24;

#[derive(Default)]
struct OfServer {
    entries: BTreeMap<Digest16, Box<Entry>>,
    by_time: BTreeSet<(Nanos, Digest16)>,
    /// How many of them are failures.
    failed: usize,
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
        if of.entries.len() > ENTRIES
            && let Some((_, oldest)) = of.by_time.first().copied()
        {
            of.remove(&oldest);
        }
        self.due.insert(server);
    }

    /// What an earlier process left has all been noted.
    pub fn restored(&mut self) {
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
            let all = of.map_or_else(Vec::new, fold);
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

    fn stand(&mut self, server: Name, all: &[Incident]) {
        let stands = |incident: &&Incident| {
            matches!(incident.status, IncidentStatus::Open | IncidentStatus::Recovering)
        };
        let standing: Vec<Incident> = all.iter().filter(stands).cloned().collect();
        if self.standing.get(&server).map_or(&[][..], |known| known) == standing {
            return;
        }
        self.moved = true;
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

    /// Where there are more than `most` entries, the servers that were quiet longest leave; how
    /// many did.
    pub fn thin(&mut self, most: usize) -> u64 {
        let total: usize = self.servers.values().map(|of| of.entries.len().max(1)).sum();
        if total <= most {
            return 0;
        }
        let newest = |of: &OfServer| of.by_time.last().map_or(0, |(time, _)| *time);
        let mut servers: Vec<(Nanos, Name)> =
            self.servers.iter().map(|(name, of)| (newest(of), name.clone())).collect();
        servers.sort();
        servers.truncate(servers.len().div_ceil(4));
        let gone: BTreeSet<Name> = servers.into_iter().map(|(_, server)| server).collect();
        for server in &gone {
            self.servers.remove(server);
            self.moved |= self.standing.remove(server).is_some();
        }
        self.told.retain(|(of, ..), _| !gone.contains(of));
        gone.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incident::{Failure, Passes};
    use crate::model::ids::{SECOND, SpanId, SpanRef, TraceId};
    use crate::model::record::FailureLayers;
    use crate::model::words::{NextStep, Owner, Rung};

    const QUIET: Nanos = 24 * 3600 * SECOND;
    const T0: Nanos = 1_700_000_000 * SECOND;

    fn entry(fails: bool) -> Entry {
        let layers = FailureLayers {
            transport: Rung::Passed,
            protocol: Rung::Passed,
            authority: Rung::Passed,
            execution: if fails { Rung::Failed } else { Rung::Passed },
            outcome: Rung::Unobserved,
        };
        let failure = fails.then(|| Failure {
            layer: Name::new("execution"),
            reason: Reason::ToolError,
            discriminator: Name::some("create_ticket"),
            owner: Owner::ToolOwner,
            next_step: NextStep::InspectToolOrInput,
        });
        Entry {
            id: Digest16::of(&[b"one chain"]),
            server: Name::new("desk"),
            scope: Name::new("s1"),
            agent: None,
            method: Name::new("tools/call"),
            tool: Name::some("create_ticket"),
            unknown_tool: false,
            credential: None,
            start: T0,
            time: T0,
            span: SpanRef { trace: TraceId([1; 16]), span: SpanId([1; 8]) },
            failure,
            passes: Passes { layers, catalog: Rung::Unobserved, settled: false },
        }
    }

    /// What is told, and what stands if that has changed.
    fn look(incidents: &mut Incidents, now: Nanos) -> (Vec<Effect>, Option<usize>) {
        let mut effects = Vec::new();
        incidents.changed(now, QUIET, &mut BTreeSet::new(), &mut effects);
        (effects, incidents.moved().map(Iterator::count))
    }

    fn failed() -> Incidents {
        let mut incidents = Incidents::default();
        let entry = entry(true);
        incidents.note(entry.server.clone(), entry.id, Some(entry));
        assert_eq!(look(&mut incidents, T0).1, Some(1));
        incidents
    }

    #[test]
    fn time_alone_ends_what_stands() {
        let mut incidents = failed();
        assert!(!incidents.waits(T0 + SECOND));
        let soon = T0 + QUIET / LOOKS;
        assert!(incidents.waits(soon));
        assert_eq!(look(&mut incidents, soon), (Vec::new(), None));
        let later = T0 + QUIET + SECOND;
        let (told, standing) = look(&mut incidents, later);
        let expired = |effect: &Effect| match effect {
            Effect::Incident(incident) => incident.status == IncidentStatus::Expired,
            _ => false,
        };
        assert!(told.len() == 1 && told.iter().all(expired), "{told:?}");
        assert_eq!(standing, Some(0));
        assert!(!incidents.waits(later + QUIET));
    }

    #[test]
    fn a_failure_that_is_revised_away_stands_no_longer() {
        let mut incidents = failed();
        let entry = entry(false);
        incidents.note(entry.server.clone(), entry.id, Some(entry));
        assert_eq!(look(&mut incidents, T0 + SECOND).1, Some(0));
    }

    #[test]
    fn what_an_earlier_process_left_is_looked_at_at_once_and_told_as_known() {
        let told: BTreeSet<Digest16> = failed().told().map(digest_of).collect();
        let mut incidents = Incidents::default();
        let entry = entry(true);
        incidents.note(entry.server.clone(), entry.id, Some(entry));
        assert!(!incidents.waits(T0));
        incidents.restored();
        assert!(incidents.waits(T0));
        let mut effects = Vec::new();
        incidents.changed(T0, QUIET, &mut told.clone(), &mut effects);
        assert!(matches!(&effects[..], [Effect::RecalledIncident(_)]), "{effects:?}");
        assert_eq!(incidents.moved().map(Iterator::count), Some(1));
        assert!(!incidents.waits(T0));
    }
}
