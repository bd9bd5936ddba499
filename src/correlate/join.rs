//! Halves that no trace joins (judgment.md §4.1): by session id, direction and request id inside
//! the in-flight window; failing that, two that are each the other's only candidate. Also the
//! phantoms that only another trace unmasks.

use std::collections::BTreeMap;

use super::halves::agree;
use super::side::Side;
use crate::model::fact::{Direction, End};
use crate::model::ids::{Nanos, SpanRef};

/// More candidates than this in one window: nobody is joined.
const MOST_CANDIDATES: usize = 64;

/// A request by the side that is looked at: one that knows only one of its ends, or only that it
/// has begun; or a whole one, which a start record may still belong to.
#[derive(Clone, Copy)]
pub struct Lone<'a> {
    pub key: SpanRef,
    pub side: &'a Side,
    /// Both ends are known already.
    pub whole: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum How {
    /// A start record without a trace, and the span it announced.
    Started,
    /// Same session, direction and id.
    Id,
    /// Each the other's only candidate.
    OnlyCandidate,
}

/// `member` is the other half, or the start record, of `leader`'s request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Joined {
    pub leader: SpanRef,
    pub member: SpanRef,
    pub how: How,
}

/// Start records of one (session or process, id), and the spans they announced; and those that
/// still wait for theirs.
fn started<'a>(lones: &[Lone<'a>], skew: Nanos) -> (Vec<Joined>, Vec<Lone<'a>>) {
    let (done, begun): (Vec<Lone>, Vec<Lone>) = lones.iter().partition(|lone| lone.side.ended);
    let mut joined = Vec::new();
    let mut waiting = Vec::new();
    for start in &begun {
        let span = done.iter().find(|lone| {
            lone.side.end == start.side.end
                && agree(&lone.side.half, &start.side.half)
                && covers(lone.side, start.side.start, skew)
        });
        match span {
            Some(span) => {
                joined.push(Joined { leader: span.key, member: start.key, how: How::Started })
            }
            None => waiting.push(*start),
        }
    }
    (joined, done.into_iter().chain(waiting).collect())
}

/// Start records of one (process, id) to their spans.
pub fn by_process(lones: &[Lone<'_>], skew: Nanos) -> Vec<Joined> {
    started(lones, skew).0
}

/// Halves of one (session, id). Start records go to the span they announce first.
pub fn by_id(lones: &[Lone<'_>], skew: Nanos) -> Vec<Joined> {
    let (mut joined, standing) = started(lones, skew);
    let lone: Vec<Lone> = standing.into_iter().filter(|lone| !lone.whole).collect();
    joined.extend(match_halves(&lone, How::Id, skew));
    joined
}

/// Halves of one (method, tool's last word) that nothing else joined.
pub fn by_elimination(lones: &[Lone<'_>], skew: Nanos) -> Vec<Joined> {
    match_halves(lones, How::OnlyCandidate, skew)
}

/// Joins asking and answering halves that are each the other's only candidate.
fn match_halves(lones: &[Lone<'_>], how: How, skew: Nanos) -> Vec<Joined> {
    let mut asking: Vec<&Lone> = lones.iter().filter(|l| l.side.end != End::Answering).collect();
    let mut answering: Vec<&Lone> = lones.iter().filter(|l| l.side.end == End::Answering).collect();
    asking.sort_by_key(|lone| (lone.side.start, lone.key));
    answering.sort_by_key(|lone| (lone.side.start, lone.key));
    // Asking halves by start: the ones that can cover an answer start at most the longest one
    // before it.
    let longest = asking.iter().map(|lone| reach(lone.side, skew)).max().unwrap_or(0);
    let mut askers: BTreeMap<SpanRef, Vec<SpanRef>> = BTreeMap::new();
    let mut answers: BTreeMap<SpanRef, Vec<SpanRef>> = BTreeMap::new();
    for answer in &answering {
        let at = answer.side.start;
        let from = asking.partition_point(|lone| lone.side.start.saturating_add(longest) < at);
        let to = asking.partition_point(|lone| lone.side.start <= at.saturating_add(skew));
        let window = asking.get(from..to).unwrap_or_default();
        if window.len() > MOST_CANDIDATES {
            continue;
        }
        for asker in window.iter().filter(|asker| candidates(asker.side, answer.side, skew)) {
            askers.entry(answer.key).or_default().push(asker.key);
            answers.entry(asker.key).or_default().push(answer.key);
        }
    }
    let only = |(answer, found): (SpanRef, Vec<SpanRef>)| match found.as_slice() {
        [asker] if answers.get(asker).is_some_and(|back| back.len() == 1) => {
            Some(Joined { leader: *asker, member: answer, how })
        }
        _ => None,
    };
    askers.into_iter().filter_map(only).collect()
}

/// How long after its start a half may still be answered: for ever while it is open.
fn reach(side: &Side, skew: Nanos) -> Nanos {
    match side.ended {
        true => side.stop.saturating_sub(side.start).saturating_add(skew),
        false => Nanos::MAX,
    }
}

fn covers(side: &Side, at: Nanos, skew: Nanos) -> bool {
    side.start <= at.saturating_add(skew) && at <= side.start.saturating_add(reach(side, skew))
}

fn candidates(asker: &Side, answer: &Side, skew: Nanos) -> bool {
    let directions = match (asker.half.direction, answer.half.direction) {
        (Direction::Either, _) | (_, Direction::Either) => true,
        (a, b) => a == b,
    };
    directions && agree(&asker.half, &answer.half) && covers(asker, answer.start, skew)
}

/// Calls by start, to find those that run at a time without looking at all of them.
pub struct Calls<'a> {
    /// With the latest end of it and of those before it.
    by_start: Vec<(Nanos, Nanos, &'a Side)>,
    skew: Nanos,
}

impl<'a> Calls<'a> {
    pub fn new(sides: impl Iterator<Item = &'a Side>, skew: Nanos) -> Self {
        let mut calls: Vec<&Side> =
            sides.filter(|side| side.half.method.as_str() == "tools/call").collect();
        calls.sort_by_key(|side| side.start);
        let mut latest = 0;
        let until = |side: &Side| side.start.saturating_add(reach(side, skew));
        let by_start = calls.into_iter().map(|side| {
            latest = until(side).max(latest);
            (side.start, latest, side)
        });
        Self { by_start: by_start.collect(), skew }
    }

    pub fn running_at(&self, at: Nanos) -> impl Iterator<Item = &'a Side> + '_ {
        let begun =
            self.by_start.partition_point(|(start, ..)| *start <= at.saturating_add(self.skew));
        let so_far = self.by_start.get(..begun).unwrap_or_default().iter().rev();
        let near = so_far.take_while(move |(_, latest, _)| at <= *latest);
        near.map(|(_, _, side)| *side)
    }
}

/// Whether a root `tools/list` server span is the framework's own look-up while it serves a call
/// that has the very same id (judgment.md §4.1).
pub fn is_phantom(listing: &Side, call: &Side, skew: Nanos) -> bool {
    let (list, tool) = (&listing.half, &call.half);
    list.method.as_str() == "tools/list"
        && tool.method.as_str() == "tools/call"
        && list.request_id.is_some()
        && list.request_id == tool.request_id
        && covers(call, listing.start, skew)
}
