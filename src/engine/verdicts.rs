//! Strata "ending", "operation" and "verdict": how each request ended, what it is to others of its
//! operation, and the conclusion.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::tables::{ChainEntry, Now, OperationEntry, Tables};
use crate::correlate::chain::Chain;
use crate::correlate::operation::{Member, OperationKey, keys_of, operations};
use crate::judge::operation::{Attempt, finish};
use crate::model::case::{Case, Ending, Exchange};
use crate::model::fact::Fact;
use crate::model::ids::{Nanos, SpanRef};
use crate::model::record::Verdict;
use crate::model::words::Reason;

impl Tables {
    pub(super) fn ending_stage(&mut self) {
        for key in std::mem::take(&mut self.marks.endings) {
            let Some(entry) = self.chains.get(&key) else { continue };
            let view = self.scope_view(&entry.scope);
            let exchange = self.exchange(key, entry);
            let seen = self.scope_seen(&entry.scope, &view, &entry.chain);
            let ending = crate::judge::ending(&exchange, &seen);
            let keys = keys_of(&entry.chain, &entry.scope.name(), &exchange.server);
            let same = entry.ending == Some(ending) && entry.operation_keys == keys;
            let was = entry.operation_keys.clone();
            if !same {
                self.marks.operations.extend(was.iter().chain(&keys).cloned());
            }
            for key_gone in was.iter().filter(|k| !keys.contains(k)) {
                if let Some(operation) = self.operations.get_mut(key_gone) {
                    operation.members.remove(&key);
                }
            }
            for key_new in &keys {
                let operation = self.operations.entry(key_new.clone()).or_default();
                if operation.members.insert(key) {
                    self.marks.operations.insert(key_new.clone());
                }
            }
            // A task's requests tell its call how it goes on, whatever their own ending.
            if keys.iter().any(|key| matches!(key, OperationKey::Task(..))) {
                self.marks.operations.extend(keys.iter().cloned());
            }
            self.say(key, ending);
            if let Some(entry) = self.chains.get_mut(&key) {
                entry.ending = Some(ending);
                entry.operation_keys = keys;
                entry.exchange = Some(Box::new(exchange));
            }
            self.marks.verdicts.insert(key);
        }
    }

    /// What the record of its scope says of a request by its ending.
    fn say(&mut self, key: SpanRef, ending: Ending) {
        let Some(entry) = self.chains.get(&key) else { return };
        let chain = &entry.chain;
        let insufficient = Ending::Unauthorized { reason: Reason::InsufficientScope };
        let asks = chain.sides().find_map(|side| side.half.call.required_scope.clone());
        let asks = asks.filter(|_| ending == insufficient);
        let answered =
            matches!(ending, Ending::Result { .. } | Ending::Error { .. } | Ending::InputRequired);
        let unserved = answered
            && chain.asking.is_some()
            && chain.answering.is_none()
            && self.sampled_out(chain).is_none();
        let at = (chain.start(), key);
        let Some(scope) = self.scopes.get_mut(&entry.scope) else { return };
        match asks {
            Some(asks) => drop(scope.refused.insert(at, asks)),
            None => drop(scope.refused.remove(&at)),
        }
        match unserved {
            true => drop(scope.unserved.insert(at)),
            false => drop(scope.unserved.remove(&at)),
        }
    }

    pub(super) fn operation_stage(&mut self) {
        let marked = std::mem::take(&mut self.marks.operations);
        let mut done: BTreeSet<OperationKey> = BTreeSet::new();
        for key in marked {
            if done.contains(&key) {
                continue;
            }
            let (keys, chains) = self.component(&key);
            let members: Vec<Member> = chains
                .iter()
                .filter_map(|at| Some(self.member(*at, self.chains.get(at)?)))
                .collect();
            let found = operations(members);
            for key in keys.iter().chain([&key]) {
                let empty = self.operations.get(key).is_none_or(|entry| entry.members.is_empty());
                if empty && !self.has_keyed(key) {
                    self.operations.remove(key);
                } else {
                    let entry: &mut OperationEntry =
                        self.operations.entry(key.clone()).or_default();
                    entry.operations.clone_from(&found);
                }
            }
            self.marks.verdicts.extend(chains);
            done.extend(keys);
        }
    }

    fn has_keyed(&self, key: &OperationKey) -> bool {
        matches!(key, OperationKey::Key(digest) if self.keyed.contains_key(digest))
    }

