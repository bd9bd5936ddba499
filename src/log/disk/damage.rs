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
    /// A write that was cut off at the end: what was not acknowledged, unless it is lost as well.
    Torn,
    /// The log ends before what the checkpoint speaks of.
    Lost,
    /// A part of what is known that found no room in a checkpoint: known as long as this process
    /// lives.
    LeftOut,
}

impl Damage {
    pub const ALL: [Damage; 7] = [
        Damage::Record,
        Damage::Order,
        Damage::UnknownFile,
        Damage::Checkpoint,
        Damage::Torn,
        Damage::Lost,
        Damage::LeftOut,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Damage::Record => "record",
            Damage::Order => "order",
            Damage::UnknownFile => "unknown_file",
            Damage::Checkpoint => "checkpoint",
            Damage::Torn => "torn",
            Damage::Lost => "lost",
            Damage::LeftOut => "left_out",
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
