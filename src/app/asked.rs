//! What the running program is asked: the board that answers come from, and the page's port.

use std::sync::Arc;

use super::effects::Said;
use super::pinning::Places;
use super::{StartError, lockfile, settings};
use crate::config::{self, Settings};
use crate::model::policy::Policy;
use crate::page::board::Rules;
use crate::page::{Board, Http, Vitals};
use crate::receive::{self, Page};

/// How many revisions the board remembers.
pub fn remembered(settings: &Settings) -> usize {
    settings::size(settings.limits.remembered)
}

/// The policy in force, with what the lockfile pins, and the rules by which checks answer.
///
/// # Errors
/// When the lockfile cannot be read or understood.
pub fn contracts(settings: &Settings) -> Result<(Policy, Rules), lockfile::Trouble> {
    let mut policy = settings.policy.clone();
    let mode = policy.contracts.mode;
    let lockfile = Places::of(settings).read(mode)?;
    policy.contracts.pins = lockfile.by_server();
    let fail_on = policy.contracts.fail_on.clone();
    Ok((policy, Rules { mode, fail_on, lockfile }))
}

/// How verdicts are told.
pub fn said(settings: &Settings, policy: Arc<Policy>) -> Said {
    let (events, spans) = (settings.emit.events, settings.emit.spans);
    Said { policy, events, spans, changes: settings::changes(settings) }
}

/// Opens the page's port; `None` where no endpoint is configured.
///
/// # Errors
/// When the port, a certificate or the credentials cannot be used.
pub async fn open_page(
    settings: &Settings,
    counters: receive::Counters,
    board: &Arc<Board>,
    vitals: Vitals,
) -> Result<Option<Page>, StartError> {
    let Some(listener) = settings::page(settings) else { return Ok(None) };
    // Without credentials, what protects a port on loopback is that it is one.
    let page = &settings.service.page;
    let local = !page.auth.required() && config::is_loopback(&page.endpoint);
    let handler = Arc::new(Http::new(board.clone(), vitals, local));
    let limits = settings::page_limits(settings);
    Ok(Some(Page::start(&listener, limits, counters, handler).await?))
}
