//! References (judgment.md §6, contracts): what each tool of a server was last read to be, per
//! authorization context, who read it first, and what a call's contract is worth against that.

use std::collections::BTreeMap;

use super::diff::{diff, removed};
use super::grade::Located;
use crate::model::case::ContractSeen;
use crate::model::digest::{Definition, Digest, SCHEME};
use crate::model::ids::{Name, Nanos, SpanRef};
use crate::model::policy::{Context, ContractMode, Contracts, Pins};
use crate::model::record::Drift;
use crate::model::words::{Confidence, ContractStatus, Grade, Reason};

/// One tool as one traversal showed it.
#[derive(Clone, PartialEq, Debug)]
pub struct Reading {
    pub context: Context,
    pub tool: Name,
    /// When the listing was complete, or the page was read.
    pub at: Nanos,
    /// `None`: a complete listing no longer has it.
    pub digest: Option<Digest>,
    pub definition: Option<Definition>,
    /// The traversal that showed it: its scope's name and its start.
    pub by: (Name, Nanos),
    pub span: SpanRef,
}

/// The changes of every tool of one server, oldest first; the first one is the first sight.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct References {
    changes: BTreeMap<Name, BTreeMap<Context, Vec<Reading>>>,
}

impl References {
    pub fn new(mut readings: Vec<Reading>) -> Self {
        readings.sort_by(|a, b| (a.at, a.span, &a.tool).cmp(&(b.at, b.span, &b.tool)));
        let mut changes: BTreeMap<Name, BTreeMap<Context, Vec<Reading>>> = BTreeMap::new();
        for reading in readings {
            let of_tool = changes.entry(reading.tool.clone()).or_default();
            let known = of_tool.entry(reading.context.clone()).or_default();
            match known.last() {
                None if reading.digest.is_none() => {}
                Some(last) if last.digest == reading.digest => {}
                _ => known.push(reading),
            }
        }
        for of_tool in changes.values_mut() {
            of_tool.retain(|_, readings| !readings.is_empty());
        }
        changes.retain(|_, of_tool| !of_tool.is_empty());
        Self { changes }
    }

    /// Every line of the server: tool, context, and its changes, oldest first.
    pub fn lines(&self) -> impl Iterator<Item = (&Name, &Context, &[Reading])> {
        let of_tool = |(tool, contexts)| lines_of(tool, contexts);
        self.changes.iter().flat_map(of_tool)
    }

    /// The lines of one tool.
    pub fn lines_of(&self, tool: &str) -> impl Iterator<Item = (&Name, &Context, &[Reading])> {
        let found = self.changes.get_key_value(tool).into_iter();
        found.flat_map(|(tool, contexts)| lines_of(tool, contexts))
    }

    fn readings_of(&self, tool: &str) -> impl Iterator<Item = &Reading> {
        self.lines_of(tool).flat_map(|(_, _, readings)| readings)
    }

    /// The changes of a tool in one context, oldest first.
    pub fn of(&self, context: &Context, tool: &str) -> &[Reading] {
        let line = self.changes.get(tool).and_then(|contexts| contexts.get(context));
        line.map_or(&[], Vec::as_slice)
    }

    /// The newest definition of a tool that anybody had read by a time.
    pub fn any(&self, tool: &Name, at: Nanos) -> Option<&Definition> {
        let read = self.readings_of(tool).filter(|reading| reading.at <= at);
        let shown = read.filter(|reading| reading.definition.is_some());
        let newest = shown.max_by_key(|reading| (reading.at, reading.span));
        newest.and_then(|reading| reading.definition.as_ref())
    }

    /// A tool's definition with this digest, whoever read it.
    pub fn definition(&self, tool: &str, digest: &Digest) -> Option<&Definition> {
        self.readings_of(tool)
            .filter(|reading| reading.digest.as_ref() == Some(digest))
            .find_map(|reading| reading.definition.as_ref())
    }

    /// The newest reading of other contexts before a time.
    fn elsewhere(&self, context: &Context, tool: &Name, at: Nanos) -> Option<&Reading> {
        let others = self.lines_of(tool).filter(|(_, of, _)| *of != context);
        others
            .flat_map(|(_, _, readings)| readings)
            .filter(|reading| reading.at < at && reading.digest.is_some())
            .max_by_key(|reading| (reading.at, reading.span))
    }

    /// The newest reading of the context at a time.
    pub fn newest(&self, context: &Context, tool: &Name, at: Nanos) -> Option<&Reading> {
        self.of(context, tool).iter().rev().find(|reading| reading.at <= at)
    }
}

fn lines_of<'a>(
    tool: &'a Name,
    contexts: &'a BTreeMap<Context, Vec<Reading>>,
) -> impl Iterator<Item = (&'a Name, &'a Context, &'a [Reading])> {
    contexts.iter().map(move |(context, readings)| (tool, context, readings.as_slice()))
}

