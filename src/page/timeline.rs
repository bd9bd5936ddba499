//! Calls over time: how many began in each minute of the last day, and how they stand now.
//!
//! Promises: a chain counts once, in the minute of its start, under the state of its latest
//! revision; bounded by the number of minutes.

use std::collections::BTreeMap;

use crate::model::ids::{Nanos, SECOND};
use crate::model::record::Verdict;
use crate::model::words::{Lifecycle, State};

/// Minutes that are kept.
pub const MINUTES: u64 = 24 * 60;
const MINUTE: Nanos = 60 * SECOND;
/// A clock may be ahead of ours by so much.
const AHEAD: Nanos = 5 * MINUTE;

/// Calls of one minute: `tools/call` alone, superseded attempts left out, as in a summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Minute {
    states: [u32; State::ALL.len()],
    pub attempts: u32,
    pub protocol_success: u32,
    pub verified_success: u32,
}

impl Minute {
    /// Calls by state; states without any are left out.
    pub fn states(&self) -> impl Iterator<Item = (State, u32)> {
        let all = State::ALL.iter().map(|state| (*state, self.states[*state as usize]));
        all.filter(|(_, count)| *count > 0)
    }
}

/// The last day.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    minutes: BTreeMap<u64, Minute>,
}

/// What one chain adds, and where.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    minute: u64,
    state: State,
    protocol: bool,
    verified: bool,
}

impl Share {
    /// `now`: our own clock, in Unix nanoseconds. A start that cannot be believed counts as now.
    pub fn of(verdict: &Verdict, now: Nanos) -> Option<Self> {
        let counts =
            verdict.method.as_str() == "tools/call" && verdict.lifecycle != Lifecycle::Superseded;
        let oldest = now.saturating_sub(MINUTES * MINUTE);
        let known = verdict.start_time > oldest && verdict.start_time < now.saturating_add(AHEAD);
        let at = if known { verdict.start_time } else { now };
        counts.then(|| Share {
            minute: at / MINUTE,
            state: verdict.state,
            protocol: verdict.protocol_success(),
            verified: verdict.verified_success(),
        })
    }

    /// The same share, counted in the minute of another.
    pub fn at(self, other: Option<Share>) -> Self {
        Share { minute: other.map_or(self.minute, |other| other.minute), ..self }
    }
}

impl Timeline {
    pub fn add(&mut self, share: Share) {
        let minute = self.minutes.entry(share.minute).or_default();
        minute.attempts += 1;
        minute.protocol_success += u32::from(share.protocol);
        minute.verified_success += u32::from(share.verified);
        minute.states[share.state as usize] += 1;
        while self.minutes.len() as u64 > MINUTES {
            self.minutes.pop_first();
        }
    }

    /// Takes back what was added.
    pub fn take(&mut self, share: Share) {
        let Some(minute) = self.minutes.get_mut(&share.minute) else { return };
        minute.attempts = minute.attempts.saturating_sub(1);
        minute.protocol_success = minute.protocol_success.saturating_sub(u32::from(share.protocol));
        minute.verified_success = minute.verified_success.saturating_sub(u32::from(share.verified));
        let count = &mut minute.states[share.state as usize];
        *count = count.saturating_sub(1);
    }

    /// By minute since 1970, oldest first; minutes without a call are left out.
    pub fn minutes(&self) -> impl Iterator<Item = (u64, &Minute)> {
        let some = self.minutes.iter().filter(|(_, minute)| minute.attempts > 0);
        some.map(|(at, minute)| (*at, minute))
    }
}
