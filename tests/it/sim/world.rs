//! One run by one seed: senders, a process that dies and comes again, a device, a backend and two
//! clocks, in one thread. The dice say what happens next.

use std::sync::Arc;
use std::time::Duration;

use mcp_verdict::log::settings::{Ack, Settings, Sync};
use mcp_verdict::log::{Damage, Disk, Log, Writing};
use mcp_verdict::model::ids::{MILLI, Nanos, SECOND, SpanRef};

use super::files::Files;
use super::outside::Outside;
use super::plant::Plant;
use super::process::{Process, parts};
use super::scenario::Scenario;
use crate::dice::Dice;

/// What a seed met, summed over seeds to see that all of it happens.
pub type Met = std::collections::BTreeMap<&'static str, u64>;

pub struct World<'a> {
    scenario: &'a Scenario,
    plant: Option<Plant>,
    dice: Dice,
    files: Files,
    settings: Settings,
    /// Power may go; else only the process.
    power: bool,
    jumps: bool,
    wall: Nanos,
    process: Option<Process<'a>>,
    to_send: Vec<usize>,
    outside: Outside,
    met: Met,
}

fn count(met: &mut Met, what: &'static str, times: u64) {
    *met.entry(what).or_default() += times;
}

/// Seconds of the engine's time that chaos may take: far less than what is remembered.
const PATIENCE: u64 = 240;
const FORMAT: u32 = mcp_verdict::engine::FORMAT;

impl<'a> World<'a> {
    pub fn new(scenario: &'a Scenario, seed: u64, plant: Option<Plant>) -> Self {
        let mut dice = Dice(seed);
        let power = dice.once_in(2);
        let bytes: usize = scenario.exports.iter().map(|(_, bytes)| bytes.len()).sum();
        // Many small segments: one is a sixteenth.
        let max_size = (256 << 10) + 4 * bytes as u64 + dice.roll(8 * bytes as u64);
        let settings = Settings {
            directory: "simulated".into(),
            ack: Ack::Durable,
            sync: if power || dice.once_in(2) { Sync::Always } else { Sync::Never },
            sync_interval: Duration::ZERO,
            max_size,
            memory: 1 << 20,
            checkpoints: Some(FORMAT),
        };
        let mut to_send: Vec<usize> = (0..scenario.exports.len()).collect();
        let again = scenario.exports.len() / 6;
        to_send.extend((0..again).map(|n| n * 5 % scenario.exports.len()));
        dice.shuffle(&mut to_send);
        World {
            scenario,
            plant,
            files: Files::new(seed ^ 0x5eed, plant),
            settings,
            power,
            jumps: dice.once_in(2),
            wall: scenario.wall,
            process: None,
            to_send,
            outside: Outside::default(),
            met: Met::new(),
            dice,
        }
    }

    /// Chaos, then calm; what is wrong in the end.
    pub fn run(mut self) -> Result<Met, String> {
        let mut passed = 0;
        for _ in 0..150 + self.dice.roll(350) {
            self.chaos(&mut passed);
            self.look();
            if !self.outside.faults.is_empty() {
                break;
            }
        }
        if self.outside.faults.is_empty() {
            self.calm();
        }
        match self.outside.faults.first() {
            Some(fault) => Err(format!("{}: {fault}", self.scenario.name)),
            None => Ok(self.met),
        }
    }

    /// What must hold at any time.
    fn look(&mut self) {
        let most = self.settings.max_size * 11 / 10;
        let bytes = self.files.peak();
        if bytes > most {
            self.outside.fault(format!("{bytes} bytes of files, and {most} are allowed"));
        }
        // A cut power may leave anything; a process that dies leaves a torn end, no damage.
        let Some(process) = self.process.as_ref().filter(|_| !self.power) else { return };
        let damaged = [Damage::Record, Damage::Order, Damage::Checkpoint];
        let damaged: u64 = damaged.into_iter().map(|damage| process.log.damaged(damage)).sum();
        if damaged > 0 {
            self.outside.fault(format!("{damaged} of the log was found damaged"));
        }
    }

    fn chaos(&mut self, passed: &mut u64) {
        let Some(process) = &mut self.process else { return self.start() };
        let (dice, outside) = (&mut self.dice, &mut self.outside);
        match dice.roll(100) {
            0..=1 => return self.die(),
            2 => self.files.light(1 + dice.roll(30)),
            3 => match dice.below(6) {
                fails @ 0..4 => self.files.set_failing([0, 0, 12, 40][fails]),
                4 => {
                    count(&mut self.met, "full devices", 1);
                    self.files.leave(Some(dice.roll(1 << 10)));
                }
                _ => self.files.leave(None),
            },
            4 if self.jumps => {
                count(&mut self.met, "jumps", 1);
                let far = dice.roll(7_200) * SECOND;
                let base = self.scenario.wall.saturating_sub(3_600 * SECOND);
                self.wall = base.saturating_add(far);
            }
            5..=24 => process.log.step(),
            25..=44 => process.deliver(dice, outside),
            45..=59 => process.mark(dice),
            60..=62 => {
                let wrong = process.read_back(dice);
                outside.faults.extend(wrong.filter(|_| !self.files.is_dead()));
            }
            _ if process.is_resuming() => {
                if process.resume(self.wall, outside).is_err() {
                    return self.die();
                }
            }
            63..=72 => self.send(),
            73..=78 => process.answer(outside),
            79..=84 => process.show(dice, self.wall),
            85..=89 if *passed < PATIENCE => {
                let time = [20 * MILLI, 300 * MILLI, SECOND, 7 * SECOND][dice.below(4)];
                *passed += time / SECOND;
                let said = process.tick(time, self.wall, outside);
                count(&mut self.met, "revisions", u64::from(said));
            }
            90..=95 => process.put_out(outside),
            _ => {
                let written = process.checkpoint(dice, self.wall);
                count(&mut self.met, "checkpoints", u64::from(written));
            }
        }
        if self.files.is_dead() {
            count(&mut self.met, "mid call", 1);
            self.die();
        }
    }

