//! The real writer on a file system that fails: no room, half a write, a sync or a cut that fails,
//! and power that goes. Every run is replayable by its seed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{RwLock, RwLockReadGuard};
use std::time::Duration;

use super::*;
use crate::log::settings::{Ack, Sync};
use crate::log::{Kind, Part, Refused};
use crate::wire::Signal;
use crate::wire::inflate::Coding;

/// A seeded generator (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }
}

/// What the device does, and what it would keep without power.
#[derive(Default)]
struct Device {
    dice: Mutex<Option<Dice>>,
    /// One call in so many fails; zero: none.
    failing: AtomicU64,
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
    fn lose_power(&self) {
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

fn faulty(settings: &Settings, device: &Arc<Device>) -> Disk {
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

fn settings(directory: &Path, sync: Sync) -> Settings {
    Settings {
        directory: directory.to_path_buf(),
        ack: Ack::Durable,
        sync,
        sync_interval: Duration::from_millis(1),
        max_size: 64 << 10,
        memory: 1 << 20,
        checkpoints: None,
    }
}

fn record(number: u64, size: u64) -> Record {
    let mut payload = number.to_le_bytes().to_vec();
    payload.resize(8 + size as usize, number as u8);
    Record {
        kind: Kind::In,
        signal: Signal::Traces,
        coding: Coding::Identity,
        payload: payload.into(),
    }
}

fn wait(appended: Appended) -> Result<Position, Refused> {
    match appended {
        Appended::Now(result) => result.unwrap(),
        Appended::Later(waiting) => waiting.blocking_recv().unwrap(),
    }
}

/// What was promised: records that were acknowledged and are not done, with their marks.
type Promised = BTreeMap<Position, (Record, Vec<Mark>)>;

/// Payloads of records that were refused. A device that does not take back what it wrote may hold
/// them nevertheless.
type Denied = BTreeSet<Vec<u8>>;

fn delivered() -> Mark {
    Mark::Delivered { exporter: "otlp".into(), part: Part::Rest }
}

#[derive(Default)]
struct Life {
    promised: Promised,
    denied: Denied,
    number: u64,
}

/// A random life: bursts of appends, deliveries, a spell of failures in the middle.
fn live(log: &Disk, device: &Device, dice: &mut Dice, life: &mut Life) {
    let Life { promised, denied, number } = life;
    for step in 0..40 {
        let failing = if (10..30).contains(&step) { 2 + dice.roll(8) } else { 0 };
        device.failing.store(failing, Ordering::Relaxed);
        let burst: Vec<(Record, Appended)> = (0..dice.roll(5))
            .map(|_| {
                *number += 1;
                let record = record(*number, dice.roll(3_000));
                (record.clone(), log.append(record))
            })
            .collect();
        for (record, appended) in burst {
            let Ok(position) = wait(appended) else {
                denied.insert(record.payload.to_vec());
                continue;
            };
            let was = promised.insert(position, (record, Vec::new()));
            assert!(was.is_none(), "{position:?} was given twice");
        }
        let positions: Vec<Position> = promised.keys().copied().collect();
        for position in positions {
            match dice.roll(5) {
                0 | 1 => {
                    log.mark(position, Mark::Done);
                    promised.remove(&position);
                }
                2 => {
                    log.mark(position, delivered());
                    promised.entry(position).and_modify(|(_, marks)| *marks = vec![delivered()]);
                }
                _ => {}
            }
        }
    }
    device.failing.store(0, Ordering::Relaxed);
}

fn check(log: &Disk, life: &Life, exactly: bool, seed: u64) {
    let Life { promised, denied, .. } = life;
    let pending = log.recover().unwrap();
    let found: BTreeMap<Position, &Pending> = pending.iter().map(|p| (p.position, p)).collect();
    assert_eq!(found.len(), pending.len(), "seed {seed}: a position twice");
    for (position, (record, marks)) in promised {
        let pending =
            found.get(position).unwrap_or_else(|| panic!("seed {seed}: lost {position:?}"));
        assert_eq!(&pending.record, record, "seed {seed}");
        assert!(!exactly || &pending.marks == marks, "seed {seed}: {position:?} has {pending:?}");
    }
    let again = |p: &&&Pending| {
        !promised.contains_key(&p.position) && !denied.contains(&p.record.payload[..])
    };
    let again = found.values().find(again);
    assert!(!exactly || again.is_none(), "seed {seed}: {again:?} is there again");
}

fn run(seed: u64, sync: Sync, power: bool) {
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(directory.path(), sync);
    let mut all = Life::default();
    let mut dice = Dice(seed);
    for life in 0..3 {
        let device = Arc::new(Device::default());
        *device.dice.lock().unwrap() = Some(Dice(seed ^ (life << 32)));
        let log = faulty(&settings, &device);
        check(&log, &all, !power, seed);
        let again: Vec<Pending> = log.recover().unwrap();
        for pending in again {
            // Marks that were lost with the power: it is delivered again.
            all.promised.insert(pending.position, (pending.record, pending.marks));
        }
        live(&log, &device, &mut dice, &mut all);
        check(&log, &all, true, seed);
        if power {
            // Nobody closes a log whose power goes.
            device.lose_power();
            drop(log);
        }
    }
    let log = Disk::open(&settings).unwrap();
    check(&log, &all, !power, seed);
    assert_eq!(log.damaged(Damage::Record) + log.damaged(Damage::Order), 0, "seed {seed}");
    all.promised.keys().for_each(|position| log.mark(*position, Mark::Done));
}

#[test]
fn no_failure_loses_what_was_acknowledged() {
    for seed in 0..60 {
        let sync = [Sync::Always, Sync::Interval, Sync::Never][(seed % 3) as usize];
        run(seed, sync, false);
    }
}

#[test]
fn no_power_cut_loses_what_was_acknowledged_after_a_sync() {
    for seed in 0..60 {
        run(seed, Sync::Always, true);
    }
}

/// Syncs names once, at the start; files that it was to remove stay.
struct Stubborn {
    system: System,
    /// Creates nothing.
    full: bool,
    synced: std::sync::atomic::AtomicBool,
}

fn stubborn(settings: &Settings, full: bool) -> Arc<dyn Medium> {
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

#[test]
fn a_segment_whose_name_could_not_be_made_durable_hides_no_record() {
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(directory.path(), Sync::Always);
    let log = Disk::open_on(&settings, stubborn(&settings, false), Writing::Thread).unwrap();
    let kept = [wait(log.append(record(1, 2_000))).unwrap()];
    wait(log.append(record(2, 4_000))).unwrap_err();
    wait(log.append(record(3, 4_000))).unwrap_err();
    let kept = [kept[0], wait(log.append(record(4, 10))).unwrap()];
    drop(log);
    let log = Disk::open(&settings).unwrap();
    let pending = log.recover().unwrap();
    assert_eq!(pending.iter().map(|p| p.position).collect::<Vec<_>>(), kept);
    assert_eq!((&pending[0].record, &pending[1].record), (&record(1, 2_000), &record(4, 10)));
}

#[test]
fn a_full_device_refuses_until_there_is_room() {
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(directory.path(), Sync::Always);
    let device = Arc::new(Device::default());
    *device.dice.lock().unwrap() = Some(Dice(3));
    let log = faulty(&settings, &device);
    wait(log.append(record(1, 100))).unwrap();
    device.failing.store(1, Ordering::Relaxed);
    let mut full = 0;
    for number in 2..40 {
        match wait(log.append(record(number, 100))) {
            Err(Refused::Full { limit }) => full += usize::from(limit == settings.max_size),
            Err(Refused::Failed(error)) => {
                assert!(error.to_string().contains(&directory.path().display().to_string()));
            }
            Ok(_) => panic!("the device takes nothing"),
        }
    }
    assert!(full > 0);
    device.failing.store(0, Ordering::Relaxed);
    wait(log.append(record(40, 100))).unwrap();
    assert!(log.usage().bytes < log.usage().limit);
}

#[test]
fn a_device_that_is_full_at_the_start_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(directory.path(), Sync::Always);
    let opened = Disk::open_on(&settings, stubborn(&settings, true), Writing::Thread);
    let Err(error) = opened else { panic!("it is full") };
    let path = directory.path().display();
    let want = format!(
        "storage.directory: the device of `{path}` is full; make room, or name a directory on \
         another device"
    );
    assert_eq!(error.to_string(), want);
}
