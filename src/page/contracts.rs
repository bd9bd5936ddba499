//! What each tool was read to be: `GET /v1/contracts`, for those who pin from a running instance.
//!
//! Promises: digests, names and times, no text of a definition; pages are bounded and keep their
//! place while lines come and go.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use super::board::{Catalogs, Rules};
use super::check::holder;
use super::listing::{MOST, limit};
use super::question::Wrong;
use crate::catalog::lockfile::{Holder, member_map};
use crate::catalog::projection::full_name;
use crate::catalog::reference::Reading;
use crate::model::digest::Digest;
use crate::model::ids::Name;
use crate::model::policy::Context;
use crate::proto::{HeldContract, ListContractsResponse};

/// What is wanted of the contracts.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wanted {
    pub server: String,
    pub tool: String,
    pub limit: Option<u32>,
    pub page_token: String,
}

/// A place in the list: server, tool, context.
type Place = (String, String, String);

/// One page.
///
/// # Errors
/// For a token that no page gave.
pub fn page(
    rules: &Rules,
    catalogs: &Catalogs,
    wanted: &Wanted,
) -> Result<ListContractsResponse, Wrong> {
    let after = after(&wanted.page_token)?;
    let limit = limit(wanted.limit, MOST)?;
    let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
    let servers = catalogs.iter().filter(|(server, _)| is(&wanted.server, server));
    let lines = servers.flat_map(|(server, known)| {
        known.lines().map(move |(tool, context, readings)| (server, tool, context, readings))
    });
    let mut found = Vec::new();
    let mut last: Option<Place> = None;
    for (server, tool, context, readings) in lines.filter(|(_, tool, ..)| is(&wanted.tool, tool)) {
        let place = (server.to_string(), tool.to_string(), context_text(context));
        if after.as_ref().is_some_and(|after| place <= *after) {
            continue;
        }
        if found.len() == limit {
            let next_page_token = last.as_ref().map(token).unwrap_or_default();
            return Ok(ListContractsResponse { contracts: found, next_page_token });
        }
        found.push(line(rules, server, tool, context, readings));
        last = Some(place);
    }
    Ok(ListContractsResponse { contracts: found, next_page_token: String::new() })
}

/// Contexts in the order of the catalog.
fn context_text(context: &Context) -> String {
    match context {
        Context::Auth(auth) => format!("a{auth}"),
        Context::Client(None) => "c".to_owned(),
        Context::Client(Some(client)) => format!("c{client}"),
    }
}

fn token(place: &Place) -> String {
    let (server, tool, context) = place;
    URL_SAFE_NO_PAD.encode(json!([server, tool, context]).to_string())
}

fn after(token: &str) -> Result<Option<Place>, Wrong> {
    if token.is_empty() {
        return Ok(None);
    }
    let place = URL_SAFE_NO_PAD.decode(token).ok();
    let place = place.and_then(|text| serde_json::from_slice::<Place>(&text).ok());
    match place {
        Some(place) => Ok(Some(place)),
        None => Err(Wrong(
            "`page_token` is none; send the `next_page_token` of the page before".to_owned(),
        )),
    }
}

fn line(
    rules: &Rules,
    server: &Name,
    tool: &Name,
    context: &Context,
    readings: &[Reading],
) -> HeldContract {
    let newest = readings.last();
    let named = readings.iter().rev().find_map(|reading| reading.definition.as_ref());
    let name = named.map_or(tool.as_str(), full_name);
    let definition = newest.and_then(|reading| reading.definition.as_ref());
    let members = definition.map(member_map).unwrap_or_default();
    let members = members.iter().map(|(at, digest)| (at.clone(), text(digest)));
    let digest = |reading: Option<&Reading>| reading.and_then(|r| r.digest.as_ref()).map(text);
    let holder = holder(Some(context));
    let pin = rules.lockfile.find(server, &holder, name);
    let (auth, client) = match &holder {
        Holder::Anyone => (None, None),
        Holder::Auth(auth) => (Some(auth), None),
        Holder::Client(client) => (None, Some(client)),
    };
    HeldContract {
        server: server.to_string(),
        tool: name.to_owned(),
        auth: auth.map(ToString::to_string),
        client: client.map(ToString::to_string),
        digest: digest(newest),
        members: members.collect(),
        seen: newest.map(|reading| reading.at),
        first_digest: digest(readings.first()),
        first_seen: readings.first().map(|reading| reading.at),
        pinned_digest: pin.map(|pin| text(&pin.digest)),
        approved: pin.map(|pin| pin.approved.is_some()),
    }
}

fn text(digest: &Digest) -> String {
    digest.to_string()
}
