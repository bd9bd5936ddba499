//! Gateways that see MCP as HTTP: their status is HTTP's, their constants are not the wire's.

use super::semconv;
use crate::model::fact::{End, Provenance};
use crate::model::ids::Name;
use crate::normalise::conventions as key;
use crate::normalise::draft::Draft;
use crate::normalise::item::Item;

/// Span names of Envoy's first form.
const ENVOY_NAMES: &[(&str, &str)] = &[
    ("Initialize", "initialize"),
    ("CallTool", "tools/call"),
    ("ListTools", "tools/list"),
    ("ListResources", "resources/list"),
    ("ReadResource", "resources/read"),
    ("ListPrompts", "prompts/list"),
    ("GetPrompt", "prompts/get"),
    ("Ping", "ping"),
];

pub fn read(item: &Item<'_>) -> Option<Vec<Draft>> {
    let route = item.events.iter().find(|event| event.name == "route to backend");
    let named = ENVOY_NAMES.iter().find(|(name, _)| item.name == *name);
    let mcp = item.attributes.speaks(&["mcp."]);
    if !mcp || route.is_none() && named.is_none() {
        return None;
    }
    let recorded = item.attributes.text(key::METHOD).map(|method| method.into_owned());
    let method = recorded.or_else(|| Some(named?.1.to_owned()))?;
    let mut draft = semconv::request(item, &method);
    // One span for each request of a client, whatever its kind says: the gateway answers it.
    draft.half.end = End::Answering;
    draft.half.server_address = None;
    if named.is_some() {
        // A constant of the gateway.
        draft.half.version = None;
    }
    if let Some(route) = route {
        let text = |keys: &[&str]| route.attributes.text(keys).and_then(|t| Name::some(&t));
        draft.half.server_name = draft.half.server_name.take().or(text(&["mcp.backend.name"]));
        if draft.half.session.is_none() {
            draft.half.session = text(key::SESSION).map(|id| (id, Provenance::Wire));
        }
    }
    Some(vec![draft])
}
