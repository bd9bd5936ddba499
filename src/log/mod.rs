//! The log of what was accepted and what is owed: positions, records, marks, recovery.
//!
//! Promises: a position is given once, in order, and names its record until the record is done;
//! a record is kept until it is marked done and, where checkpoints are written, is in one; and
//! [`Log::recover`] yields every one that is kept, with the marks it has. A full log refuses, it
//! never drops.

pub mod checkpoint;
mod disk;
mod memory;
pub mod record;
pub mod settings;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

pub use checkpoint::Checkpoint;
pub use disk::{Damage, Disk, Medium, OpenError, Source, Tail, Writing};
pub use memory::Memory;
pub use settings::Settings;

use crate::model::ids::{Digest16, Position, SpanRef};
use crate::wire::Signal;
use crate::wire::inflate::Coding;

/// What a record is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An accepted export, as received.
    In,
    /// Something of ours, written before it is sent.
    Out(Vec<OutId>),
}

/// Names one revision of one chain's verdict, so that it is never sent twice with other content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutId {
    pub chain: Digest16,
    /// The span that the chain is known by.
    pub span: SpanRef,
    pub revision: u32,
    /// The chain was merged into another: no revision follows.
    pub closes: bool,
    /// Over the content of the revision.
    pub digest: Digest16,
}

/// One entry: bytes of an OTLP export request, compressed as `coding` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub kind: Kind,
    pub signal: Signal,
    pub coding: Coding,
    pub payload: Bytes,
}

impl Record {
    /// What a record takes beside its payload.
    const OVERHEAD: u64 = 96;

    /// Bytes that count against the limit.
    pub fn cost(&self) -> u64 {
        self.payload.len() as u64 + Self::OVERHEAD
    }
}

/// An export is delivered in two parts: what leaves at once, and the spans that were held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    Rest,
    Held,
}

/// What is known to be finished.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// This part was delivered to this exporter, or dropped with a reason.
    Delivered { exporter: String, part: Part },
    /// Every part, to every exporter.
    Done,
}

/// A record that is kept, and what was delivered of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    pub position: Position,
    pub record: Record,
    /// In order; `Done` alone where all of it was, and only no checkpoint has it yet.
    pub marks: Vec<Mark>,
}

/// How full the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Records that are not done, and what they take in memory as long as they wait.
    pub records: u64,
    pub pending_bytes: u64,
    /// Bytes that count against the limit; on disk, of all files.
    pub bytes: u64,
    /// Of them, those that a checkpoint would free.
    pub foldable: u64,
    pub limit: u64,
}

/// Why a record was not taken.
#[derive(Debug)]
pub enum Refused {
    /// Not now: the bytes that are pending reach the limit.
    Full { limit: u64 },
    /// The medium failed.
    Failed(std::io::Error),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Full { limit } => {
                write!(f, "the log holds its limit of {limit} bytes, or its device is full")
            }
            Refused::Failed(error) => write!(f, "the log cannot be written: {error}"),
        }
    }
}

impl std::error::Error for Refused {}

/// Resolves when the record is as safe as the log promises.
pub enum Appended {
    Now(Option<Result<Position, Refused>>),
    Later(oneshot::Receiver<Result<Position, Refused>>),
}

impl Future for Appended {
    type Output = Result<Position, Refused>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Appended::Now(result) => Poll::Ready(result.take().unwrap_or_else(gone)),
            Appended::Later(waiting) => {
                Pin::new(waiting).poll(context).map(|answer| answer.unwrap_or_else(|_| gone()))
            }
        }
    }
}

fn gone() -> Result<Position, Refused> {
    Err(Refused::Failed(std::io::Error::other("the log has ended")))
}

/// What app and export know of a log, in memory, on disk or elsewhere.
pub trait Log: Send + Sync {
    /// Takes a record. It counts against the limit at once.
    fn append(&self, record: Record) -> Appended;

    /// The record at a position, while it is kept.
    ///
    /// # Errors
    /// When the medium failed.
    fn read(&self, position: Position) -> std::io::Result<Option<Record>>;

    /// Notes what is finished. After [`Mark::Done`] the record may be forgotten.
    fn mark(&self, position: Position, mark: Mark);

    /// Records that are kept and whose marks are `wanted`, in order of position, from the first
    /// behind `after` on, until they take so many `bytes`. None are left when there are none.
    ///
    /// # Errors
    /// When the medium failed; damage inside it is set aside and counted instead.
    fn page(
        &self,
        after: Position,
        bytes: u64,
        wanted: &dyn Fn(&[Mark]) -> bool,
    ) -> std::io::Result<Vec<Pending>>;

    /// What was delivered of a record.
    fn marks(&self, position: Position) -> Vec<Mark>;

    /// Every record that is kept, in order of position. A log may hold more than memory does:
    /// whoever recovers goes by [`Log::page`].
    ///
    /// # Errors
    /// As there.
    fn recover(&self) -> std::io::Result<Vec<Pending>> {
        self.page(Position(0), u64::MAX, &|_| true)
    }

    fn usage(&self) -> Usage;

    /// The last position that was given; zero before the first.
    fn head(&self) -> Position;

    /// The checkpoint that was found when the log was opened, once.
    fn take_checkpoint(&self) -> Option<Checkpoint> {
        None
    }

    /// Replaces the checkpoint: facts of every record up to `position` are in `slices`, the most
    /// needed first. Records up to there may be forgotten once they are done. How many slices found
    /// no room; the first `needed` do, or the old checkpoint stays.
    ///
    /// # Errors
    /// When there is no room for what is needed, or the medium failed: the old one stays.
    fn write_checkpoint(
        &self,
        _position: Position,
        _needed: usize,
        _slices: &mut dyn Iterator<Item = Vec<u8>>,
    ) -> std::io::Result<u64> {
        Ok(0)
    }

    /// The checkpoint that was found cannot be read: all that is still in the log is kept.
    fn refuse_checkpoint(&self) {}

    /// Whether what is pending survives the end of the process.
    fn survives(&self) -> bool;

    /// Waits, on the thread of the caller, until everything handed over before is as safe as it
    /// will be.
    fn flush(&self) {}

    /// What was found damaged since the log was opened: kind, and how often.
    fn damaged(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}