    /// Everything that shares keys with one key, directly or not; capped.
    fn component(&self, key: &OperationKey) -> (BTreeSet<OperationKey>, BTreeSet<SpanRef>) {
        const MOST: usize = 256;
        let (mut keys, mut chains) = (BTreeSet::from([key.clone()]), BTreeSet::new());
        let mut queue = vec![key.clone()];
        while let Some(key) = queue.pop() {
            let members = self.operations.get(&key).map(|entry| &entry.members);
            for at in members.into_iter().flatten() {
                if chains.len() >= MOST || !chains.insert(*at) {
                    continue;
                }
                let more = self.chains.get(at).map(|entry| entry.operation_keys.clone());
                for key in more.into_iter().flatten() {
                    if keys.insert(key.clone()) {
                        queue.push(key);
                    }
                }
            }
        }
        (keys, chains)
    }

    fn member(&self, key: SpanRef, entry: &ChainEntry) -> Member {
        let chain = &entry.chain;
        let attempt = chain.sides().find_map(|side| side.half.call.operation_attempt);
        Member {
            chain: key,
            start: chain.start(),
            stop: chain.stop(),
            method: chain.method().clone(),
            era: chain.era(),
            ending: entry.ending.unwrap_or(Ending::Unobserved),
            attempt,
            keys: entry.operation_keys.clone(),
        }
    }

    /// Evidence that names the operation and nothing else: it belongs to the last attempt that
    /// could have had the effect (§3).
    pub(super) fn keyed_evidence(&self, key: SpanRef) -> Vec<Arc<Fact>> {
        let Some(entry) = self.chains.get(&key) else { return Vec::new() };
        let mut found = Vec::new();
        for operation_key in &entry.operation_keys {
            let OperationKey::Key(digest) = operation_key else { continue };
            let Some(facts) = self.keyed.get(digest) else { continue };
            let Some(operation) = self.operations.get(operation_key) else { continue };
            let could = |at: &&SpanRef| {
                self.chains.get(at).is_some_and(|e| e.chain.is_call() && could_have_run(e.ending))
            };
            let order = |at: &&SpanRef| self.chains.get(at).map(|e| (e.chain.start(), **at));
            let last = operation.members.iter().filter(could).max_by_key(order);
            if last == Some(&key) {
                let unlinked = |id: &&_| !self.placed_on.contains_key(id);
                let facts = facts.iter().filter(unlinked).filter_map(|id| self.unplaced.get(id));
                found.extend(facts.cloned());
            }
        }
        found
    }

    pub(super) fn verdict_stage(&mut self, now: Now) {
        let marked = std::mem::take(&mut self.marks.verdicts);
        let mut together: BTreeSet<SpanRef> = BTreeSet::new();
        for key in marked {
            if self.judge_alone(key, now) {
                together.insert(key);
            }
        }
        let mut done: BTreeSet<SpanRef> = BTreeSet::new();
        for key in together {
            if !done.contains(&key) {
                done.extend(self.judge_together(key));
            }
        }
    }

    /// Judges one chain by itself. Whether it stands.
    fn judge_alone(&mut self, key: SpanRef, now: Now) -> bool {
        let Some(entry) = self.chains.get_mut(&key) else { return false };
        // What ended it still stands, unless evidence has been given out since.
        let known = entry.exchange.take().map(|exchange| *exchange);
        let Some(entry) = self.chains.get(&key) else { return false };
        let known = known.filter(|_| !entry.operation_keys.iter().any(|key| self.has_keyed(key)));
        let exchange = known.unwrap_or_else(|| self.exchange(key, entry));
        let case = self.case(key, entry, exchange, now);
        let ending = entry.ending.unwrap_or(Ending::Unobserved);
        let mut verdict = crate::judge::verdict(&case, ending, &mut ());
        self.add_contact(&entry.chain, &mut verdict);
        let due = crate::judge::clocks::due(&case.exchange, ending, &case.operation);
        self.set_timer(key, due.filter(|due| *due > case.now));
        if let Some(entry) = self.chains.get_mut(&key) {
            entry.alone = Some(Arc::new(verdict));
        }
        true
    }

    fn add_contact(&self, chain: &Chain, verdict: &mut Verdict) {
        let policy = self.policy_of(chain);
        let contact = policy.owner_contact(&verdict.server, verdict.tool.as_deref(), verdict.owner);
        verdict.operator.owner_contact = contact;
    }

    pub(super) fn case(
        &self,
        key: SpanRef,
        entry: &ChainEntry,
        exchange: Exchange,
        now: Now,
    ) -> Case {
        let exchange = self.hinted(entry, exchange);
        let view = self.scope_view(&entry.scope);
        let catalog = self.catalog_seen(entry, &exchange, &view);
        let tool = exchange.tool.as_ref().map(|tool| tool.as_str());
        let policy = self.policy_of(&entry.chain);
        Case {
            now: self.now_of(entry, now),
            scope_name: entry.scope.name(),
            scope: self.scope_seen(&entry.scope, &view, &entry.chain),
            requires: policy.requires(&exchange.server, tool),
            clock_skew: policy.clock_skew,
            operation: self.operation_seen(key, entry),
            catalog,
            exchange,
        }
    }

