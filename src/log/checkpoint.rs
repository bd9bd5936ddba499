//! A checkpoint as a file: slices of bytes, each compressed and with its checksum.
//!
//! Promises: a file that is not whole, or of another format, is refused as a whole; what is written
//! replaces the old file at once or not at all. What the slices mean is the engine's.
//!
//! A head (the magic bytes, the format of the slices, the position that is folded, CRC32C of
//! these), then slices (length, CRC32C, zstd), then an end (a length of `u32::MAX`, and how many
//! slices came before, with CRC32C). Integers are little-endian.

use std::io::{self, Read};

use super::disk::is_full;
use crate::model::ids::Position;
use crate::wire::inflate::{Coding, Limits, inflate};

/// What was folded, in slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Facts of every record up to here are in it.
    pub position: Position,
    pub slices: Vec<Vec<u8>>,
}

const MAGIC: &[u8; 8] = b"mcpv-cp1";
const HEAD: usize = 8 + 4 + 8;
const END: u32 = u32::MAX;
const LEVEL: i32 = 1;
/// A slice is far smaller, inflated too.
const SLICE: usize = 256 << 20;

/// Where a checkpoint is written, a piece at a time.
pub trait Paper {
    /// Appends all of the bytes, or nothing of them.
    ///
    /// # Errors
    /// `StorageFull` or `QuotaExceeded` when there is no room for them: fewer may fit. Else when
    /// the medium failed.
    fn put(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// A file in memory has room.
impl Paper for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// Writes slices in their order as long as there is room; the first `needed` must find it. How many
/// found none.
///
/// # Errors
/// When there is no room for what is needed, or the medium failed.
pub fn write(
    paper: &mut dyn Paper,
    format: u32,
    position: Position,
    needed: usize,
    slices: &mut dyn Iterator<Item = Vec<u8>>,
) -> io::Result<u64> {
    let mut head = Vec::with_capacity(HEAD + 4);
    head.extend_from_slice(MAGIC);
    head.extend_from_slice(&format.to_le_bytes());
    head.extend_from_slice(&position.0.to_le_bytes());
    head.extend_from_slice(&crc32c::crc32c(&head).to_le_bytes());
    paper.put(&head)?;
    let (mut count, mut left_out) = (0_u32, 0);
    for slice in slices {
        let put = match left_out {
            0 => framed(&slice)?.map_or_else(too_large, |framed| paper.put(&framed)),
            // Of what has an order the first part is kept.
            _ => too_large(),
        };
        match put {
            Ok(()) => count += 1,
            Err(error) if !is_full(&error) || (count as usize) < needed => return Err(error),
            Err(_) => left_out += 1,
        }
    }
    let mut end = END.to_le_bytes().to_vec();
    end.extend_from_slice(&count.to_le_bytes());
    end.extend_from_slice(&crc32c::crc32c(&count.to_le_bytes()).to_le_bytes());
    paper.put(&end)?;
    Ok(left_out)
}

/// A slice as it stands in the file; `None` where it is larger than any may be.
fn framed(slice: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let packed = zstd::bulk::compress(slice, LEVEL)?;
    let length = u32::try_from(packed.len()).ok().filter(|length| *length < END);
    Ok(length.filter(|_| slice.len() <= SLICE).map(|length| {
        let sum = crc32c::crc32c(&packed);
        [&length.to_le_bytes()[..], &sum.to_le_bytes(), &packed].concat()
    }))
}

fn too_large() -> io::Result<()> {
    Err(io::ErrorKind::StorageFull.into())
}

/// Reads a file back.
///
/// # Errors
/// `InvalidData` with the reason when it is not whole or of another format; else when the medium
/// failed.
pub fn read(file: &mut dyn Read, format: u32) -> io::Result<Checkpoint> {
    let mut head = [0; HEAD];
    file.read_exact(&mut head).map_err(|error| short(error, "its head"))?;
    let sum = word(file, "its head")?;
    if &head[..8] != MAGIC {
        return refuse("it is no checkpoint of this program");
    }
    if crc32c::crc32c(&head) != sum {
        return refuse("its head is damaged");
    }
    let mut numbers = &head[8..];
    let written = word(&mut numbers, "its head")?;
    if written != format {
        return refuse(&format!("it is of format {written}, and this version reads {format}"));
    }
    let low = u64::from(word(&mut numbers, "its head")?);
    let position = Position(low | u64::from(word(&mut numbers, "its head")?) << 32);
    let mut slices = Vec::new();
    loop {
        let length = word(file, "a slice")?;
        if length == END {
            break;
        }
        let sum = word(file, "a slice")?;
        let mut packed = Vec::new();
        file.take(length.into()).read_to_end(&mut packed)?;
        if packed.len() != length as usize || crc32c::crc32c(&packed) != sum {
            return refuse("a slice is damaged");
        }
        let limits = Limits { max_bytes: SLICE, max_ratio: usize::MAX };
        match inflate(Coding::Zstd, &packed, limits) {
            Ok(slice) => slices.push(slice.into_owned()),
            Err(_) => return refuse("a slice cannot be inflated"),
        }
    }
    let (count, sum) = (word(file, "its end")?, word(file, "its end")?);
    let whole = crc32c::crc32c(&count.to_le_bytes()) == sum && count as usize == slices.len();
    if whole { Ok(Checkpoint { position, slices }) } else { refuse("its end is damaged") }
}

fn word(file: &mut dyn Read, what: &str) -> io::Result<u32> {
    let mut bytes = [0; 4];
    file.read_exact(&mut bytes).map_err(|error| short(error, what))?;
    Ok(u32::from_le_bytes(bytes))
}

fn short(error: io::Error, what: &str) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => invalid(&format!("it ends inside {what}")),
        _ => error,
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn refuse<T>(why: &str) -> io::Result<T> {
    Err(invalid(why))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Sheet {
        bytes: Vec<u8>,
        room: usize,
    }

    impl Paper for Sheet {
        fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
            if self.bytes.len() + bytes.len() > self.room {
                return too_large();
            }
            self.bytes.extend_from_slice(bytes);
            Ok(())
        }
    }

    fn put(slices: &[Vec<u8>], room: usize, needed: usize) -> io::Result<(Vec<u8>, u64)> {
        let mut sheet = Sheet { bytes: Vec::new(), room };
        let mut all = slices.iter().cloned();
        let left_out = write(&mut sheet, 7, Position(1 << 40 | 5), needed, &mut all)?;
        Ok((sheet.bytes, left_out))
    }

    fn file(slices: &[Vec<u8>], room: usize) -> (Vec<u8>, u64) {
        put(slices, room, 0).unwrap()
    }

    fn slices() -> Vec<Vec<u8>> {
        vec![b"first".to_vec(), vec![9; 100_000], Vec::new()]
    }

    #[test]
    fn what_is_written_is_read() {
        let (bytes, left_out) = file(&slices(), usize::MAX);
        let found = read(&mut bytes.as_slice(), 7).unwrap();
        assert_eq!((found.position, found.slices, left_out), (Position(1 << 40 | 5), slices(), 0));
    }

    #[test]
    fn the_first_find_room() {
        let (bytes, left_out) = file(&slices(), 60);
        assert!(bytes.len() <= 60, "{}", bytes.len());
        let found = read(&mut bytes.as_slice(), 7).unwrap();
        assert!(found.slices == [b"first".to_vec()] && left_out == 2, "{left_out} left out");
    }

    #[test]
    fn what_is_needed_finds_room_or_nothing_is_written() {
        assert_eq!(put(&slices(), 60, 1).unwrap().1, 2);
        let error = put(&slices(), 60, 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn another_format_is_refused_by_name() {
        let (bytes, _) = file(&slices(), usize::MAX);
        let error = read(&mut bytes.as_slice(), 8).unwrap_err();
        assert_eq!(error.to_string(), "it is of format 7, and this version reads 8");
    }

    proptest! {
        #[test]
        fn damage_anywhere_refuses_all(at in 0_usize..1_000, bit in 0_u8..8) {
            let (mut bytes, _) = file(&slices(), usize::MAX);
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            prop_assert!(read(&mut bytes.as_slice(), 7).is_err());
            prop_assert!(read(&mut &bytes[..at], 7).is_err());
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&mut bytes.as_slice(), 7);
            let mut whole = file(&[], usize::MAX).0[..HEAD + 4].to_vec();
            whole.extend(bytes);
            let _ = read(&mut whole.as_slice(), 7);
        }
    }
}
