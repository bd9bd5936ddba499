//! What was found damaged, by kind.

use std::collections::BTreeMap;

/// The label of `mcp_verdict.storage.damaged`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Damage {
    /// Bytes without a whole entry, between whole ones or with a wrong checksum.
    Record,
    /// A whole record where its position does not belong.
    Order,
    /// A file that nobody knows.
    UnknownFile,
    /// A checkpoint that is not whole, or of another format.
    Checkpoint,
}

impl Damage {
    pub const ALL: [Damage; 4] =
        [Damage::Record, Damage::Order, Damage::UnknownFile, Damage::Checkpoint];

    pub fn name(self) -> &'static str {
        match self {
            Damage::Record => "record",
            Damage::Order => "order",
            Damage::UnknownFile => "unknown_file",
            Damage::Checkpoint => "checkpoint",
        }
    }
}

/// How often each kind was met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<Damage, u64>);

impl Counts {
    pub fn add(&mut self, damage: Damage, count: u64) {
        *self.0.entry(damage).or_default() += count;
    }

    pub fn get(&self, damage: Damage) -> u64 {
        self.0.get(&damage).copied().unwrap_or_default()
    }
}
