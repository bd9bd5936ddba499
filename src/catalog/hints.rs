//! What a server says of its own tool in `annotations`: hints, which nobody has to believe.

use serde::Deserialize;
use serde_json::Value;

use crate::model::digest::Definition;

/// Two hints as stated. One that is absent, or no boolean, says nothing: MCP's defaults (it writes,
/// and twice is not once) are what is assumed of a tool of which nothing is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hints {
    pub read_only: Option<bool>,
    pub idempotent: Option<bool>,
}

#[derive(Deserialize)]
struct Annotated {
    #[serde(default)]
    annotations: Value,
}

pub fn hints(tool: &Definition) -> Hints {
    let read = serde_json::from_str::<Annotated>(tool.projected.text());
    let annotations = read.map_or(Value::Null, |tool| tool.annotations);
    let stated = |hint: &str| annotations.get(hint).and_then(Value::as_bool);
    Hints { read_only: stated("readOnlyHint"), idempotent: stated("idempotentHint") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::projection::read_definition;
    use serde_json::json;

    #[test]
    fn only_what_is_stated_is_a_hint() {
        let (yes, no) = (Some(true), Some(false));
        for (annotations, read_only, idempotent) in [
            (json!({"readOnlyHint": true}), yes, None),
            (json!({"readOnlyHint": false, "idempotentHint": true}), no, yes),
            (json!({"idempotentHint": false, "destructiveHint": false}), None, no),
            (json!({"readOnlyHint": "true", "idempotentHint": 1}), None, None),
            (json!("readOnlyHint"), None, None),
            (json!(null), None, None),
        ] {
            let tool = json!({"name": "t", "annotations": annotations, "inputSchema": {}});
            let tool = read_definition(&tool).unwrap();
            assert_eq!(hints(&tool), Hints { read_only, idempotent }, "{annotations}");
        }
    }
}
