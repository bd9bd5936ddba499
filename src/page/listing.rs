//! Pages of what is remembered: chains and incidents, newest first, for both protocols.
//!
//! Promises: stable: what is said while somebody reads appears on no later page, and nothing twice;
//! a page is bounded.

use std::sync::Arc;

use super::board::Recent;
use super::question::Wrong;
use crate::model::record::{Incident, Verdict};
use crate::model::words::{IncidentStatus, State};

/// What of a list is wanted. Empty texts and zero are the defaults.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wanted {
    pub state: String,
    pub status: String,
    pub server: String,
    pub tool: String,
    pub limit: u32,
    pub page_token: String,
}

/// One page.
#[derive(Clone, Debug)]
pub struct Page<T> {
    pub items: Vec<Arc<T>>,
    /// Empty on the last page.
    pub next: String,
}

const DEFAULT: usize = 100;
const MOST: u32 = 1000;

/// Chains by their latest revision.
///
/// # Errors
/// For a token that no page gave, and a state that there is not.
pub fn chains(recent: &Recent, wanted: &Wanted) -> Result<Page<Verdict>, Wrong> {
    known("state", &wanted.state, State::ALL.iter().map(|state| state.as_str()))?;
    let fits = |verdict: &Verdict| {
        is(&wanted.state, verdict.state.as_str())
            && is(&wanted.server, &verdict.server)
            && is(&wanted.tool, verdict.tool.as_deref().unwrap_or_default())
    };
    let from = start(wanted)?;
    Ok(page(recent.chains_before(from).filter(|(_, verdict)| fits(verdict)), wanted))
}

/// Incidents by when they last changed.
///
/// # Errors
/// For a token that no page gave, and a status that there is not.
pub fn incidents(recent: &Recent, wanted: &Wanted) -> Result<Page<Incident>, Wrong> {
    known("status", &wanted.status, IncidentStatus::ALL.iter().map(|status| status.as_str()))?;
    let fits = |incident: &Incident| {
        is(&wanted.status, incident.status.as_str()) && is(&wanted.server, &incident.server)
    };
    let from = start(wanted)?;
    Ok(page(recent.incidents.before(from).filter(|(_, incident)| fits(incident)), wanted))
}

/// A typing mistake is no empty list.
fn known(
    key: &str,
    wanted: &str,
    mut words: impl Iterator<Item = &'static str> + Clone,
) -> Result<(), Wrong> {
    if wanted.is_empty() || words.clone().any(|word| word == wanted) {
        return Ok(());
    }
    let all: Vec<&str> = words.by_ref().collect();
    Err(Wrong(format!("there is no such `{key}`; send one of {}", all.join(", "))))
}

fn is(wanted: &str, found: &str) -> bool {
    wanted.is_empty() || wanted == found
}

fn start(wanted: &Wanted) -> Result<u64, Wrong> {
    match wanted.page_token.as_str() {
        "" => Ok(u64::MAX),
        token => token.parse().map_err(|_| {
            Wrong("`page_token` is none; send the `next_page_token` of the page before".into())
        }),
    }
}

fn page<'a, T: 'a>(mut items: impl Iterator<Item = (u64, &'a Arc<T>)>, wanted: &Wanted) -> Page<T> {
    let limit = match wanted.limit {
        0 => DEFAULT,
        some => some.min(MOST) as usize,
    };
    let some: Vec<_> = items.by_ref().take(limit).collect();
    let next = match (some.last(), items.next()) {
        (Some((number, _)), Some(_)) => number.to_string(),
        _ => String::new(),
    };
    Page { items: some.into_iter().map(|(_, item)| item.clone()).collect(), next }
}
