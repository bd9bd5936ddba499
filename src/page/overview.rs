//! What is going on at a glance: `GET /v1/overview`, and the names to filter by, `GET /v1/names`.

use std::collections::BTreeMap;

use super::question::Wrong;
use super::recent::Recent;
use super::timeline::{MINUTES, Minute};
use crate::model::ids::{Name, Nanos, SECOND};
use crate::model::words::{IncidentStatus, Owner, State};
use crate::proto::{self, Calls, GetNamesResponse, GetOverviewResponse, OwnedIncidents};

/// How much of the timeline is wanted.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wanted {
    /// Minutes back from now; 0 for an hour.
    pub minutes: u64,
}

const HOUR: u64 = 60;

/// States over time, what answered beside what was verified, open incidents by owner.
///
/// `now`: our own clock, in Unix nanoseconds.
///
/// # Errors
/// For more minutes than are kept.
pub fn overview(
    recent: &Recent,
    wanted: &Wanted,
    now: Nanos,
) -> Result<GetOverviewResponse, Wrong> {
    let span = if wanted.minutes == 0 { HOUR } else { wanted.minutes };
    if span > MINUTES {
        return Err(Wrong(format!("`minutes` is at most {MINUTES}")));
    }
    let oldest = (now / (60 * SECOND)).saturating_sub(span - 1);
    let minutes = || recent.timeline.minutes().filter(|(at, _)| *at >= oldest);
    let sum = |of: fn(&Minute) -> u32| minutes().map(|(_, m)| u64::from(of(m))).sum::<u64>();
    Ok(GetOverviewResponse {
        chains: recent.chains(),
        revisions: recent.revisions() as u64,
        states: counts(recent.states.iter().map(|(state, count)| (*state, *count))),
        calls: Some(Calls {
            attempts: sum(|m| m.attempts),
            protocol_success: sum(|m| m.protocol_success),
            verified_success: sum(|m| m.verified_success),
        }),
        minutes: minutes().map(|(at, minute)| self::minute(at, minute)).collect(),
        incidents: incidents(recent),
    })
}

fn minute(at: u64, minute: &Minute) -> proto::Minute {
    proto::Minute {
        start: at * 60 * SECOND,
        attempts: minute.attempts.into(),
        protocol_success: minute.protocol_success.into(),
        verified_success: minute.verified_success.into(),
        states: counts(minute.states().map(|(state, count)| (state, count.into()))),
    }
}

fn counts(states: impl Iterator<Item = (State, u64)>) -> BTreeMap<String, u64> {
    states.map(|(state, count)| (state.to_string(), count)).collect()
}

/// Those that are not over, by who acts next.
fn incidents(recent: &Recent) -> Vec<OwnedIncidents> {
    let mut owners: BTreeMap<Owner, (u64, u64)> = BTreeMap::new();
    for (_, incident) in recent.incidents.before(u64::MAX) {
        let (open, recovering) = match incident.status {
            IncidentStatus::Open => (1, 0),
            IncidentStatus::Recovering => (0, 1),
            IncidentStatus::Resolved | IncidentStatus::Expired => continue,
        };
        let row = owners.entry(incident.owner).or_default();
        *row = (row.0 + open, row.1 + recovering);
    }
    let row = |(owner, (open, recovering)): (Owner, (u64, u64))| OwnedIncidents {
        owner: owner.to_string(),
        open,
        recovering,
    };
    owners.into_iter().map(row).collect()
}

/// What remembered chains can be filtered by.
pub fn names(recent: &Recent) -> GetNamesResponse {
    let texts = |names: &[Name]| names.iter().map(Name::to_string).collect();
    let names = &recent.names;
    GetNamesResponse {
        servers: texts(&names.servers),
        tools: texts(&names.tools),
        agents: texts(&names.agents),
    }
}
