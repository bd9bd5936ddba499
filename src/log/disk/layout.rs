//! The directory: what files there are and what their names say, on whatever file system.
//!
//! Promises: a file that is replaced is replaced at once or not at all, and its bytes are durable
//! before its name is; a file that nobody knows is moved, never removed.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::is_full;
use super::medium::{Appending, Medium, Other, Reading, Source, Tail};
use super::paper::{Room, Whole};
use crate::log::checkpoint::Paper;
use crate::log::record::Marker;
use crate::model::ids::Position;

/// A segment's place in the order of all.
pub type Sequence = u64;

/// Files that other parts of the program keep beside the log begin with one of these.
const NEIGHBOURS: [&str; 3] = [CHECKPOINT, "pins", ".pins"];
const CHECKPOINT: &str = "checkpoint";
/// A checkpoint that is being written.
const NEXT_CHECKPOINT: &str = "checkpoint.new";
/// Held by the process that has the directory.
pub const LOCK: &str = "lock";
/// Room for the next checkpoint.
const SPARE: &str = "checkpoint.spare";
const SET_ASIDE: &str = "set-aside";
/// For a moment, what has its name and is no folder.
const NOT_ASIDE: &str = "set-aside.moved";
/// Where a file system keeps what it repaired.
const LOST_AND_FOUND: &str = "lost+found";
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

    fn path(&self) -> PathBuf {
        self.file_name().into()
    }
}

/// The directory of one log.
pub struct Directory {
    /// For messages.
    path: PathBuf,
    medium: Arc<dyn Medium>,
}

/// What a look into the directory found.
#[derive(Default)]
pub struct Contents {
    /// In order.
    pub segments: Vec<Name>,
    /// What nobody knows: files, now in `set-aside`, and folders, where they were.
    pub unknown: Vec<String>,
    /// Bytes of everything that is no segment.
    pub other_bytes: u64,
}

impl Directory {
    /// `path` names it in messages.
    pub fn new(path: &Path, medium: Arc<dyn Medium>) -> Self {
        Directory { path: path.to_path_buf(), medium }
    }

    /// A segment, as messages name it.
    pub fn segment(&self, name: &Name) -> PathBuf {
        self.path.join(name.file_name())
    }

    /// Looks at every file; unknown ones are moved aside.
    ///
    /// # Errors
    /// When the system fails.
    pub fn look(&self) -> io::Result<Contents> {
        let mut contents = Contents::default();
        self.look_at_others(&mut contents)?;
        for (path, bytes) in self.medium.files(Path::new(""))? {
            let name = path.to_string_lossy().into_owned();
            if let Some(segment) = Name::parse(&name) {
                contents.segments.push(segment);
            } else if name == NEXT_CHECKPOINT
                || name.ends_with(UNFINISHED) && Name::parse(stem(&name)).is_some()
            {
                // A repair or a checkpoint that never ended: what it was to replace is still there.
                self.medium.remove(&path)?;
            } else if name == LOCK || NEIGHBOURS.iter().any(|known| name.starts_with(known)) {
                contents.other_bytes += bytes;
            } else {
                self.move_aside(&path, &name)?;
                contents.unknown.push(name);
            }
        }
        contents.segments.sort_unstable();
        contents.other_bytes += self.bytes_aside()?;
        Ok(contents)
    }

    /// What is no file is no part of a log, whatever its name. A folder may be a whole tree, or a
    /// mount: it stays where it is.
    fn look_at_others(&self, contents: &mut Contents) -> io::Result<()> {
        for (path, other) in self.medium.others(Path::new(""))? {
            let name = path.to_string_lossy().into_owned();
            match other {
                Other::Folder if name == SET_ASIDE || name == LOST_AND_FOUND => continue,
                Other::Folder => {}
                Other::Special => self.move_aside(&path, &name)?,
            }
            contents.unknown.push(name);
        }
        Ok(())
    }

