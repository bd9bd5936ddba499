//! Forgetting: what is too old, what there is no room for, and what is known of it afterwards.

use std::sync::Arc;

use super::live::{Effect, Engine};
use super::tables::Tables;
use crate::model::case::Ending;
use crate::model::findings::{Code, Finding};
use crate::model::ids::{Arrival, Nanos, SpanId, SpanRef, TraceId, sane};
use crate::model::words::Lifecycle;

impl Engine {
    /// Drops traces `retention` after their last fact, and the least recently touched ones where
    /// memory runs out; an endless trace before others.
    pub(super) fn forget(&mut self, now: Arrival, effects: &mut Vec<Effect>) {
        let oldest = now.monotonic.saturating_sub(self.tables.policy.retention);
        while let Some((touched, trace)) = self.tables.ages.first().copied() {
            if touched >= oldest || now.monotonic <= self.tables.policy.retention {
                break;
            }
            self.bury(trace, false, effects);
        }
        let endless = self.bury_endless(effects);
        let large = self.bury_for_room(effects);
        let many = self.bury_while(|tables| tables.chains.len() > tables.limits.chains, effects);
        say_evicted([("facts", endless + large), ("chains", many)], effects);
        if now.monotonic >= self.swept.saturating_add(self.settle()) {
            self.swept = now.monotonic;
            self.tables.lookback.forget(oldest);
            self.thin(effects);
        }
    }

    /// Buries the least recently touched traces while there is too much; how many.
    fn bury_while(&mut self, over: impl Fn(&Tables) -> bool, effects: &mut Vec<Effect>) -> u64 {
        let mut buried = 0;
        while over(&self.tables)
            && let Some((_, trace)) = self.tables.ages.first().copied()
        {
            self.bury(trace, true, effects);
            buried += 1;
        }
        buried
    }

    /// Buries traces until what they hold, and what else counts as facts, fits. Definitions leave
    /// with the last trace that holds them.
    fn bury_for_room(&mut self, effects: &mut Vec<Effect>) -> u64 {
        let mut buried = 0;
        loop {
            let over = self.tables.all_bytes().saturating_sub(self.tables.limits.facts);
            let goal = self.tables.bytes.saturating_sub(over);
            let count = self.bury_while(|tables| tables.bytes > goal, effects);
            if count == 0 {
                return buried;
            }
            buried += count;
            self.tables.interned.sweep();
        }
    }

    pub(super) fn bury_endless(&mut self, effects: &mut Vec<Effect>) -> u64 {
        let most = self.tables.limits.facts_per_trace;
        let endless: Vec<TraceId> = self
            .tables
            .touched
            .iter()
            .filter(|trace| self.tables.traces.get(trace).is_some_and(|e| e.facts.len() > most))
            .copied()
            .collect();
        self.tables.touched.clear();
        for trace in &endless {
            self.bury(*trace, true, effects);
        }
        endless.len() as u64
    }

    /// Bounds of what outlives traces: scopes without chains, history, incident entries, processes.
    pub(super) fn thin(&mut self, effects: &mut Vec<Effect>) {
        let mut scopes = self.tables.thin_scopes();
        let history = self.tables.thin_history(&mut scopes);
        for key in &scopes {
            self.sessions.remove(key);
            self.sessions_due.remove(key);
        }
        self.tables.thin_processes();
        let incidents = self.incidents.thin(self.tables.limits.incidents);
        let scopes = scopes.len() as u64;
        let all = [("scopes", scopes), ("history", history), ("incidents", incidents)];
        say_evicted(all, effects);
        if self.swept >= self.restored.saturating_add(self.tables.policy.retention) {
            // Whoever was not judged again by now never will be.
            self.claims.clear();
            self.said.clear();
        }
    }

    /// A trace leaves the tables. What was not sent yet is sent now, as far as it is known.
    pub(super) fn bury(&mut self, trace: TraceId, evicted: bool, effects: &mut Vec<Effect>) {
        let keys: Vec<SpanRef> = self
            .tables
            .traces
            .get(&trace)
            .into_iter()
            .flat_map(|entry| entry.requests.iter().map(|request| request.key()))
            .collect();
        for key in &keys {
            if evicted
                && let Some(entry) = self.tables.chains.get_mut(key)
                && let Some(verdict) = &entry.verdict
            {
                let mut partial = verdict.as_ref().clone();
                partial.findings.push(Finding::new(Code::Evicted, vec![key.span]));
                partial.findings.sort();
                if entry.ending == Some(Ending::Open) {
                    partial.lifecycle = Lifecycle::Partial;
                }
                entry.verdict = Some(Arc::new(partial));
            }
            if self.pending.contains_key(key) || evicted {
                self.unschedule(*key);
                self.send(*key, false, effects);
            }
        }
        let (first, last) = (SpanId([0; 8]), SpanId([0xff; 8]));
        let of_trace = SpanRef { trace, span: first }..=SpanRef { trace, span: last };
        let held: Vec<SpanRef> = self.held.range(of_trace).map(|(span, _)| *span).collect();
        for span in held {
            if let Some(held) = self.held.remove(&span) {
                self.held_due.remove(&(held.due, span));
                let with = self.said_of(span);
                effects.push(Effect::Release { span, position: held.position, with });
            }
        }
        for key in &keys {
            if let Some(id) = self.sent_as.remove(key) {
                self.sent.remove(&id);
            }
        }
        let facts = self.tables.traces.get(&trace).into_iter().flat_map(|entry| &entry.facts);
        let times = facts.flat_map(|fact| [fact.start, fact.end]).filter(|time| sane(*time));
        // The other end's clock may be ahead.
        let until = times.max().unwrap_or_default().saturating_add(self.tables.policy.clock_skew);
        self.tables.forget_trace(&trace);
        self.remember_buried(trace, until);
    }

    pub(super) fn remember_buried(&mut self, trace: TraceId, until: Nanos) {
        match self.tombstones.get_mut(&trace) {
            Some(known) => *known = until.max(*known),
            None => {
                self.tombstones.insert(trace, until);
                self.buried.push_back(trace);
            }
        }
        while self.buried.len() > self.tables.limits.names {
            if let Some(oldest) = self.buried.pop_front() {
                self.tombstones.remove(&oldest);
            }
        }
    }
}

/// What left at which limit, where anything did.
fn say_evicted<const N: usize>(all: [(&'static str, u64); N], effects: &mut Vec<Effect>) {
    let some = all.into_iter().filter(|(_, count)| *count > 0);
    effects.extend(some.map(|(reason, count)| Effect::Evicted { reason, count }));
}
