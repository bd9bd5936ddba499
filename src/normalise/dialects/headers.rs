//! HTTP spans that show MCP's own headers (2026-07-28): the request is named by what carries it.

use crate::model::fact::{End, Rank};
use crate::model::ids::Name;
use crate::normalise::draft::{Draft, end_of_kind};
use crate::normalise::item::Item;
use crate::normalise::{answer, conventions as key, http};

fn header(item: &Item<'_>, name: &str) -> Option<String> {
    let spelled = [
        format!("http.request.header.{name}"),
        format!("http.request.header.{}", name.replace('-', "_")),
    ];
    let value = spelled.iter().find_map(|key| item.attributes.text(&[key]))?;
    // Some scrub the values of headers that they take for secrets.
    (!value.starts_with('[')).then(|| value.into_owned())
}

pub fn read(item: &Item<'_>) -> Option<Vec<Draft>> {
    let method = header(item, "mcp-method")?;
    if !http::read(item)?.carries {
        return None;
    }
    let mut draft = Draft::of(item, &method);
    draft.half.end = end_of_kind(item.kind);
    draft.half.rank = Rank::Framework;
    if draft.is_call() {
        draft.half.tool = header(item, "mcp-name").and_then(|name| Name::some(&name));
    }
    if let Some(version) = header(item, "mcp-protocol-version") {
        draft.half.version = Name::some(&version);
    }
    if draft.half.end == End::Asking {
        // The port is part of the address that the conventions give for this span.
        draft.half.transport = Some(crate::model::words::Transport::Http);
    }
    answer::read(item, &mut draft);
    // HTTP's own error is told by its status and needs no name beside it.
    if draft.half.answer.http_status.is_some() && draft.half.answer.code.is_none() {
        draft.half.answer.failure = None;
    }
    let notification = key::is_notification(&draft.half.method);
    (!notification).then(|| vec![draft])
}