    /// First of all: what is moved aside must not leave by a link. Whether one was there.
    ///
    /// # Errors
    /// When the system fails.
    pub fn claim_aside(&self) -> io::Result<bool> {
        let others = self.medium.others(Path::new(""))?;
        let aside = |(path, other): &(PathBuf, Other)| {
            *other == Other::Special && path == Path::new(SET_ASIDE)
        };
        let linked = others.iter().any(aside);
        if linked {
            let away = Path::new(NOT_ASIDE);
            self.medium.rename(Path::new(SET_ASIDE), away)?;
            self.move_aside(away, SET_ASIDE)?;
        }
        Ok(linked)
    }

    fn move_aside(&self, path: &Path, name: &str) -> io::Result<()> {
        let aside = Path::new(SET_ASIDE);
        let taken = self.medium.files(aside)?;
        let free = |n: &usize| !taken.iter().any(|(t, _)| *t == aside.join(numbered(name, *n)));
        let number = (0..).find(free).unwrap_or_default();
        self.medium.rename(path, &aside.join(numbered(name, number)))
    }

    /// Bytes of files that are set aside.
    ///
    /// # Errors
    /// When the system fails.
    pub fn bytes_aside(&self) -> io::Result<u64> {
        Ok(self.medium.files(Path::new(SET_ASIDE))?.into_iter().map(|(_, bytes)| bytes).sum())
    }

