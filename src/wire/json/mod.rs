//! OTLP/JSON: to protobuf once, where a request enters, and back for the file and HTTP outputs.
//!
//! Promises: both directions walk [`super::schema`], streamed, without a document in memory. What
//! is read keeps its exact value (64-bit integers never pass through a float). Unknown keys are
//! ignored at every level. Errors say where and what to write instead, and hold no content.

mod reader;
mod scalar;
mod writer;

pub use reader::{Converted, JsonError, Limits, to_protobuf};
pub use writer::from_protobuf;
