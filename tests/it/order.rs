//! Order, batching, duplication and restarts do not change the last word (the invariant "a verdict is
//! f(facts, now, policy)"). Every case and every capture is fed live, one record at a time, in random
//! order, some of it twice, with settles in between and a restart at a random point; the last
//! revisions must equal what replay says of the whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::fixtures::{self, Recording};
use mcp_verdict::engine::{Effect, Engine, Limits, Revisions, replay};
use mcp_verdict::model::fact::Sighting;
use mcp_verdict::model::ids::{Arrival, Digest16, MILLI, Nanos, Position, SECOND, sane};
use mcp_verdict::model::policy::Policy;
use mcp_verdict::model::record::{Record, Verdict};

/// A small seeded generator (SplitMix64): a failing fixture is replayable by its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides.max(1) as u64) as usize
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.roll(at + 1));
        }
    }
}

/// A fixture: its inputs and its policy.
struct Fixture {
    name: String,
    policy: Arc<Policy>,
    sightings: Vec<Sighting>,
}

impl From<Recording> for Fixture {
    fn from(recording: Recording) -> Self {
        let sightings = recording.sightings();
        Fixture { name: recording.name, policy: recording.policy, sightings }
    }
}

/// Every record by itself.
fn apart(sightings: &[Sighting]) -> Vec<Sighting> {
    let facts = sightings
        .iter()
        .flat_map(|s| &s.facts)
        .map(|fact| Sighting { facts: vec![fact.clone()], ..Sighting::default() });
    let bones = sightings
        .iter()
        .flat_map(|s| &s.bones)
        .map(|bone| Sighting { bones: vec![bone.clone()], ..Sighting::default() });
    facts.chain(bones).collect()
}

fn newest(sightings: &[Sighting]) -> Nanos {
    let facts = sightings.iter().flat_map(|s| &s.facts);
    facts.flat_map(|fact| [fact.start, fact.end]).filter(|time| sane(*time)).max().unwrap_or(0)
}

/// Last revision of each chain, revision numbers aside; chains merged away are gone.
type Last = BTreeMap<Digest16, Verdict>;

fn plain(mut verdict: Verdict) -> Verdict {
    (verdict.revision, verdict.supersedes) = (1, None);
    verdict
}

fn replayed(fixture: &Fixture) -> Last {
    let records = replay(fixture.sightings.clone(), &fixture.policy, Revisions::Final);
    let verdicts = records.into_iter().filter_map(|record| match record {
        Record::Verdict(verdict) => Some((verdict.id, plain(*verdict))),
        _ => None,
    });
    verdicts.collect()
}

/// Feeds the fixture live. What was sent before the restart stays sent.
fn live(fixture: &Fixture, seed: u64) -> Last {
    let mut dice = Dice(seed);
    let mut pieces = apart(&fixture.sightings);
    for again in 0..pieces.len() / 4 {
        pieces.push(pieces[again * 3 % pieces.len()].clone());
    }
    dice.shuffle(&mut pieces);
    let wall = newest(&fixture.sightings).saturating_add(fixture.policy.clock_skew);
    let cut = dice.roll(pieces.len() + 1);
    let mut last = Last::new();
    let mut engine = Engine::new(fixture.policy.clone(), Limits::default());
    let mut now = SECOND;
    for (at, piece) in pieces.iter().enumerate() {
        if at == cut {
            // The process died: the log is folded again, what was sent is known.
            engine = Engine::new(fixture.policy.clone(), Limits::default());
            last.clear();
            for earlier in &pieces[..at] {
                engine.see(Position(1), earlier.clone(), Arrival { monotonic: now, wall });
            }
        }
        engine.see(Position(1), piece.clone(), Arrival { monotonic: now, wall });
        now += MILLI;
        if dice.roll(4) == 0 {
            now += if dice.roll(3) == 0 { 7 * SECOND } else { SECOND };
            keep(engine.tick(Arrival { monotonic: now, wall }), &mut last);
        }
    }
    for _ in 0..4 {
        now += 7 * SECOND;
        keep(engine.tick(Arrival { monotonic: now, wall }), &mut last);
    }
    last
}

fn keep(effects: Vec<Effect>, last: &mut Last) {
    for effect in effects {
        let Effect::Verdict(verdict) = effect else { continue };
        match verdict.operator.merged_into {
            Some(_) => drop(last.remove(&verdict.id)),
            None => drop(last.insert(verdict.id, plain(*verdict))),
        }
    }
}

/// The fields in which two verdicts differ, live first.
fn difference(live: Option<&Verdict>, replay: Option<&Verdict>) -> String {
    let fields = |verdict: &Verdict| serde_json::to_value(verdict).unwrap();
    let (live, replay) = match (live.map(fields), replay.map(fields)) {
        (Some(live), Some(replay)) => (live, replay),
        (Some(live), None) => return format!("is live only: {} {}", live["method"], live["state"]),
        (None, Some(one)) => {
            return format!("is replayed only: {} {}", one["method"], one["state"]);
        }
        (None, None) => return "is nowhere".into(),
    };
    let keys = live.as_object().unwrap().keys().filter(|key| live[*key] != replay[*key]);
    keys.map(|key| format!("{key}: {} / {}", live[key], replay[key])).collect::<Vec<_>>().join("; ")
}

fn check(recordings: Vec<Recording>, seeds: u64) {
    let fixtures: Vec<Fixture> = recordings.into_iter().map(Fixture::from).collect();
    let mut wrong = Vec::new();
    for fixture in &fixtures {
        let want = replayed(fixture);
        for seed in 0..seeds {
            let got = live(fixture, seed);
            if got == want {
                continue;
            }
            let ids: std::collections::BTreeSet<_> = got.keys().chain(want.keys()).collect();
            let differs = ids.into_iter().find(|id| got.get(id) != want.get(id)).unwrap();
            let difference = difference(got.get(differs), want.get(differs));
            wrong.push(format!("{} seed {seed}: {differs} {difference}", fixture.name));
            break;
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), fixtures.len(), wrong.join("\n"));
}

#[test]
fn live_in_any_order_with_restarts_ends_as_replay_on_every_case() {
    check(fixtures::cases(), 4);
}

#[test]
fn live_in_any_order_with_restarts_ends_as_replay_on_every_capture() {
    check(fixtures::captures(), 1);
}
