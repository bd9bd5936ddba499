//! Stratum "reference": what every scope of a server has read of its tools, and what a call holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::scope_view::ScopeView;
use super::scopes::ScopeEntry;
use super::tables::{Tables, insert, pins, remove};
use crate::catalog::moved::Moved;
use crate::catalog::reference::{Holder, Lines, Reading, References, contract, lines};
use crate::catalog::traversal::Traversal;
use crate::correlate::chain::Chain;
use crate::correlate::scope::ScopeKey;
use crate::model::case::ContractSeen;
use crate::model::digest::{Definition, Digest};
use crate::model::ids::{Digest16, Name, Nanos, SpanId, SpanRef};
use crate::model::policy::{Context, ContractMode};

/// As whose readings a scope's listings count: a server, and those who listed.
pub type Reader = (Name, BTreeSet<Context>);

impl Tables {
    /// What each marked context of a server read, taken into the server's references.
    pub(super) fn reference_stage(&mut self) {
        let mut marked: BTreeMap<Name, Vec<Context>> = BTreeMap::new();
        for (server, context) in std::mem::take(&mut self.marks.references) {
            marked.entry(server).or_default().push(context);
        }
        for (server, contexts) in marked {
            let old = self.references.get(&server).cloned().unwrap_or_default();
            let mut new = References::clone(&old);
            for context in contexts {
                let lines = self.lines(&server, &context);
                if old.lines_by(&context) != Some(&lines) {
                    new.put(context, lines);
                }
            }
            let moved = new.moved_since(&old);
            if moved.is_empty() {
                continue;
            }
            let scopes = self.scopes_by_server.get(&server).into_iter().flatten();
            let calls = scopes.filter_map(|key| self.scopes.get(key)).flat_map(|s| s.calls.iter());
            let concerned = calls.filter(|(start, key)| self.concerns(&moved, *start, key));
            let concerned: Vec<SpanRef> = concerned.map(|(_, key)| *key).collect();
            self.marks.verdicts.extend(concerned);
            self.references_moved = true;
            self.drifting.insert(server.clone());
            match new.is_empty() {
                true => drop(self.references.remove(&server)),
                false => drop(self.references.insert(server, Arc::new(new))),
            }
        }
    }

    fn lines(&self, server: &Name, context: &Context) -> Lines {
        let keys = self.readers.get(&(server.clone(), context.clone())).into_iter().flatten();
        let scopes = keys.filter_map(|key| Some((key, self.scopes.get(key)?)));
        let shown = scopes.flat_map(|(key, scope)| shown(key, scope));
        lines(readings(shown.filter(|shown| shown.context == *context).collect()))
    }

    /// Marks whose readings a scope may change: those it reads by now, and by the view it had.
    pub(super) fn reread(&mut self, key: &ScopeKey, new: &ScopeView, differs: bool) {
        let Some(scope) = self.scopes.get_mut(key) else { return };
        let server = new.server.as_ref().map(|server| server.name().clone());
        let is = server.map(|server| (server, contexts(scope, new)));
        let is = is.filter(|(_, contexts)| !contexts.is_empty());
        if !differs && scope.reads_as == is {
            return;
        }
        let was = std::mem::replace(&mut scope.reads_as, is.clone());
        self.unread(key, was);
        if let Some((server, contexts)) = is {
            for context in contexts {
                insert(&mut self.readers, (server.clone(), context.clone()), key.clone());
                self.marks.references.insert((server.clone(), context));
            }
        }
    }

    /// Marks what a scope read, and takes it from its readers.
    pub(super) fn unread(&mut self, key: &ScopeKey, was: Option<Reader>) {
        if let Some((server, contexts)) = was {
            for context in contexts {
                remove(&mut self.readers, &(server.clone(), context.clone()), key);
                self.marks.references.insert((server.clone(), context));
            }
        }
    }

    /// Whether a call's contract may be another: it looks at what was read before it, by whomever,
    /// at the first that its own context read, and at definitions behind digests of any time.
    fn concerns(&self, moved: &BTreeMap<&Name, Moved<'_>>, start: Nanos, key: &SpanRef) -> bool {
        let Some(chain) = self.chains.get(key).map(|entry| &entry.chain) else { return false };
        let Some(moved) = chain.tool().and_then(|tool| moved.get(tool)) else { return false };
        let own = client(chain);
        let mine = |context: &&Context| match context {
            Context::Auth(_) => true,
            Context::Client(client) => own.is_none() || own == *client,
        };
        start >= moved.from
            || moved.definitions
            || moved.first_of.iter().any(mine)
            || chain.sides().any(|side| side.half.call.contract.is_some())
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
        // What a caller holds by its own word, and was not listed to its scope, came from
        // elsewhere.
        let by_listing =
            stated.is_none() || stated.as_ref() == listed.as_ref().map(|(digest, _)| digest);
        let holds = match stated.filter(|_| !by_listing) {
            Some(stated) => {
                let definition = self.known_definition(server, tool, &stated);
                Some((stated, definition))
            }
            None => listed,
        };
        let client = chain.client().map(|side| side.process().key);
        let auth = chain.auth_context().or_else(|| listing.and_then(|traversal| traversal.auth));
        let holder = Holder {
            context: context(auth, client.or_else(|| self.client_of(scope))),
            tool,
            at,
            holds,
            from: listing.filter(|_| by_listing).map(|listing| (scope.name(), listing.start)),
        };
        let none = References::default();
        let references = self.references.get(server).map_or(&none, |known| known);
        let policy = self.policy_of(chain);
        contract(references, pins(policy, server), &policy.contracts, &holder)
    }

