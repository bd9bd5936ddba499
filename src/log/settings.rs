//! `storage`, resolved to plain values.

use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Settings {
    pub directory: PathBuf,
    pub ack: Ack,
    pub sync: Sync,
    pub sync_interval: Duration,
    /// Bytes of all files.
    pub max_size: u64,
    /// Bytes that records may take in memory.
    pub memory: u64,
    /// The format of the checkpoints that will be written; `None` where nobody writes any: what is
    /// done is forgotten then.
    pub checkpoints: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ack {
    Durable,
    Queued,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    Always,
    Interval,
    Never,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            directory: "mcp-verdict-data".into(),
            ack: Ack::Durable,
            sync: Sync::Always,
            sync_interval: Duration::from_millis(100),
            max_size: 10 << 30,
            memory: 128 << 20,
            checkpoints: None,
        }
    }
}
