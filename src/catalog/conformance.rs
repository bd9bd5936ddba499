//! Whether what was sent and what came back fit the definition (judgment.md §7): argument names
//! outside the input schema, structured content that the output schema refuses.
//!
//! Validation is the `jsonschema` crate's. Whatever it cannot decide, because the schema is no
//! schema or refers to somewhere else, is no finding.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::digest::Definition;
use crate::model::fact::Arguments;

/// Whether the advertised output schema refuses this content.
pub fn refuses(tool: &Definition, content: &Value) -> bool {
    let members = tool.projected.value();
    let Some(schema) = members.get("outputSchema") else { return false };
    let validator = jsonschema::options().should_validate_formats(false).build(schema);
    validator.is_ok_and(|validator| !validator.is_valid(content))
}

/// A tool's input schema, as far as argument names go: most of a definition's text is skipped.
#[derive(Deserialize)]
struct Input<'a> {
    #[serde(borrow, rename = "inputSchema")]
    schema: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

/// How many of the sent names the input schema does not know. A schema whose names cannot be listed
/// (patterns, references, alternatives) knows everything.
pub fn unknown_arguments(tool: &Definition, sent: &[u64]) -> usize {
    let Ok(Input { schema }) = serde_json::from_str(tool.projected.text()) else { return 0 };
    let open = ["patternProperties", "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if"];
    if open.iter().any(|keyword| schema.contains_key(*keyword)) {
        return 0;
    }
    let known = schema.get("properties").map(|properties| properties.get());
    let known = known.and_then(|known| serde_json::from_str(known).ok());
    let Some(known): Option<BTreeMap<Cow<'_, str>, IgnoredAny>> = known else { return 0 };
    let known: BTreeSet<u64> = known.keys().map(|name| Arguments::name_hash(name)).collect();
    sent.iter().filter(|name| !known.contains(name)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::projection::read_definition;
    use serde_json::json;

    fn tool(mut members: Value) -> Definition {
        members["name"] = json!("t");
        read_definition(&members).unwrap()
    }

    #[test]
    fn names_outside_the_schema_are_counted() {
        let tool = tool(json!({"inputSchema": {"properties": {"q": {}, "limit": {}}}}));
        let sent: Vec<u64> = ["query", "limit"].map(Arguments::name_hash).to_vec();
        assert_eq!(unknown_arguments(&tool, &sent), 1);
    }

    #[test]
    fn content_that_the_output_schema_refuses() {
        let schema = json!({"type": "object", "properties": {"rows": {"type": "integer"}}});
        let tool = tool(json!({"outputSchema": schema}));
        assert!(refuses(&tool, &json!({"rows": "three"})));
        assert!(!refuses(&tool, &json!({"rows": 3, "unit": "row"})));
    }
}
