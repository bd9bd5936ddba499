//! What the tests of the log share.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mcp_verdict::log::settings::{Ack, Settings, Sync};
use mcp_verdict::log::{Appended, Kind, Mark, Part, Record, Refused};
use mcp_verdict::model::ids::Position;
use mcp_verdict::wire::Signal;
use mcp_verdict::wire::inflate::Coding;

pub fn settings(directory: &Path, sync: Sync, max_size: u64) -> Settings {
    Settings {
        directory: directory.to_path_buf(),
        ack: Ack::Durable,
        sync,
        sync_interval: Duration::from_millis(5),
        max_size,
        memory: 64 << 20,
        checkpoints: None,
    }
}

/// A record whose payload tells its number and fills so many bytes with what follows from it.
pub fn record(number: u64, size: usize) -> Record {
    let mut payload = Vec::with_capacity(size + 8);
    let mut value = number;
    while payload.len() < size + 8 {
        payload.extend_from_slice(&value.to_le_bytes());
        value = value.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(number | 1);
    }
    payload.truncate(size + 8);
    Record {
        kind: Kind::In,
        signal: Signal::Traces,
        coding: Coding::Identity,
        payload: payload.into(),
    }
}

/// The number of a record of [`record`].
pub fn number(record: &Record) -> u64 {
    u64::from_le_bytes(record.payload[..8].try_into().unwrap())
}

pub fn wait(appended: Appended) -> Result<Position, Refused> {
    match appended {
        Appended::Now(result) => result.unwrap(),
        Appended::Later(waiting) => waiting.blocking_recv().unwrap(),
    }
}

pub fn delivered(exporter: &str, part: Part) -> Mark {
    Mark::Delivered { exporter: exporter.to_string(), part }
}

/// The files of segments, in order.
pub fn segments(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "log1"))
        .collect();
    files.sort();
    files
}

/// Bytes of every file under a directory.
pub fn bytes(directory: &Path) -> u64 {
    let of = |path: PathBuf| match std::fs::metadata(&path) {
        Ok(data) if data.is_dir() => bytes(&path),
        Ok(data) => data.len(),
        // A segment that went meanwhile.
        Err(_) => 0,
    };
    std::fs::read_dir(directory).unwrap().map(|entry| of(entry.unwrap().path())).sum()
}
