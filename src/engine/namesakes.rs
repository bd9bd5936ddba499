//! What requests of one scope that share an id or a token say of each other.

use std::collections::BTreeSet;

use super::scopes::{NEAR, Namesakes};
use super::tables::{ChainEntry, Tables};
use crate::correlate::chain::Chain;
use crate::model::fact::Direction;
use crate::model::findings::{Code, Detail, Finding};
use crate::model::ids::{Digest16, Nanos, SpanId, SpanRef};
use crate::model::words::Era;

impl Tables {
    /// Findings about ids, only where a session keys the scope (§4.6).
    pub(super) fn id_findings(&self, key: SpanRef, entry: &ChainEntry, era: Era) -> Vec<Finding> {
        let chain = &entry.chain;
        let (Some(scope), Some(id)) = (self.scopes.get(&entry.scope), chain.request_id()) else {
            return Vec::new();
        };
        if !entry.scope.keyed_by_session() {
            return Vec::new();
        }
        let mut found = Vec::new();
        let same = scope.same_id(chain.direction(), id);
        for other in near(same, (chain.start(), key)) {
            let Some(twin) = self.chains.get(&other) else { continue };
            let spans = vec![chain.key().span, twin.chain.key().span];
            let (first, second) = match chain.start() <= twin.chain.start() {
                true => (chain, &twin.chain),
                false => (&twin.chain, chain),
            };
            let in_flight = !ended(first) || second.start() < first.stop();
            if in_flight {
                found.push(Finding::new(Code::RequestIdReusedInFlight, spans));
            } else if era == Era::Legacy && second.key() == key {
                found.push(Finding::new(Code::RequestIdReused, spans));
            }
        }
        merge_spans(found)
    }

    /// One token on two requests in flight.
    pub(super) fn token_findings(&self, key: SpanRef, entry: &ChainEntry) -> Vec<Finding> {
        let chain = &entry.chain;
        let token = chain.sides().find_map(|side| side.half.call.progress_token.as_ref());
        let (Some(scope), Some(token)) = (self.scopes.get(&entry.scope), token) else {
            return Vec::new();
        };
        // The two directions have tokens of their own.
        let apart = |twin: &Chain| {
            let (one, other) = (chain.direction(), twin.direction());
            one != other && one != Direction::Either && other != Direction::Either
        };
        let overlaps = |twin: &Chain| {
            let before = |a: &Chain, b: &Chain| ended(a) && a.stop() <= b.start();
            !before(chain, twin) && !before(twin, chain)
        };
        let twins: Vec<SpanId> = near(scope.same_token(token), (chain.start(), key))
            .filter_map(|other| self.chains.get(&other))
            .filter(|twin| overlaps(&twin.chain) && !apart(&twin.chain))
            .map(|twin| twin.chain.key().span)
            .collect();
        if twins.is_empty() {
            return Vec::new();
        }
        let spans = twins.into_iter().chain([chain.key().span]).collect();
        let detail = Detail::Digest(Digest16::of(&[token.as_bytes()]));
        vec![Finding::new(Code::ProgressTokenReused, spans).detail(detail)]
    }
}

/// The nearest of those that share an id or token.
fn near(all: Option<&Namesakes>, at: (Nanos, SpanRef)) -> impl Iterator<Item = SpanRef> + '_ {
    let before = all.into_iter().flat_map(move |all| all.before(at, NEAR));
    let after = all.into_iter().flat_map(move |all| all.after(at, NEAR));
    before.chain(after).map(|(_, key)| *key)
}

fn ended(chain: &Chain) -> bool {
    chain.primary().ended
}

/// One finding a code, with the spans of all of them.
fn merge_spans(found: Vec<Finding>) -> Vec<Finding> {
    let codes: BTreeSet<Code> = found.iter().map(|finding| finding.code).collect();
    let merged = codes.into_iter().map(|code| {
        let spans = found.iter().filter(|f| f.code == code).flat_map(|f| f.spans.clone());
        Finding::new(code, spans.collect())
    });
    merged.collect()
}
