//! Room: the bound holds over all files, refusals end when something is done, old segments go.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_verdict::log::settings::Sync;
use mcp_verdict::log::{Disk, Kind, Log, Mark, Part, Record, Refused};
use mcp_verdict::model::ids::Position;

use super::support::{bytes, delivered, record, segments, settings, wait};

const MIB: u64 = 1 << 20;

/// Appends records until they are refused.
fn fill(log: &Disk, size: usize, last: &mut u64) -> Vec<Position> {
    let mut positions = Vec::new();
    loop {
        match wait(log.append(record(*last + 1, size))) {
            Ok(position) => positions.push(position),
            Err(Refused::Full { limit }) => {
                assert_eq!(limit, log.usage().limit);
                return positions;
            }
            Err(error) => panic!("{error}"),
        }
        *last += 1;
    }
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..500 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}

#[test]
fn a_full_log_takes_again_what_was_done() {
    for (size, least) in [(16 * MIB - 4096, 1), (MIB, 29), (64 << 10, 470), (200, 90_000)] {
        let directory = tempfile::tempdir().unwrap();
        let settings = settings(directory.path(), Sync::Never, 32 * MIB);
        let log = Disk::open(&settings).unwrap();
        let mut last = 0;
        for round in 0..3 {
            let positions = fill(&log, size as usize, &mut last);
            assert!(positions.len() >= least, "{} of {size} bytes, {round}", positions.len());
            assert!(bytes(directory.path()) <= 32 * MIB * 11 / 10);
            // Two exporters, both parts: the most that marks take.
            for mark in [("otlp", Part::Rest), ("otlp", Part::Held), ("otlp/eu", Part::Rest)] {
                positions.iter().for_each(|at| log.mark(*at, delivered(mark.0, mark.1)));
                log.flush();
                assert!(bytes(directory.path()) <= 32 * MIB * 11 / 10, "marks have their room");
            }
            positions.iter().rev().for_each(|at| log.mark(*at, Mark::Done));
            log.flush();
            assert!(bytes(directory.path()) <= 32 * MIB * 11 / 10);
            assert_eq!(log.usage().records, 0);
        }
        assert!(log.usage().bytes < 4 * MIB, "{:?}", log.usage());
        drop(log);
        assert!(Disk::open(&settings).unwrap().recover().unwrap().is_empty());
    }
}

/// Exports fill the log, and what is said of them has its place all the same.
#[test]
fn a_full_log_still_takes_a_little_of_ours() {
    let directory = tempfile::tempdir().unwrap();
    let log = Disk::open(&settings(directory.path(), Sync::Never, 4 * MIB)).unwrap();
    let mut last = 0;
    fill(&log, 64 << 10, &mut last);
    fill(&log, 10, &mut last);
    let ours = |size| Record { kind: Kind::Out(Vec::new()), ..record(last + 1, size) };
    let taken = (0..100).take_while(|_| wait(log.append(ours(4 << 10))).is_ok()).count();
    assert!((40..=52).contains(&taken), "{taken} of 4 KiB, a twentieth is 51");
    assert!(bytes(directory.path()) <= 4 * MIB * 11 / 10);
    assert!(wait(log.append(record(last + 1, 10))).is_err(), "it is full for others");
}

#[test]
fn one_record_that_waits_does_not_keep_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(directory.path(), Sync::Interval, 32 * MIB);
    let log = Disk::open(&settings).unwrap();
    // Three records; the first and the third are finished with, in another segment than theirs.
    let [first, kept, third] =
        [1, 2, 3].map(|number| wait(log.append(record(number, 10))).unwrap());
    for number in 4..200 {
        let position = wait(log.append(record(number, MIB as usize))).unwrap();
        if number == 50 {
            log.mark(first, Mark::Done);
            log.mark(kept, delivered("otlp", Part::Rest));
            log.mark(third, Mark::Done);
        }
        log.mark(position, Mark::Done);
    }
    log.flush();
    let left = segments(directory.path());
    assert!(left.len() <= 3, "the first segment and the last are left, not {left:?}");
    drop(log);
    for _ in 0..2 {
        let pending = Disk::open(&settings).unwrap().recover().unwrap();
        assert_eq!(pending.len(), 1, "what was done stays done");
        let marks = vec![delivered("otlp", Part::Rest)];
        assert_eq!((pending[0].position, &pending[0].marks), (kept, &marks));
    }
}

/// Readers, senders and deliveries at the same time, on a log that is full again and again.
#[test]
fn the_bound_holds_under_load() {
    let directory = tempfile::tempdir().unwrap();
    let log = Disk::open(&settings(directory.path(), Sync::Interval, 4 * MIB)).unwrap();
    let (log, done, refused) = (&log, &AtomicBool::new(false), &AtomicBool::new(false));
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..4_u64)
            .map(|thread| {
                scope.spawn(move || {
                    for number in 0..150 {
                        let record = record(thread << 32 | number, 32 << 10);
                        while wait(log.append(record.clone())).is_err() {
                            refused.store(true, Ordering::Relaxed);
                            std::thread::sleep(Duration::from_millis(1));
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            // The device is slower than the senders.
            while !refused.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            while !done.load(Ordering::Relaxed) || log.usage().records > 0 {
                for pending in log.page(Position(0), 256 << 10, &|_| true).unwrap() {
                    log.mark(pending.position, Mark::Done);
                }
                assert!(bytes(directory.path()) <= 4 * MIB * 11 / 10);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    assert!(refused.load(Ordering::Relaxed), "it was never full");
    eventually("room comes back", || log.usage().bytes < MIB);
}

#[test]
fn every_sync_keeps_what_a_process_wrote() {
    for sync in [Sync::Always, Sync::Interval, Sync::Never] {
        let directory = tempfile::tempdir().unwrap();
        let settings = settings(directory.path(), sync, 32 * MIB);
        let log = Disk::open(&settings).unwrap();
        let appended: Vec<_> = (1..=100).map(|number| log.append(record(number, 100))).collect();
        let positions: Vec<_> = appended.into_iter().map(|one| wait(one).unwrap().0).collect();
        assert_eq!(positions, (1..=100).collect::<Vec<_>>());
        assert!(log.survives());
        copy_and_check(directory.path(), sync);
    }
}

/// The files as another process would find them now, with the first still running.
fn copy_and_check(directory: &Path, sync: Sync) {
    let copy = tempfile::tempdir().unwrap();
    for file in segments(directory) {
        std::fs::copy(&file, copy.path().join(file.file_name().unwrap())).unwrap();
    }
    let log = Disk::open(&settings(copy.path(), sync, 32 * MIB)).unwrap();
    assert_eq!(log.recover().unwrap().len(), 100, "{sync:?}");
}
