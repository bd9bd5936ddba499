//! What came out, span by span: nothing is counted that is not also recognised.
//!
//! Every span that was sent has one bit. One that comes twice, that nobody sent, or whose bytes are
//! not those that were sent (but for what a verdict adds to them) is a fault of the program under
//! test, and so is what has not come when the run ends.

use std::sync::Arc;
use std::time::Instant;

use crate::protobuf::fields;
use crate::template::{State, Template, place_of};

/// What has to come out beside the spans that were sent.
#[derive(Clone, Copy)]
pub struct Promise {
    /// Spans keep their bytes, but for what a verdict adds. Who decodes and encodes may order them.
    pub bytes: bool,
    /// Halves of MCP requests say what became of the call.
    pub enriched: bool,
    /// Of which calls there is a verdict event.
    pub events: Which,
    /// Of which calls there is a verdict span.
    pub verdict_spans: Which,
}

#[derive(Clone, Copy)]
pub enum Which {
    All,
    /// Calls that failed.
    Problems,
    None,
}

impl Which {
    fn wants(self, state: State) -> bool {
        match self {
            Which::All => true,
            Which::Problems => state == State::Failed,
            Which::None => false,
        }
    }
}

struct Bits {
    words: Vec<u64>,
    ones: u64,
}

impl Bits {
    fn new(size: u64) -> Self {
        Self { words: vec![0; size.div_ceil(64) as usize], ones: 0 }
    }

    /// Whether it was not set before.
    fn set(&mut self, at: u64) -> bool {
        let (word, bit) = (&mut self.words[(at / 64) as usize], 1 << (at % 64));
        let new = *word & bit == 0;
        *word |= bit;
        self.ones += u64::from(new);
        new
    }
}

/// What came and should not have.
#[derive(Clone, Copy, Default)]
struct Faults {
    twice: u64,
    strangers: u64,
    altered: u64,
    unasked: u64,
}

impl Faults {
    /// Enters a verdict of a call.
    fn enter(&mut self, call: Option<(u64, State)>, says: &[u8], which: Which, into: &mut Bits) {
        let Some((call, state)) = call else {
            self.strangers += 1;
            return;
        };
        if !which.wants(state) || memchr::memmem::find(says, state.word()).is_none() {
            self.unasked += 1;
        } else if !into.set(call) {
            self.twice += 1;
        }
    }
}

/// Whether everything has come that was promised.
pub struct Ledger {
    template: Arc<Template>,
    promise: Promise,
    exports: u64,
    spans: Bits,
    enriched: Bits,
    events: Bits,
    verdict_spans: Bits,
    /// Spans still to come of each export, and when its last one came.
    left: Vec<(u64, Option<Instant>)>,
    faults: Faults,
    /// Verdict events that replace an earlier one.
    pub revisions: u64,
    copy: Vec<u8>,
}

impl Ledger {
    pub fn new(template: Arc<Template>, exports: u64, promise: Promise) -> Self {
        let (spans, calls) = (exports * template.spans(), exports * template.calls().len() as u64);
        Self {
            promise,
            exports,
            spans: Bits::new(spans),
            enriched: Bits::new(spans),
            events: Bits::new(calls),
            verdict_spans: Bits::new(calls),
            left: vec![(template.spans(), None); exports as usize],
            faults: Faults::default(),
            revisions: 0,
            copy: Vec::new(),
            template,
        }
    }

    /// Whether all is there of the first so many exports, as long as no others were sent.
    pub fn complete(&self, exports: u64) -> bool {
        self.missing(exports).iter().all(|(count, _)| *count == 0)
    }

    /// How many of the spans that were sent have come.
    pub fn came(&self) -> u64 {
        self.spans.ones
    }

    /// When the last span of an export came.
    pub fn arrived(&self, export: u64) -> Option<Instant> {
        self.left.get(export as usize).and_then(|(_, at)| *at)
    }

    fn missing(&self, exports: u64) -> Vec<(u64, &'static str)> {
        let Promise { enriched, events, verdict_spans, .. } = self.promise;
        let calls = |which: Which| {
            self.template.calls().iter().filter(|state| which.wants(**state)).count() as u64
        };
        let halves = if enriched { self.template.halves() } else { 0 };
        let less = |each: u64, bits: &Bits| (exports * each).saturating_sub(bits.ones);
        vec![
            (less(self.template.spans(), &self.spans), "spans lost"),
            (less(halves, &self.enriched), "MCP spans without a verdict"),
            (less(calls(events), &self.events), "verdict events missing"),
            (less(calls(verdict_spans), &self.verdict_spans), "verdict spans missing"),
        ]
    }

