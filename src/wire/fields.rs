//! The protobuf wire format: reads one field at a time, borrowed, and writes fields.
//!
//! Promises: [`Fields`] never panics, never reads past its slice, and yields at most one error,
//! after which it ends. Offsets count from the base the iterator was given, so that an error in a
//! nested message names its place in the whole request.

use std::fmt;
use std::ops::Range;

/// Why bytes are not a protobuf message. Holds a place and a reason, never content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Byte offset in the request at which reading stopped.
    pub offset: usize,
    /// What is wrong there.
    pub reason: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "not a readable OTLP protobuf message: {} at byte {}", self.reason, self.offset)
    }
}

impl std::error::Error for Malformed {}

/// Groups (wire types 3 and 4, deprecated) may nest this deep before a message is refused.
const MAX_GROUP_DEPTH: usize = 100;

/// The value of one field as it stands on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WireValue<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
    /// A balanced deprecated group, without its end tag; OTLP has none, so it is an unknown field.
    Group(&'a [u8]),
}

impl<'a> WireValue<'a> {
    /// The length-delimited bytes; empty for any other wire type.
    pub fn bytes(self) -> &'a [u8] {
        if let WireValue::Bytes(bytes) = self { bytes } else { &[] }
    }

    /// The value as an unsigned integer; 0 for bytes and groups.
    pub fn integer(self) -> u64 {
        match self {
            WireValue::Varint(value) | WireValue::Fixed64(value) => value,
            WireValue::Fixed32(value) => u64::from(value),
            WireValue::Bytes(_) | WireValue::Group(_) => 0,
        }
    }
}

/// One field of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Field<'a> {
    pub number: u32,
    pub value: WireValue<'a>,
    /// The whole field (tag, length and value) as a range of the message given to [`Fields`].
    pub range: Range<usize>,
}

impl Field<'_> {
    /// Where the payload of a length-delimited field begins in the message.
    pub fn body_start(&self) -> usize {
        self.range.end - self.value.bytes().len()
    }
}

/// Iterates over the fields of one message. Everything on the way of an ordinary field is inlined
/// into the loop around it: this is where a scan spends its time.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    base: usize,
}

impl<'a> Fields<'a> {
    /// The fields of a whole message.
    pub fn new(bytes: &'a [u8]) -> Self {
        Fields { bytes, at: 0, base: 0 }
    }

    /// The fields of a message that begins at byte `base` of its request; only errors use `base`.
    pub fn at(bytes: &'a [u8], base: usize) -> Self {
        Fields { bytes, at: 0, base }
    }

    /// The fields of `bytes[range]`, with ranges that still count from the start of `bytes`.
    pub fn within(bytes: &'a [u8], range: Range<usize>) -> Self {
        let end = range.end.min(bytes.len());
        Fields { bytes: &bytes[..end], at: range.start.min(end), base: 0 }
    }

    #[cold]
    fn malformed(&self, at: usize, reason: &'static str) -> Malformed {
        Malformed { offset: self.base + at, reason }
    }

    #[inline(always)]
    fn varint(&self, at: &mut usize) -> Result<u64, Malformed> {
        if let Some(&byte) = self.bytes.get(*at)
            && byte < 0x80
        {
            *at += 1;
            return Ok(u64::from(byte));
        }
        match read_varint(&self.bytes[*at..]) {
            Ok((value, length)) => {
                *at += length;
                Ok(value)
            }
            Err(reason) => Err(self.malformed(*at, reason)),
        }
    }

    #[inline(always)]
    fn tag(&self, at: &mut usize) -> Result<(u32, u8), Malformed> {
        let start = *at;
        let tag = self.varint(at)?;
        let number = u32::try_from(tag >> 3).unwrap_or(u32::MAX);
        if number == 0 || number > MAX_FIELD_NUMBER {
            return Err(self.malformed(start, "a field number out of range"));
        }
        Ok((number, (tag & 7) as u8))
    }