    /// Keeps a copy of damaged bytes. Damage that is met again has the same name.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_damaged(&self, name: &Name, offset: usize, bytes: &[u8]) -> io::Result<()> {
        let aside = Path::new(SET_ASIDE);
        let path = aside.join(format!("{}-at-{offset}", name.file_name()));
        self.write_whole(&path, &[bytes])?;
        self.medium.sync_names(aside)
    }

    /// Everything in a segment.
    ///
    /// # Errors
    /// When the system fails.
    pub fn read(&self, name: &Name) -> io::Result<Vec<u8>> {
        let of = self.open(name)?;
        let mut bytes = Vec::with_capacity(usize::try_from(of.length()?).unwrap_or_default());
        Reading { of, at: 0 }.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Opens a segment to be read.
    ///
    /// # Errors
    /// When the system fails.
    pub fn open(&self, name: &Name) -> io::Result<Box<dyn Source>> {
        self.medium.open(&name.path())
    }

    /// Makes durable what stands in a segment.
    ///
    /// # Errors
    /// When it may not be.
    pub fn sync_segment(&self, name: &Name) -> io::Result<()> {
        self.medium.sync(&name.path())
    }

    /// Takes back what stands in a segment behind a length.
    ///
    /// # Errors
    /// When the system fails.
    pub fn cut(&self, name: &Name, length: u64) -> io::Result<()> {
        self.medium.cut(&name.path(), length)
    }

    /// Replaces a segment by these parts of it, at once or not at all.
    ///
    /// # Errors
    /// When it cannot be written; the segment is as it was then.
    pub fn rewrite(&self, name: &Name, parts: &[&[u8]]) -> io::Result<()> {
        let unfinished = PathBuf::from(format!("{}{UNFINISHED}", name.file_name()));
        let written = self
            .write_whole(&unfinished, parts)
            .and_then(|()| self.medium.rename(&unfinished, &name.path()))
            .and_then(|()| self.sync());
        if written.is_err() {
            // The next start removes it as well.
            let _ = self.medium.remove(&unfinished);
        }
        written
    }

    /// The checkpoint's file, where there is one, and its bytes.
    ///
    /// # Errors
    /// When the system fails.
    pub fn checkpoint(&self) -> io::Result<Option<(impl Read + use<>, u64)>> {
        match self.medium.open(Path::new(CHECKPOINT)) {
            Ok(of) => {
                let length = of.length()?;
                Ok(Some((io::BufReader::new(Reading { of, at: 0 }), length)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the checkpoint by what `write` writes, at once or not at all. What `write`
    /// returned. `room` is asked before anything is written.
    ///
    /// # Errors
    /// When it cannot be written; the old one is as it was then.
    pub fn replace_checkpoint<T>(
        &self,
        room: &mut dyn Room,
        write: impl FnOnce(&mut dyn Paper) -> io::Result<T>,
    ) -> io::Result<T> {
        let (unfinished, path) = (Path::new(NEXT_CHECKPOINT), Path::new(CHECKPOINT));
        let into = || {
            let tail = match self.replace(unfinished) {
                Err(error) if is_full(&error) && room.more() => self.replace(unfinished)?,
                created => created?,
            };
            let mut whole = Whole { tail, length: 0, room };
            let written = write(&mut whole)?;
            whole.tail.sync()?;
            self.medium.rename(unfinished, path)?;
            self.sync()?;
            Ok(written)
        };
        let replaced = into();
        if replaced.is_err() {
            // The next start removes it as well.
            let _ = self.medium.remove(unfinished);
        }
        replaced
    }

    /// Bytes of the spare, which hold room for the next checkpoint; zero where there is none.
    pub fn spare(&self) -> u64 {
        let found = self.medium.open(Path::new(SPARE)).and_then(|file| file.length());
        // Where it cannot be opened it is replaced.
        found.unwrap_or_default()
    }

    /// Takes so many bytes of the device for the spare, instead of those that it has.
    ///
    /// # Errors
    /// When there is no room, or the system fails: there may be none then.
    pub fn keep_spare(&self, bytes: u64) -> io::Result<()> {
        let mut file = Appending(self.replace(Path::new(SPARE))?);
        let (mut left, mut number) = (bytes, self.medium.draw() | 1);
        let written = loop {
            let Some(size) = usize::try_from(left.min(1 << 16)).ok().filter(|size| *size > 0)
            else {
                break file.0.sync();
            };
            // Nothing that a device could keep in less room than it has bytes.
            let filler = std::iter::repeat_with(|| {
                number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (number >> 32) as u8
            });
            if let Err(error) = file.write_all(&filler.take(size).collect::<Vec<u8>>()) {
                break Err(error);
            }
            left -= size as u64;
        };
        if written.is_err() {
            self.give_spare()?;
        }
        written
    }

    /// Gives the spare's room away.
    ///
    /// # Errors
    /// When the system fails.
    pub fn give_spare(&self) -> io::Result<()> {
        self.medium.remove(Path::new(SPARE))
    }

    /// Moves a checkpoint that cannot be read aside.
    ///
    /// # Errors
    /// When the system fails.
    pub fn set_checkpoint_aside(&self) -> io::Result<()> {
        self.move_aside(Path::new(CHECKPOINT), CHECKPOINT)
    }

    /// A new segment, with a marker of its own.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(&self, sequence: Sequence, first: Position) -> io::Result<(Name, Box<dyn Tail>)> {
        let name = Name { sequence, first, marker: self.medium.draw() };
        Ok((name, self.medium.create(&name.path())?))
    }

    /// Removes a segment; one that is not there is removed.
    ///
    /// # Errors
    /// When the system fails.
    pub fn remove(&self, name: &Name) -> io::Result<()> {
        self.medium.remove(&name.path())
    }

    /// Makes the names in the directory as durable as the files.
    ///
    /// # Errors
    /// When the system fails.
    pub fn sync(&self) -> io::Result<()> {
        self.medium.sync_names(Path::new(""))
    }

    fn replace(&self, name: &Path) -> io::Result<Box<dyn Tail>> {
        self.medium.remove(name)?;
        self.medium.create(name)
    }

    fn write_whole(&self, path: &Path, parts: &[&[u8]]) -> io::Result<()> {
        let mut file = Appending(self.replace(path)?);
        for part in parts {
            file.write_all(part)?;
        }
        file.0.sync()
    }
}

fn stem(unfinished: &str) -> &str {
    unfinished.strip_suffix(UNFINISHED).unwrap_or(unfinished)
}

fn numbered(name: &str, number: usize) -> String {
    if number == 0 { name.to_string() } else { format!("{name}.{number}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_others_do_not() {
        let name = Name { sequence: 12, first: Position(1 << 50), marker: u64::MAX };
        assert_eq!(Name::parse(&name.file_name()), Some(name));
        let text = Name { sequence: 1, first: Position(2), marker: 3 }.file_name();
        assert_eq!(text, "000000000001-00000000000000000002-0000000000000003.log1");
        for other in ["", "x.log1", &text[1..], &text.replace("log1", "log2"), &format!("{text}x")]
        {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }
}
