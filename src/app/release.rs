//! Held spans on their way out: enriched, redacted, under the resource and scope they came from.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::emit::attributes;
use crate::emit::redaction::Plan;
use crate::emit::{Enrich, Redact};
use crate::export::{Due, Leaving, Parcel};
use crate::log::Part;
use crate::model::attributes::{LIST_DEFINITIONS, VERDICT_PREFIX};
use crate::model::ids::Position;
use crate::model::record::Verdict;
use crate::wire::inflate::Coding;
use crate::wire::splice::{self, Edit};
use crate::wire::{Signal, regroup};

/// How spans are changed on their way out.
#[derive(Clone, Copy)]
pub struct Changes {
    pub enrich: Enrich,
    pub plan: Plan,
}

impl Changes {
    /// Whether an export may hold something that the plan changes. Looks for keys only where one
    /// key is all that it could be.
    pub fn may_touch(&self, export: &[u8]) -> bool {
        match (self.plan.content, self.plan.definitions) {
            (Redact::Keep, Redact::Keep) => false,
            (Redact::Keep, _) => {
                memchr::memmem::find(export, LIST_DEFINITIONS.as_bytes()).is_some()
            }
            _ => true,
        }
    }

    /// An export as it leaves; the same buffer where nothing changes.
    pub fn apply(&self, signal: Signal, export: &Bytes) -> Bytes {
        if !self.may_touch(export) {
            return export.clone();
        }
        let decide = |place: splice::Place<'_>, value: &crate::wire::scan::ValueRef<'_>| {
            self.plan.decide(place, value)
        };
        match splice::redact_export(signal, export, &decide) {
            std::borrow::Cow::Borrowed(_) => export.clone(),
            std::borrow::Cow::Owned(changed) => Bytes::from(changed),
        }
    }

    /// A span as it leaves, with the verdict that speaks of it.
    fn span(&self, span: &[u8], verdict: Option<&Verdict>) -> Vec<u8> {
        let decide = |place: splice::Place<'_>, value: &crate::wire::scan::ValueRef<'_>| {
            self.plan.decide(place, value)
        };
        let add = verdict.map(|verdict| attributes::on_span(verdict, self.enrich));
        let edit = Edit {
            add: add.as_deref().unwrap_or_default(),
            // A verdict of a chained instance is replaced by ours, or stays where we have none.
            replace_prefix: verdict.is_some().then_some(VERDICT_PREFIX),
            redact: self.may_touch(span).then_some(&decide),
        };
        splice::enrich(span, &edit)
    }
}

/// Spans that leave together.
pub struct Release {
    changes: Changes,
    leaving: Vec<(Leaving, Vec<u8>)>,
    bytes: usize,
    parcels: Vec<Parcel>,
}

/// A parcel is closed at this size: a piece of a release can be delivered before the rest.
const PARCEL: usize = 1 << 20;

impl Release {
    pub fn new(changes: Changes) -> Self {
        Release { changes, leaving: Vec::new(), bytes: 0, parcels: Vec::new() }
    }

    /// Adds a span, enriched by a verdict where there is one.
    pub fn add(&mut self, leaving: Leaving, verdict: Option<&Verdict>) {
        let span = self.changes.span(&leaving.span, verdict);
        self.bytes += span.len();
        self.leaving.push((leaving, span));
        if self.bytes >= PARCEL {
            self.close();
        }
    }

    /// What was added, on its way out.
    pub fn parcels(mut self) -> Vec<Parcel> {
        self.close();
        self.parcels
    }

    fn close(&mut self) {
        let leaving = std::mem::take(&mut self.leaving);
        self.bytes = 0;
        if leaving.is_empty() {
            return;
        }
        let part = |(from, span)| {
            let from: &Leaving = from;
            regroup::Part { resource: &from.resource, scope: &from.scope, item: span }
        };
        let parts: Vec<regroup::Part<'_>> =
            leaving.iter().map(|(from, span)| part((from, span.as_slice()))).collect();
        let bytes = Bytes::from(regroup::regroup(&parts));
        self.parcels.push(Parcel {
            signal: Signal::Traces,
            plain_length: bytes.len(),
            bytes,
            coding: Coding::Identity,
            items: leaving.len(),
            dues: dues(&leaving),
        });
    }
}

fn dues(leaving: &[(Leaving, Vec<u8>)]) -> Arc<[Due]> {
    let mut weights: BTreeMap<Position, u32> = BTreeMap::new();
    for (from, _) in leaving {
        *weights.entry(from.position).or_default() += 1;
    }
    let due = |(position, weight)| Due { position, part: Part::Held, weight };
    weights.into_iter().map(due).collect()
}
