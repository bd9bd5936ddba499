//! A file system in memory that fails, dies and loses its power as the dice fall.
//!
//! A call may fail. After so many calls the process is dead: nothing works any more, and a write
//! that was under way is there in part. When power goes, what was not synced is there, is not, or
//! is there in part; names come back in the order in which they were given.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use mcp_verdict::log::{Medium, Source, Tail};

use super::plant::Plant;
use crate::dice::Dice;

#[derive(Default, Clone)]
struct File {
    bytes: Vec<u8>,
    durable: Vec<u8>,
}

/// What changed names, since they were last synced.
#[derive(Clone)]
enum Change {
    Named(PathBuf, usize),
    Gone(PathBuf),
}

type Names = BTreeMap<PathBuf, usize>;

fn apply(names: &mut Names, change: &Change) {
    match change {
        Change::Named(name, file) => drop(names.insert(name.clone(), *file)),
        Change::Gone(name) => drop(names.remove(name)),
    }
}

struct State {
    dice: Dice,
    files: Vec<File>,
    names: Names,
    durable: Names,
    /// Each step at once or not at all.
    changes: Vec<Vec<Change>>,
    /// One call in so many fails; zero: none.
    failing: u64,
    /// Bytes of all files, when the device is full.
    capacity: Option<u64>,
    /// The most that all files had at a time.
    peak: u64,
    /// Calls until the process dies.
    fuse: Option<u64>,
    dead: bool,
    plant: Option<Plant>,
}

#[derive(Clone)]
pub struct Files(Arc<Mutex<State>>);

fn died<T>() -> io::Result<T> {
    Err(io::Error::other("the process is dead"))
}

fn is_segment(name: &Path) -> bool {
    name.to_string_lossy().ends_with(".log1")
}

impl State {
    /// Counts a call; whether it fails.
    fn call(&mut self, may_fail: bool) -> io::Result<()> {
        if self.dead {
            return died();
        }
        if let Some(fuse) = &mut self.fuse {
            *fuse = fuse.saturating_sub(1);
            if *fuse == 0 {
                self.dead = true;
                return died();
            }
        }
        match may_fail && self.failing > 0 && self.dice.once_in(self.failing) {
            true => Err(ErrorKind::Other.into()),
            false => Ok(()),
        }
    }

    fn change(&mut self, step: Vec<Change>) {
        step.iter().for_each(|change| apply(&mut self.names, change));
        self.changes.push(step);
    }

    fn bytes(&self) -> u64 {
        self.names.values().map(|file| self.files[*file].bytes.len() as u64).sum()
    }

    fn file(&self, name: &Path) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| ErrorKind::NotFound.into())
    }
}

