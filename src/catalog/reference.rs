//! References (judgment.md §6, contracts): what each tool of a server was last read to be, per
//! authorization context, who read it first, and what a call's contract is worth against that.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::diff::diff;
use super::grade::Located;
use crate::model::case::ContractSeen;
use crate::model::digest::{Definition, Digest};
use crate::model::ids::{Name, Nanos, SpanRef};
use crate::model::policy::{Context, ContractMode, Contracts, Pins};
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

/// The readings of one context by tool, oldest first; the first one is the first sight.
pub type Lines = BTreeMap<Name, Vec<Reading>>;

/// The changes of every tool of one server by who read them. What one context read is one value:
/// another one's listing leaves it as it is.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct References {
    pub(super) contexts: BTreeMap<Context, Arc<Lines>>,
}

/// What of one context's readings is a change.
pub fn lines(mut readings: Vec<Reading>) -> Lines {
    readings.sort_by(|a, b| (a.at, a.span, &a.tool).cmp(&(b.at, b.span, &b.tool)));
    let mut lines = Lines::new();
    for reading in readings {
        let known = lines.entry(reading.tool.clone()).or_default();
        match known.last() {
            None if reading.digest.is_none() => {}
            Some(last) if last.digest == reading.digest => {}
            _ => known.push(reading),
        }
    }
    lines.retain(|_, readings| !readings.is_empty());
    // Most tools are read as one thing for ever.
    lines.values_mut().for_each(Vec::shrink_to_fit);
    lines
}

impl References {
    pub fn new(readings: Vec<Reading>) -> Self {
        let mut of: BTreeMap<Context, Vec<Reading>> = BTreeMap::new();
        for reading in readings {
            of.entry(reading.context.clone()).or_default().push(reading);
        }
        let mut new = Self::default();
        of.into_iter().for_each(|(context, readings)| new.put(context, lines(readings)));
        new
    }

    /// Takes what a context read in place of what it had read.
    pub fn put(&mut self, context: Context, lines: Lines) {
        match lines.is_empty() {
            true => drop(self.contexts.remove(&context)),
            false => drop(self.contexts.insert(context, Arc::new(lines))),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.contexts.is_empty()
    }

    /// What one context read.
    pub fn lines_by(&self, context: &Context) -> Option<&Lines> {
        self.contexts.get(context).map(|lines| &**lines)
    }

    /// Every line of the server, by tool, then context: its changes, oldest first.
    pub fn lines(&self) -> impl Iterator<Item = (&Name, &Context, &[Reading])> {
        let mut all: Vec<(&Name, &Context, &[Reading])> = Vec::new();
        for (context, lines) in &self.contexts {
            all.extend(lines.iter().map(|(tool, readings)| (tool, context, readings.as_slice())));
        }
        all.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        all.into_iter()
    }

    /// The lines of one tool, by context.
    pub fn lines_of(&self, tool: &str) -> impl Iterator<Item = (&Name, &Context, &[Reading])> {
        self.contexts.iter().filter_map(move |(context, lines)| {
            let (tool, readings) = lines.get_key_value(tool)?;
            Some((tool, context, readings.as_slice()))
        })
    }

    fn readings_of(&self, tool: &str) -> impl Iterator<Item = &Reading> {
        self.lines_of(tool).flat_map(|(_, _, readings)| readings)
    }

    /// The changes of a tool in one context, oldest first.
    pub fn of(&self, context: &Context, tool: &str) -> &[Reading] {
        let line = self.contexts.get(context).and_then(|lines| lines.get(tool));
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
