//! What a scope tells its requests: era, version, server, negotiation, catalog timeline, notes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::scopes::ScopeEntry;
use crate::catalog::convergence::{Covered, Signal, Timeline};
use crate::catalog::traversal::{Page, traversals};
use crate::correlate::chain::Chain;
use crate::correlate::notes::{INITIALIZED, LIST_CHANGED, Notes};
use crate::correlate::scope::{ScopeKey, ServerName};
use crate::model::case::Ending;
use crate::model::fact::*;
use crate::model::ids::{Name, Nanos};
use crate::model::words::Era;

const TOOLS_LIST_CHANGED: &str = "tools.listChanged";

/// What every request of the scope can ask.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ScopeView {
    pub era: Option<Era>,
    pub version: Option<Name>,
    pub server: Option<ServerName>,
    pub first_answer: Option<Nanos>,
    pub records_tokens: bool,
    pub negotiated: bool,
    pub negotiation_failed: bool,
    pub client_capabilities: Option<BTreeSet<Name>>,
    pub server_capabilities: Option<BTreeSet<Name>>,
    pub timeline: Timeline,
    pub notes: Arc<Notes>,
}

impl ScopeEntry {
    /// Ids that two requests share without an `initialize` between them, outside a session: two
    /// connections that telemetry cannot tell apart (§4.6). Modern ids may be used again.
    fn mixed(&self, key: &ScopeKey) -> bool {
        let modern = self.eras.contains_key(&Era::Modern);
        if modern || matches!(key, ScopeKey::Session(_)) {
            return false;
        }
        let initialized: Vec<Nanos> = self
            .controls
            .values()
            .filter(|chain| chain.method().as_str() == "initialize")
            .map(|chain| chain.start())
            .collect();
        let apart =
            |first: Nanos, second: Nanos| initialized.iter().any(|at| *at > first && *at <= second);
        self.repeats().any(|starts| starts.windows(2).any(|pair| !apart(pair[0], pair[1])))
    }

    /// Its notes in order; the same as before where none came or left.
    pub(super) fn notes_now(&self) -> Arc<Notes> {
        let known = self.notes.clone();
        known.unwrap_or_else(|| Arc::new(Notes::new(self.note_facts.values().cloned())))
    }

    pub(super) fn compute(
        &self,
        key: &ScopeKey,
        notes: Arc<Notes>,
        endings: &dyn Fn(&Chain) -> Ending,
    ) -> ScopeView {
        let era = [Era::Modern, Era::Legacy].into_iter().find(|era| self.eras.contains_key(era));
        let mut view = ScopeView {
            era,
            version: self.version(),
            server: self.servers.keys().next().cloned(),
            first_answer: self.answers.first().map(|(time, _)| *time),
            records_tokens: self.records_tokens(),
            ..ScopeView::default()
        };
        self.negotiate(&mut view, &notes, endings);
        let covered = self.covered(&view, &notes, endings);
        let signals = signals(&notes, &view, &covered, self.subscriptions_known(&notes));
        view.timeline = Timeline {
            traversals: traversals(self.pages(endings)),
            signals,
            covered,
            mixed: self.mixed(key),
        };
        view.notes = notes;
        view
    }

    /// The version agreed on: an `initialize` knows, else the one used first.
    fn version(&self) -> Option<Name> {
        let initialize = self.controls.values().filter(|c| c.method().as_str() == "initialize");
        let agreed = initialize.filter_map(|chain| chain.version()).min();
        let first = self.versions.iter().min_by_key(|(_, all)| all.first().copied());
        agreed.cloned().or_else(|| first.map(|(version, _)| version.clone()))
    }

    fn negotiate(&self, view: &mut ScopeView, notes: &Notes, endings: &dyn Fn(&Chain) -> Ending) {
        let mut agreed = false;
        for chain in self.controls.values() {
            let negotiations = || chain.sides().filter_map(|side| side.half.negotiation.as_deref());
            let names = |all: &Vec<Name>| -> BTreeSet<Name> { all.iter().cloned().collect() };
            for negotiation in negotiations() {
                if let Some(all) = &negotiation.client_capabilities {
                    view.client_capabilities.get_or_insert_default().extend(names(all));
                }
                if let Some(all) = &negotiation.server_capabilities {
                    view.server_capabilities.get_or_insert_default().extend(names(all));
                }
            }
            if chain.method().as_str() == "initialize" {
                match endings(chain) {
                    Ending::Result { .. } => agreed = true,
                    Ending::Incompatible { .. } => view.negotiation_failed = true,
                    _ => {}
                }
            }
        }
        view.negotiated = agreed && notes.seen(INITIALIZED);
    }

