//! What is kept of a call's arguments and of its result: hashes, and what a schema is held against.

use serde::{Deserialize, Serialize};

use super::ids::Digest16;

/// Visible arguments: a digest to compare retries, and hashes of the top-level names.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Arguments {
    pub digest: Digest16,
    /// Hash of each top-level argument name, sorted; capped.
    pub names: Vec<u64>,
    /// Whether `names` lists all there are.
    pub complete: bool,
}

impl Arguments {
    /// The hash by which argument names are compared, with each other and with a schema's.
    pub fn name_hash(name: &str) -> u64 {
        let digest = Digest16::of(&[b"argument", name.as_bytes()]);
        digest.0[..8].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }
}

/// Structured content reduced to what schema validation needs, kept in memory only.
#[derive(PartialEq, Debug, Serialize, Deserialize)]
pub struct Structured(#[serde(with = "super::json_text")] pub serde_json::Value);
