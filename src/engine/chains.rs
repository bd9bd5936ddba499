//! Stratum "chain": requests with what joined them, the scope each belongs to, and the placing of
//! evidence that its own trace could not place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::scopes::Contribution;
use super::tables::{ChainEntry, Tables, insert, remove};
use crate::correlate::ancestry::Ancestry;
use crate::correlate::chain::Chain;
use crate::correlate::join::Joined;
use crate::correlate::scope::{Partners, ScopeKey, ServerName, key_of};
use crate::model::fact::FactId;
use crate::model::ids::{Digest16, Name, SpanRef};
use crate::model::words::{Era, Transport};

impl Tables {
    pub(super) fn chain_stage(&mut self) {
        // A newly known partner may move chains of its process into another scope; partners come
        // from halves alone, so this ends after one more pass.
        while !self.marks.chains.is_empty() {
            for key in std::mem::take(&mut self.marks.chains) {
                self.chain_changed(key);
            }
        }
    }

    fn chain_changed(&mut self, key: SpanRef) {
        let leads = self.leaders.get(&key).is_none_or(|joins| joins.is_empty());
        let real = !self.phantoms.contains_key(&key);
        let request = self.request(&key).filter(|_| leads && real).cloned();
        let Some(request) = request else { return self.drop_chain(key) };
        let mut members = Vec::new();
        self.collect_members(key, &mut members, 0);
        let joined: Vec<(Joined, &_)> =
            members.iter().map(|(joined, request)| (*joined, request.as_ref())).collect();
        let roles = |process: &Digest16| self.roles.get(process).copied().unwrap_or_default();
        let made_up = |process: &Digest16, id: &Name| {
            self.disowned.get(process).is_some_and(|ids| ids.contains_key(id))
        };
        let chain = Arc::new(Chain::assemble(&request, &joined, roles, made_up));
        let scope = key_of(&chain, |process| self.partners(process));
        let same = self.chains.get(&key).is_some_and(|e| e.chain == chain && e.scope == scope);
        if same {
            return;
        }
        self.drop_chain(key);
        self.add_chain(key, chain, scope);
    }

    fn collect_members(
        &self,
        key: SpanRef,
        into: &mut Vec<(Joined, Arc<crate::correlate::trace::TraceRequest>)>,
        depth: usize,
    ) {
        for joined in self.members.get(&key).into_iter().flatten() {
            let counts = self.leaders.get(&joined.member).and_then(|j| j.first()) == Some(joined);
            if let Some(request) = self.request(&joined.member).filter(|_| counts) {
                into.push((*joined, request.clone()));
                if depth < 3 {
                    self.collect_members(joined.member, into, depth + 1);
                }
            }
        }
    }

    /// What is known of a process beyond one chain: a partner counts where it is the only one.
    fn partners(&self, process: &Digest16) -> Partners {
        let stdio = self.stdio_partners.get(process).filter(|all| all.len() == 1);
        let origin = self.origins.get(process).filter(|all| all.len() == 1);
        Partners {
            stdio: stdio.and_then(|all| all.keys().next().copied()),
            origin: origin.and_then(|all| all.keys().next().cloned()),
        }
    }

    fn add_chain(&mut self, key: SpanRef, chain: Arc<Chain>, scope: ScopeKey) {
        for side in chain.sides() {
            insert(&mut self.by_process, side.process().key, key);
            self.visit_scope(side.process().key, &scope, true);
        }
        self.partner(key, &chain, true);
        self.disown(key, &chain, true);
        self.tell_scope(key, &chain, &scope, true);
        self.marks.endings.insert(key);
        self.mark_notes(&chain);
        self.mark_homeless(&chain);
        self.cross(key, &chain, true);
        let at = (chain.start(), key);
        self.chains.insert(
            key,
            Box::new(ChainEntry {
                chain,
                scope: scope.clone(),
                ending: None,
                exchange: None,
                operation_keys: Vec::new(),
                alone: None,
                verdict: None,
            }),
        );
        self.mark_namesakes(at, &scope);
    }

    fn drop_chain(&mut self, key: SpanRef) {
        let Some(entry) = self.chains.get(&key) else { return };
        let (start, scope) = (entry.chain.start(), entry.scope.clone());
        self.mark_namesakes((start, key), &scope);
        let Some(entry) = self.chains.remove(&key) else { return };
        self.dropped.insert(key);
        self.set_timer(key, None);
        self.unsay(key, &entry);
        for side in entry.chain.sides() {
            remove(&mut self.by_process, &side.process().key, &key);
            self.visit_scope(side.process().key, &entry.scope, false);
        }
        self.partner(key, &entry.chain, false);
        self.disown(key, &entry.chain, false);
        self.tell_scope(key, &entry.chain, &entry.scope, false);
        for operation in entry.operation_keys {
            if let Some(found) = self.operations.get_mut(&operation) {
                found.members.remove(&key);
            }
            self.marks.operations.insert(operation);
        }
        self.mark_notes(&entry.chain);
        self.mark_homeless(&entry.chain);
        self.cross(key, &entry.chain, false);
    }