    fn known_definition(&self, server: &Name, tool: &Name, digest: &Digest) -> Option<Definition> {
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
fn held(traversal: &Traversal, tool: &Name) -> Option<(Digest, Option<Definition>)> {
    let definition = traversal.definitions().find(|listed| listed.name == *tool).cloned();
    if let Some(definition) = definition {
        return definition.digest.clone().map(|digest| (digest, Some(definition)));
    }
    let listed = traversal.tools().into_iter().find(|(name, _)| name == tool);
    listed.and_then(|(_, digest)| digest).map(|digest| (digest, None))
}

type Told<'a> = (Option<&'a Digest>, Option<&'a Definition>);

/// What a listing says of each tool, as [`held`] does of one.
fn each(traversal: &Traversal) -> BTreeMap<&Name, Told<'_>> {
    let mut all: BTreeMap<&Name, Told<'_>> = BTreeMap::new();
    for tool in traversal.definitions() {
        all.entry(&tool.name).or_insert((tool.digest.as_ref(), Some(tool)));
    }
    for page in traversal.pages.iter().filter(|page| page.facts.definitions.is_none()) {
        for (name, digest) in &page.facts.tools {
            all.entry(name).or_insert((Some(digest), None));
        }
    }
    all
}

/// One traversal of a scope, as a reading of every tool.
struct Shown<'a> {
    context: Context,
    at: Nanos,
    span: SpanRef,
    traversal: &'a Traversal,
    /// The scope.
    by: Name,
    /// Tools that the scope knew and a complete listing has no more.
    gone: Vec<Name>,
}

/// Who asked for each listing of a scope, by its span.
type Askers = BTreeMap<SpanId, (SpanRef, Option<Digest16>)>;

fn askers(scope: &ScopeEntry) -> Askers {
    scope.controls().map(|chain| (chain.key().span, (chain.key(), client(chain)))).collect()
}

/// Whose reading a traversal is, and the span that says so.
fn reader(askers: &Askers, traversal: &Traversal) -> (Context, SpanRef) {
    let first = traversal.pages.first().map(|page| page.span).unwrap_or_default();
    let (span, client) = askers.get(&first).copied().unwrap_or_default();
    (context(traversal.auth, client), span)
}

fn contexts(scope: &ScopeEntry, view: &ScopeView) -> BTreeSet<Context> {
    let askers = askers(scope);
    let listed = view.timeline.traversals.iter().filter(|traversal| traversal.lists_any());
    listed.map(|traversal| reader(&askers, traversal).0).collect()
}

/// What one scope's traversals showed, and what a complete one no longer has.
fn shown<'a>(key: &ScopeKey, scope: &'a ScopeEntry) -> Vec<Shown<'a>> {
    let (by, askers) = (key.name(), askers(scope));
    let mut all = Vec::new();
    // What the scope knows: the last complete traversal, and what came since.
    let mut known: Vec<&Traversal> = Vec::new();
    for traversal in scope.view.timeline.traversals.iter().filter(|t| t.lists_any()) {
        let again = matches!(known[..], [only] if only.lists_as(traversal));
        let mut gone = Vec::new();
        if !again && traversal.complete() {
            let now = names(traversal);
            let before: BTreeSet<Name> = known.iter().flat_map(|known| names(known)).collect();
            gone.extend(before.difference(&now).cloned());
            known.clear();
        }
        if !again {
            known.push(traversal);
        }
        let (context, span) = reader(&askers, traversal);
        all.push(Shown { context, at: traversal.stop, span, traversal, by: by.clone(), gone });
    }
    all
}

fn names(traversal: &Traversal) -> BTreeSet<Name> {
    traversal.tools().into_iter().map(|(name, _)| name).collect()
}

/// What the scopes of a server read of its tools. A traversal that lists what the one before it in
/// its context lists tells nothing new, and most do.
fn readings(mut all: Vec<Shown<'_>>) -> Vec<Reading> {
    all.sort_by(|a, b| (&a.context, a.at, a.span).cmp(&(&b.context, b.at, b.span)));
    let mut found = Vec::new();
    let mut last: Option<&Shown<'_>> = None;
    for one in &all {
        let before = last.replace(one).filter(|before| before.context == one.context);
        if one.gone.is_empty() && before.is_some_and(|b| b.traversal.lists_as(one.traversal)) {
            continue;
        }
        let reading = |tool: Name, digest, definition| Reading {
            context: one.context.clone(),
            tool,
            at: one.at,
            digest,
            definition,
            by: (one.by.clone(), one.traversal.start),
            span: one.span,
        };
        for (tool, (digest, definition)) in each(one.traversal) {
            if let Some(digest) = digest {
                found.push(reading(tool.clone(), Some(digest.clone()), definition.cloned()));
            }
        }
        found.extend(one.gone.iter().map(|gone| reading(gone.clone(), None, None)));
    }
    found
}
