//! Whether the client's tools are the server's tools (judgment.md §6): the timeline of one scope's
//! catalog, and the answer at any moment of it.

use super::traversal::{Page, Reached, Traversal};
use crate::model::attributes::{LIST_TOOLS, REGISTRY_DISCOVERED_DIGEST, REGISTRY_INSTALLED_DIGEST};
use crate::model::digest::Digest;
use crate::model::fact::Definitions;
use crate::model::findings::{Code, Detail, Finding};
use crate::model::ids::{Name, Nanos, SECOND, SpanId};
use crate::model::words::Convergence;

/// A `list_changed` notification.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Signal {
    pub at: Nanos,
    pub span: SpanId,
    /// Declared and, in modern, inside an acknowledged subscription that covers it.
    pub counts: bool,
    /// It is known that it was not declared, or not subscribed.
    pub undeclared: bool,
}

/// Time during which change signals would have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Covered {
    pub from: Nanos,
    pub to: Nanos,
    /// The stream ended in a failure: whatever came afterwards was missed.
    pub broke: bool,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Timeline {
    /// Oldest first.
    pub traversals: Vec<Traversal>,
    /// Oldest first.
    pub signals: Vec<Signal>,
    /// Legacy: from the negotiation on, where `tools.listChanged` was declared. Modern: the
    /// acknowledged subscriptions.
    pub covered: Vec<Covered>,
    /// Two connections that telemetry cannot tell apart (§4.6).
    pub mixed: bool,
}

/// Storm: this many signals inside this time.
const STORM: (usize, Nanos) = (10, 60 * SECOND);

impl Timeline {
    /// The first row of the table in §6 that fits at time `at`. `offered` is what the newest model
    /// span before the call was shown, if any; `max_age` is how long a listing is fresh by itself.
    pub fn convergence(
        &self,
        at: Nanos,
        max_age: Nanos,
        offered: Option<&Definitions>,
    ) -> Convergence {
        let begun = || self.traversals.iter().rev().filter(|traversal| traversal.start <= at);
        if begun().next().is_none() || self.mixed || !self.bounded(at, max_age) {
            return Convergence::Unverifiable;
        }
        let signal = self.last_signal(at, |signal| signal.counts).map(|signal| signal.at);
        let since = || begun().filter(|traversal| signal.is_none_or(|at| traversal.start >= at));
        if let Some(in_force) = since().find(|traversal| traversal.reached_by(at) == Reached::End) {
            return self.against_installed(in_force, at, offered);
        }
        let ends: Vec<Reached> = since().filter_map(|traversal| told_by(traversal, at)).collect();
        let broken_off = signal.is_some_and(|signal| {
            let before = begun().find(|traversal| traversal.start < signal);
            before.is_some_and(|traversal| torn(traversal, signal))
        });
        match (ends.iter().find(|end| **end != Reached::Failed), signal) {
            (Some(Reached::Unknown), _) => Convergence::Unverifiable,
            (Some(_), _) => Convergence::Incomplete,
            (None, _) if broken_off || !ends.is_empty() => Convergence::Incomplete,
            (None, Some(_)) => Convergence::Stale,
            // The first listing runs, and nobody says what of it came.
            (None, None) => Convergence::Unverifiable,
        }
    }

    fn last_signal(&self, at: Nanos, fits: impl Fn(&Signal) -> bool) -> Option<&Signal> {
        self.signals.iter().rev().find(|signal| signal.at <= at && fits(signal))
    }

    /// Somebody would have told of a change since the listing, or it is young enough. What failed
    /// is no listing, and half a refresh is none where a whole listing came before.
    fn bounded(&self, at: Nanos, max_age: Nanos) -> bool {
        let told = |span: &Covered| span.from <= at && at <= span.to;
        let begun = || self.traversals.iter().rev().filter(|traversal| traversal.start <= at);
        let whole = begun().find(|traversal| traversal.reached_by(at) == Reached::End);
        let bound =
            whole.or_else(|| begun().find(|traversal| traversal.reached != Reached::Failed));
        self.covered.iter().any(told)
            || bound.is_some_and(|listing| at <= listing.stop.saturating_add(max_age))
    }

