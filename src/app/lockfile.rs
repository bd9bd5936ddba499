//! The lockfile on disk.
//!
//! Promises: a reader sees the old file or the new one, never a half; two writers wait for each
//! other, so neither loses the other's pins; a file that cannot be understood is never overwritten;
//! a symbolic link stays one.

use crate::catalog::lockfile::Lockfile;
use crate::config::Settings;
use crate::model::policy::ContractMode;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Why a lockfile could not be read or written. Names the file.
#[derive(Debug)]
pub enum Trouble {
    /// The file is damaged, of a newer version, or in the middle of a merge.
    Damaged(PathBuf, crate::catalog::lockfile::Damage),
    /// The operating system said no.
    Io(PathBuf, &'static str, io::Error),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Damaged(path, damage) => {
                write!(out, "{}, {damage}. Nothing was changed.", path.display())
            }
            Trouble::Io(path, doing, error) => {
                write!(out, "{}: cannot {doing}: {error}", path.display())
            }
        }
    }
}

/// Reads a lockfile; a missing file is an empty one.
///
/// # Errors
/// [`Trouble`] where it cannot be read or understood.
pub fn read(path: &Path) -> Result<Lockfile, Trouble> {
    // A pipe would be waited for.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let error = io::Error::new(io::ErrorKind::InvalidData, "it is no regular file");
        return Err(Trouble::Io(path.to_owned(), "read", error));
    }
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Trouble::Io(path.to_owned(), "read", error)),
    };
    Lockfile::parse(&text).map_err(|damage| Trouble::Damaged(path.to_owned(), damage))
}

/// Gives the policy what the lockfile pins, where its mode looks at it.
///
/// # Errors
/// As [`read`].
pub fn pin(settings: &mut Settings) -> Result<(), Trouble> {
    if matches!(settings.policy.contracts.mode, ContractMode::Pin | ContractMode::Enforce) {
        settings.policy.contracts.pins = read(&settings.lockfile)?.by_server();
    }
    Ok(())
}

/// Reads, changes and writes a lockfile while no other writer can. Where `change` refuses, the file
/// stays as it is, and so it does where nothing changed.
///
/// # Errors
/// [`Trouble`] where it cannot be read, understood or written.
pub fn update<T, E>(
    path: &Path,
    change: impl FnOnce(&mut Lockfile) -> Result<T, E>,
) -> Result<Result<T, E>, Trouble> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let guard = Guard::take(&target)?;
    let mut lockfile = read(&target)?;
    let before = lockfile.pins().clone();
    let answer = change(&mut lockfile);
    if answer.is_ok() && (*lockfile.pins() != before || !target.exists()) {
        replace(&target, &lockfile.print())?;
    }
    drop(guard);
    Ok(answer)
}

fn replace(target: &Path, text: &str) -> Result<(), Trouble> {
    let failed = |doing| move |error| Trouble::Io(target.to_owned(), doing, error);
    let fresh = beside(target, &format!("{}.new", std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&fresh)?;
        if let Ok(metadata) = fs::metadata(target) {
            file.set_permissions(metadata.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, target)
    })();
    if let Err(error) = written {
        // The half-written file is ours; that it cannot be removed changes nothing.
        let _ = fs::remove_file(&fresh);
        return Err(failed("write")(error));
    }
    // The rename itself is durable once the directory is; not every file system can say so.
    if let Some(Ok(directory)) = target.parent().map(directory).map(File::open) {
        let _ = directory.sync_all();
    }
    Ok(())
}

fn directory(parent: &Path) -> &Path {
    if parent.as_os_str().is_empty() { Path::new(".") } else { parent }
}

fn beside(target: &Path, suffix: &str) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}.{suffix}"))
}

/// Held by the one writer; a file of its own, for the lockfile is replaced by every write. The
/// system releases it when its holder dies.
struct Guard {
    path: PathBuf,
    file: File,
}

impl Guard {
    fn take(target: &Path) -> Result<Guard, Trouble> {
        let path = beside(target, "writer");
        let failed = |error| Trouble::Io(path.clone(), "lock", error);
        loop {
            let mut options = OpenOptions::new();
            let file = options.write(true).create(true).truncate(false).open(&path);
            let file = file.map_err(failed)?;
            file.lock().map_err(failed)?;
            // The holder before may have removed the file that was waited for.
            if is_still(&file, &path) {
                return Ok(Guard { path, file });
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if cfg!(unix) {
            // Left behind it would only be litter; whoever waits for it sees that it is gone.
            let _ = fs::remove_file(&self.path);
        }
        let _ = self.file.unlock();
    }
}

#[cfg(unix)]
fn is_still(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let inode = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(held), Ok(named)) => inode(held) == inode(named),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_still(_: &File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::listing::tools_from_json;
    use crate::catalog::lockfile::{Mark, Pin, anyones};

    fn pin(lockfile: &mut Lockfile, name: &str) {
        let text = format!(r#"[{{"name":"{name}","inputSchema":{{}}}}]"#);
        let tool = tools_from_json(&text).unwrap().remove(0);
        let mark = Mark { at: "2026-01-01T00:00:00Z".into(), by: "test".into() };
        lockfile.set(anyones("srv", &tool), Pin::of(&tool, mark, None).unwrap());
    }

    #[test]
    fn writers_at_once_lose_no_pin_and_leave_no_litter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp-tools.lock");
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for at in 0..10 {
                        let add = |lockfile: &mut Lockfile| {
                            pin(lockfile, &format!("tool-{writer}-{at}"));
                            Ok::<(), ()>(())
                        };
                        update(path, add).unwrap().unwrap();
                    }
                });
            }
        });
        assert_eq!(read(&path).unwrap().pins().len(), 80);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_damaged_or_refused_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp-tools.lock");
        fs::write(&path, "version = 9\n").unwrap();
        let trouble = update(&path, |_| Ok::<(), ()>(())).unwrap_err().to_string();
        assert!(trouble.contains("line 1: version 9 was written by a newer"), "{trouble}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "version = 9\n");
        let other = folder.path().join("other.lock");
        let refuse = |lockfile: &mut Lockfile| {
            pin(lockfile, "a");
            Err::<(), _>("no")
        };
        assert_eq!(update(&other, refuse).unwrap(), Err("no"));
        assert!(!other.exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.lock"), folder.path().join("link.lock"));
        fs::write(&real, "# mine\nversion = 1\n").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let add = |lockfile: &mut Lockfile| {
            pin(lockfile, "a");
            Ok::<(), ()>(())
        };
        update(&link, add).unwrap().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::read_to_string(&real).unwrap().starts_with("# mine\nversion = 1\n"));
    }
}