    /// What was not as promised, once the first so many exports were sent and waited for.
    pub fn faults(&self, exports: u64) -> Vec<String> {
        let mut all = self.missing(exports);
        let Faults { twice, strangers, altered, unasked } = self.faults;
        all.push((twice, "spans or verdicts that came twice"));
        all.push((strangers, "spans or verdicts of something that was not sent"));
        all.push((altered, "spans whose bytes are not those that were sent"));
        all.push((unasked, "verdicts that nobody asked for, or that say something else"));
        let wrong = all.into_iter().filter(|(count, _)| *count > 0);
        wrong.map(|(count, says)| format!("{count} {says}")).collect()
    }

    pub fn traces(&mut self, request: &[u8], at: Instant) {
        for (ours, span) in items(request) {
            match ours {
                true => self.verdict_span(span),
                false => self.span(span, at),
            }
        }
    }

    pub fn logs(&mut self, request: &[u8]) {
        for (_, record) in items(request) {
            // Field 12 names the event; records of sessions and the like are not one a call.
            let named = fields(record).find(|(number, _)| *number == 12);
            if named.is_none_or(|(_, name)| name != b"mcp_verdict.verdict") {
                self.revisions += u64::from(is_revision(record));
                continue;
            }
            let trace = fields(record).find(|(number, _)| *number == 9).map(|(_, id)| id);
            let call = trace.and_then(|id| self.call(id));
            self.faults.enter(call, record, self.promise.events, &mut self.events);
        }
    }

    fn verdict_span(&mut self, span: &[u8]) {
        // Of each revision there is one, whatever became of the call; its event is counted.
        if is_revision(span) {
            return;
        }
        let trace = fields(span).find(|(number, _)| *number == 1).map(|(_, id)| id);
        let call = trace.and_then(|id| self.call(id));
        self.faults.enter(call, span, self.promise.verdict_spans, &mut self.verdict_spans);
    }

    /// Which call's trace it is.
    fn call(&self, trace: &[u8]) -> Option<(u64, State)> {
        let export = u64::from_be_bytes(*trace.first_chunk()?).wrapping_sub(1);
        let call = u64::from_be_bytes(*trace.last_chunk()?);
        let calls = self.template.calls();
        let state = calls.get(call as usize).filter(|_| export < self.exports)?;
        Some((export * calls.len() as u64 + call, *state))
    }

    fn span(&mut self, span: &[u8], at: Instant) {
        let place = place_of(span);
        let known = place.filter(|&(place, export)| {
            export < self.exports && (place as u64) < self.template.spans()
        });
        let Some((place, export)) = known else {
            self.faults.strangers += 1;
            return;
        };
        let number = export * self.template.spans() + place as u64;
        if !self.spans.set(number) {
            self.faults.twice += 1;
            return;
        }
        let (left, arrived) = &mut self.left[export as usize];
        *left -= 1;
        *arrived = (*left == 0).then_some(at);
        if !self.promise.bytes {
            return;
        }
        let state = self.template.state(place);
        match (added(span, self.template.span(export, place, &mut self.copy)), state) {
            (Some([]), _) => {}
            (Some(added), Some(state)) if !says(added, state) => self.faults.unasked += 1,
            (Some(_), Some(_)) if self.promise.enriched => drop(self.enriched.set(number)),
            _ => self.faults.altered += 1,
        }
    }
}

fn is_revision(verdict: &[u8]) -> bool {
    memchr::memmem::find(verdict, b"mcp_verdict.supersedes").is_some()
}

fn says(added: &[u8], state: State) -> bool {
    let has = |text: &[u8]| memchr::memmem::find(added, text).is_some();
    has(b"mcp_verdict.state") && has(state.word())
}

/// What stands in `now` at one place more than in `then`.
fn added<'a>(now: &'a [u8], then: &[u8]) -> Option<&'a [u8]> {
    let more = now.len().checked_sub(then.len())?;
    if more == 0 {
        return (now == then).then_some(&[]);
    }
    let same = now.iter().zip(then).take_while(|(a, b)| a == b).count();
    (now[same + more..] == then[same..]).then_some(&now[same..same + more])
}

/// Spans or records of a request, and whether mcp-verdict made them.
fn items(request: &[u8]) -> impl Iterator<Item = (bool, &[u8])> {
    let blocks = fields(request).filter(|(number, _)| *number == 1);
    let scopes = blocks.flat_map(|(_, block)| fields(block).filter(|(number, _)| *number == 2));
    scopes.flat_map(|(_, scope)| {
        let ours = fields(scope).find(|(number, _)| *number == 1).is_some_and(|(_, named)| {
            fields(named).any(|(number, name)| number == 1 && name == b"mcp-verdict")
        });
        fields(scope).filter(|(number, _)| *number == 2).map(move |(_, item)| (ours, item))
    })
}
