//! mcp-verdict receives OTLP, joins MCP spans into evidence chains, judges them, and sends them on.

pub mod catalog;
pub mod config;
pub mod correlate;
pub mod incident;
pub mod judge;
pub mod model;
pub mod wire;
