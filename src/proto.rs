//! The messages and services of `proto/`, generated. `emit::record` fills them in.

#![allow(clippy::all, missing_docs)]

tonic::include_proto!("mcp_verdict.v1");

/// The compiled descriptors (a `FileDescriptorSet`), for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/mcp_verdict.v1.bin"));

/// Nanoseconds as all times are printed.
fn time<S: serde::Serializer>(time: &u64, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(time)
}

fn time_or_null<S: serde::Serializer>(time: &Option<u64>, s: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => s.collect_str(time),
        None => s.serialize_none(),
    }
}

/// What is empty is absent.
fn text_or_null<S: serde::Serializer>(text: &str, s: S) -> Result<S::Ok, S::Error> {
    if text.is_empty() { s.serialize_none() } else { s.serialize_str(text) }
}