/// A call, as its contract is looked up.
pub struct Holder<'a> {
    pub context: Context,
    pub tool: &'a Name,
    pub at: Nanos,
    /// What the caller holds, as far as anybody saw, and the traversal it came from.
    pub holds: Option<(Digest, Option<Definition>)>,
    pub from: Option<(Name, Nanos)>,
}

/// Status of a call against the reference before its own re-read (§6).
pub fn contract(
    references: &References,
    pins: &Pins,
    rules: &Contracts,
    call: &Holder<'_>,
) -> ContractSeen {
    let newest = references.newest(&call.context, call.tool, call.at);
    let known = call.holds.as_ref().map(|(digest, _)| digest.clone());
    let digest = known.or_else(|| newest.and_then(|reading| reading.digest.clone()));
    let unknown = ContractSeen {
        status: Some(ContractStatus::Unknown),
        digest: digest.clone(),
        ..ContractSeen::default()
    };
    if rules.mode == ContractMode::Off {
        return unknown;
    }
    let pinned = pin_of(pins, call);
    if pinned.is_none() && rules.mode == ContractMode::Enforce {
        return ContractSeen {
            status: Some(ContractStatus::Unpinned),
            digest,
            red: Some(Reason::ContractUnpinned),
            ..ContractSeen::default()
        };
    }
    let Some((holds, definition)) = &call.holds else { return unknown };
    let reference = match (pinned, rules.mode) {
        (Some(pin), _) => Reference {
            digest: pin.clone(),
            definition: references.definition(call.tool, pin).cloned(),
            weak: false,
        },
        (None, ContractMode::Pin) => match first(references, call) {
            Some(reference) => reference,
            None => Reference::own(holds),
        },
        (None, _) => before_own(references, call).unwrap_or_else(|| Reference::own(holds)),
    };
    if !reference.digest.comparable(holds) {
        return unknown;
    }
    if reference.digest == *holds {
        return ContractSeen { status: Some(ContractStatus::Pinned), ..unknown };
    }
    let located = reference.definition.as_ref().zip(definition.as_ref());
    let located = located.and_then(|(old, new)| diff(old, new));
    drifted(unknown, &reference, located, rules, newest, holds)
}

struct Reference {
    digest: Digest,
    definition: Option<Definition>,
    /// Another context's: never red.
    weak: bool,
}

impl Reference {
    fn own(holds: &Digest) -> Self {
        Self { digest: holds.clone(), definition: None, weak: false }
    }

    fn of(reading: &Reading, weak: bool) -> Option<Self> {
        let digest = reading.digest.clone()?;
        Some(Self { digest, definition: reading.definition.clone(), weak })
    }
}

fn drifted(
    unknown: ContractSeen,
    reference: &Reference,
    located: Option<Located>,
    rules: &Contracts,
    newest: Option<&Reading>,
    holds: &Digest,
) -> ContractSeen {
    let grade = located.as_ref().map_or(Grade::Unlocated, |located| located.grade);
    // By default a change becomes the new reference: only a caller that still holds another
    // definition is stopped.
    let behind = match rules.mode {
        ContractMode::Observe => newest
            .is_some_and(|reading| reading.digest.as_ref().is_none_or(|digest| digest != holds)),
        _ => true,
    };
    let red = behind && !reference.weak && rules.fail_on.contains(&grade);
    let pointers = located.map_or(Vec::new(), |located| {
        located.changes.iter().take(8).map(|change| Name::new(&change.pointer)).collect()
    });
    let confidence = if reference.weak { Confidence::Weak } else { Confidence::Strong };
    ContractSeen {
        status: Some(ContractStatus::Drifted),
        red: red.then_some(Reason::ContractDrift),
        pointers,
        confidence: Some(confidence),
        ..unknown
    }
}

fn pin_of<'a>(pins: &'a Pins, call: &Holder<'_>) -> Option<&'a Digest> {
    let exact = pins.get(&(call.tool.clone(), Some(call.context.clone())));
    exact.or_else(|| pins.get(&(call.tool.clone(), None)))
}

/// Trust on first use: the context's first reading, whoever's.
fn first(references: &References, call: &Holder<'_>) -> Option<Reference> {
    let first = references.of(&call.context, call.tool).first().filter(|r| r.at <= call.at)?;
    let own = call.from.as_ref() == Some(&first.by);
    let foreign = || references.elsewhere(&call.context, call.tool, first.at);
    match foreign().filter(|_| own) {
        Some(other) => Reference::of(other, true),
        None => Reference::of(first, false),
    }
}

/// The newest reading before the one by which the caller knows the tool.
fn before_own(references: &References, call: &Holder<'_>) -> Option<Reference> {
    let mine = references.of(&call.context, call.tool);
    let others = mine
        .iter()
        .filter(|reading| reading.at <= call.at && call.from.as_ref() != Some(&reading.by));
    let newest = others.max_by_key(|reading| (reading.at, reading.span));
    let first = mine.first().map_or(call.at, |reading| reading.at);
    match newest {
        Some(reading) => Reference::of(reading, false),
        None => Reference::of(references.elsewhere(&call.context, call.tool, first)?, true),
    }
}

