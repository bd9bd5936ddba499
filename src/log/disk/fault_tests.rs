//! The real writer on a file system that fails: no room, half a write, a sync or a cut that fails,
//! and power that goes. Every run is replayable by its seed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::*;
use crate::log::settings::{Ack, Sync};
use crate::log::{Kind, Part, Refused};
use crate::wire::Signal;
use crate::wire::inflate::Coding;
use device::{Device, Dice, faulty, stubborn};

#[path = "fault_device.rs"]
mod device;

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
