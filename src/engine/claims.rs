//! What was said of a chain, across processes: every revision has one content and one number.
//!
//! Promises: what an earlier process said is never said again with other content, and nothing that
//! changed since is left unsaid; a chain that it spoke of and that is none any more says so.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::live::{Effect, Engine, Sent};
use crate::model::ids::{Arrival, Digest16, SpanRef};
use crate::model::record::{Verdict, digest_of};

/// What was said of a chain by an earlier process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Claim {
    /// The span that the chain is known by.
    pub key: SpanRef,
    pub revision: u32,
    /// It was merged into another.
    pub closes: bool,
    /// [`Verdict::digest`] of that revision.
    pub digest: Digest16,
}

impl Engine {
    /// Gives a verdict its revision: that of the last one where it says the same (and returns
    /// `false`), else the next.
    pub(super) fn number(&mut self, shared: &mut Arc<Verdict>) -> bool {
        let said = self.sent.get(&shared.id).map(|sent| &sent.verdict);
        let claim = self.claims.remove(&shared.id);
        if claim.is_none() && said.is_none() {
            return true;
        }
        let verdict = Arc::make_mut(shared);
        let same = match (claim, said) {
            (Some(claim), _) => {
                verdict.revision = claim.revision;
                verdict.supersedes = claim.revision.checked_sub(1).filter(|before| *before > 0);
                verdict.digest() == claim.digest
            }
            (None, Some(said)) => {
                (verdict.revision, verdict.supersedes) = (said.revision, said.supersedes);
                verdict.same_as(said)
            }
            (None, None) => return true,
        };
        if !same {
            verdict.supersedes = Some(verdict.revision);
            verdict.revision += 1;
        }
        !same
    }

    /// Takes a chain for said where it stands as an earlier process said it.
    pub(super) fn recall_chain(&mut self, key: SpanRef, effects: &mut Vec<Effect>) -> bool {
        let entry = self.tables.chains.get(&key);
        let Some(verdict) = entry.and_then(|entry| entry.verdict.as_deref()) else { return false };
        let Some(claim) = self.claims.get(&verdict.id).copied() else { return false };
        let mut verdict = Arc::new(verdict.clone());
        let same = !self.number(&mut verdict);
        if same {
            self.sent_as.insert(key, verdict.id);
            self.sent.insert(verdict.id, Sent::new(&verdict, key));
            effects.push(Effect::Recalled(verdict));
        } else {
            self.claims.insert(verdict.id, claim);
        }
        same
    }

    /// Notes what an earlier process said of a chain after its last checkpoint.
    pub fn claim(&mut self, id: Digest16, claim: Claim, now: Arrival) {
        // It stands as long as its facts may: from now on, also where no checkpoint was found.
        self.restored = self.restored.max(now.monotonic);
        let known = self.sent.get(&id).map(|sent| sent.verdict.revision);
        let claimed = self.claims.get(&id).map(|claim| claim.revision);
        if known.max(claimed).is_none_or(|known| known < claim.revision) {
            self.claims.insert(id, claim);
            self.sent_as.insert(claim.key, id);
            // It may be none any more, and must say so.
            self.schedule(claim.key, now.monotonic.saturating_add(self.settle()));
        }
    }

    /// What was said of whom, for the next process.
    pub(super) fn claims_made(&self) -> Vec<(Digest16, Claim)> {
        let mut all = self.claims.clone();
        let said = self.sent.iter().map(|(id, Sent { verdict, key, digest })| {
            let closes = verdict.operator.merged_into.is_some();
            let revision = verdict.revision;
            (*id, Claim { key: *key, revision, closes, digest: *digest })
        });
        for (id, claim) in said {
            all.entry(id).or_insert(claim);
        }
        all.into_iter().collect()
    }

    /// Records that were sent, by their digest.
    pub(super) fn records_said(&self) -> BTreeSet<Digest16> {
        let mut said = self.said.clone();
        said.extend(self.sessions.values().map(digest_of));
        said.extend(self.drifts.values().flat_map(|told| told.values().copied()));
        said.extend(self.incidents.told().map(digest_of));
        said
    }
}
