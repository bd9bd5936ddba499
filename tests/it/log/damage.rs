//! Damage costs what is damaged; directories, rights and strangers' files.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use mcp_verdict::log::settings::Sync;
use mcp_verdict::log::{Damage, Disk, Log, Mark, Part, Settings};
use mcp_verdict::model::ids::Position;

use super::support::{delivered, record, segments, settings, wait};

fn open(directory: &Path) -> Disk {
    Disk::open(&settings(directory, Sync::Always, 32 << 20)).unwrap()
}

/// Three records of 1000 bytes, of which the second has a mark.
fn filled(directory: &Path) {
    let log = open(directory);
    for number in 1..=3 {
        assert_eq!(wait(log.append(record(number, 1000))).unwrap(), Position(number));
    }
    log.mark(Position(2), delivered("otlp", Part::Rest));
}

fn positions(log: &Disk) -> Vec<u64> {
    log.recover().unwrap().iter().map(|pending| pending.position.0).collect()
}

#[test]
fn what_was_appended_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    let log = open(directory.path());
    let pending = log.recover().unwrap();
    let found: Vec<_> = pending.iter().map(|p| (p.position.0, p.record.clone())).collect();
    assert_eq!(found, [1, 2, 3].map(|number| (number, record(number, 1000))));
    let marks: Vec<_> = pending.iter().map(|p| p.marks.clone()).collect();
    assert_eq!(marks, [vec![], vec![delivered("otlp", Part::Rest)], vec![]]);
    assert_eq!(wait(log.append(record(4, 0))).unwrap(), Position(4), "positions go on");
    log.mark(Position(2), Mark::Done);
    assert_eq!(log.read(Position(2)).unwrap(), None);
    assert_eq!(log.read(Position(4)).unwrap(), Some(record(4, 0)));
    let first = log.page(Position(0), 1, &|_| true).unwrap();
    assert_eq!(first.iter().map(|p| p.position.0).collect::<Vec<_>>(), [1]);
    let rest = log.page(Position(1), 1 << 20, &|_| true).unwrap();
    assert_eq!(rest.iter().map(|p| p.position.0).collect::<Vec<_>>(), [3, 4]);
    assert!(log.page(Position(4), 1, &|_| true).unwrap().is_empty());
}

#[test]
fn positions_go_on_when_nothing_is_left() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    let log = open(directory.path());
    [1, 2, 3].iter().for_each(|position| log.mark(Position(*position), Mark::Done));
    drop(log);
    for _ in 0..3 {
        assert_eq!(positions(&open(directory.path())), [0; 0]);
    }
    let log = open(directory.path());
    assert_eq!(segments(directory.path()).len(), 1, "nothing is kept of what is done");
    assert_eq!(wait(log.append(record(4, 0))).unwrap(), Position(4));
}

#[test]
fn a_damaged_record_costs_itself_and_is_set_aside_once() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    let file = segments(directory.path()).pop().unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.windows(8).position(|window| window == 2_u64.to_le_bytes()).unwrap() + 500;
    bytes[middle] ^= 0x10;
    std::fs::write(&file, &bytes).unwrap();

    let log = open(directory.path());
    assert_eq!(positions(&log), [1, 3]);
    assert_eq!(log.read(Position(3)).unwrap(), Some(record(3, 1000)));
    assert_eq!(log.damaged(Damage::Record), 1);
    assert_eq!(Log::damaged(&log)[0], ("record", 1));
    drop(log);
    let aside = std::fs::read_dir(directory.path().join("set-aside")).unwrap();
    let aside: Vec<_> = aside.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(aside.len(), 1);
    let kept = std::fs::read(&aside[0]).unwrap();
    assert!(kept.len() > 1000 && bytes.windows(kept.len()).any(|window| window == kept));
    let name = aside[0].file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.starts_with(&*file.file_name().unwrap().to_string_lossy()), "{name}");

    let log = open(directory.path());
    assert_eq!((positions(&log), log.damaged(Damage::Record)), (vec![1, 3], 0), "repaired");
}

