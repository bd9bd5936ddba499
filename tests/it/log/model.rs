//! The log against a model that is a list: random lives, and every kind of damage.
//!
//! The model of a damaged log is simple because the promise is: of the entries that stand in the
//! files, those without a touched byte count, in order, and no other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mcp_verdict::log::record::{Entry, Found, Marker, Noted, walk};
use mcp_verdict::log::settings::Sync;
use mcp_verdict::log::{Disk, Log, Mark, Part, Record};
use mcp_verdict::model::ids::Position;
use proptest::prelude::*;

use super::support::{delivered, record, segments, settings, wait};

#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    /// Of a record that is not done, counted from the oldest.
    Mark(prop::sample::Index, What),
    Reopen,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Rest,
    Held,
    Done,
}

#[derive(Clone, Debug)]
enum Harm {
    /// A file ends here.
    Cut,
    /// One bit of a byte.
    Flip(u8),
}

/// What is pending, and its marks in order.
type Model = BTreeMap<Position, (Record, Vec<Mark>)>;

/// Small enough for many segments: one is 8 KiB.
const SIZE: u64 = 128 << 10;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let what = prop_oneof![1 => Just(What::Rest), 1 => Just(What::Held), 3 => Just(What::Done)];
    let step = prop_oneof![
        4 => (0_usize..4000).prop_map(Step::Append),
        5 => (any::<prop::sample::Index>(), what).prop_map(|(at, what)| Step::Mark(at, what)),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..80)
}

fn open(directory: &Path) -> Disk {
    Disk::open(&settings(directory, Sync::Never, SIZE)).unwrap()
}

fn pending(log: &Disk) -> Model {
    let pending = log.recover().unwrap();
    let count = pending.len();
    let model: Model = pending.into_iter().map(|p| (p.position, (p.record, p.marks))).collect();
    assert_eq!(model.len(), count, "no position is there twice");
    model
}

/// Lives through the steps; the model says what must be pending at the end of each life.
fn live(directory: &Path, steps: &[Step]) -> Model {
    let (mut log, mut model, mut last) = (open(directory), Model::new(), 0);
    for step in steps {
        match step {
            Step::Append(size) => {
                let record = record(last + 1, *size);
                // A full log takes nothing, and says so.
                if let Ok(position) = wait(log.append(record.clone())) {
                    assert!(position.0 > last);
                    last = position.0;
                    model.insert(position, (record, Vec::new()));
                }
            }
            Step::Mark(at, what) => mark(&log, &mut model, at, *what),
            Step::Reopen => {
                assert_eq!(pending(&log), model);
                drop(log);
                log = open(directory);
                assert_eq!(pending(&log), model);
            }
        }
    }
    model
}

fn mark(log: &Disk, model: &mut Model, at: &prop::sample::Index, what: What) {
    if model.is_empty() {
        return;
    }
    let position = *model.keys().nth(at.index(model.len())).unwrap();
    let mark = match what {
        What::Rest => delivered("otlp", Part::Rest),
        What::Held => delivered("otlp/eu", Part::Held),
        What::Done => Mark::Done,
    };
    log.mark(position, mark.clone());
    apply(model, Noted::new(position, mark));
}

fn apply(model: &mut Model, noted: Noted) {
    match noted {
        Noted::Done { from, to } => model.retain(|position, _| *position < from || *position > to),
        Noted::Delivered { position, exporter, part } => {
            if let Some((_, marks)) = model.get_mut(&position) {
                marks.push(delivered(&exporter, part));
                marks.sort();
                marks.dedup();
            }
        }
    }
}

/// The entries of every file, none of which is damaged yet, without what a harm at one byte costs.
fn surviving(files: &[PathBuf], harmed: usize, at: usize, harm: &Harm) -> Model {
    let mut model = Model::new();
    for (index, file) in files.iter().enumerate() {
        let bytes = std::fs::read(file).unwrap();
        for found in walk(marker(file), &bytes) {
            let Found::Entry { at: range, entry } = found else { panic!("not damaged: {found:?}") };
            let touched = match harm {
                Harm::Cut => range.end > at,
                Harm::Flip(_) => range.contains(&at),
            };
            if index == harmed && touched {
                continue;
            }
            match entry {
                Entry::Marks(marks) => marks.into_iter().for_each(|mark| apply(&mut model, mark)),
                Entry::Record { position, kind, signal, coding, payload } => {
                    let payload = payload.to_vec().into();
                    let record = Record { kind, signal, coding, payload };
                    model.insert(position, (record, Vec::new()));
                }
            }
        }
    }
    model
}

/// The marker stands in the name, behind the last dash.
fn marker(file: &Path) -> Marker {
    let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
    Marker(u64::from_str_radix(stem.rsplit('-').next().unwrap(), 16).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn a_log_is_a_list(steps in steps()) {
        let directory = tempfile::tempdir().unwrap();
        let model = live(directory.path(), &steps);
        prop_assert_eq!(pending(&open(directory.path())), model);
    }

    #[test]
    fn damage_costs_what_it_touches(
        steps in steps(),
        file in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        harm in prop_oneof![Just(Harm::Cut), (0_u8..8).prop_map(Harm::Flip)],
    ) {
        let directory = tempfile::tempdir().unwrap();
        live(directory.path(), &steps);
        let files = segments(directory.path());
        let harmed = file.index(files.len());
        let mut bytes = std::fs::read(&files[harmed]).unwrap();
        prop_assume!(!bytes.is_empty());
        let at = at.index(bytes.len());
        let model = surviving(&files, harmed, at, &harm);
        match harm {
            Harm::Cut => bytes.truncate(at),
            Harm::Flip(bit) => bytes[at] ^= 1 << bit,
        }
        std::fs::write(&files[harmed], &bytes).unwrap();
        prop_assert_eq!(&pending(&open(directory.path())), &model);
        prop_assert_eq!(&pending(&open(directory.path())), &model, "and so it stays");
    }
}
