//! mcp-ts-core: `tool_execution:<tool>` with the tool's success and error code.

use super::semconv;
use crate::model::fact::End;
use crate::model::ids::Name;
use crate::model::words::ResultType;
use crate::normalise::draft::Draft;
use crate::normalise::item::Item;

pub fn read(item: &Item<'_>) -> Option<Vec<Draft>> {
    let tool = item.name.strip_prefix("tool_execution:")?;
    if !item.attributes.speaks(&["mcp.tool."]) {
        return None;
    }
    let mut draft = semconv::request(item, "tools/call");
    draft.half.end = End::Answering;
    draft.half.tool = draft.half.tool.take().or_else(|| Name::some(tool));
    if item.attributes.flag(&["mcp.tool.input_required"]) == Some(true) {
        draft.half.answer.result_type = Some(ResultType::InputRequired);
        draft.half.answer.is_error = None;
        draft.half.answer.failure = None;
    }
    Some(vec![draft])
}
