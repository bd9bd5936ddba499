//! Datadog's tracers over OTLP, JavaScript and Python: Datadog's names for operations, the tool's
//! name only on an inner span, codes only in texts.

use crate::model::fact::{End, Failure};
use crate::model::ids::Name;
use crate::normalise::draft::{Draft, Shape};
use crate::normalise::item::Item;
use crate::normalise::{answer, conventions as key};

/// Methods of the SDK's session object.
const SESSION_METHODS: &[(&str, &str)] = &[
    ("initialize", "initialize"),
    ("list_tools", "tools/list"),
    ("call_tool", "tools/call"),
    ("list_resources", "resources/list"),
    ("list_resource_templates", "resources/templates/list"),
    ("read_resource", "resources/read"),
    ("list_prompts", "prompts/list"),
    ("get_prompt", "prompts/get"),
    ("send_ping", "ping"),
    ("complete", "completion/complete"),
];

pub fn read(item: &Item<'_>) -> Option<Vec<Draft>> {
    let text = |name: &str| item.attributes.text(&[name]).unwrap_or_default();
    let (component, operation) = (text("component"), text("operation.name"));
    let ours = component.starts_with("modelcontextprotocol")
        || component == "mcp"
        || operation.starts_with("mcp.") && item.attributes.get("mcp.method.name").is_none();
    if !ours || item.attributes.speaks(&["mcp.method"]) {
        return None;
    }
    let server = component.ends_with("_server") || component.ends_with("_server_tool");
    Some(message(item, &component, &operation, server).into_iter().collect())
}

fn message(item: &Item<'_>, component: &str, operation: &str, server: bool) -> Option<Draft> {
    let name = &*item.name;
    if name == "ClientSession" {
        let mut draft = Draft::of(item, "initialize").shaped(Shape::Connection);
        draft.half.end = End::Asking;
        answer::read(item, &mut draft);
        return Some(draft);
    }
    let handler = component.ends_with("_server_tool") || operation == "mcp.server.tool.call";
    let session = name.strip_prefix("ClientSession.");
    let method = if handler || matches!(name, "client_tool_call" | "server_tool_call") {
        "tools/call"
    } else if let Some(called) = session {
        SESSION_METHODS.iter().find(|(python, _)| *python == called)?.1
    } else if let Some((method, _)) = key::method_in_name(name) {
        method
    } else {
        operation.strip_prefix("mcp.").filter(|method| key::is_method(method))?
    };
    let mut draft = Draft::of(item, method);
    let answers = server || handler || name.starts_with("server_");
    let asks = session.is_some() || name.starts_with("client_");
    draft.half.end = match (answers, asks) {
        (true, _) => End::Answering,
        (_, true) => End::Asking,
        _ => draft.half.end,
    };
    if handler {
        draft.half.tool = Name::some(name);
    }
    answer::read(item, &mut draft);
    tool_error(item, &mut draft);
    Some(draft)
}

/// How the SDK's transports word what broke in them.
const TRANSPORTS: &[&str] = &["Streamable HTTP error: ", "SSE error: "];

/// A plain `Error` is how the tracer writes `isError`: a protocol error is an `McpError`, whatever
/// broke below has a type of its own.
fn tool_error(item: &Item<'_>, draft: &mut Draft) {
    let plain = item
        .attributes
        .text(key::ERROR_TYPE)
        .is_some_and(|kind| matches!(&*kind, "Error" | "ToolError" | "Exception"));
    let untyped = item.attributes.text(key::ERROR_TYPE).is_none();
    let in_status = untyped && item.message.starts_with("Error: ");
    // What is raised has a type in Python: a message alone is the text of a result.
    let result = untyped && item.attributes.has("error.message") && item.name == "client_tool_call";
    let of_transport = TRANSPORTS
        .iter()
        .any(|own| item.message.strip_prefix("Error: ").unwrap_or(&item.message).starts_with(own));
    let answer = &mut draft.half.answer;
    let unnamed = matches!(answer.failure, None | Some(Failure::Unnamed | Failure::HandlerRaised));
    let own = answer.code.is_none() && answer.http_status.is_none() && unnamed;
    if draft.half.method.as_str() == "tools/call"
        && item.failed()
        && (result || own && !of_transport && (plain || in_status))
    {
        answer.is_error = Some(true);
        answer.failure = None;
        answer.code = None;
        answer.http_status = None;
    }
}
