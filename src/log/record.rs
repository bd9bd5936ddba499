//! Records as bytes: how one entry of the log stands in a file, and how entries are found again.
//!
//! Promises: pure and total, no byte sequence makes it panic or read outside its input; an entry is
//! believed only when its checksum holds; whatever is damaged, every later whole entry is found.
//!
//! An entry is its file's marker (8 bytes), the length of its body (4), a CRC32C over both and the
//! body (4), and the body; integers are little-endian. The marker is drawn anew for every file and
//! told by its name, so nobody who writes telemetry can plant an entry inside a payload.

use std::ops::Range;

use memchr::memmem;

use super::{Kind, Mark, OutId, Part, Record};
use crate::model::ids::{Digest16, Position, SpanId, SpanRef, TraceId};
use crate::wire::Signal;
use crate::wire::inflate::Coding;

/// What every entry of one file begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker(pub u64);

/// Bytes before the body.
pub const HEADER: usize = 16;
/// Bytes of a body's start that every record has: kind, position, signal, coding.
const PREFIX: usize = 11;
/// Bytes of one [`OutId`].
const OUT_ID: usize = 61;

/// An entry as it lies in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    Record { position: Position, kind: Kind, signal: Signal, coding: Coding, payload: &'a [u8] },
    Marks(Vec<Noted>),
}

/// What a mark says, in a form that many of them share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Noted {
    /// Every record from the first to the last position is done.
    Done {
        from: Position,
        to: Position,
    },
    Delivered {
        position: Position,
        exporter: String,
        part: Part,
    },
}

impl Noted {
    /// One mark of one record.
    pub fn new(position: Position, mark: Mark) -> Self {
        match mark {
            Mark::Done => Noted::Done { from: position, to: position },
            Mark::Delivered { exporter, part } => Noted::Delivered { position, exporter, part },
        }
    }
}

/// Why bytes are no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The bytes end before the entry does.
    Short,
    /// Another entry's marker, or none.
    Marker,
    Checksum,
    /// The checksum holds over something that this version does not know.
    Body,
}

/// Bytes that an entry of this record takes; `None` where its length cannot be told.
pub fn entry_length(record: &Record) -> Option<u64> {
    let ids = match &record.kind {
        Kind::In => 0,
        Kind::Out(ids) => 4 + ids.len() * OUT_ID,
    };
    let body = PREFIX + ids + record.payload.len();
    u32::try_from(body).ok().map(|body| u64::from(body) + HEADER as u64)
}

/// Appends all of a record's entry but the payload, which must follow it. The record's
/// [`entry_length`] must be known.
pub fn put_record(marker: Marker, position: Position, record: &Record, out: &mut Vec<u8>) {
    let start = open_entry(marker, out);
    out.push(match record.kind {
        Kind::In => 1,
        Kind::Out(_) => 2,
    });
    out.extend_from_slice(&position.0.to_le_bytes());
    out.push(record.signal as u8);
    out.push(record.coding as u8);
    if let Kind::Out(ids) = &record.kind {
        put_u32(ids.len(), out);
        for id in ids {
            out.extend_from_slice(&id.chain.0);
            out.extend_from_slice(&id.span.trace.0);
            out.extend_from_slice(&id.span.span.0);
            out.extend_from_slice(&id.revision.to_le_bytes());
            out.push(id.closes.into());
            out.extend_from_slice(&id.digest.0);
        }
    }
    close_entry(start, &record.payload, out);
}

/// Appends an entry of marks.
pub fn put_marks(marker: Marker, marks: &[Noted], out: &mut Vec<u8>) {
    let start = open_entry(marker, out);
    out.push(3);
    put_u32(marks.len(), out);
    for mark in marks {
        match mark {
            Noted::Done { from, to } => {
                out.push(0);
                out.extend_from_slice(&from.0.to_le_bytes());
                out.extend_from_slice(&to.0.to_le_bytes());
            }
            Noted::Delivered { position, exporter, part } => {
                out.push(match part {
                    Part::Rest => 1,
                    Part::Held => 2,
                });
                out.extend_from_slice(&position.0.to_le_bytes());
                put_u32(exporter.len(), out);
                out.extend_from_slice(exporter.as_bytes());
            }
        }
    }
    close_entry(start, &[], out);
}

fn open_entry(marker: Marker, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&marker.0.to_le_bytes());
    out.extend_from_slice(&[0; 8]);
    start
}

fn close_entry(start: usize, payload: &[u8], out: &mut [u8]) {
    let length = u32::try_from(out.len() - start - HEADER + payload.len()).unwrap_or(u32::MAX);
    out[start + 8..start + 12].copy_from_slice(&length.to_le_bytes());
    let sum = checksum(&out[start..start + 12], &out[start + HEADER..]);
    let sum = crc32c::crc32c_append(sum, payload);
    out[start + 12..start + 16].copy_from_slice(&sum.to_le_bytes());
}

fn checksum(head: &[u8], body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(head), body)
}

fn put_u32(value: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes());
}

