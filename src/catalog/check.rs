//! The check before a call: may this tool be called as the caller knows it?
//!
//! Promises: pure; in `enforce` nothing that is unknown proceeds; the answer to the same question
//! and the same reference is the same answer.

use super::diff::{diff, diff_members};
use super::grade::{Change, Grade, Kind, Located};
use super::lockfile::{Holder, Lockfile, Pin, member_map};
use crate::model::digest::{Definition, Digest};
use crate::model::policy::ContractMode;
use crate::model::words::vocabulary;
use std::collections::BTreeMap;

vocabulary!(
    /// Why a check said what it said. `proceed` and `halt` have their own reasons.
    Reason {
        /// The caller holds what is pinned.
        Pinned = "pinned",
        /// It holds another definition, of a grade that does not stop it.
        DriftTolerated = "drift_tolerated",
        /// It holds another definition.
        ContractDrift = "contract_drift",
        /// There is no pin, and none is asked for.
        Unpinned = "unpinned",
        /// There is no pin, and one is asked for.
        ContractUnpinned = "contract_unpinned",
        /// The caller named no definition and no digest that can be compared.
        ContractUnknown = "contract_unknown",
        /// Contracts are switched off.
        Off = "off",
    }
);

/// What the caller says it holds.
#[derive(Clone, Debug)]
pub enum Held<'a> {
    /// A whole definition: its drift can be graded.
    Definition(&'a Definition),
    /// A digest alone.
    Digest(&'a Digest),
    /// Nothing that can be read.
    Nothing,
}

/// What is known of the tool as it should be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference<'a> {
    /// The digest that the tool should have.
    pub digest: Option<&'a Digest>,
    /// Digests of its members and parameters, where they were kept.
    pub members: Option<&'a BTreeMap<String, Digest>>,
    /// The definition, where its text is at hand.
    pub definition: Option<&'a Definition>,
}

impl<'a> Reference<'a> {
    /// The reference that a lockfile gives a caller.
    pub fn pinned(lockfile: &'a Lockfile, server: &str, holder: &Holder, tool: &str) -> Self {
        lockfile.find(server, holder, tool).map_or_else(Self::default, Self::of_pin)
    }

    /// The reference that a pin is.
    pub fn of_pin(pin: &'a Pin) -> Self {
        Reference { digest: Some(&pin.digest), members: Some(&pin.members), definition: None }
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// `true`: proceed, `false`: halt.
    pub proceed: bool,
    /// Why.
    pub reason: Reason,
    /// The digest that the tool should have.
    pub expected: Option<Digest>,
    /// What changed, where something did.
    pub drift: Option<Located>,
}

/// Whether a call of a tool may go on.
///
/// `observe` tells and never halts. `pin` halts on drift of a grade in `fail_on` and lets through
/// what nobody pinned. `enforce` also halts on what is unpinned or unknown. `off` does not look.
pub fn check(
    mode: ContractMode,
    fail_on: &[Grade],
    reference: &Reference<'_>,
    held: &Held<'_>,
) -> Answer {
    let expected = reference.digest.cloned();
    let answer =
        |proceed, reason, drift| Answer { proceed, reason, expected: expected.clone(), drift };
    if mode == ContractMode::Off {
        return answer(true, Reason::Off, None);
    }
    let strict = mode == ContractMode::Enforce;
    let Some(wanted) = reference.digest else {
        let reason = if strict { Reason::ContractUnpinned } else { Reason::Unpinned };
        return answer(!strict, reason, None);
    };
    let digest = match held {
        Held::Definition(definition) => definition.digest.as_ref(),
        Held::Digest(digest) => Some(*digest).filter(|digest| digest.comparable(wanted)),
        Held::Nothing => None,
    };
    let Some(digest) = digest else { return answer(!strict, Reason::ContractUnknown, None) };
    if digest == wanted {
        return answer(true, Reason::Pinned, None);
    }
    let drift = located(reference, wanted, held, digest);
    let stops = mode != ContractMode::Observe && fail_on.contains(&drift.grade);
    let reason = if stops { Reason::ContractDrift } else { Reason::DriftTolerated };
    answer(!stops, reason, Some(drift))
}

fn located(
    reference: &Reference<'_>,
    wanted: &Digest,
    held: &Held<'_>,
    digest: &Digest,
) -> Located {
    let found = match (held, reference.definition, reference.members) {
        (Held::Definition(held), Some(definition), _) => diff(definition, held),
        (Held::Definition(held), None, Some(members)) => {
            located_by_members(members, &member_map(held))
        }
        _ => None,
    };
    found.unwrap_or_else(|| unlocated(wanted, digest))
}

/// What the digests of two definitions' members tell; `None` where they tell nothing.
pub fn located_by_members(
    old: &BTreeMap<String, Digest>,
    new: &BTreeMap<String, Digest>,
) -> Option<Located> {
    if old.is_empty() || new.is_empty() {
        return None;
    }
    diff_members(old, new)
}

/// A drift of which only the digests are known.
pub fn unlocated(old: &Digest, new: &Digest) -> Located {
    let change = Change {
        pointer: String::new(),
        kind: Kind::MemberChanged,
        grade: Grade::Unlocated,
        old: Some(old.clone()),
        new: Some(new.clone()),
    };
    Located { grade: Grade::Unlocated, changes: vec![change], omitted: 0 }
}
