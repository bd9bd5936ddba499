//! A device without room: what is needed of a checkpoint finds it, or the old one stays. And one
//! whose power goes after a process was killed.

use std::sync::Arc;

use mcp_verdict::log::settings::Sync;
use mcp_verdict::log::{Damage, Disk, Log, Mark, Refused, Settings, Writing};
use mcp_verdict::model::ids::Position;

use super::support::{record, settings, wait};
use crate::sim::files::Files;

const SIZE: u64 = 1 << 20;

fn open(files: &Files) -> Disk {
    let settings = settings("simulated".as_ref(), Sync::Always, SIZE);
    let settings = Settings { checkpoints: Some(1), ..settings };
    Disk::open_on(&settings, Arc::new(files.clone()), Writing::ByHand).unwrap()
}

/// Appends until the device is full.
fn fill(log: &Disk) -> Vec<Position> {
    let mut taken = Vec::new();
    loop {
        let appended = log.append(record(taken.len() as u64, 5_000));
        log.step();
        match wait(appended) {
            Ok(position) => taken.push(position),
            Err(Refused::Full { .. }) => return taken,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Slices of bytes that do not compress.
fn write(log: &Disk, position: Position, needed: usize, sizes: &[usize]) -> std::io::Result<u64> {
    let mut slices = sizes.iter().map(|size| record(7, *size).payload.to_vec());
    log.write_checkpoint(position, needed, &mut slices)
}

/// Scenario: a device much smaller than `max_size` is full of records that are done. Guarantees: a
/// checkpoint finds the room that was kept for it, and what it folds makes room; again and again.
#[test]
fn a_device_that_we_filled_is_freed_by_a_checkpoint() {
    let files = Files::new(1, None);
    let log = open(&files);
    files.leave(Some(300 << 10));
    let mut last = Position(0);
    for round in 0..5 {
        let taken = fill(&log);
        assert!(taken.len() > 20, "round {round}: {} records", taken.len());
        taken.iter().for_each(|position| log.mark(*position, Mark::Done));
        last = *taken.last().unwrap();
        assert_eq!(write(&log, last, 2, &[100, 12_000]).unwrap(), 0, "round {round}");
    }
    drop(log);
    let found = open(&files).take_checkpoint().unwrap();
    let sizes: Vec<usize> = found.slices.iter().map(Vec::len).collect();
    assert_eq!((found.position, sizes), (last, vec![108, 12_008]));
}

/// Scenario: the device is full, and the checkpoint larger than what was kept for it. Guarantees:
/// the needed part is kept, the rest is counted; where not even that fits the old one stays, and
/// with it the records that it does not hold.
#[test]
fn what_is_needed_is_kept_or_the_old_checkpoint_stays() {
    let files = Files::new(2, None);
    let log = open(&files);
    files.leave(Some(200 << 10));
    let taken = fill(&log);
    taken.iter().for_each(|position| log.mark(*position, Mark::Done));
    assert_eq!(write(&log, taken[9], 1, &[100, 90_000, 1]).unwrap(), 2);
    assert_eq!(log.damaged(Damage::LeftOut), 2);
    fill(&log);
    let error = write(&log, taken[20], 1, &[90_000]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    let kept = log.recover().unwrap();
    assert_eq!(kept[0].position, taken[10], "nothing more is folded");
    drop(log);
    let log = open(&files);
    let found = log.take_checkpoint().unwrap();
    assert_eq!((found.position, found.slices.len(), found.slices[0].len()), (taken[9], 1, 108));
    assert_eq!(log.recover().unwrap()[0].position, taken[10]);
}

/// Scenario: the bound is reached, by exports and by what is ours. Guarantees: a checkpoint is
/// written within the bound all the same, at every moment.
#[test]
fn a_checkpoint_finds_room_at_the_bound() {
    let files = Files::new(3, None);
    let log = open(&files);
    assert_eq!(write(&log, Position(0), 1, &[100, 60_000]).unwrap(), 0);
    let taken = fill(&log);
    for round in 0..4 {
        let most = SIZE * 11 / 10;
        let ours = 60_000 + 3_000 * round;
        assert_eq!(write(&log, taken[0], 1, &[100, ours]).unwrap(), 0, "round {round}");
        assert!(files.peak() <= most, "{} of {most}", files.peak());
        fill(&log);
        assert!(files.peak() <= most);
    }
}

/// Scenario: a process is killed between the write of a record and its sync; the next one finds the
/// record, and then the power goes. Guarantees: what the second told of is there for the third.
#[test]
fn what_was_found_outlives_the_power() {
    let mut found = 0;
    for seed in 0..400 {
        let files = Files::new(seed, None);
        let log = open(&files);
        files.light(1 + seed % 6);
        let appended = log.append(record(1, 5_000));
        log.step();
        drop((appended, log));
        files.revive();
        let log = open(&files);
        let kept = log.recover().unwrap();
        found += kept.len();
        drop(log);
        files.lose_power();
        assert_eq!(open(&files).recover().unwrap(), kept, "seed {seed}");
    }
    assert!(found > 50, "{found} records outlived the kill");
}
