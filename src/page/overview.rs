//! What is going on at a glance: `GET /v1/overview`, and the names to filter by, `GET /v1/names`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::question::Wrong;
use super::recent::Recent;
use super::timeline::{MINUTES, Minute};
use crate::model::ids::{Nanos, SECOND};
use crate::model::record::Incident;
use crate::model::words::{IncidentStatus, Owner, State};

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
pub fn overview(recent: &Recent, wanted: &Wanted, now: Nanos) -> Result<Value, Wrong> {
    let span = if wanted.minutes == 0 { HOUR } else { wanted.minutes };
    if span > MINUTES {
        return Err(Wrong(format!("`minutes` is at most {MINUTES}")));
    }
    let oldest = (now / (60 * SECOND)).saturating_sub(span - 1);
    let minutes = || recent.timeline.minutes().filter(|(at, _)| *at >= oldest);
    let sum = |of: fn(&Minute) -> u32| minutes().map(|(_, m)| u64::from(of(m))).sum::<u64>();
    Ok(json!({
        "chains": recent.chains(),
        "revisions": recent.revisions(),
        "states": counts(recent.states.iter().map(|(state, count)| (*state, *count))),
        "calls": {
            "attempts": sum(|m| m.attempts),
            "protocol_success": sum(|m| m.protocol_success),
            "verified_success": sum(|m| m.verified_success),
        },
        "minutes": minutes().map(|(at, minute)| self::minute(at, minute)).collect::<Vec<_>>(),
        "incidents": incidents(recent),
    }))
}

fn minute(at: u64, minute: &Minute) -> Value {
    json!({
        "start": (at * 60).to_string(),
        "attempts": minute.attempts,
        "protocol_success": minute.protocol_success,
        "verified_success": minute.verified_success,
        "states": counts(minute.states().map(|(state, count)| (state, count.into()))),
    })
}

fn counts(states: impl Iterator<Item = (State, u64)>) -> Value {
    Value::Object(states.map(|(state, count)| (state.to_string(), count.into())).collect())
}

/// Those that are not over, by who acts next.
fn incidents(recent: &Recent) -> Vec<Value> {
    let mut owners: BTreeMap<Owner, BTreeMap<IncidentStatus, u64>> = BTreeMap::new();
    let over = |incident: &Incident| {
        matches!(incident.status, IncidentStatus::Resolved | IncidentStatus::Expired)
    };
    let all = recent.incidents.before(u64::MAX).map(|(_, incident)| incident);
    for incident in all.filter(|incident| !over(incident)) {
        *owners.entry(incident.owner).or_default().entry(incident.status).or_default() += 1;
    }
    let row = |(owner, counts): (Owner, BTreeMap<IncidentStatus, u64>)| {
        let mut row: Map<String, Value> = Map::new();
        row.insert("owner".into(), owner.as_str().into());
        for status in [IncidentStatus::Open, IncidentStatus::Recovering] {
            let count = counts.get(&status).copied().unwrap_or_default();
            row.insert(status.to_string(), count.into());
        }
        Value::Object(row)
    };
    owners.into_iter().map(row).collect()
}

/// What remembered chains can be filtered by.
pub fn names(recent: &Recent) -> Value {
    let names = &recent.names;
    json!({"servers": names.servers, "tools": names.tools, "agents": names.agents})
}
