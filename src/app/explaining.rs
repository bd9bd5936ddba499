//! From what the engine knows of a chain to what is published of it.

use crate::engine::{Explained, WhatIf};
use crate::page::evidence::{Change, Clocks, Evidence, Source};
use crate::show::evidence::{beside, name, note, said, source};

pub fn evidence(explained: &Explained, changes: &[WhatIf]) -> Evidence {
    let sources = explained.facts.iter().map(|(role, fact)| Source {
        role: name(*role),
        source: source(fact),
        trace_id: fact.id.at.trace,
        span_id: fact.id.at.span,
        service: fact.process.service.clone(),
        instrumentation_scope: fact.scope.clone(),
        start_time: fact.start.to_string(),
        end_time: fact.end.to_string(),
        says: said(fact),
    });
    let change = |change: &WhatIf| Change {
        attributes: change.attributes.iter().copied().collect(),
        state: change.state,
        reason: change.reason,
        first_failed_layer: change.first_failed_layer,
    };
    let exchange = &explained.exchange;
    Evidence {
        facts: sources.collect(),
        beside: beside(exchange),
        judgement: explained.notes.iter().filter_map(note).collect(),
        alone: explained.alone.as_ref().map(|alone| alone.state),
        changes: changes.iter().map(change).collect(),
        clocks: Clocks { deadline: exchange.deadline, inactivity: exchange.inactivity },
    }
}