impl References {
    /// Every drift of the server, each once, however many contexts saw it.
    pub fn drifts(&self, server: &Name, pins: &Pins, mode: ContractMode) -> Vec<Drift> {
        if mode == ContractMode::Off {
            return Vec::new();
        }
        // Many contexts see the same step: the first of them tells it.
        let mut found: BTreeMap<(&Name, Digest, Option<Digest>), Step<'_>> = BTreeMap::new();
        for (tool, contexts) in &self.changes {
            let by_time = by_time(contexts);
            for (context, readings) in contexts {
                let pin = pin_for(pins, tool, context);
                for step in steps(self, &by_time, context, tool, readings, pin, mode) {
                    let key = (tool, step.old.digest.clone(), step.new.digest.clone());
                    if found.get(&key).is_none_or(|known| step.rank() < known.rank()) {
                        found.insert(key, step);
                    }
                }
            }
        }
        found.values().filter_map(|step| drift(server, step)).collect()
    }
}

/// What a context has pinned of a tool, else what is pinned for anyone.
fn pin_for<'a>(pins: &'a Pins, tool: &Name, context: &Context) -> Option<&'a Digest> {
    if pins.is_empty() {
        return None;
    }
    let own = pins.get(&(tool.clone(), Some(context.clone())));
    own.or_else(|| pins.get(&(tool.clone(), None)))
}

/// All readings of one tool that show it, oldest first.
fn by_time(contexts: &BTreeMap<Context, Vec<Reading>>) -> Vec<&Reading> {
    let shown = contexts.values().flatten().filter(|reading| reading.digest.is_some());
    let mut all: Vec<&Reading> = shown.collect();
    all.sort_by_key(|reading| (reading.at, reading.span));
    all
}

/// One change of a tool in one context.
struct Step<'a> {
    old: Old<'a>,
    new: &'a Reading,
    confidence: Confidence,
}

impl Step<'_> {
    fn rank(&self) -> (Confidence, Nanos, SpanRef) {
        (self.confidence, self.new.at, self.new.span)
    }
}

#[derive(Clone, Copy)]
struct Old<'a> {
    digest: &'a Digest,
    definition: Option<&'a Definition>,
}

impl<'a> Old<'a> {
    fn of(reading: &'a Reading) -> Option<Self> {
        let digest = reading.digest.as_ref()?;
        Some(Self { digest, definition: reading.definition.as_ref() })
    }
}

/// What changed against what, in one context.
fn steps<'a>(
    references: &'a References,
    by_time: &[&'a Reading],
    context: &Context,
    tool: &Name,
    readings: &'a [Reading],
    pin: Option<&'a Digest>,
    mode: ContractMode,
) -> Vec<Step<'a>> {
    let Some(first) = readings.first() else { return Vec::new() };
    let mut steps = Vec::new();
    let earlier = by_time.partition_point(|reading| reading.at < first.at);
    let other = by_time[..earlier].iter().rev().find(|reading| reading.context != *context);
    let other = other.filter(|other| other.digest != first.digest);
    if let Some(old) = other.and_then(|other| Old::of(other)) {
        steps.push(Step { old, new: first, confidence: Confidence::Weak });
    }
    let fixed = match (pin, mode) {
        (Some(pin), _) => Some(Old { digest: pin, definition: references.definition(tool, pin) }),
        (None, ContractMode::Pin) => Old::of(first),
        _ => None,
    };
    let mut last = Old::of(first);
    for reading in readings {
        let against = fixed.as_ref().or(last.as_ref());
        if let Some(old) = against.filter(|old| reading.digest.as_ref() != Some(old.digest)) {
            steps.push(Step { old: *old, new: reading, confidence: Confidence::Strong });
        }
        if let Some(new) = Old::of(reading) {
            last = Some(new);
        }
    }
    steps
}

fn drift(server: &Name, step: &Step<'_>) -> Option<Drift> {
    let Step { old, new, confidence } = step;
    if new.digest.as_ref().is_some_and(|digest| !digest.comparable(old.digest)) {
        return None;
    }
    let located = match (old.definition, &new.definition, &new.digest) {
        (Some(old), Some(new), _) => diff(old, new),
        (Some(old), None, None) => removed(old),
        _ => None,
    };
    let gone = new.digest.is_none() && located.is_none();
    let grade = if gone { Grade::Breaking } else { Grade::Unlocated };
    Some(Drift {
        server: server.clone(),
        tool: new.tool.clone(),
        grade: located.as_ref().map_or(grade, |located| located.grade),
        scheme: Name::new(SCHEME),
        old_digest: old.digest.name(),
        new_digest: new.digest.as_ref().map(Digest::name),
        changes: located.map_or(Vec::new(), |located| located.records()),
        confidence: *confidence,
        first_seen: new.at,
        span: new.span,
    })
}
