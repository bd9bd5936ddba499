//! The messages and services of `proto/`, generated. `emit::record` fills them in.

#![allow(clippy::all, missing_docs)]

tonic::include_proto!("mcp_verdict.v1");

/// The compiled descriptors (a `FileDescriptorSet`), for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/mcp_verdict.v1.bin"));
