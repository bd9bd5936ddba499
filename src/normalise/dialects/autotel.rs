//! autotel: the conventions with its own words for failures, and hints from a tool's annotations.

use super::semconv;
use crate::model::fact::{End, Failure};
use crate::normalise::conventions as key;
use crate::normalise::draft::Draft;
use crate::normalise::item::Item;

/// `mcp.failure.category` where nothing more telling was recorded.
const CATEGORIES: &[(&str, Failure)] =
    &[("timeout", Failure::Timeout), ("network", Failure::ConnectionLost)];

pub fn read(item: &Item<'_>) -> Option<Vec<Draft>> {
    let marks = ["operation.success", "mcp.failure.category", "mcp.tool.read_only"];
    if !marks.iter().any(|mark| item.attributes.has(mark)) {
        return None;
    }
    let method = item.attributes.text(key::METHOD)?;
    let mut draft = semconv::request(item, &method);
    let call = &mut draft.half.call;
    call.hinted_read_only = item.attributes.flag(&["mcp.tool.read_only"]);
    call.hinted_idempotent = item.attributes.flag(&["mcp.tool.idempotent"]);
    let answer = &mut draft.half.answer;
    // A client's OK follows an answer; a server's also ends calls that were given up.
    if draft.half.end == End::Asking && item.status == 1 {
        answer.result_seen = true;
    }
    let category = item.attributes.text(&["mcp.failure.category"]).unwrap_or_default();
    let named = CATEGORIES.iter().find(|(word, _)| *word == category);
    if let (Some((_, failure)), Some(Failure::Unnamed)) = (named, answer.failure) {
        answer.failure = Some(*failure);
    }
    Some(vec![draft])
}
