//! What one more piece of evidence on a request's own span would make of its verdict: judged, not
//! guessed. `explain` tries every attribute on recorded spans; this tries those that need none.

use crate::judge;
use crate::model::attributes as key;
use crate::model::case::{Case, Ending};
use crate::model::evidence::{EffectFact, Origin, OutcomeFact};
use crate::model::record::Verdict;
use crate::model::words::*;

/// Attributes that were not recorded, and what the verdict would be with them.
#[derive(Clone, PartialEq, Debug)]
pub struct WhatIf {
    pub attributes: Vec<(&'static str, &'static str)>,
    pub state: State,
    pub reason: Option<Reason>,
    pub first_failed_layer: Option<FailureLayer>,
}

/// Every outcome and effect that moves the state, the reason or the first failed layer: what would
/// make it healthy first.
pub fn what_ifs(case: &Case, ending: Ending, verdict: &Verdict) -> Vec<WhatIf> {
    if !case.exchange.is_call() {
        return Vec::new();
    }
    let outcomes = OutcomeStatus::ALL.iter().map(|status| outcome(case, *status));
    let effects = Effect::ALL.iter().map(|status| effect(case, *status));
    let mut found: Vec<WhatIf> = outcomes
        .chain(effects)
        .filter_map(|(trial, attributes)| {
            let would = judge::verdict(&trial, ending, &mut ());
            (moved(&would) != moved(verdict)).then_some(WhatIf {
                attributes,
                state: would.state,
                reason: would.reason,
                first_failed_layer: would.first_failed_layer,
            })
        })
        .collect();
    found.sort_by_key(|change| std::cmp::Reverse(change.state));
    found
}

fn moved(verdict: &Verdict) -> (State, Option<Reason>, Option<FailureLayer>) {
    (verdict.state, verdict.reason, verdict.first_failed_layer)
}

type Attributes = Vec<(&'static str, &'static str)>;

fn outcome(case: &Case, status: OutcomeStatus) -> (Case, Attributes) {
    let mut trial = case.clone();
    let (method, time) = (OutcomeMethod::Query, end(case));
    let fact = OutcomeFact { status, method: Some(method), time, from: Origin::Attribute };
    trial.exchange.outcomes.push(fact);
    trial.exchange.outcomes.sort_by_key(|fact| fact.time);
    let says = (key::OUTCOME_STATUS, status.as_str());
    (trial, vec![says, (key::OUTCOME_METHOD, method.as_str())])
}

fn effect(case: &Case, status: Effect) -> (Case, Attributes) {
    let mut trial = case.clone();
    trial.exchange.effects.push(EffectFact { status, time: end(case), from: Origin::Attribute });
    trial.exchange.effects.sort_by_key(|fact| fact.time);
    (trial, vec![(key::EFFECT_STATUS, status.as_str())])
}

/// An attribute's time is its span's end.
fn end(case: &Case) -> u64 {
    case.exchange.primary().map_or(0, |half| half.end)
}