    fn now_of(&self, entry: &ChainEntry, now: Now) -> Nanos {
        let scope = self.scopes.get(&entry.scope).filter(|_| now.live);
        now.event.max(scope.map_or(0, |scope| scope.newest))
    }

    pub(super) fn set_timer(&mut self, key: SpanRef, due: Option<Nanos>) {
        if let Some(was) = self.timer_of.remove(&key) {
            self.timers.remove(&(was, key));
        }
        if let Some(due) = due {
            self.timers.insert((due, key));
            self.timer_of.insert(key, due);
        }
    }

    /// Marks the chains whose time has come.
    pub(super) fn ring_timers(&mut self, now: Now) {
        while let Some((due, key)) = self.timers.first().copied() {
            if due > now.event {
                break;
            }
            self.set_timer(key, None);
            self.marks.verdicts.insert(key);
        }
    }

    /// Judges the attempts of one operation against each other; returns them.
    fn judge_together(&mut self, key: SpanRef) -> Vec<SpanRef> {
        let members = self.attempts(key);
        if let [only] = members.as_slice() {
            // Most requests are their whole operation: one copy serves both.
            if let Some(alone) = self.chains.get(only).and_then(|entry| entry.alone.clone()) {
                self.conclude(*only, alone);
            }
            return members;
        }
        for (at, mut verdict) in self.finished(&members) {
            let Some(entry) = self.chains.get(&at) else { continue };
            self.add_contact(&entry.chain, &mut verdict);
            let alone = entry.alone.clone().filter(|alone| **alone == verdict);
            self.conclude(at, alone.unwrap_or_else(|| Arc::new(verdict)));
        }
        members
    }

    /// The verdicts of several attempts, each with what the others say of it.
    fn finished(&self, members: &[SpanRef]) -> Vec<(SpanRef, Verdict)> {
        let entries = members.iter().filter_map(|at| Some((*at, &**self.chains.get(at)?)));
        let hinted = |at, entry| self.hinted(entry, self.exchange(at, entry));
        let judged: Vec<(SpanRef, &ChainEntry, Exchange)> =
            entries.map(|(at, entry)| (at, entry, hinted(at, entry))).collect();
        let attempts = judged.iter().filter_map(|(at, entry, exchange)| {
            let (ending, verdict) = (entry.ending?, entry.alone.as_deref()?.clone());
            Some((*at, Attempt { exchange, ending, verdict }))
        });
        let (keys, attempts): (Vec<SpanRef>, Vec<Attempt>) = attempts.unzip();
        let first = keys.first().and_then(|at| self.chains.get(at));
        let policy = first.map_or(&*self.policy, |entry| self.policy_of(&entry.chain));
        keys.into_iter().zip(finish(&attempts, &policy.retry_budget)).collect()
    }

    fn conclude(&mut self, at: SpanRef, verdict: Arc<Verdict>) {
        let Some(entry) = self.chains.get_mut(&at) else { return };
        if entry.verdict.as_ref() == Some(&verdict) {
            return;
        }
        if let Some(scope) = self.scopes.get_mut(&entry.scope) {
            if let Some(was) = &entry.verdict {
                scope.count_rung(was.layers.session, false);
            }
            scope.count_rung(verdict.layers.session, true);
        }
        entry.verdict = Some(verdict);
        self.changed.insert(at);
    }

    /// The requests of the operation a request belongs to, oldest first; itself alone if none.
    fn attempts(&self, key: SpanRef) -> Vec<SpanRef> {
        let Some(entry) = self.chains.get(&key) else { return Vec::new() };
        let operations = entry.operation_keys.iter().filter_map(|k| self.operations.get(k));
        let mine = operations
            .flat_map(|entry| &entry.operations)
            .find(|operation| operation.members.iter().any(|(at, _)| *at == key));
        match mine {
            Some(operation) => operation.members.iter().map(|(at, _)| *at).collect(),
            None => vec![key],
        }
    }
}

/// Whether an attempt that ended so may have reached its tool.
fn could_have_run(ending: Option<Ending>) -> bool {
    matches!(
        ending,
        Some(
            Ending::Result { .. }
                | Ending::Task
                | Ending::TimedOut
                | Ending::Cancelled
                | Ending::Lost { .. }
                | Ending::Unnamed
                | Ending::Unobserved
                | Ending::Open
        )
    )
}