#[test]
fn a_write_that_never_ended_is_cut_off() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    let file = segments(directory.path()).pop().unwrap();
    let whole = std::fs::read(&file).unwrap();
    // The mark is the last entry; the third record ends before it.
    let third = whole.windows(8).rposition(|window| window == 3_u64.to_le_bytes()).unwrap();
    std::fs::write(&file, &whole[..third + 100]).unwrap();
    let log = open(directory.path());
    assert_eq!((positions(&log), log.damaged(Damage::Record)), (vec![1, 2], 0));
    assert!(!directory.path().join("set-aside").exists());
    assert_eq!(wait(log.append(record(9, 5))).unwrap(), Position(3));
    drop(log);
    assert_eq!(positions(&open(directory.path())), [1, 2, 3]);
}

#[test]
fn damage_that_comes_later_is_told_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    let log = open(directory.path());
    let file = segments(directory.path()).remove(0);
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.windows(8).position(|window| window == 2_u64.to_le_bytes()).unwrap() + 500;
    bytes[middle] ^= 0x10;
    std::fs::write(&file, &bytes).unwrap();
    let error = log.read(Position(2)).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    assert!(error.to_string().contains(&*file.to_string_lossy()), "{error}");
    assert_eq!(positions(&log), [1, 3]);
    assert_eq!(log.damaged(Damage::Record), 1);
}

#[test]
fn unknown_files_are_moved_and_neighbours_stay() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    let put = |name: &str| std::fs::write(directory.path().join(name), name).unwrap();
    ["notes.txt", "checkpoint-1", "pins.toml"].into_iter().for_each(put);
    let log = open(directory.path());
    assert_eq!(log.damaged(Damage::UnknownFile), 1);
    drop(log);
    put("notes.txt");
    assert_eq!(positions(&open(directory.path())), [1, 2, 3]);
    let aside = directory.path().join("set-aside");
    for name in ["notes.txt", "notes.txt.1"] {
        assert_eq!(std::fs::read(aside.join(name)).unwrap(), b"notes.txt");
    }
    for name in ["checkpoint-1", "pins.toml"] {
        assert!(directory.path().join(name).exists(), "{name}");
    }
}

/// Scenario: pipes, links and folders where files of ours are, or under other names. Guarantees: the
/// log opens at once, reads and writes nothing behind a link, and moves all but folders aside.
#[test]
fn what_is_no_file_is_moved_and_never_followed() {
    use std::os::unix::fs::symlink;
    let outer = tempfile::tempdir().unwrap();
    let (directory, outside) = (outer.path().join("log"), outer.path().join("outside"));
    filled(&directory);
    std::fs::create_dir(&outside).unwrap();
    let secret = outside.join("secret");
    std::fs::write(&secret, "secret").unwrap();
    let pipe = |name: &str| {
        let made = std::process::Command::new("mkfifo").arg(directory.join(name)).status();
        assert!(made.unwrap().success());
    };
    ["pipe", "checkpoint.new", "000000000009-00000000000000000009-0000000000000003.log1"]
        .into_iter()
        .for_each(pipe);
    let linked = ["link", "checkpoint", "checkpoint.spare", "pins.lock"];
    linked.iter().for_each(|name| symlink(&secret, directory.join(name)).unwrap());
    symlink(&outside, directory.join("set-aside")).unwrap();
    symlink(outside.join("gone"), directory.join("dangling")).unwrap();
    std::fs::create_dir_all(directory.join("folder/below")).unwrap();
    std::fs::create_dir(directory.join("lost+found")).unwrap();
    let settings = settings(&directory, Sync::Always, 1 << 20);
    let log = Disk::open(&Settings { checkpoints: Some(1), ..settings }).unwrap();
    assert_eq!(positions(&log), [1, 2, 3]);
    let mut one = std::iter::once(b"facts".to_vec());
    log.write_checkpoint(Position(1), 1, &mut one).unwrap();
    drop(log);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1, "nothing was written there");
    assert_eq!(std::fs::read(&secret).unwrap(), b"secret");
    let aside = directory.join("set-aside");
    assert!(std::fs::symlink_metadata(&aside).unwrap().is_dir());
    for name in ["pipe", "link", "dangling", "set-aside", "pins.lock", "checkpoint"] {
        let moved = std::fs::symlink_metadata(aside.join(name));
        assert!(moved.is_ok_and(|moved| !moved.is_file() && !moved.is_dir()), "{name}");
    }
    assert!(directory.join("folder/below").is_dir() && directory.join("lost+found").is_dir());
    let log = open(&directory);
    assert_eq!((positions(&log), log.damaged(Damage::UnknownFile)), (vec![1, 2, 3], 1));
}

