//! From OTLP bytes to facts (judgment.md §3): what each span and log record says in the words of
//! MCP, whatever dialect it was written in.
//!
//! Promises: pure and total; the same bytes and policy give the same sighting; a fact holds names,
//! hashes, codes and flags, never content. Each record is read by itself: joining is correlation's.
//!
//! - `interest` passes over spans that nothing here could read; `item` flattens a record;
//!   nothing else here sees the wire.
//! - `conventions` names every attribute key once; `errors` every error word.
//! - `dialects` reads requests and notifications, one file a family.
//! - `evidence`, `rules` read what people add for us, and what they have anyway.
//! - `assemble` makes the facts.

mod answer;
mod assemble;
mod content;
mod conventions;
mod dialects;
mod digest;
mod draft;
mod errors;
mod evidence;
mod http;
mod interest;
mod item;
mod process;
mod rules;
mod sampling;
mod secrets;
mod time;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::model::fact::{Bone, HeldSpan, Process, Says, Sighting};
use crate::model::policy::Policy;
use crate::wire::Signal;
use crate::wire::scan::{ResourceView, ScopeView, SpanView, resource_logs, resource_spans};
use interest::Interest;
use item::{Bag, Item, Origin};

/// What one export says. Metrics and profiles say nothing.
pub fn sight(signal: Signal, export: &[u8], policy: &Policy) -> Sighting {
    let interest = Interest::new(policy);
    let mut eye = Eye { policy, interest, seen: Sighting::default(), spans: 0 };
    match signal {
        Signal::Traces => resource_spans(export).for_each(|r| eye.resource(r, Eye::spans)),
        Signal::Logs => resource_logs(export).for_each(|r| eye.resource(r, Eye::records)),
        Signal::Metrics | Signal::Profiles => {}
    }
    eye.seen
}

struct Eye<'p> {
    policy: &'p Policy,
    interest: Interest,
    seen: Sighting,
    /// Spans of the export so far.
    spans: usize,
}

impl Eye<'_> {
    fn resource<'a>(
        &mut self,
        view: ResourceView<'a>,
        each: fn(&mut Self, ScopeView<'a>, &Arc<Process>, &Bag<'a>),
    ) {
        let resource = Bag::read(view.attributes());
        let process = process::process(&resource);
        for scope in view.scopes() {
            each(self, scope, &process, &resource);
        }
    }

    fn spans<'a>(&mut self, view: ScopeView<'a>, process: &Arc<Process>, resource: &Bag<'a>) {
        let scope = view.name().lossy();
        let origin = Origin { process, resource, scope: &scope };
        let whole = self.interest.in_scope(scope.as_bytes());
        for span in view.spans() {
            let index = self.spans;
            self.spans += 1;
            if !whole && !self.interest.in_span(&span) {
                self.seen.bones.extend(bare(&span, origin, self.interest.in_http(&span)));
                continue;
            }
            let Some(item) = Item::of_span(&span, origin) else { continue };
            self.seen.bones.push(bone(&item));
            for fact in assemble::facts(&item, self.policy) {
                if matches!(fact.says, Says::Half(_)) && fact.id.at == item.at {
                    self.seen.held.push(HeldSpan { at: item.at, index });
                }
                self.seen.facts.push(Arc::new(fact));
            }
        }
    }

    fn records<'a>(&mut self, view: ScopeView<'a>, process: &Arc<Process>, resource: &Bag<'a>) {
        let scope = view.name().lossy();
        let origin = Origin { process, resource, scope: &scope };
        for record in view.records() {
            let item = Item::of_record(&record, origin);
            self.seen.facts.extend(assemble::facts(&item, self.policy).into_iter().map(Arc::new));
        }
    }
}

/// The bone of a span that says nothing else; its attributes are read for HTTP alone.
fn bare<'a>(span: &SpanView<'a>, origin: Origin<'a>, http: bool) -> Option<Bone> {
    if http {
        return Item::of_span(span, origin).map(|item| bone(&item));
    }
    Item::skeleton(span, origin).map(|item| bone(&item))
}

fn bone(item: &Item<'_>) -> Bone {
    Bone {
        at: item.at,
        parent: item.parent,
        process: item.process.clone(),
        start: item.start,
        end: item.end,
        kind: item.kind,
        status: item.status,
        http: http::read(item),
    }
}
