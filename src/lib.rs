//! mcp-verdict receives OTLP, joins MCP spans into evidence chains, judges them, and sends them on.

pub mod app;
pub mod catalog;
pub mod cli;
pub mod clock;
pub mod config;
pub mod correlate;
pub mod emit;
pub mod engine;
pub mod export;
pub mod incident;
pub mod judge;
pub mod log;
pub mod model;
pub mod normalise;
pub mod proto;
pub mod receive;
pub mod telemetry;
pub mod wire;