    fn against_installed(
        &self,
        in_force: &Traversal,
        at: Nanos,
        offered: Option<&Definitions>,
    ) -> Convergence {
        let missed = |span: &Covered| span.broke && span.to > in_force.start && span.to <= at;
        let uncounted = self.last_signal(at, |signal| !signal.counts);
        let unheard = uncounted.is_some_and(|signal| signal.at > in_force.start);
        let installed = self.installed(at);
        let by_digest = match (in_force.discovered(), installed) {
            (Some(a), Some(b)) if a.comparable(b) => Some(a == *b),
            _ => None,
        };
        let agrees = by_digest.or_else(|| in_force.offered_alike(offered?));
        match agrees {
            Some(false) => Convergence::Stale,
            _ if unheard || self.covered.iter().any(missed) => Convergence::Unverifiable,
            Some(true) => Convergence::Converged,
            None => Convergence::Unverifiable,
        }
    }

    /// The installed digest stated last.
    pub fn installed(&self, at: Nanos) -> Option<&Digest> {
        let pages = self.traversals.iter().flat_map(|traversal| &traversal.pages);
        let stated = pages.filter(|page| page.stop <= at && page.facts.installed.is_some());
        stated.max_by_key(|page| (page.stop, page.span)).and_then(|p| p.facts.installed.as_ref())
    }

    /// The complete listing in force at a time.
    pub fn listing(&self, at: Nanos) -> Option<&Traversal> {
        self.traversals.iter().rev().find(|traversal| traversal.complete() && traversal.stop <= at)
    }

    /// The newest listing of any completeness that showed tools.
    pub fn newest_listing(&self, at: Nanos) -> Option<&Traversal> {
        let shown = |t: &&Traversal| t.stop <= at && !t.tools().is_empty();
        self.traversals.iter().rev().find(shown)
    }

    pub fn pages(&self) -> u64 {
        self.traversals.iter().map(|traversal| traversal.pages.len() as u64).sum()
    }

    /// Session findings of §7 about the catalog. `activity` is the start of the scope's last
    /// request; `called` tells whether it has a call from one time until before another; `modern`
    /// gates the cache hint.
    pub fn findings(
        &self,
        activity: Nanos,
        called: &dyn Fn(Nanos, Nanos) -> bool,
        modern: bool,
    ) -> Vec<Finding> {
        let mut found = Vec::new();
        self.signal_findings(activity, &mut found);
        for (number, traversal) in self.traversals.iter().enumerate() {
            self.traversal_findings(number, traversal, activity, &mut found);
            if modern && let Some(finding) = self.expired(number, traversal, called) {
                found.push(finding);
            }
        }
        found.extend(self.unstable_order());
        found
    }

    fn signal_findings(&self, activity: Nanos, found: &mut Vec<Finding>) {
        let undeclared: Vec<SpanId> =
            self.signals.iter().filter(|s| s.undeclared).map(|s| s.span).collect();
        if !undeclared.is_empty() {
            found.push(Finding::new(Code::UndeclaredNotification, undeclared));
        }
        let last = self.signals.iter().rev().find(|signal| signal.counts);
        if let Some(last) = last
            && activity > last.at
            && !self.pages_since(last.at)
        {
            found.push(Finding::new(Code::ListChangedUnanswered, vec![last.span]));
        }
        let storm =
            self.signals.windows(STORM.0).find(|some| some[STORM.0 - 1].at - some[0].at <= STORM.1);
        if let Some(storm) = storm {
            let spans = storm.iter().map(|signal| signal.span).collect();
            found.push(Finding::new(Code::ListChangedStorm, spans));
        }
    }

    fn pages_since(&self, at: Nanos) -> bool {
        self.traversals.iter().flat_map(|traversal| &traversal.pages).any(|page| page.start >= at)
    }

