//! Replay: the same tables fed with recorded exports, in event time. The last revisions are those
//! of a live run that saw the same facts; `all` prints every one on the way.

use std::sync::Arc;

use super::limits::Limits;
use super::live::{Effect, Engine};
use super::records::order;
use super::tables::{Now, Tables};
use crate::judge::summary::summary;
use crate::model::fact::Sighting;
use crate::model::ids::{Arrival, Nanos, Position, SECOND};
use crate::model::policy::Policy;
use crate::model::record::{Record, Verdict};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Revisions {
    #[default]
    Final,
    All,
}

/// No bound matters to a file that was read whole.
fn unbounded() -> Limits {
    let most = usize::MAX;
    Limits {
        names: most,
        lookback: most,
        facts: most,
        facts_per_trace: most,
        chains: most,
        scopes: most,
        incidents: most,
        ..Limits::default()
    }
}

/// The tables after all facts, judged once at the newest sane event time of the whole input.
pub(super) fn settled(sightings: Vec<Sighting>, policy: &Arc<Policy>) -> Tables {
    let mut tables = Tables::new(policy.clone(), unbounded());
    for sighting in sightings {
        tables.see(sighting, 0);
    }
    tables.sweep(0);
    let now = Now { event: tables.newest, live: false };
    tables.round(now);
    tables
}

/// Judges recorded exports. Records come in the order of judgment.md §8.
pub fn replay(sightings: Vec<Sighting>, policy: &Arc<Policy>, revisions: Revisions) -> Vec<Record> {
    let earlier = match revisions {
        Revisions::Final => Vec::new(),
        Revisions::All => stepped(&sightings, policy),
    };
    let tables = settled(sightings, policy);
    let finals = tables.verdicts();
    let mut verdicts: Vec<Verdict> = finals.iter().map(|v| v.as_ref().clone()).collect();
    for verdict in &mut verdicts {
        let last = earlier.iter().rev().find(|known| known.id == verdict.id);
        if let Some(known) = last {
            verdict.revision = known.revision;
            verdict.supersedes = known.supersedes;
            if !verdict.same_as(known) {
                verdict.supersedes = Some(known.revision);
                verdict.revision = known.revision + 1;
            }
        }
    }
    let before = earlier.into_iter().filter(|known| {
        !verdicts.iter().any(|last| last.id == known.id && last.revision == known.revision)
    });
    let mut printed: Vec<Verdict> = before.collect();
    printed.extend(verdicts.iter().cloned());
    printed.sort_by_key(|verdict| (order(verdict), verdict.revision));
    let mut records: Vec<Record> =
        printed.into_iter().map(|verdict| Record::Verdict(Box::new(verdict))).collect();
    records.extend(rest(&tables, &verdicts));
    records
}

/// Sessions, drifts, incidents, summary.
fn rest(tables: &Tables, verdicts: &[Verdict]) -> Vec<Record> {
    let mut sessions: Vec<_> = tables.scopes.keys().filter_map(|key| tables.session(key)).collect();
    sessions.sort_by(|a, b| (a.first_start, &a.scope).cmp(&(b.first_start, &b.scope)));
    let incidents = tables.incidents(tables.newest);
    let summary = summary(verdicts, incidents.len() as u64);
    let sessions = sessions.into_iter().map(Record::Session);
    let drifts = tables.drifts().into_iter().map(Record::ContractDrift);
    let incidents = incidents.into_iter().map(Record::Incident);
    sessions.chain(drifts).chain(incidents).chain([Record::Summary(summary)]).collect()
}

/// Every revision of a run in which each fact arrives at its own time.
fn stepped(sightings: &[Sighting], policy: &Arc<Policy>) -> Vec<Verdict> {
    let mut pieces: Vec<(Nanos, Sighting)> = sightings.iter().flat_map(apart).collect();
    pieces.sort_by_key(|(time, _)| *time);
    let Some(first) = pieces.iter().map(|(time, _)| *time).find(|time| *time != 0) else {
        return Vec::new();
    };
    let mut engine = Engine::new(policy.clone(), unbounded());
    let mut found = Vec::new();
    let arrival = |time: Nanos| Arrival { monotonic: time.saturating_sub(first), wall: time };
    let mut keep = |effects: Vec<Effect>| {
        found.extend(effects.into_iter().filter_map(|effect| match effect {
            Effect::Verdict(verdict) => Some(Arc::unwrap_or_clone(verdict)),
            _ => None,
        }));
    };
    let mut last = first;
    for (time, piece) in pieces {
        let time = time.max(last);
        // Between two records far apart, the verdict of the first settles.
        if time > last.saturating_add(policy.settle) {
            keep(engine.tick(arrival(last.saturating_add(policy.settle))));
        }
        keep(engine.tick(arrival(time)));
        engine.see(Position(0), piece, arrival(time));
        last = time;
    }
    keep(engine.tick(arrival(last.saturating_add(policy.settle + SECOND))));
    found
}

/// One sighting for each record of an export, with the time it was complete.
fn apart(sighting: &Sighting) -> Vec<(Nanos, Sighting)> {
    let facts = sighting.facts.iter().map(|fact| {
        let alone = Sighting { facts: vec![fact.clone()], ..Sighting::default() };
        (fact.end.max(fact.start), alone)
    });
    let bones = sighting.bones.iter().map(|bone| {
        let alone = Sighting { bones: vec![bone.clone()], ..Sighting::default() };
        (bone.end.max(bone.start), alone)
    });
    facts.chain(bones).collect()
}
