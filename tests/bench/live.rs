//! What a call costs the scan and the engine beside ever more live sessions, in this process.
//!
//! Each export is one call of five spans in a session of its own. Time moves on, so that each is judged
//! while later ones come; nothing is forgotten meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_verdict::engine::{Effect, Engine, Limits};
use mcp_verdict::model::ids::{Arrival, Position, SECOND};
use mcp_verdict::model::policy::Policy;
use mcp_verdict::normalise::sight;
use mcp_verdict::wire::Signal;
use nix::time::ClockId;

use crate::Failure;
use crate::figures::{Figure, Measured};
use crate::payload::Load;
use crate::subject::memory_of;
use crate::template::Template;

/// How many sessions live when a call's cost is read. Fewer than the first are under way at once.
const STEPS: [(u64, &str); 3] =
    [(25_000, "25,000 sessions"), (100_000, "100,000 sessions"), (400_000, "400,000 sessions")];
const SPANS: u64 = 5;
/// As in the other rows: so long after its last span a call is judged, and so often there is a pass
/// over all that lives.
const SETTLE: u64 = 2 * SECOND;
/// Between two calls, in nanoseconds of their time: 60,000 spans a second.
const GAP: u64 = SECOND / 12_000;
/// Calls that are timed at each step; as many verdicts fall due meanwhile, give or take a tick's.
const TIMED: u64 = SETTLE / GAP;
/// Calls between two ticks.
const BATCH: u64 = 500;
const BEGAN: u64 = 1_796_000_000 * SECOND;

pub fn measure(most: u64) -> Result<Vec<Measured>, Failure> {
    let mut world = World::new();
    let me = std::process::id();
    let empty = memory_of(me, "VmRSS")?;
    let mut measured = Vec::new();
    for (count, name) in STEPS.into_iter().filter(|(count, _)| *count <= most) {
        world.calls(count.saturating_sub(world.sent))?;
        let before = world.verdicts;
        let spent = world.calls(TIMED)?;
        let judged = world.verdicts - before;
        let held = (memory_of(me, "VmRSS")? - empty) * f64::from(1 << 20);
        let run = match judged.abs_diff(TIMED) <= 2 * BATCH {
            true => Ok(BTreeMap::from([
                (Figure::Cpu, spent.as_nanos() as f64 / (TIMED * SPANS) as f64),
                (Figure::BytesEach, held / world.sent as f64),
            ])),
            false => Err(format!("{judged} verdicts of {TIMED} calls")),
        };
        measured.push(Measured::once(name, run));
    }
    Ok(measured)
}

struct World {
    engine: Engine,
    policy: Arc<Policy>,
    template: Template,
    sent: u64,
    verdicts: u64,
}

impl World {
    fn new() -> Self {
        let policy = Policy { settle: SETTLE, retention: u64::MAX / 4, ..Policy::default() };
        let policy = Arc::new(policy);
        let most = usize::MAX;
        let limits = Limits {
            lookback: 64 << 20,
            facts: most,
            chains: most,
            scopes: most,
            ..Limits::default()
        };
        let engine = Engine::new(policy.clone(), limits);
        Self { engine, policy, template: Load::Mcp.template(SPANS), sent: 0, verdicts: 0 }
    }

    /// CPU time of so many calls more.
    fn calls(&mut self, count: u64) -> Result<Duration, Failure> {
        let began = cpu()?;
        for _ in 0..count {
            let export = self.template.numbered(self.sent);
            let monotonic = SECOND + self.sent * GAP;
            let now = Arrival { monotonic, wall: BEGAN + monotonic };
            let sighting = sight(Signal::Traces, &export, &self.policy);
            self.engine.see(Position(self.sent), sighting, now);
            self.sent += 1;
            if self.sent.is_multiple_of(BATCH) {
                let verdict = |effect: &Effect| matches!(effect, Effect::Verdict(_));
                let effects = self.engine.tick(now);
                self.verdicts += effects.iter().filter(|effect| verdict(effect)).count() as u64;
            }
        }
        Ok(cpu()? - began)
    }
}

/// CPU time of this thread so far, to the nanosecond.
fn cpu() -> Result<Duration, Failure> {
    Ok(ClockId::CLOCK_THREAD_CPUTIME_ID.now()?.into())
}
