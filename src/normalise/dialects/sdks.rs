//! SDKs that follow the conventions but for one habit: the C# SDK makes its session ids up.

use super::semconv;
use crate::normalise::conventions as key;
use crate::normalise::draft::Draft;
use crate::normalise::item::Item;

pub fn read(item: &Item<'_>) -> Option<Vec<Draft>> {
    if item.scope != "Experimental.ModelContextProtocol" {
        return None;
    }
    let method = item.attributes.text(key::METHOD)?;
    let mut draft = semconv::request(item, &method);
    // A random GUID for each endpoint: client, server and header all differ.
    draft.synthetic_session();
    Some(vec![draft])
}