impl Files {
    pub fn new(seed: u64, plant: Option<Plant>) -> Self {
        Files(Arc::new(Mutex::new(State {
            dice: Dice(seed),
            files: Vec::new(),
            names: Names::new(),
            durable: Names::new(),
            changes: Vec::new(),
            failing: 0,
            capacity: None,
            peak: 0,
            fuse: None,
            dead: false,
            plant,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub fn set_failing(&self, one_in: u64) {
        self.state().failing = one_in;
    }

    /// The process dies at this call from now.
    pub fn light(&self, calls: u64) {
        self.state().fuse = Some(calls.max(1));
    }

    pub fn is_dead(&self) -> bool {
        self.state().dead
    }

    /// Another process comes.
    pub fn revive(&self) {
        let mut state = self.state();
        (state.dead, state.fuse) = (false, None);
    }

    /// Power goes: what was not synced is left to the dice.
    pub fn lose_power(&self) {
        let mut guard = self.state();
        let state = &mut *guard;
        let kept = state.dice.below(state.changes.len() + 1);
        let mut names = state.durable.clone();
        state.changes[..kept].iter().flatten().for_each(|change| apply(&mut names, change));
        for file in &mut state.files {
            let sides = file.bytes.len().abs_diff(file.durable.len()) + 1;
            let more = state.dice.below(sides);
            match file.bytes.starts_with(&file.durable) {
                true => file.bytes.truncate(file.durable.len() + more),
                false if more.is_multiple_of(2) => file.bytes = file.durable.clone(),
                false => {}
            }
            file.durable = file.bytes.clone();
        }
        state.changes.clear();
        state.durable = names.clone();
        state.names = names;
    }

    /// The most bytes that all files had since it was asked last.
    pub fn peak(&self) -> u64 {
        let mut state = self.state();
        let now = state.bytes();
        std::mem::replace(&mut state.peak, now).max(now)
    }

    /// The device has no room but for so many bytes more, or as much as anybody wants.
    pub fn leave(&self, room: Option<u64>) {
        let mut state = self.state();
        state.capacity = room.map(|room| state.bytes() + room);
    }
}

impl Medium for Files {
    fn files(&self, folder: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
        let mut state = self.state();
        state.call(false)?;
        let within = state.names.iter().filter(|(name, _)| name.parent() == Some(folder));
        Ok(within.map(|(name, at)| (name.clone(), state.files[*at].bytes.len() as u64)).collect())
    }

    fn open(&self, name: &Path) -> io::Result<Box<dyn Source>> {
        let mut state = self.state();
        state.call(false)?;
        Ok(Box::new(Handle { of: self.clone(), file: state.file(name)?, name: name.into() }))
    }

    fn create(&self, name: &Path) -> io::Result<Box<dyn Tail>> {
        let mut state = self.state();
        state.call(true)?;
        if state.names.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        state.files.push(File::default());
        let file = state.files.len() - 1;
        state.change(vec![Change::Named(name.into(), file)]);
        Ok(Box::new(Handle { of: self.clone(), file, name: name.into() }))
    }

    fn sync(&self, name: &Path) -> io::Result<()> {
        let mut guard = self.state();
        let state = &mut *guard;
        state.call(true)?;
        let file = state.file(name)?;
        let file = &mut state.files[file];
        file.durable = file.bytes.clone();
        Ok(())
    }

    fn cut(&self, name: &Path, length: u64) -> io::Result<()> {
        let mut state = self.state();
        state.call(true)?;
        let file = state.file(name)?;
        if state.plant != Some(Plant::TornTailNotCut) {
            state.files[file].bytes.truncate(length as usize);
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call(true)?;
        let file = state.file(from)?;
        let mut step = vec![Change::Gone(from.into()), Change::Named(to.into(), file)];
        if state.plant == Some(Plant::LostCheckpoint) && to == Path::new("checkpoint") {
            step[1] = Change::Gone(to.into());
        }
        state.change(step);
        Ok(())
    }

    fn remove(&self, name: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call(true)?;
        let mut step = vec![Change::Gone(name.into())];
        if state.plant == Some(Plant::SegmentTooManyDeleted) && is_segment(name) {
            let next = state.names.keys().find(|other| is_segment(other) && other.as_path() > name);
            step.extend(next.cloned().map(Change::Gone));
        }
        state.change(step);
        Ok(())
    }

    fn sync_names(&self, _: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.call(true)?;
        if state.plant != Some(Plant::NamesNotSynced) {
            state.durable = state.names.clone();
            state.changes.clear();
        }
        Ok(())
    }

    fn draw(&self) -> u64 {
        self.state().dice.roll(u64::MAX)
    }
}

/// An open file.
struct Handle {
    of: Files,
    file: usize,
    name: PathBuf,
}

impl Source for Handle {
    fn length(&self) -> io::Result<u64> {
        let mut state = self.of.state();
        state.call(false)?;
        Ok(state.files[self.file].bytes.len() as u64)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut state = self.of.state();
        state.call(false)?;
        let bytes = &state.files[self.file].bytes;
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let read = rest.len().min(into.len());
        into[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }
}

impl Tail for Handle {
    fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut guard = self.of.state();
        let state = &mut *guard;
        if state.dead {
            return died();
        }
        let called = state.call(true);
        let all: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        let taken = match &called {
            Ok(()) if state.dice.once_in(4) => 1 + state.dice.below(all.len()),
            Ok(()) => all.len(),
            // A write that fails, or that the process does not outlive, may have begun.
            Err(_) => state.dice.below(all.len() + 1),
        };
        let room = state.capacity.map_or(u64::MAX, |most| most.saturating_sub(state.bytes()));
        if called.is_ok() && room == 0 {
            return Err(ErrorKind::StorageFull.into());
        }
        let taken = taken.min(usize::try_from(room).unwrap_or(usize::MAX));
        state.files[self.file].bytes.extend_from_slice(&all[..taken]);
        state.peak = state.peak.max(state.bytes());
        called.map_err(|error| match state.dead {
            true => error,
            // No room is another answer than a device that fails.
            false if is_segment(&self.name) => ErrorKind::StorageFull.into(),
            false => error,
        })?;
        Ok(taken)
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut guard = self.of.state();
        let state = &mut *guard;
        let called = state.call(true);
        let skipped = match state.plant {
            Some(Plant::SkippedSync) => is_segment(&self.name),
            Some(Plant::CheckpointNotSynced) => !is_segment(&self.name),
            _ => false,
        };
        if called.is_ok() && !skipped {
            let file = &mut state.files[self.file];
            file.durable = file.bytes.clone();
        }
        called
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        let mut state = self.of.state();
        state.call(true)?;
        if state.plant != Some(Plant::TornTailNotCut) {
            state.files[self.file].bytes.truncate(length as usize);
        }
        Ok(())
    }
}