    fn traversal_findings(
        &self,
        number: usize,
        traversal: &Traversal,
        activity: Nanos,
        found: &mut Vec<Finding>,
    ) {
        let spans = || traversal.spans();
        if traversal.reached == Reached::Loop {
            found.push(Finding::new(Code::CursorLoop, spans()));
        }
        let later = activity > traversal.stop || number + 1 < self.traversals.len();
        if traversal.left() && later {
            found.push(Finding::new(Code::PaginationAbandoned, spans()));
        }
        if self.signals.iter().any(|signal| signal.counts && torn(traversal, signal.at)) {
            found.push(Finding::new(Code::TornCatalog, spans()));
        }
        let mut names: Vec<_> = traversal.tools().into_iter().map(|(name, _)| name).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        if names.len() < all {
            let twice = Detail::Count((all - names.len()) as u64);
            found.push(Finding::new(Code::DuplicateToolName, spans()).detail(twice));
        }
        if traversal.definitions().any(|tool| tool.unsafe_number) {
            found.push(Finding::new(Code::UnsafeNumber, spans()));
        }
        if let Some(key) = traversal.pages.iter().find_map(foreign_digest) {
            let key = Detail::Key(Name::new(key));
            found.push(Finding::new(Code::DigestSchemeMismatch, spans()).detail(key));
        }
    }

    /// A call after the hint ran out, and no listing begun in between.
    fn expired(
        &self,
        number: usize,
        traversal: &Traversal,
        called: &dyn Fn(Nanos, Nanos) -> bool,
    ) -> Option<Finding> {
        let until = traversal.fresh_until()?;
        let next = self.traversals.get(number + 1).map_or(Nanos::MAX, |next| next.start);
        called(until, next).then(|| Finding::new(Code::CatalogTtlExpired, traversal.spans()))
    }

    /// Two complete traversals, same digest, other order of the same names.
    fn unstable_order(&self) -> Option<Finding> {
        let complete: Vec<&Traversal> = self.traversals.iter().filter(|t| t.complete()).collect();
        let names = |traversal: &Traversal| -> Vec<_> {
            traversal.tools().into_iter().map(|(name, _)| name).collect()
        };
        let differs = complete.windows(2).find(|pair| {
            let digests = (pair[0].discovered(), pair[1].discovered());
            let (first, second) = (names(pair[0]), names(pair[1]));
            let sorted = |mut all: Vec<_>| {
                all.sort();
                all
            };
            matches!(digests, (Some(a), Some(b)) if a == b)
                && first != second
                && sorted(first) == sorted(second)
        })?;
        let spans = differs.iter().flat_map(|traversal| traversal.spans()).collect();
        Some(Finding::new(Code::UnstableOrder, spans))
    }
}

/// How far a traversal had come, where anything says so: that one runs says nothing of its pages.
fn told_by(traversal: &Traversal, at: Nanos) -> Option<Reached> {
    let reached = traversal.reached_by(at);
    let told = traversal.paged() || matches!(reached, Reached::Unknown | Reached::Failed);
    told.then_some(reached)
}

/// The attribute of a page under which a digest of another scheme stands.
fn foreign_digest(page: &Page) -> Option<&'static str> {
    let foreign = |digest: &Digest| matches!(digest, Digest::Foreign(_));
    let facts = &page.facts;
    let stands = [
        (REGISTRY_DISCOVERED_DIGEST, facts.discovered.as_ref().is_some_and(foreign)),
        (REGISTRY_INSTALLED_DIGEST, facts.installed.as_ref().is_some_and(foreign)),
        (LIST_TOOLS, facts.tools.iter().any(|(_, digest)| foreign(digest))),
    ];
    stands.into_iter().find_map(|(key, stands)| stands.then_some(key))
}

/// A change signal inside a traversal.
fn torn(traversal: &Traversal, signal: Nanos) -> bool {
    traversal.start < signal && signal < traversal.stop
}
