//! The file system that we run on.
//!
//! Promises: files are for their owner alone (0600, directories 0700); one process at a time has
//! the directory, however the last one ended.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, IoSlice, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::error::OpenError;
use super::layout::LOCK;
use super::medium::{Medium, Other, Source, Tail};

/// A directory, ours as long as this lives.
pub struct System {
    path: PathBuf,
    /// Holds the system's lock.
    lock: File,
}

impl Drop for System {
    fn drop(&mut self) {
        // Closing it would do, unless a child that was just forked has the file open too. An error
        // leaves that way.
        let _ = self.lock.unlock();
    }
}

impl System {
    /// Creates the directory where needed, and locks it.
    ///
    /// # Errors
    /// When it cannot be used, or another process uses it.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let failed = |error| OpenError::of(path, error);
        if !path.is_dir() {
            private_directory(path).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let lock = path.join(LOCK);
        if std::fs::symlink_metadata(&lock).is_ok_and(|found| !found.is_file()) {
            let error = "its `lock` is no regular file, remove that";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidData, error)));
        }
        let lock = options.open(lock).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(System { path: path.to_path_buf(), lock }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.to_path_buf() }),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

impl Medium for System {
    fn files(&self, folder: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
        let entries = match std::fs::read_dir(self.path.join(folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                files.push((folder.join(entry.file_name()), entry.metadata()?.len()));
            }
        }
        Ok(files)
    }

    fn others(&self, folder: &Path) -> io::Result<Vec<(PathBuf, Other)>> {
        let mut others = Vec::new();
        for entry in std::fs::read_dir(self.path.join(folder))? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if !kind.is_file() {
                let other = if kind.is_dir() { Other::Folder } else { Other::Special };
                others.push((folder.join(entry.file_name()), other));
            }
        }
        Ok(others)
    }

    fn open(&self, name: &Path) -> io::Result<Box<dyn Source>> {
        let path = self.path.join(name);
        // A pipe would be waited for, and a link may lead anywhere.
        if !std::fs::symlink_metadata(&path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no regular file"));
        }
        Ok(Box::new(File::open(path)?))
    }

    fn create(&self, name: &Path) -> io::Result<Box<dyn Tail>> {
        if let Some(folder) = name.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            private_directory(&self.path.join(folder))?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        Ok(Box::new(options.open(self.path.join(name))?))
    }

    fn sync(&self, name: &Path) -> io::Result<()> {
        File::open(self.path.join(name))?.sync_all()
    }

    fn cut(&self, name: &Path, length: u64) -> io::Result<()> {
        OpenOptions::new().write(true).open(self.path.join(name))?.set_len(length)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let to = self.path.join(to);
        if let Some(folder) = to.parent() {
            private_directory(folder)?;
        }
        std::fs::rename(self.path.join(from), to)
    }

    fn remove(&self, name: &Path) -> io::Result<()> {
        match std::fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn sync_names(&self, folder: &Path) -> io::Result<()> {
        File::open(self.path.join(folder))?.sync_all()
    }

    /// The standard library seeds its hashers from the system's random source, which is all that is
    /// wanted of it here.
    fn draw(&self) -> u64 {
        let hasher = || std::collections::hash_map::RandomState::new().build_hasher();
        hasher().finish() ^ hasher().finish().rotate_left(32)
    }
}

impl Source for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(self, into, offset)
    }
}

impl Tail for File {
    fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write_vectored(slices)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(|_| ())
    }
}

fn private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}
