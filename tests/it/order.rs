//! Order, batching, duplication and restarts do not change the last word (the invariant "a verdict is
//! f(facts, now, policy)"). Every case and every capture is fed live, one record at a time, in random
//! order, some of it twice, with settles in between and kills at random points, after which a
//! checkpoint and what came behind it are taken up; the last revisions must equal what replay says
//! of the whole, and no revision is ever said twice with other content, or left out.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::dice::Dice;
use crate::fixtures::{self, Recording};
use mcp_verdict::engine::{Checkpoint, Claim, Effect, Engine, Limits, Revisions, replay};
use mcp_verdict::model::fact::Sighting;
use mcp_verdict::model::ids::{Arrival, Digest16, MILLI, Nanos, Position, SECOND, sane};
use mcp_verdict::model::policy::Policy;
use mcp_verdict::model::record::{Record, Verdict};

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

/// What was said, revision by revision; it outlives every process.
#[derive(Default)]
struct Said {
    last: Last,
    revisions: BTreeMap<Digest16, Vec<Digest16>>,
    /// In order, as a log holds it.
    claims: Vec<(Digest16, Claim)>,
    faults: Vec<String>,
}

impl Said {
    fn keep(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let verdict = match effect {
                Effect::Verdict(verdict) => verdict,
                Effect::Recalled(verdict) => {
                    let known = self.revisions.get(&verdict.id);
                    let known = known.and_then(|all| all.get(verdict.revision as usize - 1));
                    if known != Some(&verdict.digest()) {
                        self.faults.push(format!("{} was recalled and never said", verdict.id));
                    }
                    continue;
                }
                _ => continue,
            };
            let (id, digest) = (verdict.id, verdict.digest());
            let said = self.revisions.entry(id).or_default();
            said.push(digest);
            let (next, before) = (said.len() as u32, said.len() as u32 - 1);
            let supersedes = (before > 0).then_some(before);
            if (verdict.revision, verdict.supersedes) != (next, supersedes) {
                let (revision, supersedes) = (verdict.revision, verdict.supersedes);
                self.faults.push(format!("{id}: {revision} over {supersedes:?} comes as {next}"));
            }
            let closes = verdict.operator.merged_into.is_some();
            let (key, revision) = (verdict.operator.span, verdict.revision);
            self.claims.push((id, Claim { key, revision, closes, digest }));
            match verdict.operator.merged_into {
                Some(_) => drop(self.last.remove(&id)),
                None => drop(self.last.insert(id, plain(Arc::unwrap_or_clone(verdict)))),
            }
        }
    }
}

/// A checkpoint as it is stored, how many pieces are in it, and how much was said before it.
struct Stored {
    slices: Vec<Vec<u8>>,
    pieces: usize,
    said: usize,
}

/// The process that comes after a kill: it takes up the checkpoint, what was said after it, and the
/// pieces behind it. Without a checkpoint, all of them.
fn restart(
    fixture: &Fixture,
    stored: &Stored,
    pieces: &[Sighting],
    said: &mut Said,
    now: Arrival,
) -> Engine {
    let mut engine = Engine::new(fixture.policy.clone(), Limits::default());
    let checkpoint = Checkpoint::from_slices(&stored.slices).expect("it is what was written");
    let recalled = engine.restore(checkpoint, now);
    said.keep(recalled);
    said.claims[stored.said..].iter().for_each(|(id, claim)| engine.claim(*id, *claim, now));
    for piece in &pieces[stored.pieces..] {
        engine.see(Position(1), piece.clone(), now);
    }
    engine
}

