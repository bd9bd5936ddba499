//! The checkpoint beside the segments, and the spare that keeps room for the next one.
//!
//! Promises: a checkpoint stays until a newer one is whole and durable, whatever the device does;
//! where the device or the bound is full, the spare's room is what the newer one takes.

use std::io;
use std::sync::{Mutex, PoisonError};

use super::layout::Directory;
use super::paper::Room;
use super::shared::Shared;
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
    /// Bytes of the largest one.
    most: u64,
    /// Bytes of the smallest spare.
    least: u64,
    files: Mutex<Files>,
}

/// Bytes of the files that are there. One at a time writes them.
#[derive(Default)]
struct Files {
    checkpoint: u64,
    spare: u64,
}

/// Room for a first checkpoint, where the bound is not small.
const LEAST_SPARE: u64 = 16 << 20;

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
            most: settings.max_size / 4,
            least: (settings.max_size / 16).min(LEAST_SPARE),
            files: Mutex::default(),
        };
        let Some(format) = settings.checkpoints else { return Ok(all) };
        let mut files = Files { checkpoint: 0, spare: directory.spare() };
        let read = match directory.checkpoint() {
            Ok(None) => {
                all.files = Mutex::new(files);
                return Ok(all);
            }
            Ok(Some((mut file, bytes))) => {
                files.checkpoint = bytes;
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
                (all.refused, files.checkpoint) = (true, 0);
            }
            Err(error) => return Err(error),
        }
        all.files = Mutex::new(files);
        Ok(all)
    }

    /// Up to where records are folded; `None` where that does not matter.
    pub fn folded(&self) -> Option<Position> {
        self.format.map(|_| self.folded)
    }

    pub fn take(&self) -> Option<Checkpoint> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Replaces the checkpoint. The first `needed` slices are in it, or it stays as it was. How
    /// many slices found no room.
    ///
    /// # Errors
    /// When there is no room for what is needed, or the system fails.
    pub fn write(
        &self,
        directory: &Directory,
        shared: &Shared,
        position: Position,
        needed: usize,
        slices: &mut dyn Iterator<Item = Vec<u8>>,
    ) -> io::Result<u64> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let format = self.format.unwrap_or_default();
        let most = self.most;
        let mut growing = Growing { directory, shared, files: &mut files, most, bytes: 0 };
        let written = directory.replace_checkpoint(&mut growing, |paper| {
            checkpoint::write(paper, format, position, needed, slices)
        });
        let bytes = growing.bytes;
        let gone = match &written {
            Ok(_) => std::mem::replace(&mut files.checkpoint, bytes),
            // It may have its name, and only that is not known to be durable.
            Err(_) => match directory.checkpoint() {
                Ok(Some((_, found))) if found != files.checkpoint => {
                    std::mem::replace(&mut files.checkpoint, bytes)
                }
                _ => bytes,
            },
        };
        let mut state = shared.state();
        state.other_bytes = state.other_bytes.saturating_sub(gone);
        if written.is_ok() {
            state.index.fold(position);
        }
        drop(state);
        written
    }

    /// Sees that the next checkpoint, a little larger than this one, will find room.
    pub fn keep_spare(&self, directory: &Directory, shared: &Shared) {
        if self.format.is_none() {
            return;
        }
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = (files.checkpoint + files.checkpoint / 4).clamp(self.least, self.most);
        let mut state = shared.state();
        let bytes = wanted.min(state.left(shared.limit()) + files.spare);
        state.spare_wanted = wanted.saturating_sub(bytes);
        if bytes <= files.spare && files.spare / 4 <= wanted {
            return;
        }
        state.other_bytes = state.other_bytes.saturating_sub(files.spare) + bytes;
        drop(state);
        files.spare = bytes;
        if let Err(error) = directory.keep_spare(bytes) {
            tracing::warn!(%error, "no room can be kept for the next checkpoint");
            let mut state = shared.state();
            state.other_bytes = state.other_bytes.saturating_sub(files.spare);
            files.spare = 0;
        }
    }
}

/// A checkpoint that is being written, within the bound of all files.
struct Growing<'a> {
    directory: &'a Directory,
    shared: &'a Shared,
    files: &'a mut Files,
    most: u64,
    bytes: u64,
}

impl Room for Growing<'_> {
    fn take(&mut self, bytes: u64) -> bool {
        if self.bytes + bytes > self.most {
            return false;
        }
        loop {
            let mut state = self.shared.state();
            if bytes <= state.left(self.shared.limit()) {
                state.other_bytes += bytes;
                self.bytes += bytes;
                return true;
            }
            drop(state);
            if !self.more() {
                return false;
            }
        }
    }

    fn more(&mut self) -> bool {
        if self.files.spare == 0 || self.directory.give_spare().is_err() {
            return false;
        }
        let gone = std::mem::take(&mut self.files.spare);
        let mut state = self.shared.state();
        state.other_bytes = state.other_bytes.saturating_sub(gone);
        true
    }
}