/// Scenario: the lock is a link to a file elsewhere. Guarantees: a sentence that says what to do.
#[test]
fn a_lock_that_is_a_link_is_told() {
    let outer = tempfile::tempdir().unwrap();
    let directory = outer.path().join("log");
    std::fs::create_dir(&directory).unwrap();
    std::os::unix::fs::symlink(outer.path().join("else"), directory.join("lock")).unwrap();
    let error = Disk::open(&settings(&directory, Sync::Always, 1 << 20)).err().unwrap();
    assert!(error.to_string().contains("its `lock` is no regular file, remove that"), "{error}");
    assert!(!outer.path().join("else").exists());
}

#[test]
fn files_are_for_their_owner_alone() {
    let outer = tempfile::tempdir().unwrap();
    let directory = outer.path().join("a/b");
    filled(&directory);
    std::fs::write(directory.join("unknown"), "").unwrap();
    let file = segments(&directory).pop().unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[30] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    drop(open(&directory));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    assert_eq!(mode(&directory.join("set-aside")), 0o700);
    let entries = [&directory, &directory.join("set-aside")].map(|d| std::fs::read_dir(d).unwrap());
    for path in entries.into_iter().flatten().map(|entry| entry.unwrap().path()) {
        let ours = path.is_file() && path.file_name().is_some_and(|name| name != "unknown");
        assert!(!ours || mode(&path) == 0o600, "{}", path.display());
    }
}

#[test]
fn a_directory_that_cannot_be_is_told() {
    let outer = tempfile::tempdir().unwrap();
    let directory = outer.path().join("file");
    std::fs::write(&directory, "").unwrap();
    let settings = settings(&directory, Sync::Always, 32 << 20);
    let Err(error) = Disk::open(&settings) else { panic!("a file is no directory") };
    let want = format!("storage.directory: `{}` cannot be used (", directory.display());
    assert!(error.to_string().starts_with(&want), "{error}");
}

/// Seeded junk of every shape: truncated, overwritten, doubled, shuffled segments. Nothing panics,
/// and nothing is found that was never written.
#[test]
fn any_files_open() {
    let mut seed = 7_u64;
    let mut roll = move |sides: usize| {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (seed >> 33) as usize % sides
    };
    for _ in 0..150 {
        let directory = tempfile::tempdir().unwrap();
        filled(directory.path());
        drop(open(directory.path()));
        for file in segments(directory.path()) {
            let mut bytes = std::fs::read(&file).unwrap();
            for _ in 0..=roll(3) {
                let at = roll(bytes.len() + 1);
                let (from, to) = (roll(at + 1), roll(300));
                match roll(5) {
                    0 => bytes.truncate(at),
                    1 => bytes.extend_from_within(from..at),
                    2 => drop(bytes.drain(from..at)),
                    3 => bytes.splice(at..at, vec![roll(256) as u8; to]).for_each(drop),
                    _ => bytes.iter_mut().skip(at).take(to).for_each(|b| *b = roll(256) as u8),
                }
            }
            std::fs::write(&file, &bytes).unwrap();
        }
        let log = open(directory.path());
        for pending in log.recover().unwrap() {
            assert_eq!(pending.record, record(pending.position.0, 1000));
        }
        let next = wait(log.append(record(9, 9))).unwrap();
        assert!(log.recover().unwrap().iter().all(|pending| pending.position <= next));
    }
}
