//! All that the log asks of a file system, in one place, so that another can answer in its stead: a
//! test that lets each call fail, a simulation that has no files at all.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};

/// One directory, ours alone, with folders below it. Names are relative to it.
pub trait Medium: Send + Sync {
    /// The files of a folder and their bytes; the empty name is the directory's. None where the
    /// folder is not there.
    ///
    /// # Errors
    /// When the system fails.
    fn files(&self, folder: &Path) -> io::Result<Vec<(PathBuf, u64)>>;

    /// What is in a folder and no file that holds bytes: links, pipes, sockets, folders.
    ///
    /// # Errors
    /// When the system fails.
    fn others(&self, _folder: &Path) -> io::Result<Vec<(PathBuf, Other)>> {
        Ok(Vec::new())
    }

    /// Opens a file to be read. It follows no link, and waits for nobody.
    ///
    /// # Errors
    /// `NotFound`, `InvalidData` where it is no file that holds bytes, or when the system fails.
    fn open(&self, name: &Path) -> io::Result<Box<dyn Source>>;

    /// Creates a file, and its folder where that is not there.
    ///
    /// # Errors
    /// When there is one, there is no room, or the system fails.
    fn create(&self, name: &Path) -> io::Result<Box<dyn Tail>>;

    /// Makes durable what a file holds, whoever wrote it.
    ///
    /// # Errors
    /// When it may not be.
    fn sync(&self, name: &Path) -> io::Result<()>;

    /// Takes back what stands in a file behind a length.
    ///
    /// # Errors
    /// When the system fails.
    fn cut(&self, name: &Path, length: u64) -> io::Result<()>;

    /// Gives a file another name, and replaces what had it, at once.
    ///
    /// # Errors
    /// When the system fails: it has its old name then.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file; one that is not there is removed.
    ///
    /// # Errors
    /// When the system fails.
    fn remove(&self, name: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable.
    ///
    /// # Errors
    /// When the system fails.
    fn sync_names(&self, folder: &Path) -> io::Result<()>;

    /// A number that nobody who writes telemetry can guess.
    fn draw(&self) -> u64;
}

/// What is no file that holds bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    Folder,
    /// A link, a pipe, a socket, a device.
    Special,
}

/// A file that is read.
pub trait Source: Send {
    /// Its bytes.
    ///
    /// # Errors
    /// When the system fails.
    fn length(&self) -> io::Result<u64>;

    /// Reads from an offset on; how many bytes, none at the end.
    ///
    /// # Errors
    /// When the system fails.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
}

/// The end of a file that is written.
pub trait Tail: Send {
    /// Appends some of the bytes; how many.
    ///
    /// # Errors
    /// When there is no room, or the system fails.
    fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Makes what was written durable.
    ///
    /// # Errors
    /// When it may not be.
    fn sync(&mut self) -> io::Result<()>;

    /// Takes back what stands behind a length; the next write begins there.
    ///
    /// # Errors
    /// When the system fails.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

/// A [`Source`] read from its start.
pub struct Reading {
    pub of: Box<dyn Source>,
    pub at: u64,
}

impl io::Read for Reading {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.of.read_at(self.at, into)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// A [`Tail`] written to its end.
pub struct Appending(pub Box<dyn Tail>);

impl io::Write for Appending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(&[IoSlice::new(bytes)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