    /// When change signals would have arrived.
    fn covered(
        &self,
        view: &ScopeView,
        notes: &Notes,
        endings: &dyn Fn(&Chain) -> Ending,
    ) -> Vec<Covered> {
        if view.era != Some(Era::Modern) {
            let declared = view
                .server_capabilities
                .as_ref()
                .is_some_and(|all| all.contains(TOOLS_LIST_CHANGED));
            let always = Covered { from: 0, to: Nanos::MAX, broke: false };
            return declared.then_some(always).into_iter().collect();
        }
        let mut covered = Vec::new();
        let acknowledged = notes.acknowledged();
        for chain in self.listens() {
            let subscribed = subscribed(chain)
                .chain(acknowledged.iter().map(|(_, names)| names))
                .any(|names| names.iter().any(|name| name.as_str() == TOOLS_LIST_CHANGED));
            if subscribed {
                let ended = chain.sides().any(|side| side.ended);
                let ending = endings(chain);
                let kept = matches!(
                    ending,
                    Ending::Result { .. } | Ending::Open | Ending::Unobserved | Ending::Cancelled
                );
                let to = if ended { chain.stop() } else { Nanos::MAX };
                covered.push(Covered { from: chain.start(), to, broke: ended && !kept });
            }
        }
        covered.sort_by_key(|span| (span.from, span.to));
        covered
    }

    fn listens(&self) -> impl Iterator<Item = &Arc<Chain>> {
        self.controls.values().filter(|chain| chain.method().as_str() == "subscriptions/listen")
    }

    /// Whether it is known of every subscription what the server acknowledged.
    fn subscriptions_known(&self, notes: &Notes) -> bool {
        let untold = |chain: &&Arc<Chain>| subscribed(chain).next().is_none();
        let untold = self.listens().filter(untold).count();
        self.listens().next().is_some() && untold <= notes.acknowledged().len()
    }

    fn pages(&self, endings: &dyn Fn(&Chain) -> Ending) -> Vec<Page> {
        let lists = self.controls.values().filter(|c| c.method().as_str() == "tools/list");
        let page = |chain: &Arc<Chain>| {
            let facts = chain.sides().filter_map(|side| side.half.list.as_deref());
            let facts = facts.cloned().reduce(merge_lists).unwrap_or_default();
            let ending = endings(chain);
            Page {
                span: chain.key().span,
                start: chain.start(),
                stop: chain.stop(),
                answered: (ending != Ending::Open)
                    .then_some(matches!(ending, Ending::Result { .. } | Ending::Unobserved)),
                auth: chain.auth_context(),
                facts,
            }
        };
        lists.map(page).collect()
    }
}

/// The asking half's knowledge of a page first: it is what the client has.
fn merge_lists(mine: ListFacts, theirs: ListFacts) -> ListFacts {
    ListFacts {
        cursor: mine.cursor.or(theirs.cursor),
        headless: mine.headless && theirs.headless,
        next_cursor: mine.next_cursor.or(theirs.next_cursor),
        ttl: mine.ttl.or(theirs.ttl),
        tools: if mine.tools.is_empty() { theirs.tools } else { mine.tools },
        discovered: mine.discovered.or(theirs.discovered),
        installed: mine.installed.or(theirs.installed),
        tool_count: mine.tool_count.or(theirs.tool_count),
        definitions: mine.definitions.or(theirs.definitions),
    }
}

/// What a subscription covers, as its halves say.
fn subscribed(chain: &Chain) -> impl Iterator<Item = &Vec<Name>> {
    chain.sides().filter_map(|side| side.half.negotiation.as_deref()?.subscribed.as_ref())
}

/// `known`: what each subscription covers.
fn signals(notes: &Notes, view: &ScopeView, covered: &[Covered], known: bool) -> Vec<Signal> {
    let declared = view.server_capabilities.as_ref();
    let modern = view.era == Some(Era::Modern);
    let signal = |fact: &Arc<Fact>| {
        let at = fact.start;
        let counts = covered.iter().any(|span| span.from <= at && at <= span.to);
        let declared_not = declared.is_some_and(|all| !all.contains(TOOLS_LIST_CHANGED));
        // In modern, one that nobody subscribed to is undeclared only where subscriptions or the
        // declaration are known at all.
        let outside = modern && (known || !covered.is_empty());
        let undeclared = !counts && (declared_not || outside);
        Signal { at, span: fact.id.at.span, counts, undeclared }
    };
    let mut all: Vec<Signal> = notes.of(LIST_CHANGED).into_iter().map(signal).collect();
    all.sort();
    all
}