/// Feeds the fixture live. What was said before a kill stays said.
fn live(fixture: &Fixture, seed: u64) -> (Last, Vec<String>) {
    let mut dice = Dice(seed);
    let mut pieces = apart(&fixture.sightings);
    for again in 0..pieces.len() / 4 {
        pieces.push(pieces[again * 3 % pieces.len()].clone());
    }
    dice.shuffle(&mut pieces);
    let wall = newest(&fixture.sightings).saturating_add(fixture.policy.clock_skew);
    let mut said = Said::default();
    let mut engine = Engine::new(fixture.policy.clone(), Limits::default());
    let mut stored = Stored { slices: Vec::new(), pieces: 0, said: 0 };
    // A process's clock does not start at zero.
    let mut now = 86_400 * SECOND;
    // Few pieces in most fixtures: a kill and a checkpoint in each life on average.
    let rarely = pieces.len().max(2);
    for (at, piece) in pieces.iter().enumerate() {
        if dice.below(rarely) == 0 {
            let slices = engine.checkpoint(Arrival { monotonic: now, wall }).into_slices();
            stored = Stored { slices: slices.collect(), pieces: at, said: said.claims.len() };
        }
        if dice.below(rarely) == 0 {
            let now = Arrival { monotonic: now, wall };
            engine = restart(fixture, &stored, &pieces[..at], &mut said, now);
        }
        engine.see(Position(1), piece.clone(), Arrival { monotonic: now, wall });
        now += MILLI;
        if dice.below(4) == 0 {
            now += if dice.below(3) == 0 { 7 * SECOND } else { SECOND };
            said.keep(engine.tick(Arrival { monotonic: now, wall }));
        }
    }
    for _ in 0..4 {
        now += 7 * SECOND;
        said.keep(engine.tick(Arrival { monotonic: now, wall }));
    }
    (said.last, said.faults)
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

/// `ORDER_SEEDS` asks for more of them.
fn seeds(few: u64) -> u64 {
    std::env::var("ORDER_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(few)
}

fn check(recordings: Vec<Recording>, seeds: u64) {
    let fixtures: Vec<Fixture> = recordings.into_iter().map(Fixture::from).collect();
    let mut wrong = Vec::new();
    for fixture in &fixtures {
        let want = replayed(fixture);
        for seed in 0..seeds {
            let (got, faults) = live(fixture, seed);
            if let Some(fault) = faults.first() {
                wrong.push(format!("{} seed {seed}: {fault}", fixture.name));
                break;
            }
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
    check(fixtures::cases(), seeds(8));
}

#[test]
fn live_in_any_order_with_restarts_ends_as_replay_on_every_capture() {
    check(fixtures::captures(), seeds(2));
}

/// The traces of a fixture, told apart: those that began in its first half, and the others.
fn halves(fixture: &Fixture) -> [Vec<Sighting>; 2] {
    let pieces = apart(&fixture.sightings);
    let trace = |piece: &Sighting| match piece.facts.first() {
        Some(fact) => fact.trace(),
        None => piece.bones[0].at.trace,
    };
    let start = |piece: &Sighting| match piece.facts.first() {
        Some(fact) => fact.start,
        None => piece.bones[0].start,
    };
    let mut began = BTreeMap::new();
    for piece in &pieces {
        let at = began.entry(trace(piece)).or_insert(Nanos::MAX);
        *at = start(piece).min(*at);
    }
    let mut times: Vec<Nanos> = began.values().copied().collect();
    times.sort_unstable();
    let middle = times.get(times.len() / 2).copied().unwrap_or_default();
    let (first, second) = pieces.into_iter().partition(|piece| began[&trace(piece)] < middle);
    [first, second]
}

/// Everything that is said of the second half when the first was forgotten before it came: by the
/// same process, or by one that took up a checkpoint in between.
fn after_forgetting(fixture: &Fixture, halves: &[Vec<Sighting>; 2], killed: bool) -> Vec<Effect> {
    let wall = newest(&fixture.sightings).saturating_add(fixture.policy.clock_skew);
    let mut now = Arrival { monotonic: 100 * SECOND, wall };
    let mut engine = Engine::new(fixture.policy.clone(), Limits::default());
    let mut settle = |engine: &mut Engine, for_: Nanos| {
        now.monotonic += for_;
        (engine.tick(now), now)
    };
    for piece in &halves[0] {
        let (_, now) = settle(&mut engine, 0);
        engine.see(Position(1), piece.clone(), now);
    }
    for pause in [7 * SECOND, 7 * SECOND, fixture.policy.retention, 7 * SECOND] {
        settle(&mut engine, pause);
    }
    let (_, now) = settle(&mut engine, 7 * SECOND);
    if killed {
        let slices: Vec<Vec<u8>> = engine.checkpoint(now).into_slices().collect();
        engine = Engine::new(fixture.policy.clone(), Limits::default());
        engine.restore(Checkpoint::from_slices(&slices).expect("it is what was written"), now);
    }
    for piece in &halves[1] {
        engine.see(Position(2), piece.clone(), now);
    }
    let rounds = (0..4).flat_map(|_| settle(&mut engine, 7 * SECOND).0);
    rounds.filter(|effect| matches!(effect, Effect::Verdict(_) | Effect::Late { .. })).collect()
}

#[test]
fn what_was_forgotten_before_a_kill_counts_as_much_after_it() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for fixture in fixtures::cases().into_iter().chain(fixtures::captures()).map(Fixture::from) {
        let halves = halves(&fixture);
        let want = after_forgetting(&fixture, &halves, false);
        let got = after_forgetting(&fixture, &halves, true);
        compared += usize::from(!halves[0].is_empty() && !want.is_empty());
        if got != want {
            let differs = |effects: &[Effect], others: &[Effect]| {
                let of = effects.iter().find(|effect| !others.contains(effect));
                of.map_or("nothing".into(), |effect| match effect {
                    Effect::Verdict(verdict) => serde_json::to_string(verdict).unwrap(),
                    other => format!("{other:?}"),
                })
            };
            let name = &fixture.name;
            wrong.push(format!("{name}:\n {}\n {}", differs(&got, &want), differs(&want, &got)));
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 100, "{compared}");
}
