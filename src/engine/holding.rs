//! Held spans: which chain lets each go, and what lets go of those that no chain names.

use std::sync::Arc;

use super::live::{Effect, Engine, Held};
use crate::model::ids::{Arrival, SpanRef};
use crate::model::record::Verdict;

impl Engine {
    /// The spans of a chain: the two that its record names leave enriched, twins as they came.
    pub(super) fn release_chain(
        &mut self,
        key: SpanRef,
        verdict: &Arc<Verdict>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(entry) = self.tables.chains.get(&key) else { return };
        let mut spans = Vec::new();
        for side in entry.chain.sides() {
            let named = side.at();
            spans.push((named, true));
            let twins = side.facts.iter().map(|fact| fact.id.at).filter(|at| *at != named);
            spans.extend(twins.map(|at| (at, false)));
        }
        for (span, named) in spans {
            if let Some(held) = self.held.remove(&span) {
                self.held_due.remove(&(held.due, span));
                let with = named.then(|| verdict.clone());
                effects.push(Effect::Release { span, position: held.position, with });
            }
        }
    }

    /// What was last sent of a span's chain, if its record names the span.
    pub(super) fn said_of(&self, span: SpanRef) -> Option<Arc<Verdict>> {
        let key = self.tables.chain_of(span)?;
        let entry = self.tables.chains.get(&key)?;
        let named = entry.chain.sides().any(|side| side.at() == span);
        let id = self.sent_as.get(&key).filter(|_| named)?;
        self.sent.get(id).map(|sent| sent.verdict.clone())
    }

    /// Held spans whose time is up and whose chain is not about to be sent.
    pub(super) fn release_due(&mut self, now: Arrival, effects: &mut Vec<Effect>) {
        while let Some((due, span)) = self.held_due.first().copied() {
            if due > now.monotonic {
                break;
            }
            self.held_due.remove(&(due, span));
            let waits = self.tables.chain_of(span).and_then(|key| self.pending.get(&key)).copied();
            match (waits, self.held.remove(&span)) {
                (Some(later), Some(held)) if later > now.monotonic => {
                    self.held_due.insert((later, span));
                    self.held.insert(span, Held { due: later, ..held });
                }
                (_, Some(held)) => {
                    let with = self.said_of(span);
                    effects.push(Effect::Release { span, position: held.position, with });
                }
                (_, None) => {}
            }
        }
    }
}
