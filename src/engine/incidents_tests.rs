//! What stands, what is told, and what room it takes.

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
    let (told, standing) = look(&mut incidents, T0 + SECOND);
    let told = statuses(&told);
    assert_eq!((told, standing), (vec![(IncidentStatus::Expired, 0)], Some(0)));
}

#[test]
fn what_an_earlier_process_left_is_looked_at_at_once_and_told_as_known() {
    let told: BTreeSet<Digest16> = failed().told().map(digest_of).collect();
    let mut incidents = Incidents::default();
    let entry = entry(true);
    assert!(!incidents.waits(T0));
    incidents.restore(vec![entry]);
    assert!(incidents.waits(T0));
    let mut effects = Vec::new();
    incidents.changed(T0, QUIET, &mut told.clone(), &mut effects);
    assert!(matches!(&effects[..], [Effect::RecalledIncident(_)]), "{effects:?}");
    assert_eq!(incidents.moved().map(Iterator::count), Some(1));
    assert!(!incidents.waits(T0));
}

fn numbered(number: u64, fails: bool) -> Entry {
    let at = T0 + number * SECOND;
    let id = Digest16::of(&[&number.to_le_bytes()]);
    let span = SpanRef { trace: TraceId([1; 16]), span: SpanId(number.to_le_bytes()) };
    Entry { id, start: at, time: at, span, ..entry(fails) }
}

/// Newer calls of another tool, all fine.
fn others(incidents: &mut Incidents, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let mut entry = numbered(number, false);
        (entry.tool, entry.passes.settled) = (Name::some("search"), true);
        incidents.note(entry.server.clone(), entry.id, Some(entry));
    }
}

fn statuses(effects: &[Effect]) -> Vec<(IncidentStatus, u64)> {
    let status = |effect: &Effect| match effect {
        Effect::Incident(incident) => Some((incident.status, incident.count)),
        _ => None,
    };
    effects.iter().filter_map(status).collect()
}

/// The next process, once it has looked at what this one left.
fn restarted(incidents: &Incidents, now: Nanos) -> Incidents {
    let mut said: BTreeSet<Digest16> = incidents.told().map(digest_of).collect();
    let mut next = Incidents::default();
    next.restore(incidents.entries().cloned().collect());
    let mut effects = Vec::new();
    next.changed(now, QUIET, &mut said, &mut effects);
    assert_eq!(statuses(&effects), Vec::new());
    assert_eq!(next.moved().map(Iterator::count), Some(1));
    next
}

#[test]
fn however_many_calls_follow_an_incident_stands_until_it_is_resolved() {
    let mut incidents = Incidents::default();
    let note = |incidents: &mut Incidents, number, fails, verified| {
        let mut entry = numbered(number, fails);
        entry.passes.settled = verified;
        incidents.note(entry.server.clone(), entry.id, Some(entry));
        let (told, standing) = look(incidents, T0 + number * SECOND);
        (statuses(&told), standing)
    };
    let open = (vec![(IncidentStatus::Open, 1)], Some(1));
    assert_eq!(note(&mut incidents, 1, true, false), open);
    let most = ENTRIES as u64;
    others(&mut incidents, 2..most + 10);
    assert_eq!(look(&mut incidents, T0 + most * SECOND), (Vec::new(), None));
    let recovering = (vec![(IncidentStatus::Recovering, 1)], Some(1));
    assert_eq!(note(&mut incidents, most + 10, false, false), recovering);
    others(&mut incidents, most + 11..2 * most + 20);
    assert_eq!(look(&mut incidents, T0 + 2 * most * SECOND), (Vec::new(), None));
    let mut incidents = restarted(&incidents, T0 + 2 * most * SECOND);
    let resolved = (vec![(IncidentStatus::Resolved, 1)], Some(0));
    assert_eq!(note(&mut incidents, 2 * most + 20, false, true), resolved);
    assert_eq!(incidents.entries().count(), ENTRIES);
}

#[test]
fn where_room_is_short_those_that_stand_stay_longest() {
    let mut incidents = failed();
    others(&mut incidents, 1..100);
    let mut quiet = numbered(500, false);
    quiet.server = Name::new("quiet");
    incidents.note(quiet.server.clone(), quiet.id, Some(quiet));
    assert_eq!(look(&mut incidents, T0 + 600 * SECOND).1, None);
    // A server without incidents leaves first, then what no incident rests on.
    assert_eq!((incidents.thin(50), incidents.entries().count()), (1, 100));
    assert_eq!((incidents.thin(50), incidents.entries().count()), (1, 1));
    assert_eq!(look(&mut incidents, T0 + 601 * SECOND).1, None);
    assert_eq!(incidents.thin(0), 1);
    assert_eq!(look(&mut incidents, T0 + 602 * SECOND).1, Some(0));
}