    #[inline(always)]
    fn take(&self, at: &mut usize, length: usize) -> Result<&'a [u8], Malformed> {
        let end = at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let Some(end) = end else {
            return Err(self.malformed(*at, "a field longer than the message around it"));
        };
        let taken = &self.bytes[*at..end];
        *at = end;
        Ok(taken)
    }

    #[inline(always)]
    fn value(&self, at: &mut usize, number: u32, wire: u8) -> Result<WireValue<'a>, Malformed> {
        match wire {
            0 => self.varint(at).map(WireValue::Varint),
            1 => {
                let bytes = self.take(at, 8)?;
                Ok(WireValue::Fixed64(u64::from_le_bytes(bytes.try_into().expect("eight bytes"))))
            }
            2 => {
                let length = self.varint(at)?;
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                self.take(at, length).map(WireValue::Bytes)
            }
            3 => self.group(at, number).map(WireValue::Group),
            5 => {
                let bytes = self.take(at, 4)?;
                Ok(WireValue::Fixed32(u32::from_le_bytes(bytes.try_into().expect("four bytes"))))
            }
            4 => Err(self.malformed(*at, "the end of a group that was not opened")),
            _ => Err(self.malformed(*at, "an unknown wire type")),
        }
    }

    /// Skips to the end of a group, iteratively.
    #[cold]
    fn group(&self, at: &mut usize, number: u32) -> Result<&'a [u8], Malformed> {
        let start = *at;
        let mut open = vec![number];
        loop {
            if *at >= self.bytes.len() {
                return Err(self.malformed(start, "a group without an end"));
            }
            let before = *at;
            let (number, wire) = self.tag(at)?;
            match wire {
                3 if open.len() >= MAX_GROUP_DEPTH => {
                    return Err(self.malformed(before, "groups nested too deep"));
                }
                3 => open.push(number),
                4 if open.pop() != Some(number) => {
                    return Err(self.malformed(before, "the end of another group"));
                }
                4 if open.is_empty() => return Ok(&self.bytes[start..before]),
                4 => {}
                _ => {
                    self.value(at, number, wire)?;
                }
            }
        }
    }

    #[inline(always)]
    fn read(&self, at: &mut usize) -> Result<Field<'a>, Malformed> {
        let start = *at;
        let (number, wire) = self.tag(at)?;
        let value = self.value(at, number, wire)?;
        Ok(Field { number, value, range: start..*at })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let mut at = self.at;
        let read = self.read(&mut at);
        self.at = if read.is_ok() { at } else { self.bytes.len() };
        Some(read)
    }
}

/// The largest field number protobuf allows.
pub const MAX_FIELD_NUMBER: u32 = (1 << 29) - 1;

/// Reads a varint from the start of `bytes`: its value and its length.
///
/// # Errors
/// The reason, when it is cut off, longer than ten bytes or larger than 64 bits.
pub fn read_varint(bytes: &[u8]) -> Result<(u64, usize), &'static str> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().take(10).enumerate() {
        if index == 9 && byte > 1 {
            return Err("a varint larger than 64 bits");
        }
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Ok((value, index + 1));
        }
    }
    Err("a varint that is cut off")
}

/// Bytes that a varint takes.
pub const fn varint_len(value: u64) -> usize {
    // Seven bits a byte; the multiplication divides by seven without a loop.
    ((64 - (value | 1).leading_zeros() as usize) * 9 + 64) / 64
}

/// Bytes that a length-delimited field of `length` payload bytes takes.
pub const fn bytes_field_len(number: u32, length: usize) -> usize {
    varint_len((number as u64) << 3) + varint_len(length as u64) + length
}

/// Appends a varint.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_tag(out: &mut Vec<u8>, number: u32, wire: u64) {
    put_varint(out, (u64::from(number) << 3) | wire);
}

/// Appends a varint field (int32, int64, uint32, uint64, bool, enum).
pub fn put_varint_field(out: &mut Vec<u8>, number: u32, value: u64) {
    put_tag(out, number, 0);
    put_varint(out, value);
}

/// Appends a 64-bit field (fixed64, sfixed64, double as its bits).
pub fn put_fixed64_field(out: &mut Vec<u8>, number: u32, value: u64) {
    put_tag(out, number, 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a 32-bit field.
pub fn put_fixed32_field(out: &mut Vec<u8>, number: u32, value: u32) {
    put_tag(out, number, 5);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends the tag and length of a length-delimited field whose payload follows.
pub fn put_header(out: &mut Vec<u8>, number: u32, length: usize) {
    put_tag(out, number, 2);
    put_varint(out, length as u64);
}

/// Appends a length-delimited field (string, bytes, message).
pub fn put_bytes_field(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_header(out, number, bytes.len());
    out.extend_from_slice(bytes);
}

/// Begins a message field whose payload is appended next; [`close_message`] repairs its length.
pub fn open_message(out: &mut Vec<u8>, number: u32) -> usize {
    put_tag(out, number, 2);
    out.push(0);
    out.len() - 1
}

/// Ends the message field that [`open_message`] began at `mark`.
pub fn close_message(out: &mut Vec<u8>, mark: usize) {
    let end = out.len();
    let length = end - mark - 1;
    let extra = varint_len(length as u64) - 1;
    if extra > 0 {
        out.resize(end + extra, 0);
        out.copy_within(mark + 1..end, mark + 1 + extra);
    }
    let mut value = length as u64;
    for byte in &mut out[mark..mark + extra] {
        *byte = (value as u8) | 0x80;
        value >>= 7;
    }
    out[mark + extra] = value as u8;
}

/// Maps a signed integer to the zigzag form of `sint32`/`sint64`.
pub const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
pub const fn unzigzag(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}
