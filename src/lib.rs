//! mcp-verdict receives OTLP, joins MCP spans into evidence chains, judges them, and sends them on.
//!
//! # The tour: a span's way
//!
//! An export comes in as bytes and stays bytes. It is checked, logged, and scanned into facts; the
//! engine joins facts into chains and judges them; what it concludes is written as attributes,
//! events and spans, and spliced into the bytes on their way out.
//!
//! ```
//! use std::sync::Arc;
//! use mcp_verdict::{emit, engine, model, normalise, wire};
//! use model::record::Record;
//!
//! // 1 receive: OTLP/JSON is converted once, at the edge; protobuf comes as it is.
//! let json = br#"{"resourceSpans": [{"scopeSpans": [{"scope": {"name": "mcp-sdk"}, "spans": [{
//!     "traceId": "d2af5344e416c396f63d1ef7c6892429", "spanId": "d957b83588548293", "kind": 3,
//!     "name": "tools/call publish", "startTimeUnixNano": "1795996801000000000",
//!     "endTimeUnixNano": "1795996801400000000", "status": {"code": 2}, "attributes": [
//!         {"key": "mcp.method.name", "value": {"stringValue": "tools/call"}},
//!         {"key": "gen_ai.tool.name", "value": {"stringValue": "publish"}},
//!         {"key": "error.type", "value": {"stringValue": "tool_error"}}]}]}]}]}"#;
//! let (signal, limits) = (wire::Signal::Traces, wire::json::Limits { max_bytes: 1 << 20 });
//! let export = wire::json::to_protobuf(signal, json, limits).unwrap().bytes;
//! // 2 check: what cannot be read is refused before it is promised.
//! wire::scan::check(signal, &export).unwrap();
//! // 3 scan: every span leaves a bone, every MCP span a fact.
//! let policy = Arc::new(model::policy::Policy::default());
//! let sighting = normalise::sight(signal, &export, &policy);
//! assert_eq!((sighting.bones.len(), sighting.facts.len(), sighting.held.len()), (1, 1, 1));
//! // 4 judge: live, in replay and under test by the same code.
//! let records = engine::replay(vec![sighting], &policy, engine::Revisions::Final);
//! let Record::Verdict(verdict) = &records[0] else { panic!("a verdict comes first") };
//! assert_eq!(verdict.state.as_str(), "tool_failed");
//! assert_eq!(verdict.owner.as_str(), "tool_owner");
//! // 5 emit: the conclusion in attributes, spliced into the span as it came.
//! let added = emit::attributes::on_span(verdict, emit::Enrich::Compact);
//! assert!(added.iter().any(|attribute| attribute.key == "mcp_verdict.state"));
//! ```

pub mod app;
pub mod catalog;
pub mod cli;
pub mod clock;
pub mod config;
pub mod correlate;
pub mod coverage;
pub mod emit;
pub mod engine;
pub mod export;
pub mod incident;
pub mod judge;
pub mod log;
pub mod model;
pub mod normalise;
pub mod page;
pub mod proto;
pub mod receive;
pub mod show;
pub mod telemetry;
pub mod wire;