/// Reads the entry that `bytes` begin with; also how long it is.
///
/// # Errors
/// Why there is none.
pub fn entry(marker: Marker, bytes: &[u8]) -> Result<(Entry<'_>, usize), Fault> {
    let length = HEADER + body_length(marker, bytes)?;
    let whole = bytes.get(..length).ok_or(Fault::Short)?;
    let (head, body) = whole.split_at(HEADER);
    let sum = Reader(&head[12..]).u32().ok_or(Fault::Short)?;
    if sum != checksum(&head[..12], body) {
        return Err(Fault::Checksum);
    }
    let entry = read_body(body).ok_or(Fault::Body)?;
    Ok((entry, length))
}

/// The length of the body that a header announces.
///
/// # Errors
/// When there is no header.
pub fn body_length(marker: Marker, bytes: &[u8]) -> Result<usize, Fault> {
    let mut head = Reader(bytes.get(..HEADER).ok_or(Fault::Short)?);
    if head.u64() != Some(marker.0) {
        return Err(Fault::Marker);
    }
    head.u32().map(|length| length as usize).ok_or(Fault::Short)
}

fn read_body(body: &[u8]) -> Option<Entry<'_>> {
    let mut reader = Reader(body);
    let kind = reader.u8()?;
    if kind == 3 {
        return read_marks(&mut reader).map(Entry::Marks);
    }
    let position = Position(reader.u64()?);
    let signal = *Signal::ALL.get(usize::from(reader.u8()?))?;
    let coding = match reader.u8()? {
        0 => Coding::Identity,
        1 => Coding::Gzip,
        2 => Coding::Zstd,
        _ => return None,
    };
    let kind = match kind {
        1 => Kind::In,
        2 => Kind::Out(read_ids(&mut reader)?),
        _ => return None,
    };
    Some(Entry::Record { position, kind, signal, coding, payload: reader.0 })
}

fn read_ids(reader: &mut Reader<'_>) -> Option<Vec<OutId>> {
    let count = reader.u32()? as usize;
    // The count is checked against what is there before room is made for it.
    let bytes = reader.take(count.checked_mul(OUT_ID)?)?;
    let id = |bytes: &[u8]| {
        let mut reader = Reader(bytes);
        let chain = Digest16(reader.array()?);
        let span = SpanRef { trace: TraceId(reader.array()?), span: SpanId(reader.array()?) };
        let (revision, closes) = (reader.u32()?, reader.u8()? != 0);
        Some(OutId { chain, span, revision, closes, digest: Digest16(reader.array()?) })
    };
    bytes.chunks_exact(OUT_ID).map(id).collect()
}

fn read_marks(reader: &mut Reader<'_>) -> Option<Vec<Noted>> {
    let count = reader.u32()?;
    let mut marks = Vec::new();
    for _ in 0..count {
        let tag = reader.u8()?;
        let position = Position(reader.u64()?);
        let part = match tag {
            0 => {
                marks.push(Noted::Done { from: position, to: Position(reader.u64()?) });
                continue;
            }
            1 => Part::Rest,
            2 => Part::Held,
            _ => return None,
        };
        let length = reader.u32()? as usize;
        let exporter = std::str::from_utf8(reader.take(length)?).ok()?.to_string();
        marks.push(Noted::Delivered { position, exporter, part });
    }
    reader.0.is_empty().then_some(marks)
}

/// Takes values off the front of bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

/// What stands at a place of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    Entry {
        at: Range<usize>,
        entry: Entry<'a>,
    },
    /// Bytes that were an entry once.
    Damaged(Range<usize>),
    /// An entry whose writing was cut off: the file ends inside it.
    Torn(Range<usize>),
}

/// Everything in a file, in order; the ranges cover it without a gap.
pub struct Walk<'a> {
    marker: Marker,
    bytes: &'a [u8],
    at: usize,
}

/// Walks over the bytes of a file.
pub fn walk(marker: Marker, bytes: &[u8]) -> Walk<'_> {
    Walk { marker, bytes, at: 0 }
}

impl Walk<'_> {
    /// Where the next whole entry begins.
    fn resume(&self) -> Option<usize> {
        let marker = self.marker.0.to_le_bytes();
        let after = self.at + 1;
        memmem::find_iter(self.bytes.get(after..)?, &marker)
            .map(|found| after + found)
            .find(|found| entry(self.marker, &self.bytes[*found..]).is_ok())
    }

    /// What is left at the end of a file where no entry follows. A whole entry with a wrong
    /// checksum was written once; anything else is a write that never ended.
    fn rest(&self, fault: Fault) -> Found<'static> {
        let at = self.at..self.bytes.len();
        match fault {
            Fault::Checksum | Fault::Body => Found::Damaged(at),
            Fault::Short | Fault::Marker => Found::Torn(at),
        }
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Found<'a>;

    fn next(&mut self) -> Option<Found<'a>> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let found = match entry(self.marker, rest) {
            Ok((entry, length)) => Found::Entry { at: self.at..self.at + length, entry },
            Err(fault) => match self.resume() {
                Some(next) => Found::Damaged(self.at..next),
                None => self.rest(fault),
            },
        };
        self.at = match &found {
            Found::Entry { at, .. } | Found::Damaged(at) | Found::Torn(at) => at.end,
        };
        Some(found)
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
