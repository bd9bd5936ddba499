//! A checkpoint decides what is kept: what is done stays until one has it.

use std::path::Path;

use mcp_verdict::log::settings::Sync;
use mcp_verdict::log::{Checkpoint, Damage, Disk, Log, Mark};
use mcp_verdict::model::ids::Position;

use super::support::{bytes, record, segments, settings, wait};

const SIZE: u64 = 1 << 20;

fn open_as(directory: &Path, format: u32) -> Disk {
    let settings = settings(directory, Sync::Always, SIZE);
    Disk::open(&mcp_verdict::log::Settings { checkpoints: Some(format), ..settings }).unwrap()
}

fn open(directory: &Path) -> Disk {
    open_as(directory, 1)
}

/// Positions that are kept, and whether they are done.
fn kept(log: &Disk) -> Vec<(u64, bool)> {
    let done = |marks: &[Mark]| marks == [Mark::Done];
    log.recover().unwrap().iter().map(|p| (p.position.0, done(&p.marks))).collect()
}

fn write(log: &Disk, position: u64, slices: &[&[u8]]) -> u64 {
    let mut slices = slices.iter().map(|slice| slice.to_vec());
    log.write_checkpoint(Position(position), 1, &mut slices).unwrap()
}

fn append(log: &Disk, numbers: std::ops::RangeInclusive<u64>, size: usize) {
    for number in numbers {
        assert_eq!(wait(log.append(record(number, size))).unwrap(), Position(number));
    }
}

#[test]
fn what_is_done_is_kept_until_a_checkpoint_has_it() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path());
    append(&log, 1..=4, 100);
    [1, 2, 3].iter().for_each(|position| log.mark(Position(*position), Mark::Done));
    assert_eq!(kept(&log), [(1, true), (2, true), (3, true), (4, false)]);
    assert_eq!(log.read(Position(2)).unwrap(), Some(record(2, 100)));
    drop(log);
    let log = open(directory.path());
    assert_eq!(kept(&log), [(1, true), (2, true), (3, true), (4, false)]);
    assert_eq!((log.head(), log.take_checkpoint()), (Position(4), None));
    assert_eq!(write(&log, 2, &[b"a", b"b"]), 0);
    assert_eq!(kept(&log), [(3, true), (4, false)]);
    drop(log);
    let log = open(directory.path());
    assert_eq!(kept(&log), [(3, true), (4, false)]);
    let slices = vec![b"a".to_vec(), b"b".to_vec()];
    assert_eq!(log.take_checkpoint(), Some(Checkpoint { position: Position(2), slices }));
    assert_eq!(log.take_checkpoint(), None, "once");
}

#[test]
fn segments_go_when_they_are_done_and_folded() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path());
    append(&log, 1..=6, 60_000);
    let full = segments(directory.path()).len();
    (1..=6).for_each(|position| log.mark(Position(position), Mark::Done));
    log.flush();
    assert_eq!(segments(directory.path()).len(), full, "nothing has their facts");
    write(&log, 6, &[b"facts"]);
    assert_eq!((segments(directory.path()).len(), kept(&log)), (1, vec![]));
    drop(log);
    assert_eq!(open(directory.path()).head(), Position(6), "positions go on");
}

#[test]
fn a_checkpoint_that_cannot_be_read_is_set_aside_and_the_log_speaks() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("checkpoint");
    let log = open(directory.path());
    append(&log, 1..=2, 10);
    log.mark(Position(1), Mark::Done);
    write(&log, 1, &[b"facts"]);
    assert_eq!(kept(&log), [(2, false)]);
    drop(log);
    let mut damaged = std::fs::read(&path).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(&path, damaged).unwrap();
    let log = open(directory.path());
    assert_eq!((log.damaged(Damage::Checkpoint), log.take_checkpoint()), (1, None));
    assert_eq!(kept(&log), [(1, true), (2, false)], "its segment had not gone");
    assert!(!path.exists() && directory.path().join("set-aside/checkpoint").exists());
    write(&log, 1, &[b"facts"]);
    drop(log);
    let log = open_as(directory.path(), 2);
    assert_eq!((log.damaged(Damage::Checkpoint), log.take_checkpoint()), (1, None));
    drop(log);
    std::fs::write(directory.path().join("checkpoint.new"), b"half").unwrap();
    let log = open(directory.path());
    assert_eq!((log.damaged(Damage::Checkpoint), log.damaged(Damage::UnknownFile)), (0, 0));
    assert!(!directory.path().join("checkpoint.new").exists());
}

#[test]
fn what_its_owner_cannot_read_is_refused_later_too() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path());
    append(&log, 1..=2, 10);
    [1, 2].iter().for_each(|position| log.mark(Position(*position), Mark::Done));
    write(&log, 1, &[b"facts"]);
    assert_eq!(kept(&log), [(2, true)]);
    log.refuse_checkpoint();
    assert_eq!((kept(&log), log.damaged(Damage::Checkpoint)), (vec![(1, true), (2, true)], 1));
}

#[test]
fn it_stays_within_its_share() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path());
    append(&log, 1..=1, 10);
    // Bytes that do not compress.
    let slice = record(7, 60_000).payload;
    let left_out = write(&log, 1, &[&slice[..]; 8]);
    assert!(left_out >= 3, "{left_out}");
    // And as much is kept for the next one.
    assert!(bytes(directory.path()) <= 2 * SIZE / 4 + 10_000);
    drop(log);
    let found = open(directory.path()).take_checkpoint().unwrap();
    assert_eq!(found.slices.len() as u64 + left_out, 8);
}

#[test]
fn what_is_no_file_is_no_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()));
    let pipe = directory.path().join("checkpoint");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let log = open(directory.path());
    assert_eq!((log.damaged(Damage::Checkpoint), log.take_checkpoint()), (1, None));
    assert!(!pipe.exists() && directory.path().join("set-aside/checkpoint").exists());
}

#[test]
fn a_log_that_ends_before_its_checkpoint_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let log = open(directory.path());
    append(&log, 1..=5, 100);
    write(&log, 4, &[b"facts"]);
    drop(log);
    for segment in segments(directory.path()) {
        std::fs::remove_file(segment).unwrap();
    }
    let log = open(directory.path());
    assert_eq!((log.damaged(Damage::Lost), log.head()), (1, Position(4)), "no position again");
    drop(log);
    assert_eq!(open(directory.path()).damaged(Damage::Lost), 0, "once");
}
