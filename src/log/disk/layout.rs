//! The directory: names, rights, the lock, and what does not belong there.
//!
//! Promises: files are for their owner alone (0600, directories 0700); one process at a time has
//! the directory, however the last one ended; a file that nobody knows is moved, never removed.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::error::OpenError;
use crate::log::record::Marker;
use crate::model::ids::Position;

/// A segment's place in the order of all.
pub type Sequence = u64;

/// Files that other parts of the program keep beside the log begin with one of these.
const NEIGHBOURS: [&str; 2] = [CHECKPOINT, "pins"];
const CHECKPOINT: &str = "checkpoint";
/// A checkpoint that is being written.
const NEXT_CHECKPOINT: &str = "checkpoint.new";
const LOCK: &str = "lock";
const SET_ASIDE: &str = "set-aside";
/// Ends the name of a segment of this version of the format.
const ENDING: &str = ".log1";
/// Ends the name of a segment that is being repaired.
const UNFINISHED: &str = ".unfinished";

/// A segment's name tells all that is needed to read it, so that no damage inside can hide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    pub sequence: Sequence,
    pub first: Position,
    pub marker: u64,
}

impl Name {
    /// A name with a marker of its own. The standard library seeds its hashers from the system's
    /// random source, which is all that is wanted of it here.
    pub fn new(sequence: Sequence, first: Position) -> Self {
        let hasher = || std::collections::hash_map::RandomState::new().build_hasher();
        let mut mixed = hasher();
        mixed.write_u64(sequence);
        Name { sequence, first, marker: mixed.finish() ^ hasher().finish() }
    }

    pub fn marker(&self) -> Marker {
        Marker(self.marker)
    }

    pub fn file_name(&self) -> String {
        let Name { sequence, first, marker } = self;
        format!("{sequence:012}-{:020}-{marker:016x}{ENDING}", first.0)
    }

    pub fn parse(file_name: &str) -> Option<Self> {
        let mut parts = file_name.strip_suffix(ENDING)?.split('-');
        let sequence = parts.next()?.parse().ok()?;
        let first = Position(parts.next()?.parse().ok()?);
        let marker = u64::from_str_radix(parts.next()?, 16).ok()?;
        let name = Name { sequence, first, marker };
        // One name has one spelling: anything else is somebody else's file.
        (name.file_name() == file_name).then_some(name)
    }
}

/// The directory, ours as long as this lives.
pub struct Directory {
    path: PathBuf,
    /// Holds the system's lock.
    lock: File,
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Closing it would do, unless a child that was just forked has the file open too. An error
        // leaves that way.
        let _ = self.lock.unlock();
    }
}

/// What a look into the directory found.
#[derive(Default)]
pub struct Contents {
    /// In order.
    pub segments: Vec<Name>,
    /// Files that nobody knows, now in `set-aside`.
    pub unknown: Vec<String>,
    /// Bytes of everything that is no segment.
    pub other_bytes: u64,
}

impl Directory {
    /// Creates the directory where needed, and locks it.
    ///
    /// # Errors
    /// When it cannot be used, or another process uses it.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let failed = |error| OpenError::of(path, error);
        if !path.is_dir() {
            private_directory(path, true).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let lock = options.open(path.join(LOCK)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Directory { path: path.to_path_buf(), lock }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.to_path_buf() }),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    pub fn segment(&self, name: &Name) -> PathBuf {
        self.path.join(name.file_name())
    }

    /// Where files go that are set aside.
    pub fn set_aside(&self) -> PathBuf {
        self.path.join(SET_ASIDE)
    }

    /// Looks at every file; unknown ones are moved aside.
    ///
    /// # Errors
    /// When the system fails.
    pub fn look(&self) -> io::Result<Contents> {
        let mut contents = Contents::default();
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            if !entry.file_type()?.is_file() {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(segment) = Name::parse(&name) {
                contents.segments.push(segment);
            } else if name == NEXT_CHECKPOINT
                || name.ends_with(UNFINISHED) && Name::parse(stem(&name)).is_some()
            {
                // A repair or a checkpoint that never ended: what it was to replace is still there.
                std::fs::remove_file(entry.path())?;
            } else if name == LOCK || NEIGHBOURS.iter().any(|known| name.starts_with(known)) {
                contents.other_bytes += entry.metadata()?.len();
            } else {
                self.move_aside(&entry.path(), &name)?;
                contents.unknown.push(name);
            }
        }
        contents.segments.sort_unstable();
        contents.other_bytes += self.bytes_aside()?;
        Ok(contents)
    }

