//! Stratum "reference": what every scope of a server has read of its tools, and what a call holds.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::tables::{Tables, pins};
use crate::catalog::reference::{Holder, Reading, References, contract};
use crate::catalog::traversal::Traversal;
use crate::correlate::chain::Chain;
use crate::correlate::scope::ScopeKey;
use crate::model::case::ContractSeen;
use crate::model::digest::Definition;
use crate::model::ids::{Digest16, Name, Nanos, SpanRef};
use crate::model::policy::{Context, ContractMode};

impl Tables {
    pub(super) fn reference_stage(&mut self) {
        for server in std::mem::take(&mut self.marks.references) {
            let keys = self.scopes_by_server.get(&server).into_iter().flatten();
            let of_server: Vec<(&ScopeKey, _)> =
                keys.filter_map(|key| Some((key, self.scopes.get(key)?))).collect();
            if of_server.is_empty() {
                self.references_moved |= self.references.remove(&server).is_some();
                continue;
            }
            let readings = of_server
                .iter()
                .flat_map(|(key, scope)| readings(key, &scope.view.timeline.traversals, scope))
                .collect();
            let new = References::new(readings);
            let calls: Vec<SpanRef> = of_server
                .iter()
                .flat_map(|(_, scope)| scope.calls.iter().map(|(_, key)| *key))
                .collect();
            if self.references.get(&server).is_none_or(|known| **known != new) {
                self.drifting.insert(server.clone());
                self.references.insert(server, Arc::new(new));
                self.references_moved = true;
                self.marks.verdicts.extend(calls);
            }
        }
    }

    /// The contract of a call at its start.
    pub(super) fn contract_of(
        &self,
        chain: &Chain,
        scope: &ScopeKey,
        server: &Name,
    ) -> ContractSeen {
        let Some(tool) = chain.tool() else { return ContractSeen::default() };
        let at = chain.start();
        let view = self.scope_view(scope);
        let listing = view.timeline.newest_listing(at);
        let stated = chain.sides().find_map(|side| side.half.call.contract.clone());
        let listed = listing.and_then(|traversal| held(traversal, tool));
        let holds = match (stated, listed) {
            (Some(stated), Some((digest, definition))) if stated == digest => {
                Some((digest, definition))
            }
            (Some(stated), _) => {
                let definition = self.known_definition(server, tool, &stated);
                Some((stated, definition))
            }
            (None, listed) => listed,
        };
        let client = chain.client().map(|side| side.process().key);
        let auth = chain.auth_context().or_else(|| listing.and_then(|traversal| traversal.auth));
        let holder = Holder {
            context: context(auth, client.or_else(|| self.client_of(scope))),
            tool,
            at,
            holds,
            from: listing.map(|traversal| (scope.name(), traversal.start)),
        };
        let none = References::default();
        let references = self.references.get(server).map_or(&none, |known| known);
        let policy = self.policy_of(chain);
        contract(references, pins(policy, server), &policy.contracts, &holder)
    }

    fn known_definition(
        &self,
        server: &Name,
        tool: &Name,
        digest: &crate::model::digest::Digest,
    ) -> Option<Definition> {
        self.references.get(server)?.definition(tool, digest).cloned()
    }

    fn client_of(&self, scope: &ScopeKey) -> Option<Digest16> {
        let entry = self.scopes.get(scope)?;
        let clients: BTreeSet<Digest16> = entry.controls().filter_map(|c| client(c)).collect();
        clients.into_iter().next()
    }

    pub(super) fn contracts_off(&self, chain: &Chain) -> bool {
        self.policy_of(chain).contracts.mode == ContractMode::Off
    }
}

fn client(chain: &Chain) -> Option<Digest16> {
    chain.client().map(|side| side.process().key)
}

fn context(auth: Option<Digest16>, client: Option<Digest16>) -> Context {
    auth.map_or(Context::Client(client), Context::Auth)
}

/// What a listing says of one tool.
fn held(
    traversal: &Traversal,
    tool: &Name,
) -> Option<(crate::model::digest::Digest, Option<Definition>)> {
    let definition = traversal.definitions().find(|listed| listed.name == *tool).cloned();
    if let Some(definition) = definition {
        return definition.digest.clone().map(|digest| (digest, Some(definition)));
    }
    let listed = traversal.tools().into_iter().find(|(name, _)| name == tool);
    listed.and_then(|(_, digest)| digest).map(|digest| (digest, None))
}

/// What one scope's traversals showed of each tool, and what a complete one no longer has.
fn readings(
    key: &ScopeKey,
    traversals: &[Traversal],
    scope: &super::scopes::ScopeEntry,
) -> Vec<Reading> {
    let controls: Vec<(Nanos, SpanRef, Option<Digest16>)> =
        scope.controls().map(|chain| (chain.start(), chain.key(), client(chain))).collect();
    let mut all = Vec::new();
    let mut before: BTreeSet<Name> = BTreeSet::new();
    for traversal in traversals.iter().filter(|traversal| !traversal.tools().is_empty()) {
        let first = traversal.spans().first().copied().unwrap_or_default();
        let found = controls.iter().find(|(_, at, _)| at.span == first);
        let (span, client) = found.map_or((SpanRef::default(), None), |(_, at, c)| (*at, *c));
        let reading = |tool: Name, digest, definition| Reading {
            context: context(traversal.auth, client),
            tool,
            at: traversal.stop,
            digest,
            definition,
            by: (key.name(), traversal.start),
            span,
        };
        let mut names = BTreeSet::new();
        for (tool, _) in traversal.tools() {
            if !names.insert(tool.clone()) {
                continue;
            }
            if let Some((digest, definition)) = held(traversal, &tool) {
                all.push(reading(tool, Some(digest), definition));
            }
        }
        if traversal.complete() {
            all.extend(before.difference(&names).map(|gone| reading(gone.clone(), None, None)));
            before = names;
        } else {
            before.extend(names);
        }
    }
    all
}
