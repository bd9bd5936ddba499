//! Why a storage directory cannot be used, as a sentence for whoever configured it.

use std::fmt;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// Why the log did not open.
#[derive(Debug)]
pub enum OpenError {
    /// Another process has the directory.
    InUse { path: PathBuf },
    /// The device has no room.
    Full { path: PathBuf },
    /// The directory cannot be created, read or written.
    Unusable { path: PathBuf, error: Error },
}

impl OpenError {
    pub(super) fn of(path: &Path, error: Error) -> Self {
        let path = path.to_path_buf();
        match is_full(&error) {
            true => OpenError::Full { path },
            false => OpenError::Unusable { path, error },
        }
    }
}

/// Whether an error says that there is no room on the device.
pub fn is_full(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::InUse { path } => write!(
                f,
                "storage.directory: `{}` is in use by another process; stop that one, or name \
                 another directory",
                path.display()
            ),
            OpenError::Full { path } => write!(
                f,
                "storage.directory: the device of `{}` is full; make room, or name a directory on \
                 another device",
                path.display()
            ),
            OpenError::Unusable { path, error } => write!(
                f,
                "storage.directory: `{}` cannot be used ({error}); name a directory that this \
                 user can write, or let it be created",
                path.display()
            ),
        }
    }
}

impl std::error::Error for OpenError {}
