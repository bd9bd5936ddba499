//! Apollo's MCP server: `#[instrument]` spans named after handlers, with `apollo.mcp.*`.

use super::semconv;
use crate::model::fact::End;
use crate::normalise::draft::Draft;
use crate::normalise::item::Item;

const HANDLERS: &[(&str, &str)] = &[
    ("initialize", "initialize"),
    ("call_tool", "tools/call"),
    ("list_tools", "tools/list"),
    ("read_resource", "resources/read"),
    ("list_resources", "resources/list"),
    ("get_prompt", "prompts/get"),
    ("list_prompts", "prompts/list"),
];

pub fn read(item: &Item<'_>) -> Option<Vec<Draft>> {
    if !item.attributes.speaks(&["apollo.mcp."]) {
        return None;
    }
    let (_, method) = HANDLERS.iter().find(|(name, _)| item.name == *name)?;
    let mut draft = semconv::request(item, method);
    draft.half.end = End::Answering;
    Some(vec![draft])
}
