//! A checkpoint's file while it grows: piece by piece, within the bound.
//!
//! Promises: a piece is in the file whole or not at all.

use std::io;

use super::error::is_full;
use super::medium::Tail;
use crate::log::checkpoint::Paper;

/// Decides whether a file may grow.
pub trait Room {
    /// Whether so many bytes may be written.
    fn take(&mut self, bytes: u64) -> bool;

    /// The device has none: whether some was made.
    fn more(&mut self) -> bool;
}

/// A file that takes pieces whole.
pub struct Whole<'a> {
    pub tail: Box<dyn Tail>,
    pub length: u64,
    pub room: &'a mut dyn Room,
}

impl Paper for Whole<'_> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        let length = bytes.len() as u64;
        if !self.room.take(length) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        while let Err(error) = write_all(&mut *self.tail, bytes) {
            self.tail.cut(self.length)?;
            if !is_full(&error) || !self.room.more() {
                return Err(error);
            }
        }
        self.length += length;
        Ok(())
    }
}

fn write_all(tail: &mut dyn Tail, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match tail.write(&[io::IoSlice::new(bytes)]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
