//! Verdict spans (judgment.md §8.3): a zero-length child of the request span, so that any tracing
//! backend shows and searches verdicts, also when the request span left long ago.

use std::slice;

use crate::emit::severity::is_problem;
use crate::model::ids::{Digest16, SpanId};
use crate::model::record::Verdict;
use crate::model::words::{FailureLayer, Layer};
use crate::wire::encode::{NewAttr, NewEvent, NewSpan};

/// OTLP `SPAN_KIND_INTERNAL`.
const INTERNAL: i32 = 1;
/// OTLP `STATUS_CODE_ERROR`.
const ERROR: i32 = 2;

/// Keys of the span events: one a rung, the health contract first.
const HEALTH: [(Layer, &str); 5] = [
    (Layer::Session, "mcp_verdict.layer.session"),
    (Layer::Catalog, "mcp_verdict.layer.catalog"),
    (Layer::Request, "mcp_verdict.layer.request"),
    (Layer::Effect, "mcp_verdict.layer.effect"),
    (Layer::Outcome, "mcp_verdict.layer.outcome"),
];
const FAILURE: [(FailureLayer, &str); 5] = [
    (FailureLayer::Transport, "mcp_verdict.failure.transport"),
    (FailureLayer::Protocol, "mcp_verdict.failure.protocol"),
    (FailureLayer::Authority, "mcp_verdict.failure.authority"),
    (FailureLayer::Execution, "mcp_verdict.failure.execution"),
    (FailureLayer::Outcome, "mcp_verdict.failure.outcome"),
];

/// First 8 bytes of a digest over the chain's id and the revision.
pub fn id(chain: Digest16, revision: u32) -> SpanId {
    let digest = Digest16::of(&[b"verdict span", &chain.0, &revision.to_be_bytes()]);
    let mut id = [0; 8];
    id.copy_from_slice(&digest.0[..8]);
    SpanId(id)
}

/// The body of a `Span`, with what [`on_event`](crate::emit::attributes::on_event) says of the
/// verdict. It stands where the request ended, or where it began while it is open.
pub fn verdict(verdict: &Verdict, said: &[NewAttr<'_>]) -> Vec<u8> {
    let at = verdict.end_time.unwrap_or(verdict.start_time);
    let health = HEALTH.iter().map(|(layer, key)| (*key, verdict.layers.get(*layer)));
    let failure = FAILURE.iter().map(|(layer, key)| (*key, verdict.failure_layers.get(*layer)));
    let rungs = health.chain(failure).map(|(key, rung)| NewAttr::new(key, rung.as_str()));
    let rungs: Vec<NewAttr<'_>> = rungs.collect();
    let events = rungs.iter().map(|rung| NewEvent {
        time: at,
        name: rung.key,
        attributes: slice::from_ref(rung),
    });
    let events: Vec<NewEvent<'_>> = events.collect();
    let problem = is_problem(verdict.state);
    let reason = verdict.reason.map(|reason| reason.to_string()).unwrap_or_default();
    NewSpan {
        trace_id: &verdict.operator.span.trace.0,
        span_id: &id(verdict.id, verdict.revision).0,
        parent_span_id: &verdict.operator.span.span.0,
        name: &format!("mcp verdict {}", verdict.state),
        kind: INTERNAL,
        start: at,
        end: at,
        attributes: said,
        events: &events,
        status_code: if problem { ERROR } else { 0 },
        status_message: if problem { &reason } else { "" },
        ..NewSpan::default()
    }
    .to_bytes()
}