    /// The chain leaves; its scope keeps what it was told, and nothing is judged anew.
    pub(super) fn retire_chain(&mut self, key: SpanRef) {
        let Some(entry) = self.chains.remove(&key) else { return };
        self.unsay(key, &entry);
        self.uncross(key, &entry.chain);
        self.keep_shown(key, &entry.chain);
        for side in entry.chain.sides() {
            remove(&mut self.by_process, &side.process().key, &key);
            self.visit_scope(side.process().key, &entry.scope, false);
        }
        let contribution = Contribution::of(&entry.chain);
        self.scope_mut(&entry.scope).retire(key, &contribution);
        for operation in entry.operation_keys {
            if let Some(found) = self.operations.get_mut(&operation) {
                found.members.remove(&key);
                if found.members.is_empty() {
                    self.operations.remove(&operation);
                }
            }
        }
        for id in self.placed.remove(&key).into_iter().flatten() {
            remove(&mut self.placed_on, &id, &key);
        }
        self.ambiguous.remove(&key);
        self.set_timer(key, None);
    }

    /// Notes without a session follow the chains of their trace or process.
    fn mark_notes(&mut self, chain: &Chain) {
        let traces = chain.traces.iter().filter_map(|trace| self.notes_by_trace.get(trace));
        let notes: Vec<FactId> = traces.flatten().copied().collect();
        self.marks.notes.extend(notes);
    }

    /// Notes without a session may follow their process into its scopes: where those are others
    /// than before.
    fn visit_scope(&mut self, process: Digest16, scope: &ScopeKey, add: bool) {
        let scopes = self.process_scopes.entry(process).or_default();
        let before = scopes.len();
        match add {
            true => *scopes.entry(scope.clone()).or_default() += 1,
            false => {
                if let Some(halves) = scopes.get_mut(scope) {
                    *halves = halves.saturating_sub(1);
                    if *halves == 0 {
                        scopes.remove(scope);
                    }
                }
            }
        }
        if scopes.len() != before {
            let notes = self.notes_by_process.get(&process).into_iter().flatten();
            self.marks.notes.extend(notes.copied());
        }
        if scopes.is_empty() {
            self.process_scopes.remove(&process);
        }
    }

    /// Takes back what a chain says in the record of its scope.
    fn unsay(&mut self, key: SpanRef, entry: &ChainEntry) {
        let Some(scope) = self.scopes.get_mut(&entry.scope) else { return };
        let at = (entry.chain.start(), key);
        scope.refused.remove(&at);
        scope.unserved.remove(&at);
        if let Some(verdict) = &entry.verdict {
            scope.count_rung(verdict.layers.session, false);
        }
    }

    fn mark_homeless(&mut self, chain: &Chain) {
        let linked = chain.traces.iter().filter_map(|trace| self.linked.get(trace));
        let homeless: Vec<FactId> = linked.flatten().copied().collect();
        self.marks.unplaced.extend(homeless);
        let waiting = chain.request_id().and_then(|id| self.waiting.get(id));
        self.marks.unplaced.extend(waiting.into_iter().flatten().copied());
    }

    fn partner(&mut self, key: SpanRef, chain: &Chain, add: bool) {
        if let Some((a, b)) = stdio_pair(chain) {
            for (one, other) in [(a, b), (b, a)] {
                let all = self.stdio_partners.entry(one).or_default();
                let before = all.len();
                if add {
                    insert(all, other, key)
                } else {
                    remove(all, &other, &key)
                }
                let moved = before != all.len();
                self.rescope(one, key, moved);
            }
        }
        if let Some((client, origin)) = modern_origin(chain) {
            let all = self.origins.entry(client).or_default();
            let before = all.len();
            if add {
                insert(all, origin, key)
            } else {
                remove(all, &origin, &key)
            }
            let moved = before != all.len();
            self.rescope(client, key, moved);
        }
    }

    /// A session id that one request shows to be made up is made up wherever its process claims it.
    fn disown(&mut self, key: SpanRef, chain: &Chain, add: bool) {
        let (Some(id), Some(side)) = (&chain.disowned, &chain.answering) else { return };
        let process = side.process().key;
        let ids = self.disowned.entry(process).or_default();
        let before = ids.len();
        if add {
            insert(ids, id.clone(), key)
        } else {
            remove(ids, id, &key)
        }
        let moved = before != ids.len();
        if ids.is_empty() {
            self.disowned.remove(&process);
        }
        self.rescope(process, key, moved);
    }

