//! The log on disk: own segment files in one directory, one writer, group commit.
//!
//! Promises: an append resolves once it is as safe as `sync` says; what was appended and is not
//! done, or in no checkpoint yet, comes back after any end of the process; all files together stay
//! within `max_size` and a tenth of it; damage costs what is damaged and is set aside, never
//! guessed at.
//!
//! | `sync` | the answer follows | a killed process loses | a power cut loses |
//! | --- | --- | --- | --- |
//! | `always` | an fdatasync that covers the record | nothing | nothing |
//! | `interval` | the write | nothing | at most the last `sync_interval` |
//! | `never` | the write | nothing | what the system had not written yet |

mod checkpoints;
mod chunk;
mod damage;
mod error;
mod index;
mod layout;
mod medium;
mod paper;
mod recovery;
mod shared;
mod system;
mod writer;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use bytes::Bytes;

use super::record::{self, Entry, HEADER};
use super::{Appended, Checkpoint, Log, Mark, Pending, Record, Settings, Usage};
use crate::model::ids::Position;
use checkpoints::Checkpoints;
use damage::Counts;
pub use damage::Damage;
pub use error::OpenError;
pub(super) use error::is_full;
use layout::{Directory, Name};
pub use medium::{Medium, Source, Tail};
use shared::{Shared, State};
use system::System;
use writer::{Plan, Writer};

/// A log in a directory of its own.
pub struct Disk {
    shared: Arc<Shared>,
    directory: Arc<Directory>,
    damaged: Mutex<Counts>,
    checkpoints: Checkpoints,
    hand: Hand,
}

/// Who writes.
enum Hand {
    Thread(Option<JoinHandle<()>>),
    /// Whoever calls [`Disk::step`] or waits for a flush.
    Caller(Mutex<Writer>),
}

/// Whether a log has a thread that writes, or is written by hand: step by step, on the thread of
/// the caller, so that a simulation decides what happens when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    Thread,
    ByHand,
}

/// The largest segment; small logs have smaller ones, so that room comes back in small pieces.
const SEGMENT: u64 = 64 << 20;
/// Segments that fit into the bound.
const SEGMENTS: u64 = 16;

impl Disk {
    /// Opens or creates the log in `settings.directory` and reads what is there.
    ///
    /// # Errors
    /// When another process has the directory, or it cannot be created, read or written.
    pub fn open(settings: &Settings) -> Result<Self, OpenError> {
        Disk::open_on(settings, Arc::new(System::open(&settings.directory)?), Writing::Thread)
    }

    /// As [`Disk::open`], on a file system of the caller's; `settings.directory` names it in
    /// messages.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn open_on(
        settings: &Settings,
        medium: Arc<dyn Medium>,
        writing: Writing,
    ) -> Result<Self, OpenError> {
        let failed = |error| OpenError::of(&settings.directory, error);
        let directory = Arc::new(Directory::new(&settings.directory, medium));
        let linked = directory.claim_aside().map_err(failed)?;
        let checkpoints = Checkpoints::open(&directory, settings).map_err(failed)?;
        let mut recovered = recovery::recover(&directory, settings).map_err(failed)?;
        recovered.damaged.add(Damage::Checkpoint, checkpoints.refused.into());
        recovered.damaged.add(Damage::UnknownFile, linked.into());
        let mut state = State::default();
        if let Some(folded) = checkpoints.folded() {
            recovered.index.fold(folded);
            // Without a sync, what a checkpoint knows may be more than the device kept of the log.
            let after = Position(folded.0 + 1);
            if recovered.next < after {
                let (known, found) = (folded.0, recovered.next.0 - 1);
                tracing::error!(known, found, "the log ends before what its checkpoint knows of");
                recovered.damaged.add(Damage::Lost, 1);
                recovered.next = after;
            }
        }
        state.head = Position(recovered.next.0 - 1);
        state.index = recovered.index;
        state.other_bytes = recovered.other_bytes;
        let shared = Arc::new(Shared::new(state, settings.max_size, settings.memory));
        let plan = Plan {
            sync: settings.sync,
            sync_interval: settings.sync_interval,
            segment_size: (settings.max_size / SEGMENTS).clamp(1, SEGMENT),
        };
        let (sequence, next) = (recovered.sequence, recovered.next);
        let writer = Writer::start(shared.clone(), directory.clone(), plan, sequence, next);
        let writer = writer.map_err(failed)?;
        let hand = match writing {
            Writing::ByHand => Hand::Caller(Mutex::new(writer)),
            Writing::Thread => {
                let thread = std::thread::Builder::new().name("log".to_string());
                Hand::Thread(Some(thread.spawn(|| writer.run()).map_err(failed)?))
            }
        };
        checkpoints.keep_spare(&directory, &shared);
        let damaged = Mutex::new(recovered.damaged);
        Ok(Disk { shared, directory, damaged, checkpoints, hand })
    }

    /// How often damage of a kind was met since the log was opened.
    pub fn damaged(&self, damage: Damage) -> u64 {
        self.counts().get(damage)
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what waits, where the log is written by hand.
    pub fn step(&self) {
        if let Hand::Caller(writer) = &self.hand {
            writer.lock().unwrap_or_else(PoisonError::into_inner).step();
        }
    }

    fn note(&self, damage: Damage) {
        self.counts().add(damage, 1);
    }

    /// Reads a record; `None` once it is done.
    fn fetch(
        &self,
        position: Position,
        last: &mut Option<(Name, Box<dyn Source>)>,
    ) -> io::Result<Option<Record>> {
        let found = self.shared.state().index.find(position);
        let Some((name, offset)) = found else { return Ok(None) };
        let path = self.directory.segment(&name);
        let mut read = || -> io::Result<Record> {
            if last.as_ref().is_none_or(|(of, _)| *of != name) {
                *last = Some((name, self.directory.open(&name)?));
            }
            let Some((_, file)) = last else { return Err(io::ErrorKind::NotFound.into()) };
            read_at(&**file, &name, position, offset)
        };
        match read() {
            Ok(record) => Ok(Some(record)),
            // It may have become done, and its segment be gone, since it was looked up.
            Err(_) if self.shared.state().index.find(position).is_none() => Ok(None),
            Err(error) => {
                let text = format!("storage.directory: `{}` at {offset}: {error}", path.display());
                Err(io::Error::new(error.kind(), text))
            }
        }
    }
}