    fn move_aside(&self, path: &Path, name: &str) -> io::Result<()> {
        private_directory(&self.set_aside(), true)?;
        let free = |n: &usize| !self.set_aside().join(numbered(name, *n)).exists();
        let number = (0..).find(free).unwrap_or_default();
        std::fs::rename(path, self.set_aside().join(numbered(name, number)))
    }

    /// Bytes of files that are set aside.
    ///
    /// # Errors
    /// When the system fails.
    pub fn bytes_aside(&self) -> io::Result<u64> {
        let entries = match std::fs::read_dir(self.set_aside()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(error),
        };
        entries.map(|entry| Ok(entry?.metadata()?.len())).sum()
    }

    /// Keeps a copy of damaged bytes. Damage that is met again has the same name.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_damaged(&self, name: &Name, offset: usize, bytes: &[u8]) -> io::Result<()> {
        private_directory(&self.set_aside(), true)?;
        let path = self.set_aside().join(format!("{}-at-{offset}", name.file_name()));
        write_whole(&path, &[bytes])?;
        sync_directory(&self.set_aside())
    }

    /// Replaces a segment by these parts of it, at once or not at all.
    ///
    /// # Errors
    /// When it cannot be written; the segment is as it was then.
    pub fn rewrite(&self, name: &Name, parts: &[&[u8]]) -> io::Result<()> {
        let path = self.segment(name);
        let unfinished = self.path.join(format!("{}{UNFINISHED}", name.file_name()));
        let written = write_whole(&unfinished, parts)
            .and_then(|()| std::fs::rename(&unfinished, &path))
            .and_then(|()| sync_directory(&self.path));
        if written.is_err() {
            // The next start removes it as well.
            let _ = std::fs::remove_file(&unfinished);
        }
        written
    }

    /// The checkpoint's file, where there is one.
    ///
    /// # Errors
    /// When the system fails.
    pub fn checkpoint(&self) -> io::Result<Option<File>> {
        match File::open(self.path.join(CHECKPOINT)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the checkpoint by what `write` writes, at once or not at all. Its bytes, and what
    /// `write` returned.
    ///
    /// # Errors
    /// When it cannot be written; the old one is as it was then.
    pub fn replace_checkpoint<T>(
        &self,
        write: impl FnOnce(&mut dyn io::Write) -> io::Result<T>,
    ) -> io::Result<(u64, T)> {
        let unfinished = self.path.join(NEXT_CHECKPOINT);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let into = || {
            let mut file = io::BufWriter::with_capacity(1 << 16, options.open(&unfinished)?);
            let written = write(&mut file)?;
            let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.sync_all()?;
            std::fs::rename(&unfinished, self.path.join(CHECKPOINT))?;
            sync_directory(&self.path)?;
            Ok((file.metadata()?.len(), written))
        };
        let replaced = into();
        if replaced.is_err() {
            // The next start removes it as well.
            let _ = std::fs::remove_file(&unfinished);
        }
        replaced
    }

    /// Removes the checkpoint.
    ///
    /// # Errors
    /// When the system fails.
    pub fn remove_checkpoint(&self) -> io::Result<()> {
        match std::fs::remove_file(self.path.join(CHECKPOINT)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => sync_directory(&self.path),
        }
    }

    /// Moves a checkpoint that cannot be read aside.
    ///
    /// # Errors
    /// When the system fails.
    pub fn set_checkpoint_aside(&self) -> io::Result<()> {
        self.move_aside(&self.path.join(CHECKPOINT), CHECKPOINT)
    }

    /// A new file for a segment.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(&self, name: &Name) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600).open(self.segment(name))
    }

    /// Makes the names in the directory as durable as the files.
    ///
    /// # Errors
    /// When the system fails.
    pub fn sync(&self) -> io::Result<()> {
        sync_directory(&self.path)
    }
}

fn stem(unfinished: &str) -> &str {
    unfinished.strip_suffix(UNFINISHED).unwrap_or(unfinished)
}

fn numbered(name: &str, number: usize) -> String {
    if number == 0 { name.to_string() } else { format!("{name}.{number}") }
}

fn private_directory(path: &Path, recursive: bool) -> io::Result<()> {
    DirBuilder::new().recursive(recursive).mode(0o700).create(path)
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn write_whole(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    for part in parts {
        io::Write::write_all(&mut file, part)?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_others_do_not() {
        let name = Name::new(12, Position(1 << 50));
        assert_eq!(Name::parse(&name.file_name()), Some(name));
        assert_ne!(name.marker, Name::new(12, Position(1 << 50)).marker);
        let text = Name { sequence: 1, first: Position(2), marker: 3 }.file_name();
        assert_eq!(text, "000000000001-00000000000000000002-0000000000000003.log1");
        for other in ["", "x.log1", &text[1..], &text.replace("log1", "log2"), &format!("{text}x")]
        {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }
}
