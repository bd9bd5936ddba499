//! A bounded run of the fuzz targets on the stable toolchain: seeded mutations of a corpus, so
//! that a failure comes again. `cargo fuzz` runs the same bodies without an end.

#[path = "../../fuzz/targets.rs"]
mod targets;

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use mcp_verdict::engine::{Engine, Limits as EngineLimits};
use mcp_verdict::log::record::{Marker, Noted, put_marks, put_record};
use mcp_verdict::log::{Kind, Mark, OutId, Part, Record as LogRecord};
use mcp_verdict::model::ids::{Arrival, Digest16, Position, SECOND, SpanRef};
use mcp_verdict::wire::Signal;
use mcp_verdict::wire::inflate::{Coding, deflate};
use mcp_verdict::wire::json::{Limits, to_protobuf};

/// Mutations a target; `FUZZ_ROUNDS` asks for more.
const ROUNDS: u64 = 3000;

fn rounds() -> u64 {
    let asked = std::env::var("FUZZ_ROUNDS").ok();
    asked.map_or(ROUNDS, |rounds| rounds.parse().expect("FUZZ_ROUNDS is a number"))
}

fn corpus(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fuzz").join(kind)
}

fn seeds(kind: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = fs::read_dir(corpus(kind))
        .expect("the corpus is part of the tree")
        .map(|entry| entry.expect("a readable corpus").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no seeds for {kind}");
    paths.iter().map(|path| fs::read(path).expect("a readable seed")).collect()
}

/// SplitMix64: enough randomness for mutations, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Pieces that parsers trip over.
const PIECES: [&[u8]; 22] = [
    b"null",
    b"[",
    b"]",
    b"{",
    b"}",
    b"\"",
    b",",
    b":",
    b"1e999",
    b"-",
    b"18446744073709551616",
    b"\"\\ud800\"",
    b"\"NaN\"",
    b"true",
    &[0xff; 10],
    &[0x80],
    &[0],
    &[0x0b],
    &[0x0c],
    &[0x0a, 0],
    &[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f],
    b"\xc3\x28",
];

fn mutate(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        let length = random.below(16).min(bytes.len() - at);
        match random.below(7) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..at + length)),
            2 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            3 if at < bytes.len() => bytes[at] = random.next() as u8,
            4 => drop(bytes.splice(at..at, PIECES[random.below(PIECES.len())].iter().copied())),
            5 => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            _ => {
                let copied = bytes[at..at + length].to_vec();
                bytes.splice(at..at, copied);
            }
        }
    }
    bytes
}

fn run(kind: &str, seed: u64, target: fn(&[u8])) {
    bounded(kind, seed, rounds(), target);
}

fn bounded(kind: &str, seed: u64, rounds: u64, target: fn(&[u8])) {
    let seeds = seeds(kind);
    seeds.iter().for_each(|seed| target(seed));
    for round in 0..rounds {
        // A seed a round: a failing input is found again by its round alone.
        let mut random = Random(seed << 32 | round);
        target(&mutate(&mut random, &seeds));
    }
}

#[test]
fn scanner() {
    run("protobuf", 1, targets::scan);
}

#[test]
fn json_reader() {
    run("json", 2, targets::json);
}

#[test]
fn inflater() {
    run("compressed", 3, targets::inflate);
}

#[test]
fn splicer() {
    run("protobuf", 4, targets::splice);
}

/// Spans alone: the splicer's inner loop gets no readable span from most mutated exports.
#[test]
fn splicer_on_spans() {
    run("span", 5, targets::splice);
}

#[test]
fn log_reader() {
    run("record", 6, targets::record);
}

/// A tenth of the rounds: each may fill an engine.
#[test]
fn checkpoint_reader() {
    bounded("checkpoint", 10, rounds() / 10, targets::checkpoint);
}

#[test]
fn configuration() {
    run("config", 7, targets::config);
}

#[test]
fn lockfile() {
    run("lockfile", 8, targets::lockfile);
}

