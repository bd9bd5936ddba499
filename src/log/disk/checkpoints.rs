//! The checkpoint beside the segments.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::layout::Directory;
use crate::log::checkpoint::{self, Checkpoint};
use crate::log::settings::Settings;
use crate::model::ids::Position;

/// What was found at the start, and how the next one is written.
pub struct Checkpoints {
    /// `None` where nobody writes any.
    format: Option<u32>,
    folded: Position,
    found: Mutex<Option<Checkpoint>>,
    /// One was there and could not be read.
    pub refused: bool,
    room: u64,
    bytes: AtomicU64,
}

impl Checkpoints {
    /// Looks for a checkpoint. One that cannot be read is set aside.
    ///
    /// # Errors
    /// When the system fails.
    pub fn open(directory: &Directory, settings: &Settings) -> io::Result<Self> {
        let mut all = Checkpoints {
            format: settings.checkpoints,
            folded: Position(0),
            found: Mutex::default(),
            refused: false,
            // Two of them are there for a moment: together they take half.
            room: settings.max_size / 4,
            bytes: AtomicU64::new(0),
        };
        let Some(format) = settings.checkpoints else { return Ok(all) };
        let read = match directory.checkpoint() {
            Ok(None) => return Ok(all),
            Ok(Some((mut file, bytes))) => {
                all.bytes = AtomicU64::new(bytes);
                checkpoint::read(&mut file, format)
            }
            Err(error) => Err(error),
        };
        match read {
            Ok(found) => {
                all.folded = found.position;
                all.found = Mutex::new(Some(found));
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                tracing::warn!(%error, "the checkpoint is refused: the log alone is read again");
                directory.set_checkpoint_aside()?;
                (all.refused, all.bytes) = (true, AtomicU64::new(0));
            }
            Err(error) => return Err(error),
        }
        Ok(all)
    }

    /// Up to where records are folded; `None` where that does not matter.
    pub fn folded(&self) -> Option<Position> {
        self.format.map(|_| self.folded)
    }

    pub fn take(&self) -> Option<Checkpoint> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Bytes of the file, and how many slices found no room.
    ///
    /// # Errors
    /// When the system fails.
    pub fn write(
        &self,
        directory: &Directory,
        position: Position,
        slices: &mut dyn Iterator<Item = Vec<u8>>,
    ) -> io::Result<(u64, u64)> {
        let format = self.format.unwrap_or_default();
        directory
            .replace_checkpoint(|file| checkpoint::write(file, format, position, slices, self.room))
    }

    /// Notes how large the file is now; returns how large it was.
    pub fn replace_bytes(&self, bytes: u64) -> u64 {
        self.bytes.swap(bytes, Ordering::Relaxed)
    }
}
