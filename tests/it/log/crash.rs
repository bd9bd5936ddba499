//! Processes that are killed: this test binary starts itself again as a child that writes, and kills
//! it at a random moment. What the child acknowledged must be there; nothing may be there twice.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mcp_verdict::log::settings::Sync;
use mcp_verdict::log::{Damage, Disk, Log, Mark, OpenError, Part};
use mcp_verdict::model::ids::Position;

use super::support::{bytes, delivered, number, record, segments, settings, wait};

const DIRECTORY: &str = "LOG_TEST_DIRECTORY";
const LIFE: &str = "LOG_TEST_LIFE";
const SIZE: u64 = 8 << 20;
const KILLS: u64 = 40;

fn sync_of(life: u64) -> Sync {
    [Sync::Always, Sync::Interval, Sync::Never][(life % 3) as usize]
}

fn size_of(number: u64) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50) as usize
}

/// The child: appends from three threads until it is killed. It says `a NUMBER POSITION` after an
/// acknowledgement, and `d POSITION` before it marks a record done.
#[test]
#[ignore = "the child of the tests below, which start it by name"]
fn child() {
    let (Ok(directory), Ok(life)) = (std::env::var(DIRECTORY), std::env::var(LIFE)) else { return };
    let life: u64 = life.parse().unwrap();
    let log = Disk::open(&settings(Path::new(&directory), sync_of(life), SIZE)).unwrap();
    say(&format!("open {}", log.usage().records));
    let log = &log;
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            scope.spawn(move || write(log, life << 32 | thread << 24));
        }
    });
}

fn write(log: &Disk, first: u64) {
    for number in first + 1.. {
        let Ok(position) = wait(log.append(record(number, size_of(number)))) else {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        say(&format!("a {number} {}", position.0));
        // Most are done soon; the log may not be full of the rest before the last kill.
        if number % 32 != 0 {
            log.mark(position, delivered("otlp", Part::Rest));
            say(&format!("d {}", position.0));
            log.mark(position, Mark::Done);
        }
    }
}

/// One line, by one write: a killed process leaves whole lines.
fn say(line: &str) {
    std::io::stdout().lock().write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn start(directory: &Path, life: u64) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "log::crash::child", "--ignored", "--nocapture"]);
    command.env(DIRECTORY, directory).env(LIFE, life.to_string());
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Runs a child for so long after it opened the log, kills it, and returns what it said.
fn kill_after(directory: &Path, life: u64, patience: Duration) -> Vec<String> {
    let mut child = start(directory, life);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (opened, wait_for_open) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        for line in lines.map_while(Result::ok) {
            if line.contains("open ") {
                opened.send(()).unwrap();
            }
            said.push(line);
        }
        said
    });
    wait_for_open.recv_timeout(Duration::from_secs(60)).expect("the child opens its log");
    std::thread::sleep(patience);
    // On Unix this is SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

/// What all children together said.
#[derive(Default)]
struct Said {
    /// By position.
    acknowledged: BTreeMap<u64, u64>,
    finished: BTreeSet<u64>,
}

impl Said {
    fn hear(&mut self, lines: &[String]) {
        for line in lines {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["a", number, position] => {
                    let (number, position) = (number.parse().unwrap(), position.parse().unwrap());
                    let before = self.acknowledged.insert(position, number);
                    assert_eq!(before, None, "position {position} was given twice");
                }
                ["d", position] => {
                    self.finished.insert(position.parse().unwrap());
                }
                _ => {}
            }
        }
    }

    /// Compares with what a log holds. Returns how many records wait.
    fn check(&self, log: &Disk) -> usize {
        let pending = log.recover().unwrap();
        let found: BTreeMap<u64, u64> =
            pending.iter().map(|p| (p.position.0, number(&p.record))).collect();
        let numbers: BTreeSet<&u64> = found.values().collect();
        assert_eq!((found.len(), numbers.len()), (pending.len(), pending.len()), "once each");
        for pending in &pending {
            let number = number(&pending.record);
            assert_eq!(pending.record, record(number, size_of(number)), "content");
            let acknowledged = self.acknowledged.get(&pending.position.0);
            assert!(acknowledged.is_none_or(|known| *known == number), "another's position");
        }
        for (position, number) in &self.acknowledged {
            let found = found.get(position);
            let gone = found.is_none() && self.finished.contains(position);
            assert!(gone || found == Some(number), "position {position} was acknowledged");
        }
        pending.len()
    }
}

#[test]
fn no_kill_loses_what_was_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let (mut said, mut seed, mut waiting) = (Said::default(), 11_u64, 0);
    for life in 0..KILLS {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let patience = Duration::from_micros((seed >> 33) % 40_000);
        said.hear(&kill_after(directory.path(), life, patience));
        let log = Disk::open(&settings(directory.path(), Sync::Never, SIZE)).unwrap();
        waiting = said.check(&log);
        assert_eq!(log.damaged(Damage::Record) + log.damaged(Damage::Order), 0, "life {life}");
        assert!(bytes(directory.path()) <= SIZE * 11 / 10);
    }
    let acknowledged = said.acknowledged.len();
    println!("{KILLS} kills, {acknowledged} acknowledged, {waiting} not done at the end");
    assert!(acknowledged > 20 && waiting > 0, "it was killed before it did anything");
    let log = Disk::open(&settings(directory.path(), Sync::Never, SIZE)).unwrap();
    log.recover().unwrap().iter().for_each(|pending| log.mark(pending.position, Mark::Done));
    drop(log);
    drop(Disk::open(&settings(directory.path(), Sync::Never, SIZE)).unwrap());
    assert_eq!(segments(directory.path()).len(), 1, "what is done takes no room");
}

#[test]
fn two_processes_do_not_share_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = start(directory.path(), 0);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("open ")), "the child has the directory");
    let settings = settings(directory.path(), Sync::Always, SIZE);
    let Err(error) = Disk::open(&settings) else { panic!("it is in use") };
    let want = format!(
        "storage.directory: `{}` is in use by another process; stop that one, or name another \
         directory",
        directory.path().display()
    );
    assert_eq!(error.to_string(), want);
    assert!(matches!(error, OpenError::InUse { .. }));
    child.kill().unwrap();
    child.wait().unwrap();
    let log = Disk::open(&settings).expect("the lock dies with its owner");
    assert!(wait(log.append(record(1, 1))).unwrap() > Position(0));
}
