//! Dialects: how each family of instrumentations writes MCP, one file a family, recognised by
//! convention and shape (instrumentation scope, keys, form of the span), never by the name of a
//! service or a tool. The first that recognises an item reads it.

mod semconv;

use super::draft::Draft;
use super::item::Item;

/// Reads an item, or says that it is not this family's.
type Reader = fn(&Item<'_>) -> Option<Vec<Draft>>;

/// In order: who writes in a way of his own stands before the conventions.
const DIALECTS: &[Reader] = &[semconv::read];

/// The requests, notifications and connections that an item stands for; usually one or none.
pub fn read(item: &Item<'_>) -> Vec<Draft> {
    DIALECTS.iter().find_map(|reader| reader(item)).unwrap_or_default()
}
