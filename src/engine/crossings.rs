//! Results that went astray (judgment.md §7, `response_misrouted`): a caller holds what its server
//! gave in answer to another request of the same id. A server that mixes up its callers does so
//! across scopes, so the index knows ids and results, not scopes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::few::{self, Few};
use super::tables::Tables;
use crate::correlate::chain::Chain;
use crate::correlate::side::Side;
use crate::model::findings::{Code, Finding};
use crate::model::ids::{Digest16, Name, Nanos, SpanRef};

/// Requests of one id and one result that are looked at, and most spans that a finding names.
const CANDIDATES: usize = 64;

type ByResult = BTreeMap<(Name, Digest16), Few<SpanRef>>;

/// Requests by id and result.
#[derive(Default)]
pub struct Crossings {
    /// By what the answering half gave.
    given: ByResult,
    /// By what the asking half got, where it is something else than was given.
    astray: ByResult,
}

/// What a chain adds to the index.
struct Told {
    given: Option<(Name, Digest16)>,
    astray: Option<(Name, Digest16)>,
}

impl Told {
    fn of(chain: &Chain) -> Self {
        let result =
            |side: &Option<Arc<Side>>| side.as_ref().and_then(|side| side.half.answer.result);
        let (got, given) = (result(&chain.asking), result(&chain.answering));
        let astray = got.filter(|got| given.is_some_and(|given| given != *got));
        let named = |digest: Option<Digest16>| Some((chain.request_id()?.clone(), digest?));
        Self { given: named(given), astray: named(astray) }
    }
}

fn all<'a>(
    map: &'a ByResult,
    key: &Option<(Name, Digest16)>,
) -> impl Iterator<Item = SpanRef> + 'a {
    let found = key.as_ref().and_then(|key| map.get(key));
    found.into_iter().flat_map(Few::iter).take(CANDIDATES).copied()
}

/// Whether `other` was answered by the same server while the caller of `chain` waited.
fn may_have_taken(chain: &Chain, other: &Chain, skew: Nanos) -> bool {
    let (Some(asking), Some(own), Some(theirs)) =
        (&chain.asking, &chain.answering, &other.answering)
    else {
        return false;
    };
    own.process().key == theirs.process().key
        && chain.direction() == other.direction()
        && theirs.start <= asking.stop.saturating_add(skew)
        && asking.start <= theirs.stop.saturating_add(skew)
}

impl Tables {
    /// Enters a chain into the index, or takes it out, and marks whose finding it may change.
    pub(super) fn cross(&mut self, key: SpanRef, chain: &Chain, add: bool) {
        let told = Told::of(chain);
        let heard = all(&self.crossings.astray, &told.given).filter(|other| *other != key);
        self.marks.endings.extend(heard);
        self.enter(key, told, add);
    }

    /// Takes a chain out of the index; what was said stays said.
    pub(super) fn uncross(&mut self, key: SpanRef, chain: &Chain) {
        self.enter(key, Told::of(chain), false);
    }

    fn enter(&mut self, key: SpanRef, told: Told, add: bool) {
        let crossings = &mut self.crossings;
        let both = [(&mut crossings.given, told.given), (&mut crossings.astray, told.astray)];
        for (map, at) in both {
            match (at, add) {
                (Some(at), true) => few::add(map, at, key),
                (Some(at), false) => few::take(map, &at, &key),
                (None, _) => {}
            }
        }
    }

    /// The caller got the result of another request with the same id: all three of what it got,
    /// what it was to get and whose that was must have been seen.
    pub(super) fn misrouted(&self, key: SpanRef, chain: &Chain) -> Option<Finding> {
        let astray = Told::of(chain).astray;
        astray.as_ref()?;
        let skew = self.policy_of(chain).clock_skew;
        let others = all(&self.crossings.given, &astray)
            .filter(|other| *other != key)
            .filter_map(|other| Some(&self.chains.get(&other)?.chain))
            .filter(|other| may_have_taken(chain, other, skew));
        let spans: Vec<_> = others.flat_map(|other| other.spans()).take(CANDIDATES).collect();
        let named = || chain.spans().into_iter().chain(spans.iter().copied()).collect();
        (!spans.is_empty()).then(|| Finding::new(Code::ResponseMisrouted, named()))
    }
}
