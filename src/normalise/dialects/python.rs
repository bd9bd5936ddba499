//! The Python SDK's own spans (`mcp-python-sdk`) and FastMCP's (`fastmcp`).

use super::semconv;
use crate::model::fact::{End, Failure, Provenance};
use crate::normalise::conventions as key;
use crate::normalise::draft::Draft;
use crate::normalise::item::Item;

/// What the SDK raises where HTTP refused the request: the code is its own, nobody sent it.
const HTTP_REFUSED: &str = "Server returned an error response";

pub fn read(item: &Item<'_>) -> Option<Vec<Draft>> {
    if !matches!(item.scope, "mcp-python-sdk" | "fastmcp") {
        return None;
    }
    let method = item.attributes.text(key::METHOD)?;
    let mut draft = semconv::request(item, &method);
    let says_refused = item.message == HTTP_REFUSED
        || item.exceptions().any(|event| {
            event.attributes.text(&["exception.message"]).as_deref() == Some(HTTP_REFUSED)
        });
    if says_refused && draft.half.end == End::Asking {
        draft.half.answer.code = None;
        draft.half.answer.failure = Some(Failure::Unnamed);
    }
    if item.scope == "fastmcp" {
        fastmcp(item, &mut draft);
    }
    Some(vec![draft])
}

fn fastmcp(item: &Item<'_>, draft: &mut Draft) {
    // Off HTTP and in the modern era the server makes an id up, a UUID with dashes; what stood in
    // a header has none. Its client carries an id only where one stood in a header.
    if let (End::Answering, Some((id, provenance))) = (draft.half.end, &mut draft.half.session) {
        *provenance = if is_uuid(id) { Provenance::Synthetic } else { Provenance::Claimed };
    }
    // FastMCP answers whatever a tool call raises with a result that has `isError`.
    let raised = item.failed() && item.exceptions().next().is_some();
    let answer = &mut draft.half.answer;
    if draft.half.method.as_str() == "tools/call"
        && draft.half.end == End::Answering
        && raised
        && answer.code.is_none()
        && answer.failure != Some(Failure::Cancelled)
    {
        answer.is_error = Some(true);
        answer.failure = None;
    }
}

/// `8-4-4-4-12` hexadecimal digits.
pub fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}
