//! Entries that go into one segment by one write. Payloads are not copied.

use std::io::{self, ErrorKind, IoSlice};

use super::medium::Tail;
use super::shared::Waiting;
use crate::log::record::{self, Marker, Noted};
use crate::model::ids::Position;

/// Entries, and who waits for them.
#[derive(Default)]
pub struct Chunk {
    heads: Vec<u8>,
    /// Where each record's head ends in `heads`.
    ends: Vec<usize>,
    pub records: Vec<Placed>,
    pub marks: Vec<Noted>,
    bytes: u64,
}

/// A record with the place it will have.
pub struct Placed {
    pub waiting: Waiting,
    pub position: Position,
    /// From the start of the chunk.
    pub offset: u64,
}

impl Chunk {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn put_marks(&mut self, marker: Marker, marks: Vec<Noted>) {
        let start = self.heads.len();
        record::put_marks(marker, &marks, &mut self.heads);
        self.bytes += (self.heads.len() - start) as u64;
        self.marks.extend(marks);
    }

    pub fn put(&mut self, marker: Marker, position: Position, waiting: Waiting) {
        record::put_record(marker, position, &waiting.record, &mut self.heads);
        self.ends.push(self.heads.len());
        let offset = self.bytes;
        self.bytes += waiting.length;
        self.records.push(Placed { waiting, position, offset });
    }

    /// # Errors
    /// When not all of it is written.
    pub fn write(&self, tail: &mut dyn Tail) -> io::Result<()> {
        let mut slices = Vec::with_capacity(2 * self.ends.len() + 1);
        let mut start = 0;
        for (end, placed) in self.ends.iter().zip(&self.records) {
            slices.push(IoSlice::new(&self.heads[start..*end]));
            slices.push(IoSlice::new(&placed.waiting.record.payload));
            start = *end;
        }
        slices.push(IoSlice::new(&self.heads[start..]));
        let mut left = slices.as_mut_slice();
        // Empty slices at the front would look like a device that takes nothing.
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            match tail.write(left) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut left, written),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
