//! The real log and the real engine in a world of dice: a seeded scheduler sends, delays, doubles and
//! reorders exports, lets the device fail and the clock on the wall jump, and kills the process or
//! cuts its power at any step, also inside a call of the log. What lies between log and engine in the
//! program is driven a step at a time by `process`, in the program's order: append, answer, see,
//! judge, log what is said, send, mark, checkpoint.
//!
//! At the end of every seed: what was acknowledged has come; the last verdict of each chain is what
//! replay says of the whole; no revision has two contents, none is left out; files stay within their
//! bound, and nothing waits for ever. A seed that fails comes again: `SIM_SEED=n cargo test sim`.
//! `SIM_SEEDS=10000` runs so many, from `SIM_FIRST` on.

pub mod files;
mod outside;
pub mod plant;
mod process;
mod scenario;
mod world;

use crate::edge::support::report;
use plant::Plant;
use scenario::Scenario;
use world::{Met, World};

/// Seeds of a short run, and those in which a planted fault must be found.
const SEEDS: u64 = 300;
const WITHIN: u64 = 300;

fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} must be a number, not `{value}`")))
}

fn run(scenarios: &[Scenario], seed: u64, plant: Option<Plant>) -> Result<Met, String> {
    let scenario = &scenarios[(seed % scenarios.len() as u64) as usize];
    World::new(scenario, seed, plant).run()
}

#[test]
fn whatever_happens_what_was_promised_holds() {
    let scenarios = Scenario::all();
    assert!(scenarios.len() > 130, "only {} recordings", scenarios.len());
    let seeds = match number("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let first = number("SIM_FIRST").unwrap_or(0);
            first..first + number("SIM_SEEDS").unwrap_or(SEEDS)
        }
    };
    let mut wrong = Vec::new();
    let mut all = Met::new();
    for seed in seeds.clone() {
        match run(&scenarios, seed, None) {
            Ok(met) => met.into_iter().for_each(|(what, n)| *all.entry(what).or_default() += n),
            Err(fault) => wrong.push(format!("seed {seed}: {fault}")),
        }
    }
    let count = seeds.end - seeds.start;
    report(&format!("simulation: {count} seeds, {} wrong; what they met: {all:?}", wrong.len()));
    wrong.truncate(20);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    if count >= SEEDS {
        // A checkpoint without room for all is rare: the log's own tests reach it.
        all.remove("left out");
        assert_eq!(all.values().filter(|times| **times > 0).count(), 9, "{all:?}");
    }
}

/// Every fault that is planted is found, and none without.
#[test]
fn planted_faults_are_found() {
    let scenarios = Scenario::all();
    let found = Plant::ALL.map(|plant| {
        let found =
            (0..WITHIN).find_map(|seed| Some((seed, run(&scenarios, seed, Some(plant)).err()?)));
        println!("{plant:?}: {found:?}");
        (plant, found)
    });
    let missed: Vec<Plant> = found.iter().filter(|(_, f)| f.is_none()).map(|(p, _)| *p).collect();
    assert!(missed.is_empty(), "not found within {WITHIN} seeds: {missed:?}");
}
