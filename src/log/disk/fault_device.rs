//! File systems that fail, for the tests of the writer.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};

use crate::log::disk::system::System;
use crate::log::disk::{Disk, Medium, Source, Tail, Writing};
use crate::log::settings::Settings;

/// A seeded generator (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }
}

/// What the device does, and what it would keep without power.
#[derive(Default)]
pub struct Device {
    pub dice: Mutex<Option<Dice>>,
    /// One call in so many fails; zero: none.
    pub failing: AtomicU64,
    /// By file: bytes that are durable; `None` while its name is not.
    durable: Mutex<BTreeMap<PathBuf, Option<u64>>>,
    /// There is no power any more. Read while anything is done, so that nothing is half done.
    off: RwLock<bool>,
}

impl Device {
    fn fails(&self) -> bool {
        let failing = self.failing.load(Ordering::Relaxed);
        let mut dice = self.dice.lock().unwrap();
        failing > 0 && dice.as_mut().is_some_and(|dice| dice.roll(failing) == 0)
    }

    fn error(&self) -> io::Error {
        let kinds = [ErrorKind::StorageFull, ErrorKind::Other, ErrorKind::Interrupted];
        let mut dice = self.dice.lock().unwrap();
        let kind = dice.as_mut().map_or(0, |dice| dice.roll(5)) as usize;
        kinds.get(kind).copied().unwrap_or(ErrorKind::StorageFull).into()
    }

    fn check(&self) -> io::Result<()> {
        if self.fails() { Err(self.error()) } else { Ok(()) }
    }

    fn power(&self) -> io::Result<RwLockReadGuard<'_, bool>> {
        let off = self.off.read().unwrap();
        if *off { Err(ErrorKind::Other.into()) } else { Ok(off) }
    }

    /// The worst that a device may do when power goes: nothing that was not synced is there.
    pub fn lose_power(&self) {
        let mut off = self.off.write().unwrap();
        *off = true;
        for (path, durable) in self.durable.lock().unwrap().iter() {
            match durable {
                None => std::fs::remove_file(path).unwrap_or_default(),
                Some(length) => {
                    let file = std::fs::OpenOptions::new().write(true).open(path);
                    // It may have been removed.
                    if let Ok(file) = file {
                        let now = file.metadata().unwrap().len();
                        file.set_len(now.min(*length)).unwrap();
                    }
                }
            }
        }
    }
}

struct Faulty {
    system: System,
    directory: PathBuf,
    device: Arc<Device>,
}

struct FaultyTail {
    path: PathBuf,
    file: Box<dyn Tail>,
    length: u64,
    device: Arc<Device>,
}

impl Medium for Faulty {
    fn files(&self, folder: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
        self.system.files(folder)
    }

    fn open(&self, name: &Path) -> io::Result<Box<dyn Source>> {
        self.system.open(name)
    }

    fn create(&self, name: &Path) -> io::Result<Box<dyn Tail>> {
        let _on = self.device.power()?;
        self.device.check()?;
        let (path, device) = (self.directory.join(name), self.device.clone());
        let file = self.system.create(name)?;
        self.device.durable.lock().unwrap().insert(path.clone(), None);
        Ok(Box::new(FaultyTail { path, file, length: 0, device }))
    }

    fn sync(&self, name: &Path) -> io::Result<()> {
        self.system.sync(name)
    }

    fn cut(&self, name: &Path, length: u64) -> io::Result<()> {
        self.system.cut(name, length)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.system.rename(from, to)
    }

    fn sync_names(&self, _: &Path) -> io::Result<()> {
        let _on = self.device.power()?;
        self.device.check()?;
        let mut durable = self.device.durable.lock().unwrap();
        for length in durable.values_mut().filter(|length| length.is_none()) {
            *length = Some(0);
        }
        Ok(())
    }

    fn remove(&self, name: &Path) -> io::Result<()> {
        let _on = self.device.power()?;
        self.device.check()?;
        self.system.remove(name)
    }

    fn draw(&self) -> u64 {
        self.system.draw()
    }
}

pub fn faulty(settings: &Settings, device: &Arc<Device>) -> Disk {
    let (directory, device) = (settings.directory.clone(), device.clone());
    let system = System::open(&directory).unwrap();
    Disk::open_on(settings, Arc::new(Faulty { system, directory, device }), Writing::Thread)
        .unwrap()
}

impl Tail for FaultyTail {
    fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let _on = self.device.power()?;
        // Half a write first, then the error: what is left of it must never be read. A write that
        // was interrupted has written nothing.
        self.device.check().inspect_err(|error| {
            if error.kind() == ErrorKind::Interrupted {
                return;
            }
            let half = slices.iter().find(|slice| !slice.is_empty()).map(|s| &s[..s.len() / 2]);
            let half = [IoSlice::new(half.unwrap_or_default())];
            self.length += self.file.write(&half).unwrap() as u64;
        })?;
        let some = slices.len().div_ceil(2);
        let written = self.file.write(&slices[..some])?;
        self.length += written as u64;
        Ok(written)
    }

    fn sync(&mut self) -> io::Result<()> {
        let _on = self.device.power()?;
        self.device.check()?;
        if let Some(Some(durable)) = self.device.durable.lock().unwrap().get_mut(&self.path) {
            *durable = self.length;
        }
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        let _on = self.device.power()?;
        self.device.check()?;
        self.file.cut(length)?;
        self.length = length;
        Ok(())
    }
}

/// Syncs names once, at the start; files that it was to remove stay.
struct Stubborn {
    system: System,
    /// Creates nothing.
    full: bool,
    synced: AtomicBool,
}

pub fn stubborn(settings: &Settings, full: bool) -> Arc<dyn Medium> {
    let system = System::open(&settings.directory).unwrap();
    Arc::new(Stubborn { system, full, synced: Default::default() })
}

impl Medium for Stubborn {
    fn files(&self, folder: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
        self.system.files(folder)
    }

    fn open(&self, name: &Path) -> io::Result<Box<dyn Source>> {
        self.system.open(name)
    }

    fn create(&self, name: &Path) -> io::Result<Box<dyn Tail>> {
        if self.full { Err(ErrorKind::StorageFull.into()) } else { self.system.create(name) }
    }

    fn sync(&self, name: &Path) -> io::Result<()> {
        self.system.sync(name)
    }

    fn cut(&self, name: &Path, length: u64) -> io::Result<()> {
        self.system.cut(name, length)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.system.rename(from, to)
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        Err(ErrorKind::Other.into())
    }

    fn sync_names(&self, _: &Path) -> io::Result<()> {
        let again = self.synced.swap(true, Ordering::Relaxed);
        if again { Err(ErrorKind::Other.into()) } else { Ok(()) }
    }

    fn draw(&self) -> u64 {
        self.system.draw()
    }
}