/// From bytes to verdicts. A tenth of the rounds: each is a whole replay.
#[test]
fn judgement() {
    bounded("judged", 9, rounds() / 10, targets::judged);
}

/// Writes the binary seeds from the JSON ones and the cases, after those were changed.
#[test]
#[ignore = "writes tests/data/fuzz"]
fn write_binary_seeds() {
    let write = |kind: &str, name: &str, bytes: &[u8]| {
        fs::create_dir_all(corpus(kind)).expect("a folder");
        fs::write(corpus(kind).join(name), bytes).expect("written");
    };
    for signal in Signal::ALL {
        let name = signal.name();
        let json = fs::read(corpus("json").join(format!("{name}.json"))).expect("a seed");
        let limits = Limits { max_bytes: 1 << 20 };
        let bytes = to_protobuf(signal, &json, limits).expect("a good seed").bytes;
        write("protobuf", name, &bytes);
        for coding in [Coding::Gzip, Coding::Zstd] {
            let body = deflate(coding, &bytes).expect("deflated");
            write("compressed", &format!("{name}.{}", coding.name()), &body);
        }
        if signal == Signal::Traces {
            let spans = mcp_verdict::wire::regroup::items(&bytes);
            spans.for_each(|span| write("span", &span.index.to_string(), span.bytes));
        }
    }
    // Every tenth case, whole: exports of one signal are one when they stand one behind the other.
    for case in crate::fixtures::cases().iter().step_by(10) {
        let traces = case.exports().into_iter().filter(|(signal, _)| *signal == Signal::Traces);
        let bytes: Vec<u8> = traces.flat_map(|(_, bytes)| bytes).collect();
        write("judged", &case.name.replace(['/', '.'], "-"), &bytes);
    }
    write("record", "file", &log_file());
    for name in ["gap-delivered-twice", "seed-contract-2-renamed", "seed-health-7-tool-failed"] {
        write("checkpoint", name, &checkpoint(name));
    }
}

/// The slices that an engine leaves behind which saw a case, as the target takes them.
fn checkpoint(case: &str) -> Vec<u8> {
    let cases = crate::fixtures::cases();
    let case = cases.iter().find(|known| known.name.contains(case)).expect("a case");
    let mut engine = Engine::new(case.policy.clone(), EngineLimits::default());
    let mut now = Arrival { monotonic: 86_400 * SECOND, wall: 1_800_000_000 * SECOND };
    for sighting in case.sightings() {
        engine.see(Position(1), sighting, now);
    }
    now.monotonic += 7 * SECOND;
    engine.tick(now);
    let slices: Vec<Vec<u8>> = engine.checkpoint(now).into_slices().collect();
    let [remains, traces] = &slices[..] else { panic!("a small case has two slices") };
    let length = u32::try_from(remains.len()).expect("a small case").to_le_bytes();
    [&length, &remains[..], &traces[..]].concat()
}

/// A file of the log with an entry of each kind, damage between two of them, and a torn end.
fn log_file() -> Vec<u8> {
    let marker = Marker(0x6d63_7076_6572_6463);
    let id = OutId {
        chain: Digest16([1; 16]),
        revision: 2,
        digest: Digest16([3; 16]),
        closes: false,
        span: SpanRef::default(),
    };
    let mut file = Vec::new();
    for (number, kind) in [(1, Kind::In), (2, Kind::Out(vec![id])), (3, Kind::In)] {
        let payload = Bytes::from(vec![number; 40]);
        let coding = Coding::Identity;
        let record = LogRecord { kind, signal: Signal::Traces, coding, payload };
        put_record(marker, Position(u64::from(number)), &record, &mut file);
        file.extend_from_slice(&record.payload);
        if number == 2 {
            file.extend_from_slice(b"no entry");
        }
    }
    let part = Part::Held;
    let delivered = Mark::Delivered { exporter: "otlp".into(), part };
    let marks = [Noted::new(Position(1), Mark::Done), Noted::new(Position(2), delivered)];
    put_marks(marker, &marks, &mut file);
    let whole = file.clone();
    file.extend_from_slice(&whole[..30]);
    file
}
