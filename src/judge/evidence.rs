//! Which of several effect or outcome facts counts (judgment.md §3): the end of that section as two
//! orderings. The result does not depend on the order in which the facts are given.

use std::cmp::Reverse;

use crate::model::fact::{EffectFact, OutcomeFact};
use crate::model::words::{Effect, OutcomeMethod, OutcomeStatus};

/// The newest; of those of one time, `absent`, then `unknown`, then `confirmed`.
pub fn effect(facts: &[EffectFact]) -> Option<&EffectFact> {
    let rank = |status| match status {
        Effect::Absent => 2,
        Effect::Unknown => 1,
        Effect::Confirmed => 0,
    };
    facts.iter().max_by_key(|fact| (fact.time, rank(fact.status), Reverse(fact.from)))
}

/// Deterministic before weak, then the newest, then the worst.
pub fn outcome(facts: &[OutcomeFact]) -> Option<&OutcomeFact> {
    let badness = |status| match status {
        OutcomeStatus::Failed => 3,
        OutcomeStatus::Missing => 2,
        OutcomeStatus::Unknown => 1,
        OutcomeStatus::Verified => 0,
    };
    facts.iter().max_by_key(|fact| {
        (
            !weak(fact.method),
            fact.time,
            badness(fact.status),
            Reverse(fact.method),
            Reverse(fact.from),
        )
    })
}

/// A check that nobody named is an opinion, like a rubric or a model's judgement.
pub fn weak(method: Option<OutcomeMethod>) -> bool {
    method.is_none_or(OutcomeMethod::weak)
}
