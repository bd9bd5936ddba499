//! Shinzo's server instrumentation: ids that are random, a status OK that says nothing.

use super::python::is_uuid;
use super::semconv;
use crate::model::fact::End;
use crate::normalise::conventions as key;
use crate::normalise::draft::Draft;
use crate::normalise::item::Item;

/// Recognised by its form: an internal span with a UUID for a request id beside Shinzo's keys.
pub fn read(item: &Item<'_>) -> Option<Vec<Draft>> {
    let id = item.attributes.text(&["mcp.request.id"])?;
    let form = item.kind == 1 && is_uuid(&id) && item.attributes.has("mcp.tool.name");
    if !form || item.attributes.has("jsonrpc.request.id") {
        return None;
    }
    let method = item.attributes.text(key::METHOD)?;
    let mut draft = semconv::request(item, &method);
    draft.half.end = End::Answering;
    draft.half.request_id = None;
    if draft.half.session.is_none() {
        draft.half.session = session_of_process(item);
    }
    draft.synthetic_session();
    Some(vec![draft])
}

fn session_of_process(
    item: &Item<'_>,
) -> Option<(crate::model::ids::Name, crate::model::fact::Provenance)> {
    let id = item.resource.text(key::SESSION)?;
    Some((crate::model::ids::Name::some(&id)?, crate::model::fact::Provenance::Synthetic))
}
