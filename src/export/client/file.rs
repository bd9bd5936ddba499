//! `file`: one OTLP/JSON request a line, with rotation by size. Files are the owner's alone.
//! What is no regular file (a device, a pipe) is written to and never renamed, cut or removed.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::Fault;
use crate::export::batch::Batch;
use crate::export::outcome::{Attempt, Outcome};
use crate::export::settings;
use crate::wire::{Signal, json};

pub struct File {
    writer: Arc<Mutex<Writer>>,
}

struct Writer {
    path: PathBuf,
    file: fs::File,
    /// Of a regular file; anything else has none.
    length: Option<u64>,
    max_bytes: u64,
    max_backups: usize,
}

impl File {
    pub fn open(settings: &settings::File) -> Result<Self, Fault> {
        let failed = |error| Fault::file(&settings.path, error);
        let (file, length) = open(&settings.path).map_err(failed)?;
        // A link stays: what it leads to is rotated, beside itself.
        let path = settings.path.canonicalize().map_err(failed)?;
        let (max_bytes, max_backups) = (settings.max_bytes, settings.max_backups);
        let writer = Writer { path, file, length, max_bytes, max_backups };
        Ok(File { writer: Arc::new(Mutex::new(writer)) })
    }

    pub async fn send(&self, signal: Signal, batch: &Batch) -> Attempt {
        let Ok(plain) = batch.plain() else { return Outcome::Unfit("unreadable").into() };
        let writer = self.writer.clone();
        let written = tokio::task::spawn_blocking(move || {
            let mut line = json::from_protobuf(signal, &plain);
            line.push(b'\n');
            writer.lock().unwrap_or_else(PoisonError::into_inner).write(&line)
        });
        match written.await {
            Ok(Ok(())) => Outcome::Accepted { rejected: 0, warned: false }.into(),
            Ok(Err(error)) => Attempt::broken("not_written", &error),
            Err(error) => Attempt::broken("not_written", &error),
        }
    }
}

impl Writer {
    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if let Some(length @ 1..) = self.length
            && self.max_bytes > 0
            && length + line.len() as u64 > self.max_bytes
        {
            self.rotate()?;
        }
        if let Err(error) = self.file.write_all(line) {
            if let Some(length) = self.length {
                // Half a line would spoil the next one.
                self.file.set_len(length)?;
            }
            return Err(error);
        }
        self.length = self.length.map(|length| length + line.len() as u64);
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..self.max_backups).rev() {
            let (from, to) = (self.backup(number), self.backup(number + 1));
            if from.exists() {
                fs::rename(from, to)?;
            }
        }
        match self.max_backups {
            0 => fs::remove_file(&self.path)?,
            _ => fs::rename(&self.path, self.backup(1))?,
        }
        (self.file, self.length) = open(&self.path)?;
        Ok(())
    }

    /// `verdicts.jsonl` becomes `verdicts.1.jsonl`.
    fn backup(&self, number: usize) -> PathBuf {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let name = match self.path.extension() {
            Some(extension) => format!("{stem}.{number}.{}", extension.to_string_lossy()),
            None => format!("{stem}.{number}"),
        };
        self.path.with_file_name(name)
    }
}

/// The file, and its length where it is a regular one.
fn open(path: &Path) -> io::Result<(fs::File, Option<u64>)> {
    let mut options = fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    let found = file.metadata()?;
    let length = found.is_file().then_some(found.len());
    Ok((file, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotation_keeps_the_newest() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("verdicts.jsonl");
        let settings = settings::File { path: path.clone(), max_bytes: 10, max_backups: 2 };
        let file = File::open(&settings).ok().unwrap();
        let mut writer = file.writer.lock().unwrap();
        for line in ["first\n", "second\n", "third\n", "fourth\n"] {
            writer.write(line.as_bytes()).unwrap();
        }
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!(read("verdicts.jsonl"), "fourth\n");
        assert_eq!(read("verdicts.1.jsonl"), "third\n");
        assert_eq!(read("verdicts.2.jsonl"), "second\n");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_never_rotated() {
        // A link, so that a fault moves the link and not the machine's device.
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        let settings = settings::File { path, max_bytes: 10, max_backups: 2 };
        let file = File::open(&settings).ok().unwrap();
        let mut writer = file.writer.lock().unwrap();
        assert_eq!(writer.length, None);
        for _ in 0..3 {
            writer.write(b"longer than ten bytes\n").unwrap();
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_and_what_it_leads_to_is_rotated() {
        let (volume, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = place.path().join("verdicts.jsonl");
        std::os::unix::fs::symlink(volume.path().join("real.jsonl"), &link).unwrap();
        let settings = settings::File { path: link.clone(), max_bytes: 10, max_backups: 1 };
        let file = File::open(&settings).ok().unwrap();
        let mut writer = file.writer.lock().unwrap();
        for line in ["first one\n", "second\n"] {
            writer.write(line.as_bytes()).unwrap();
        }
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&link).unwrap(), "second\n");
        let rotated = fs::read_to_string(volume.path().join("real.1.jsonl")).unwrap();
        assert_eq!(rotated, "first one\n");
    }
}
