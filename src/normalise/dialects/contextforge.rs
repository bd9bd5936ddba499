//! ContextForge, a gateway: its own names, `success` flags, keys with underscores.

use super::semconv;
use crate::model::fact::{End, Rank};
use crate::normalise::draft::Draft;
use crate::normalise::item::Item;

pub fn read(item: &Item<'_>) -> Option<Vec<Draft>> {
    if item.scope != "mcp-gateway" {
        return None;
    }
    let integration = item.attributes.text(&["tool.integration_type"]);
    let draft = match &*item.name {
        "mcp.initialize" => Some(half(item, "initialize", End::Answering, Rank::Wire)),
        "mcp.client.initialize" => Some(half(item, "initialize", End::Asking, Rank::Wire)),
        "mcp.client.call" => Some(half(item, "tools/call", End::Asking, Rank::Wire)),
        // The gateway's own step around the call; for other integrations no MCP is behind it.
        "tool.invoke" => integration
            .filter(|kind| kind.eq_ignore_ascii_case("mcp"))
            .map(|_| half(item, "tools/call", End::Asking, Rank::Framework)),
        _ => None,
    };
    Some(draft.into_iter().collect())
}

fn half(item: &Item<'_>, method: &str, end: End, rank: Rank) -> Draft {
    let mut draft = semconv::request(item, method);
    draft.half.end = end;
    draft.half.rank = rank;
    if method == "tools/call"
        && let Some(success) = item.attributes.flag(&["success"])
        && !success
        && draft.half.answer.failure.is_none()
    {
        draft.half.answer.is_error = Some(true);
    }
    draft
}