/// Reads the entry at an offset and checks that it is the one that was meant.
fn read_at(file: &dyn Source, name: &Name, position: Position, offset: u32) -> io::Result<Record> {
    let damaged = || io::Error::from(io::ErrorKind::InvalidData);
    let mut head = [0; HEADER];
    read_exact(file, offset.into(), &mut head)?;
    let body = record::body_length(name.marker(), &head).map_err(|_| damaged())?;
    if (body as u64) > file.length()? {
        return Err(damaged());
    }
    let mut bytes = vec![0; HEADER + body];
    read_exact(file, offset.into(), &mut bytes)?;
    let (kind, signal, coding, length) = match record::entry(name.marker(), &bytes) {
        Ok((Entry::Record { position: at, kind, signal, coding, payload }, _))
            if at == position =>
        {
            (kind, signal, coding, payload.len())
        }
        _ => return Err(damaged()),
    };
    let start = bytes.len() - length;
    Ok(Record { kind, signal, coding, payload: Bytes::from(bytes).slice(start..) })
}

fn read_exact(file: &dyn Source, mut offset: u64, mut into: &mut [u8]) -> io::Result<()> {
    while !into.is_empty() {
        match file.read_at(offset, into) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                offset += read as u64;
                into = &mut into[read..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Log for Disk {
    fn append(&self, record: Record) -> Appended {
        self.shared.append(record)
    }

    fn read(&self, position: Position) -> io::Result<Option<Record>> {
        self.fetch(position, &mut None)
    }

    fn mark(&self, position: Position, mark: Mark) {
        self.shared.mark(position, mark);
    }

    fn page(
        &self,
        after: Position,
        bytes: u64,
        wanted: &dyn Fn(&[Mark]) -> bool,
    ) -> io::Result<Vec<Pending>> {
        let (mut page, mut size, mut after, mut last) = (Vec::new(), 0, after, None);
        while size < bytes {
            let next = self.shared.state().index.next_after(after);
            let Some(position) = next else { break };
            after = position;
            if !wanted(&self.marks(position)) {
                continue;
            }
            match self.fetch(position, &mut last) {
                Ok(Some(record)) => {
                    size += record.cost();
                    let marks = self.marks(position);
                    page.push(Pending { position, record, marks });
                }
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    tracing::error!(%error, "a record was damaged after it was written");
                    self.note(Damage::Record);
                    self.mark(position, Mark::Done);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(page)
    }

    fn marks(&self, position: Position) -> Vec<Mark> {
        self.shared.state().index.delivered(position)
    }

    fn usage(&self) -> Usage {
        self.shared.usage()
    }

    fn head(&self) -> Position {
        self.shared.state().head
    }

    fn take_checkpoint(&self) -> Option<Checkpoint> {
        self.checkpoints.take()
    }

    fn write_checkpoint(
        &self,
        position: Position,
        needed: usize,
        slices: &mut dyn Iterator<Item = Vec<u8>>,
    ) -> io::Result<u64> {
        let (directory, shared) = (&*self.directory, &*self.shared);
        let written = self.checkpoints.write(directory, shared, position, needed, slices);
        if let Ok(left_out) = &written {
            self.counts().add(Damage::LeftOut, *left_out);
            // The writer looks for what may go: the spare may take its room.
            self.flush();
        }
        self.checkpoints.keep_spare(directory, shared);
        written
    }

    fn refuse_checkpoint(&self) {
        self.note(Damage::Checkpoint);
        self.shared.state().index.fold(Position(0));
    }

    fn survives(&self) -> bool {
        true
    }

    fn flush(&self) {
        let flushed = self.shared.flush();
        self.step();
        // An end without a word is one too.
        let _ = flushed.recv();
    }

    fn damaged(&self) -> Vec<(&'static str, u64)> {
        Damage::ALL.map(|damage| (damage.name(), Disk::damaged(self, damage))).to_vec()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.shared.end();
        if let Hand::Thread(writer) = &mut self.hand
            && let Some(writer) = writer.take()
        {
            // It ended by a panic: what it answered is written nevertheless.
            let _ = writer.join();
        }
    }
}

#[cfg(test)]
#[path = "fault_tests.rs"]
mod tests;
