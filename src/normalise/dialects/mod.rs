//! Dialects: how each family of instrumentations writes MCP, one file a family, recognised by
//! convention and shape (instrumentation scope, keys, form of the span), never by the name of a
//! service or a tool. The first that recognises an item reads it.

mod apollo;
mod autotel;
mod contextforge;
mod cyanheads;
mod datadog;
mod distro;
mod frameworks;
mod gateways;
mod headers;
mod logfire;
mod mastra;
mod openlit;
mod python;
mod rmcp;
mod sdks;
mod semconv;
mod sentry;
mod shinzo;
mod traceloop;

use super::draft::Draft;
use super::item::Item;

/// Reads an item, or says that it is not this family's. An empty list is an answer: the item is
/// the family's and stands for no message.
type Reader = fn(&Item<'_>) -> Option<Vec<Draft>>;

/// In order: who writes in a way of his own stands before the conventions, and who only wraps a
/// call or carries it stands last.
const DIALECTS: &[Reader] = &[
    rmcp::read,
    logfire::read,
    traceloop::read,
    distro::read,
    openlit::read,
    datadog::read,
    sentry::read,
    shinzo::read,
    autotel::read,
    mastra::read,
    apollo::read,
    contextforge::read,
    cyanheads::read,
    gateways::read,
    sdks::read,
    python::read,
    semconv::read,
    frameworks::read,
    headers::read,
];

/// The requests, notifications and connections that an item stands for; usually one or none.
pub fn read(item: &Item<'_>) -> Vec<Draft> {
    DIALECTS.iter().find_map(|reader| reader(item)).unwrap_or_default()
}
