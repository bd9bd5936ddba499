//! The few things the writer asks of a file system; tests let each of them fail.

use std::fs::File;
use std::io::{self, IoSlice, Seek, SeekFrom, Write};
use std::sync::Arc;

use super::layout::{Directory, Name};

/// Where segments are created and removed.
pub trait Medium: Send {
    /// # Errors
    /// When there is no room, or the system fails.
    fn create(&mut self, name: &Name) -> io::Result<Box<dyn Tail>>;

    /// Makes created names durable.
    ///
    /// # Errors
    /// When the system fails.
    fn sync_names(&mut self) -> io::Result<()>;

    /// Removes a segment; one that is not there is removed.
    ///
    /// # Errors
    /// When the system fails.
    fn remove(&mut self, name: &Name) -> io::Result<()>;
}

/// The end of the segment that is written.
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

impl Medium for Arc<Directory> {
    fn create(&mut self, name: &Name) -> io::Result<Box<dyn Tail>> {
        Ok(Box::new(Directory::create(self, name)?))
    }

    fn sync_names(&mut self) -> io::Result<()> {
        Directory::sync(self)
    }

    fn remove(&mut self, name: &Name) -> io::Result<()> {
        match std::fs::remove_file(self.segment(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
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
