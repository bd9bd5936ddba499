//! What is sent: a recording taken apart into many exports, and what must be said of it in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp_verdict::engine::{Effect, Engine, Limits, Revisions, replay};
use mcp_verdict::model::fact::Sighting;
use mcp_verdict::model::ids::{Arrival, Digest16, Nanos, Position, SECOND, sane};
use mcp_verdict::model::policy::Policy;
use mcp_verdict::model::record::{Record, Verdict};
use mcp_verdict::wire::{Signal, regroup, scan};

use crate::dice::Dice;
use crate::fixtures::{self, Recording};

/// Last revision of each chain, revision numbers aside.
pub type Last = BTreeMap<Digest16, Verdict>;

pub struct Scenario {
    pub name: String,
    pub policy: Arc<Policy>,
    pub exports: Vec<(Signal, Vec<u8>)>,
    /// What replay says of the whole.
    pub want: Last,
    /// Chains of which the clock on the wall decides: they are open, and a jump is their end.
    pub timed: BTreeSet<Digest16>,
    /// Where the clock on the wall must stand in the end.
    pub wall: Nanos,
}

/// Larger recordings take more time than they add.
const LARGEST: usize = 48 << 10;
/// Exports that a recording is taken apart into, at most.
const PARTS: usize = 24;

pub fn plain(mut verdict: Verdict) -> Verdict {
    (verdict.revision, verdict.supersedes) = (1, None);
    verdict
}

impl Scenario {
    pub fn all() -> Vec<Scenario> {
        let recordings = fixtures::cases().into_iter().chain(fixtures::captures());
        recordings.filter_map(Scenario::of).collect()
    }

    fn of(recording: Recording) -> Option<Scenario> {
        let whole = recording.exports();
        let bytes: usize = whole.iter().map(|(_, bytes)| bytes.len()).sum();
        if bytes > LARGEST {
            return None;
        }
        let policy = recording.policy.clone();
        let sightings = fixtures::sightings(&whole, &policy);
        let newest = sightings
            .iter()
            .flat_map(|s| &s.facts)
            .flat_map(|fact| [fact.start, fact.end])
            .filter(|time| sane(*time))
            .max()
            .unwrap_or(0);
        let wall = newest.saturating_add(policy.clock_skew);
        let want = replayed(&sightings, &policy);
        let later = judged(&sightings, &policy, wall.saturating_add(86_400 * SECOND));
        let timed = want.keys().chain(later.keys()).filter(|id| want.get(id) != later.get(id));
        let timed = timed.copied().collect();
        let exports = apart(&whole);
        Some(Scenario { name: recording.name, policy, exports, want, timed, wall })
    }
}

fn replayed(sightings: &[Sighting], policy: &Arc<Policy>) -> Last {
    let records = replay(sightings.to_vec(), policy, Revisions::Final);
    let verdicts = records.into_iter().filter_map(|record| match record {
        Record::Verdict(verdict) => Some((verdict.id, plain(*verdict))),
        _ => None,
    });
    verdicts.collect()
}

/// What a process says that sees all of it at a time.
fn judged(sightings: &[Sighting], policy: &Arc<Policy>, wall: Nanos) -> Last {
    let mut engine = Engine::new(policy.clone(), Limits::default());
    let mut last = Last::new();
    let mut now = Arrival { monotonic: SECOND, wall };
    for sighting in sightings {
        engine.see(Position(1), sighting.clone(), now);
    }
    for _ in 0..4 {
        now.monotonic += policy.settle + SECOND;
        for effect in engine.tick(now) {
            let Effect::Verdict(verdict) = effect else { continue };
            match verdict.operator.merged_into {
                Some(_) => drop(last.remove(&verdict.id)),
                None => drop(last.insert(verdict.id, plain(Arc::unwrap_or_clone(verdict)))),
            }
        }
    }
    last
}

/// A few items an export.
fn apart(whole: &[(Signal, Vec<u8>)]) -> Vec<(Signal, Vec<u8>)> {
    let items = |(signal, bytes): &(Signal, Vec<u8>)| match scan::check(*signal, bytes) {
        Ok(counts) => counts.items,
        Err(_) => 0,
    };
    let total: usize = whole.iter().map(items).sum();
    let size = total.div_ceil(PARTS).max(1);
    let (mut exports, mut dice) = (Vec::new(), Dice(total as u64));
    for export in whole {
        let (signal, bytes) = export;
        let mut first = 0;
        while first < items(export) {
            let range = first..first + size + dice.below(6);
            first = range.end;
            let part = regroup::remove_items(bytes, |index| !range.contains(&index));
            // One that was sent twice is sent twice anyway.
            if !exports.contains(&(*signal, part.clone())) {
                exports.push((*signal, part));
            }
        }
    }
    exports
}
