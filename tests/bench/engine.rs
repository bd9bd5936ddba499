//! What a call costs the engine alone: `cargo test --release --test bench -- --engine CALLS`.
//!
//! Exports of the load `mcp` (20 calls of five spans, a session each) go straight into the scan and an
//! engine without limits, as fast as they can, in steps of CALLS; each step prints the CPU time of its
//! calls by part and the resident memory that all calls so far take, beside what the engine reckons.

use std::sync::Arc;
use std::time::Duration;

use mcp_verdict::engine::{Effect, Engine, Limits};
use mcp_verdict::model::ids::{Arrival, Position, SECOND};
use mcp_verdict::model::policy::Policy;
use mcp_verdict::normalise::sight;
use mcp_verdict::wire::Signal;
use nix::time::ClockId;

use crate::Failure;
use crate::payload::Load;
use crate::scale::resident;

const STEPS: u64 = 4;
const CALLS_AN_EXPORT: u64 = 20;
const SPANS: u64 = CALLS_AN_EXPORT * 5;
/// Exports between two ticks.
const BATCH: u64 = 50;

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let [calls] = arguments else { return Err("--engine CALLS".into()) };
    let exports = calls.parse::<u64>()?.div_ceil(CALLS_AN_EXPORT);
    let template = Load::Mcp.template(SPANS);
    let policy = Arc::new(Policy::default());
    let most = usize::MAX;
    let limits =
        Limits { lookback: most, facts: most, chains: most, scopes: most, ..Limits::default() };
    let mut engine = Engine::new(policy.clone(), limits);
    let empty = resident()?;
    let (mut sent, mut verdicts) = (0, 0);
    for _ in 0..STEPS {
        let (mut scan, mut fold) = (Duration::ZERO, Duration::ZERO);
        for number in sent..sent + exports {
            let export = template.numbered(number);
            let began = cpu()?;
            let sighting = sight(Signal::Traces, &export, &policy);
            let scanned = cpu()?;
            let monotonic = SECOND + number * 1_000_000;
            let now = Arrival { monotonic, wall: 1_796_000_000 * SECOND + monotonic };
            engine.see(Position(number), sighting, now);
            if number % BATCH == 0 {
                let effects = engine.tick(now);
                verdicts += effects.iter().filter(|e| matches!(e, Effect::Verdict(_))).count();
            }
            (scan, fold) = (scan + (scanned - began), fold + (cpu()? - scanned));
        }
        sent += exports;
        let step = (exports * CALLS_AN_EXPORT) as f64;
        let all = (sent * CALLS_AN_EXPORT) as f64;
        println!(
            "{all:>9} calls: scan {:.2} µs, engine {:.2} µs a call; {:.0} bytes a call, reckoned {:.0}; \
             {verdicts} verdicts",
            scan.as_secs_f64() * 1e6 / step,
            fold.as_secs_f64() * 1e6 / step,
            ((resident()? - empty) << 20) as f64 / all,
            engine.bytes() as f64 / all,
        );
    }
    Ok(())
}

/// CPU time of this thread so far, to the nanosecond.
fn cpu() -> Result<Duration, Failure> {
    Ok(ClockId::CLOCK_THREAD_CPUTIME_ID.now()?.into())
}
