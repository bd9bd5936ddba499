//! Forgetting: what is too old, what there is no room for, and what is known of it afterwards.

use std::sync::Arc;

use super::live::{Effect, Engine};
use super::tables::Tables;
use crate::correlate::scope::ScopeKey;
use crate::model::case::Ending;
use crate::model::findings::{Code, Finding};
use crate::model::ids::{Arrival, Nanos, SpanId, SpanRef, TraceId};
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
        for (reason, count) in [("facts", endless + large), ("chains", many)] {
            if count > 0 {
                effects.push(Effect::Evicted { reason, count });
            }
        }
        if now.monotonic >= self.swept.saturating_add(self.settle()) {
            self.swept = now.monotonic;
            self.tables.lookback.forget(oldest);
            self.thin(effects);
            self.thin_history(effects);
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

    /// History may take half of the room for facts; where it takes more, half of that leaves.
    fn thin_history(&mut self, effects: &mut Vec<Effect>) {
        let most = self.tables.limits.facts / 2;
        let mut gone = (0, 0);
        loop {
            self.tables.kept = self.tables.count_kept();
            if self.tables.kept.all() <= most {
                break;
            }
            let (scopes, items) = self.tables.shed(most / 2);
            if (scopes, items) == (0, 0) {
                break;
            }
            gone = (gone.0 + scopes, gone.1 + items);
        }
        self.tables.interned.sweep();
        for (reason, count) in [("scopes", gone.0), ("history", gone.1)] {
            if count > 0 {
                effects.push(Effect::Evicted { reason, count });
            }
        }
        if gone.0 > 0 {
            self.sessions.retain(|key, _| self.tables.scopes.contains_key(key));
            self.sessions_due.retain(|key, _| self.tables.scopes.contains_key(key));
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

    /// Bounds of what outlives traces: scopes without chains, incident entries, process roles.
    pub(super) fn thin(&mut self, effects: &mut Vec<Effect>) {
        let limits = self.tables.limits;
        let mut idle: Vec<(Nanos, ScopeKey)> = Vec::new();
        let over = self.tables.scopes.len().saturating_sub(limits.scopes);
        if over > 0 {
            let without = self.tables.scopes.iter().filter(|(_, scope)| scope.is_empty());
            idle.extend(without.map(|(key, scope)| (scope.newest, key.clone())));
            idle.sort();
            idle.truncate(over);
        }
        for (_, key) in &idle {
            self.tables.drop_scope(key);
            self.sessions.remove(key);
            self.sessions_due.remove(key);
        }
        if !idle.is_empty() {
            effects.push(Effect::Evicted { reason: "scopes", count: idle.len() as u64 });
        }
        self.tables.thin_processes();
        let quiet = self.incidents.thin(limits.incidents);
        if quiet > 0 {
            effects.push(Effect::Evicted { reason: "incidents", count: quiet });
        }
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
        self.tables.forget_trace(&trace);
        self.remember_buried(trace);
    }

    pub(super) fn remember_buried(&mut self, trace: TraceId) {
        if self.tombstones.insert(trace) {
            self.buried.push_back(trace);
        }
        while self.buried.len() > self.tables.limits.names {
            if let Some(oldest) = self.buried.pop_front() {
                self.tombstones.remove(&oldest);
            }
        }
    }
}
