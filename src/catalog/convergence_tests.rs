//! The table of §6 by what was seen of a catalog until a call.

use super::convergence::{Covered, Signal, Timeline};
use super::traversal::{Page, traversals};
use crate::model::digest::Digest;
use crate::model::fact::ListFacts;
use crate::model::ids::{Digest16, Nanos, SpanId};
use crate::model::words::Convergence;

const MAX_AGE: Nanos = 100;

/// What is said of a page's end.
#[derive(Clone, Copy)]
enum Ends {
    Last,
    Left(&'static str),
    Unsaid,
    Failed,
    Runs,
}
use Ends::*;

/// A page by its times, the cursor it was asked for with, and its end.
fn page(start: Nanos, stop: Nanos, cursor: Option<&str>, ends: Ends) -> Page {
    let mark = |text: &str| Digest16::of(&[text.as_bytes()]);
    let whole = matches!(ends, Last).then_some(Digest::Tool([7; 32]));
    let facts = ListFacts {
        cursor: cursor.map(mark),
        next_cursor: match ends {
            Last => Some(None),
            Left(cursor) => Some(Some(mark(cursor))),
            Unsaid | Failed | Runs => None,
        },
        discovered: whole.clone(),
        installed: whole,
        ..ListFacts::default()
    };
    let answered = match ends {
        Runs => None,
        Failed => Some(false),
        Last | Left(_) | Unsaid => Some(true),
    };
    Page { span: SpanId([start as u8; 8]), start, stop, answered, auth: None, facts }
}

fn told(pages: Vec<Page>) -> Timeline {
    let covered = vec![Covered { from: 0, to: Nanos::MAX, broke: false }];
    Timeline { covered, ..untold(pages) }
}

/// Changes were not negotiated.
fn untold(pages: Vec<Page>) -> Timeline {
    Timeline { traversals: traversals(pages), ..Timeline::default() }
}

fn changed(timeline: Timeline, at: Nanos) -> Timeline {
    let signal = Signal { at, span: SpanId([0; 8]), counts: true, undeclared: false };
    Timeline { signals: vec![signal], ..timeline }
}

fn holds(cases: &[(&str, Timeline, Nanos, Convergence)]) {
    for (name, timeline, at, want) in cases {
        assert_eq!(timeline.convergence(*at, MAX_AGE, None), *want, "{name}");
    }
}

#[test]
fn a_listing_counts_as_far_as_it_had_come() {
    use Convergence::*;
    let paged = || told(vec![page(1, 2, None, Left("a")), page(8, 9, Some("a"), Last)]);
    let refreshed = |ends| vec![page(1, 2, None, Last), page(5, 8, None, ends)];
    holds(&[
        ("before any", told(vec![page(5, 6, None, Last)]), 4, Unverifiable),
        ("in the first page", paged(), 1, Incomplete),
        ("between the pages", paged(), 5, Incomplete),
        ("in the last page", paged(), 8, Incomplete),
        ("after them", paged(), 9, Converged),
        ("in the refresh after a change", changed(told(refreshed(Last)), 4), 6, Incomplete),
        ("after that refresh", changed(told(refreshed(Last)), 4), 8, Converged),
        ("a refresh nobody asked for runs", told(refreshed(Last)), 6, Converged),
        ("pages never told, in the refresh", changed(told(refreshed(Unsaid)), 4), 6, Stale),
        ("pages never told, after it", changed(told(refreshed(Unsaid)), 4), 8, Unverifiable),
        ("an open refresh", changed(told(refreshed(Runs)), 4), 9, Stale),
        ("an open first listing", told(vec![page(1, 1, None, Runs)]), 4, Unverifiable),
    ]);
}

#[test]
fn a_listing_that_failed_is_none() {
    use Convergence::*;
    let first = |ends| page(1, 2, None, ends);
    let failed = || page(5, 6, None, Failed);
    let half = || vec![first(Left("a")), page(3, 4, Some("a"), Failed)];
    let resumed = || [half(), vec![page(6, 7, Some("a"), Last)]].concat();
    holds(&[
        ("the only one", told(vec![failed()]), 9, Incomplete),
        ("one nobody asked for", told(vec![first(Last), failed()]), 9, Converged),
        ("pages never told", told(vec![first(Unsaid), failed()]), 9, Unverifiable),
        ("after a change", changed(told(vec![first(Last), failed()]), 4), 9, Incomplete),
        ("and pages never told", changed(told(vec![first(Unsaid), failed()]), 4), 9, Incomplete),
        ("no refresh after a change", changed(told(vec![first(Last)]), 4), 9, Stale),
        ("a page in the middle", told(half()), 9, Incomplete),
        ("resumed from its cursor", told(resumed()), 9, Converged),
    ]);
}

#[test]
fn only_a_refresh_bounds_what_nobody_tells_of() {
    use Convergence::*;
    let refreshed = |ends| vec![page(1, 2, None, Last), page(90, 91, None, ends)];
    holds(&[
        ("young", untold(refreshed(Last)), 150, Converged),
        ("old", untold(refreshed(Last)), 192, Unverifiable),
        ("the refresh failed", untold(refreshed(Failed)), 150, Unverifiable),
        ("the refresh stopped half way", untold(refreshed(Left("a"))), 150, Unverifiable),
        ("half is all there is", untold(vec![page(90, 91, None, Left("a"))]), 150, Incomplete),
        ("a failure is all there is", untold(vec![page(90, 91, None, Failed)]), 150, Unverifiable),
    ]);
}