    /// A sender sends what nobody has acknowledged yet, or some of it again.
    fn send(&mut self) {
        let Some(process) = &mut self.process else { return };
        let Some(export) = self.to_send.pop() else {
            let due = |export: &usize| !self.outside.acknowledged.contains(export);
            let all = 0..self.scenario.exports.len();
            self.to_send.extend(all.filter(due).filter(|export| !process.is_arriving(*export)));
            self.dice.shuffle(&mut self.to_send);
            return;
        };
        process.send(export, &mut self.outside);
    }

    fn die(&mut self) {
        self.note_left_out();
        let resuming = self.process.take().is_some_and(|process| process.is_resuming());
        count(&mut self.met, "while resuming", u64::from(resuming));
        match self.power && self.dice.once_in(2) {
            true => {
                count(&mut self.met, "power cuts", 1);
                self.files.lose_power();
            }
            false => count(&mut self.met, "kills", 1),
        }
        self.files.revive();
    }

    /// What found no room in a checkpoint may be unknown to the next process.
    fn note_left_out(&mut self) {
        let log = self.process.as_ref().map(|process| &process.log);
        let left_out = log.map_or(0, |log| log.damaged(Damage::LeftOut));
        count(&mut self.met, "left out", left_out);
    }

    /// The next process; a device that fails may let it wait.
    fn start(&mut self) {
        let medium = Arc::new(self.files.clone());
        match Disk::open_on(&self.settings, medium, Writing::ByHand) {
            Ok(log) => {
                let process = Process::start(self.scenario, log, self.plant, self.wall);
                self.process = Some(process);
            }
            Err(_) if self.files.is_dead() => self.die(),
            Err(_) if self.dice.once_in(3) => {
                self.files.set_failing(0);
                self.files.leave(None);
            }
            Err(_) => count(&mut self.met, "refused", 1),
        }
    }

    /// Nothing fails any more: everything that was promised happens.
    fn calm(&mut self) {
        self.files.set_failing(0);
        self.files.leave(None);
        self.files.revive();
        self.wall = self.scenario.wall;
        // Two lives: what the first said the second does not say again.
        for life in 0..2 {
            if life > 0 || self.process.is_none() {
                self.note_left_out();
                self.process = None;
                self.start();
            }
            if !self.settle_down() {
                return self.outside.fault("it never comes to an end".into());
            }
        }
        let owed = self.owed();
        self.outside.check_delivered(self.scenario, &owed);
        // A loss that was named and counted is no surprise.
        let told = self.met.get("left out").is_none_or(|times| *times == 0);
        self.outside.check_verdicts(self.scenario, self.jumps, told);
        let left = self.process.as_ref().map_or(0, |process| process.log.usage().records);
        if left > 0 {
            self.outside.fault(format!("{left} records are never done"));
        }
    }

    fn settle_down(&mut self) -> bool {
        let mut quiet = 0;
        for round in 0..200 {
            self.send();
            let Some(process) = &mut self.process else { return false };
            let (dice, outside) = (&mut self.dice, &mut self.outside);
            while process.is_resuming() {
                if let Err(error) = process.resume(self.wall, outside) {
                    outside.fault(format!("the log cannot be read: {error}"));
                    return false;
                }
            }
            process.log.flush();
            process.answer(outside);
            for _ in 0..40 {
                process.show(dice, self.wall);
                process.put_out(outside);
                process.log.step();
                process.deliver(dice, outside);
                process.mark(dice);
            }
            if round % 4 == 3 {
                process.checkpoint(dice, self.wall);
            }
            self.look();
            let everything = self.outside.acknowledged.len() == self.scenario.exports.len();
            let Some(process) = &mut self.process else { return false };
            let shown = everything && self.to_send.is_empty() && process.is_shown();
            let settle = self.scenario.policy.settle + SECOND;
            // Time passes only where all is there: no chain is judged by half of it.
            let news = shown && process.tick(settle, self.wall, &mut self.outside);
            quiet = if shown && !news && process.is_idle() { quiet + 1 } else { 0 };
            if quiet > 4 {
                return true;
            }
        }
        false
    }

    fn owed(&self) -> Vec<(bool, Vec<SpanRef>)> {
        let exports = self.scenario.exports.iter();
        let policy = &self.scenario.policy;
        exports
            .map(|(signal, bytes)| {
                parts(*signal, bytes, &mcp_verdict::normalise::sight(*signal, bytes, policy))
            })
            .collect()
    }
}
