//! Which capability a method needs, and whether it was negotiated (judgment.md §7,
//! `capability_not_negotiated`). Where nobody saw the negotiation, nothing is said.

use crate::model::case::{Exchange, ScopeSeen};
use crate::model::fact::Direction;
use crate::model::words::Era;

/// The capability a method needs, and whose it is. `since` is the first version that has it.
struct Needs {
    prefix: &'static str,
    capability: &'static str,
    by_server: bool,
    since: &'static str,
    modern: bool,
}

const fn needs(
    prefix: &'static str,
    capability: &'static str,
    by_server: bool,
    since: &'static str,
    modern: bool,
) -> Needs {
    Needs { prefix, capability, by_server, since, modern }
}

/// First match wins: the longer prefix stands first.
const CAPABILITIES: [Needs; 10] = [
    needs("tools/", "tools", true, "", true),
    needs("prompts/", "prompts", true, "", true),
    needs("resources/subscribe", "resources.subscribe", true, "", true),
    needs("resources/", "resources", true, "", true),
    needs("logging/", "logging", true, "", true),
    needs("completion/", "completions", true, "2025-03-26", true),
    // In modern, tasks are an extension whose capability has another name.
    needs("tasks/", "tasks", true, "", false),
    needs("sampling/", "sampling", false, "", false),
    needs("roots/", "roots", false, "", false),
    needs("elicitation/", "elicitation", false, "", false),
];

/// The capability this request uses though the negotiation, which is known, lacks it.
pub fn outside_capabilities(x: &Exchange, scope: &ScopeSeen) -> Option<&'static str> {
    let row = CAPABILITIES.iter().find(|row| x.method.starts_with(row.prefix))?;
    let version = x.version.as_deref().or(scope.version.as_deref()).unwrap_or("");
    // Both directions have tasks: the answering side's capability counts.
    let by_server = row.by_server && x.direction != Direction::ServerToClient;
    if x.era == Era::Modern && !row.modern || version < row.since {
        return None;
    }
    let known = match by_server {
        true => scope.server_capabilities.as_ref()?,
        false => scope.client_capabilities.as_ref()?,
    };
    let nested = format!("{}.", row.capability);
    let has = known
        .iter()
        .any(|name| name.as_str() == row.capability || name.as_str().starts_with(nested.as_str()));
    (!has).then_some(row.capability)
}
