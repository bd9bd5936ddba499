//! Pages of what is remembered, newest first, for both protocols: chains, incidents, sessions,
//! drifts.
//!
//! Promises: stable: what is said while somebody reads appears on no later page, and nothing twice;
//! a page is bounded.

use std::sync::Arc;

use super::question::Wrong;
use super::recent::{Recent, Said};
use super::text::Text;
use crate::model::record::{Drift, Incident, Session, Verdict};
use crate::model::words::{Convergence, FailureLayer, Grade, IncidentStatus, Owner, State};

/// What of a list is wanted. Empty texts are the defaults.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wanted {
    /// One state, or several separated by commas.
    pub state: String,
    pub status: String,
    pub first_failed_layer: String,
    pub convergence: String,
    pub grade: String,
    pub server: String,
    pub tool: String,
    pub agent: String,
    pub owner: String,
    /// Part of a name, a code or an id.
    pub text: String,
    pub limit: Option<u32>,
    pub page_token: String,
}

/// One page.
#[derive(Clone, Debug)]
pub struct Page<T> {
    pub items: Vec<Arc<T>>,
    /// Empty on the last page.
    pub next: String,
}

const DEFAULT: u32 = 100;
/// Items of one page.
pub(super) const MOST: u32 = 1000;

/// Chains by their latest revision.
///
/// # Errors
/// For a token that no page gave, and a word that there is not.
pub fn chains(recent: &Recent, wanted: &Wanted) -> Result<Page<Said>, Wrong> {
    let filter = Filter::new(wanted)?;
    let (from, limit) = (start(wanted)?, limit(wanted.limit, DEFAULT)?);
    Ok(page(recent.chains_before(from).filter(|(_, said)| filter.fits(said)), limit))
}

/// Which verdicts are wanted.
pub(super) struct Filter {
    states: Vec<State>,
    layers: Vec<FailureLayer>,
    server: String,
    tool: String,
    agent: String,
    text: Text,
}

impl Filter {
    /// # Errors
    /// For a word that there is not.
    pub fn new(wanted: &Wanted) -> Result<Self, Wrong> {
        let layers = &wanted.first_failed_layer;
        Ok(Filter {
            states: words("state", &wanted.state, State::ALL, State::as_str)?,
            layers: words("first_failed_layer", layers, FailureLayer::ALL, |l| l.as_str())?,
            server: wanted.server.clone(),
            tool: wanted.tool.clone(),
            agent: wanted.agent.clone(),
            text: Text::new(&wanted.text),
        })
    }

    pub fn fits(&self, said: &Verdict) -> bool {
        let layers = &self.layers;
        (self.states.is_empty() || self.states.contains(&said.state))
            && (layers.is_empty() || said.first_failed_layer.is_some_and(|l| layers.contains(&l)))
            && is(&self.server, &said.server)
            && is(&self.tool, said.tool.as_deref().unwrap_or_default())
            && is(&self.agent, said.agent.as_deref().unwrap_or_default())
            && self.text.of_verdict(said)
    }
}

/// Incidents by when they last changed.
///
/// # Errors
/// For a token that no page gave, and a word that there is not.
pub fn incidents(recent: &Recent, wanted: &Wanted) -> Result<Page<Incident>, Wrong> {
    let all = IncidentStatus::ALL;
    let statuses = words("status", &wanted.status, all, IncidentStatus::as_str)?;
    let owners = words("owner", &wanted.owner, Owner::ALL, Owner::as_str)?;
    let fits = |incident: &Incident| {
        (statuses.is_empty() || statuses.contains(&incident.status))
            && (owners.is_empty() || owners.contains(&incident.owner))
            && is(&wanted.server, &incident.server)
    };
    let (from, limit) = (start(wanted)?, limit(wanted.limit, DEFAULT)?);
    Ok(page(recent.incidents.before(from).filter(|(_, incident)| fits(incident)), limit))
}

/// Scopes of requests, each with what its client holds, by when they last changed.
///
/// # Errors
/// For a token that no page gave, and a word that there is not.
pub fn sessions(recent: &Recent, wanted: &Wanted) -> Result<Page<Session>, Wrong> {
    let all = Convergence::ALL;
    let convergences = words("convergence", &wanted.convergence, all, Convergence::as_str)?;
    let text = Text::new(&wanted.text);
    let fits = |session: &Session| {
        (convergences.is_empty() || convergences.contains(&session.convergence))
            && text.of_session(session)
    };
    let (from, limit) = (start(wanted)?, limit(wanted.limit, DEFAULT)?);
    Ok(page(recent.sessions.before(from).filter(|(_, session)| fits(session)), limit))
}

/// Changes of contracts by when they were said.
///
/// # Errors
/// For a token that no page gave, and a word that there is not.
pub fn drifts(recent: &Recent, wanted: &Wanted) -> Result<Page<Drift>, Wrong> {
    let grades = words("grade", &wanted.grade, Grade::ALL, Grade::as_str)?;
    let fits = |drift: &Drift| {
        (grades.is_empty() || grades.contains(&drift.grade))
            && is(&wanted.server, &drift.server)
            && is(&wanted.tool, &drift.tool)
    };
    let (from, limit) = (start(wanted)?, limit(wanted.limit, DEFAULT)?);
    Ok(page(recent.drifts.before(from).filter(|(_, drift)| fits(drift)), limit))
}

/// The words that are wanted, none for all of them. A typing mistake is no empty list.
fn words<W: Copy>(
    key: &str,
    wanted: &str,
    all: &[W],
    as_str: impl Fn(W) -> &'static str,
) -> Result<Vec<W>, Wrong> {
    let named = wanted.split(',').map(str::trim).filter(|word| !word.is_empty());
    let read = |word| all.iter().copied().find(|known| as_str(*known) == word);
    let found: Option<Vec<W>> = named.map(read).collect();
    found.ok_or_else(|| {
        let all: Vec<&str> = all.iter().map(|word| as_str(*word)).collect();
        Wrong(format!("there is no such `{key}`; send one of {}", all.join(", ")))
    })
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

/// How many items a page holds: nobody wants an empty one, and there is a most.
///
/// # Errors
/// For zero.
pub(super) fn limit(wanted: Option<u32>, default: u32) -> Result<usize, Wrong> {
    match wanted {
        Some(0) => Err(Wrong(format!("`limit` is 0; send 1 to {MOST}, or none for {default}"))),
        some => Ok(some.unwrap_or(default).min(MOST) as usize),
    }
}

fn page<'a, T: 'a>(mut items: impl Iterator<Item = (u64, &'a Arc<T>)>, limit: usize) -> Page<T> {
    let some: Vec<_> = items.by_ref().take(limit).collect();
    let next = match (some.last(), items.next()) {
        (Some((number, _)), Some(_)) => number.to_string(),
        _ => String::new(),
    };
    Page { items: some.into_iter().map(|(_, item)| item.clone()).collect(), next }
}
