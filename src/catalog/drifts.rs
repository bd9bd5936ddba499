//! Drifts (judgment.md §6, contracts): what changed of each tool of a server, against what.

use std::collections::BTreeMap;

use super::diff::{diff, removed};
use super::reference::{Reading, References};
use crate::model::digest::{Definition, Digest, SCHEME};
use crate::model::ids::{Name, Nanos, SpanRef};
use crate::model::policy::{Context, ContractMode, Pins};
use crate::model::record::Drift;
use crate::model::words::{Confidence, Grade};

impl References {
    /// Every drift of the server, each once, however many contexts saw it.
    pub fn drifts(&self, server: &Name, pins: &Pins, mode: ContractMode) -> Vec<Drift> {
        if mode == ContractMode::Off {
            return Vec::new();
        }
        // Many contexts see the same step: the first of them tells it.
        let mut found: BTreeMap<(&Name, Digest, Option<Digest>), Step<'_>> = BTreeMap::new();
        let mut tools: BTreeMap<&Name, Vec<(&Context, &[Reading])>> = BTreeMap::new();
        for (tool, context, readings) in self.lines() {
            tools.entry(tool).or_default().push((context, readings));
        }
        for (tool, contexts) in tools {
            let by_time = by_time(&contexts);
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
fn by_time<'a>(contexts: &[(&Context, &'a [Reading])]) -> Vec<&'a Reading> {
    let all = contexts.iter().flat_map(|(_, readings)| *readings);
    let shown = all.filter(|reading| reading.digest.is_some());
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