    /// What a forgotten chain showed of its processes stays known, by nobody's name.
    fn keep_shown(&mut self, key: SpanRef, chain: &Chain) {
        fn keep<K: Ord>(
            map: &mut BTreeMap<Digest16, BTreeMap<K, BTreeSet<SpanRef>>>,
            (process, shown): (&Digest16, &K),
            key: SpanRef,
        ) {
            let all = map.get_mut(process).and_then(|all| all.get_mut(shown));
            if let Some(chains) = all
                && chains.remove(&key)
            {
                chains.insert(SpanRef::default());
            }
        }
        if let (Some(id), Some(side)) = (&chain.disowned, &chain.answering) {
            keep(&mut self.disowned, (&side.process().key, id), key);
        }
        if let Some((a, b)) = stdio_pair(chain) {
            keep(&mut self.stdio_partners, (&a, &b), key);
            keep(&mut self.stdio_partners, (&b, &a), key);
        }
        if let Some((client, origin)) = modern_origin(chain) {
            keep(&mut self.origins, (&client, &origin), key);
        }
    }

    fn rescope(&mut self, process: Digest16, but: SpanRef, moved: bool) {
        if moved {
            let chains = self.by_process.get(&process).into_iter().flatten();
            self.marks.chains.extend(chains.filter(|key| **key != but).copied());
        }
    }

    /// Places evidence that its own trace could not: by link, by (session, request id). What goes
    /// by operation key is placed with its operation.
    pub(super) fn placement_stage(&mut self) {
        for id in std::mem::take(&mut self.marks.unplaced) {
            let targets = self.targets(&id);
            let was = self.placed_on.remove(&id).unwrap_or_default();
            for gone in &was {
                remove(&mut self.placed, gone, &id);
                remove(&mut self.ambiguous, gone, &id);
                self.marks.endings.insert(*gone);
            }
            let one = targets.len() == 1;
            for key in &targets {
                match one {
                    true => insert(&mut self.placed, *key, id),
                    false => insert(&mut self.ambiguous, *key, id),
                }
                self.marks.endings.insert(*key);
            }
            if !targets.is_empty() {
                self.placed_on.insert(id, targets);
            }
            if let Some(fact) = self.unplaced.get(&id)
                && let Some(key) = fact.evidence.operation_key
            {
                self.marks.operations.insert(crate::correlate::operation::OperationKey::Key(key));
            }
        }
    }

    fn targets(&self, id: &FactId) -> BTreeSet<SpanRef> {
        let Some(fact) = self.unplaced.get(id) else { return BTreeSet::new() };
        let linked: BTreeSet<SpanRef> =
            fact.links.iter().filter_map(|link| self.call_at_or_above(*link)).collect();
        if !linked.is_empty() || fact.evidence.operation_key.is_some() {
            return linked;
        }
        let (Some(session), Some(request)) = (&fact.evidence.session, &fact.evidence.request_id)
        else {
            return linked;
        };
        let scope = ScopeKey::Session(session.clone());
        let Some(scope) = self.scopes.get(&scope) else { return linked };
        scope.with_id(request).into_iter().filter(|key| self.is_call(key)).collect()
    }

    fn is_call(&self, key: &SpanRef) -> bool {
        self.chains.get(key).is_some_and(|entry| entry.chain.is_call())
    }

    /// The nearest call at or above a span of any live trace.
    fn call_at_or_above(&self, span: SpanRef) -> Option<SpanRef> {
        let entry = self.traces.get(&span.trace)?;
        let tree = Ancestry::new(&entry.bones);
        tree.at_or_above(span.span)
            .filter_map(|at| entry.owner(at))
            .map(|owner| self.leader(owner))
            .find(|key| self.is_call(key))
    }

    pub(super) fn drop_unplaced(&mut self, id: &FactId) {
        let Some(fact) = self.unplaced.remove(id) else { return };
        for link in &fact.links {
            remove(&mut self.linked, &link.trace, id);
        }
        if let Some(key) = fact.evidence.operation_key {
            remove(&mut self.keyed, &key, id);
        }
        if let Some(request) = &fact.evidence.request_id {
            remove(&mut self.waiting, request, id);
        }
        self.marks.unplaced.insert(*id);
    }
}

/// Client and server of a request over a pipe: each has no other on it.
fn stdio_pair(chain: &Chain) -> Option<(Digest16, Digest16)> {
    let piped = chain.transport() == Some(Transport::Stdio);
    let (client, server) = (chain.client()?, chain.server()?);
    piped.then(|| (client.process().key, server.process().key))
}

/// Client and server of a request without a session.
fn modern_origin(chain: &Chain) -> Option<(Digest16, Name)> {
    let origin = ServerName::of(chain).filter(|_| chain.era() == Era::Modern)?;
    Some((chain.client()?.process().key, origin.name().clone()))
}

#[cfg(test)]
#[path = "retired_tests.rs"]
mod tests;
