//! What a directory holds, read once at the start; damage is taken out of the way.
//!
//! Promises: every whole record is found again, whatever else is damaged; damaged bytes are copied
//! to `set-aside` before they are cut out, and counted; a write that was cut off is cut off; what
//! is found is durable before it is told.

use std::io;
use std::ops::Range;

use super::damage::{Counts, Damage};
use super::index::Index;
use super::layout::{Directory, Name, Sequence};
use crate::log::record::{self, Entry, Found, Noted};
use crate::log::settings::{Settings, Sync};
use crate::model::ids::Position;

/// The log as the last process left it.
#[derive(Default)]
pub struct Recovered {
    pub index: Index,
    pub other_bytes: u64,
    pub damaged: Counts,
    /// For the next record and the next segment.
    pub next: Position,
    pub sequence: Sequence,
}

/// Reads every segment.
///
/// # Errors
/// When the system fails.
pub fn recover(directory: &Directory, settings: &Settings) -> io::Result<Recovered> {
    let contents = directory.look()?;
    let mut recovered = Recovered {
        other_bytes: contents.other_bytes,
        next: Position(1),
        sequence: 1,
        ..Recovered::default()
    };
    recovered.damaged.add(Damage::UnknownFile, contents.unknown.len() as u64);
    if !contents.unknown.is_empty() {
        let names = contents.unknown.join(", ");
        tracing::warn!(names, "unknown in storage.directory: files are moved to set-aside");
    }
    let found = !contents.segments.is_empty();
    for name in contents.segments {
        let bytes = directory.read(&name)?;
        let read = read(&name, &bytes, recovered.next);
        let room = settings.max_size / 16;
        let read = repair(directory, &name, &bytes, read, room, &mut recovered)?;
        if settings.sync != Sync::Never {
            // A process that was killed may have written it and not synced: what is told of it from
            // now on must not go with the power.
            directory.sync_segment(&name)?;
        }
        recovered.add(name, read);
    }
    if found && settings.sync != Sync::Never {
        directory.sync()?;
    }
    recovered.other_bytes = recovered.other_bytes.max(directory.bytes_aside()?);
    Ok(recovered)
}

impl Recovered {
    fn add(&mut self, name: Name, read: Read) {
        self.index.open(name);
        self.index.grow(name.sequence, read.length);
        self.next = self.next.max(name.first);
        self.sequence = name.sequence + 1;
        for item in read.items {
            match item {
                Item::Record(position, offset, length) => {
                    self.index.add(name.sequence, position, offset, length);
                    self.next = Position(position.0.saturating_add(1));
                }
                Item::Marks(marks) => {
                    marks.iter().for_each(|mark| {
                        self.index.mark(mark);
                    });
                    self.index.spoke(name.sequence, &marks);
                }
            }
        }
    }
}

/// What one segment holds.
#[derive(Default)]
struct Read {
    items: Vec<Item>,
    whole: Vec<Range<usize>>,
    damaged: Vec<(Damage, Range<usize>)>,
    /// Bytes of the file.
    length: u64,
    torn: bool,
}

enum Item {
    /// Position, offset and length.
    Record(Position, u32, u32),
    Marks(Vec<Noted>),
}

/// Sorts the bytes of a segment. Records stand in order of position, from the segment's first on.
fn read(name: &Name, bytes: &[u8], next: Position) -> Read {
    let mut read = Read { length: bytes.len() as u64, ..Read::default() };
    let mut next = next.max(name.first);
    for found in record::walk(name.marker(), bytes) {
        match found {
            Found::Entry { at, entry } => read.entry(at, entry, &mut next),
            Found::Damaged(at) => read.damaged.push((Damage::Record, at)),
            Found::Torn(_) => read.torn = true,
        }
    }
    read
}

impl Read {
    fn entry(&mut self, at: Range<usize>, entry: Entry<'_>, next: &mut Position) {
        match entry {
            Entry::Record { position, .. } if position < *next => {
                return self.damaged.push((Damage::Order, at));
            }
            Entry::Record { position, .. } => {
                *next = Position(position.0.saturating_add(1));
                // Only what stands at the start of a segment is as large as that.
                let offset = u32::try_from(at.start).unwrap_or(u32::MAX);
                let length = u32::try_from(at.len()).unwrap_or(u32::MAX);
                self.items.push(Item::Record(position, offset, length));
            }
            Entry::Marks(marks) => self.items.push(Item::Marks(marks)),
        }
        self.whole.push(at);
    }
}

/// Takes damage out of a segment's file. Where that fails the file stays as it is, and the damage
/// is met again at the next start.
fn repair(
    directory: &Directory,
    name: &Name,
    bytes: &[u8],
    mut read: Read,
    room: u64,
    recovered: &mut Recovered,
) -> io::Result<Read> {
    let file = || directory.segment(name).display().to_string();
    if read.damaged.is_empty() {
        if read.torn {
            let whole = read.whole.last().map_or(0, |at| at.end as u64);
            directory.cut(name, whole)?;
            read.length = whole;
            recovered.damaged.add(Damage::Torn, 1);
            tracing::info!(file = file(), at = whole, "a write that never ended was cut off");
        }
        return Ok(read);
    }
    let mut aside = directory.bytes_aside()?;
    for (damage, at) in &read.damaged {
        recovered.damaged.add(*damage, 1);
        // Copies of damage stay a small part of what the directory may hold.
        aside += at.len() as u64;
        if aside <= room
            && let Err(error) = directory.keep_damaged(name, at.start, &bytes[at.clone()])
        {
            tracing::warn!(%error, file = file(), "damaged bytes cannot be set aside");
            return Ok(read);
        }
    }
    let (records, at) = (read.damaged.len(), read.damaged[0].1.start);
    tracing::error!(file = file(), records, at, "the log is damaged: copied to set-aside");
    let parts: Vec<&[u8]> = read.whole.iter().map(|at| &bytes[at.clone()]).collect();
    if let Err(error) = directory.rewrite(name, &parts) {
        tracing::warn!(%error, file = file(), "a damaged segment cannot be repaired yet");
        return Ok(read);
    }
    read.close_gaps();
    Ok(read)
}

impl Read {
    /// Offsets as they are once only whole entries are left.
    fn close_gaps(&mut self) {
        let mut end = 0;
        for (item, at) in self.items.iter_mut().zip(&self.whole) {
            if let Item::Record(_, offset, _) = item {
                *offset = end;
            }
            end = end.saturating_add(u32::try_from(at.len()).unwrap_or(u32::MAX));
        }
        self.length = self.whole.iter().map(|at| at.len() as u64).sum();
    }
}
