//! The state of a request (judgment.md §5): twelve rows in order of precedence, the first that fits
//! wins. A row also says who acts, what is the next safe step, and why.

use super::ladders::transport_lost;
use super::seen::{Seen, Standing};
use super::session;
use crate::model::case::Ending;
use crate::model::record::Layers;
use crate::model::words::*;

/// What a row asks: the case as seen, and its health ladder.
pub struct Facts<'a> {
    pub seen: &'a Seen<'a>,
    pub layers: &'a Layers,
}

/// What a row says is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Act {
    pub reason: Option<Reason>,
    pub owner: Owner,
    pub next_step: NextStep,
    pub retry: Retry,
    /// The row rests on weak evidence.
    pub weak: bool,
}

pub struct Row {
    pub state: State,
    /// The sentence of the specification.
    pub says: &'static str,
    pub fits: fn(&Facts) -> bool,
    pub act: fn(&Facts) -> Act,
    pub impact: Impact,
}

pub const STATES: [Row; 12] = [
    Row {
        state: State::NeedsAuth,
        says: "authority failed",
        fits: |f| matches!(f.seen.standing, Standing::Ended(Ending::Unauthorized { .. })),
        act: acts::authority,
        impact: Impact::Blocked,
    },
    Row {
        state: State::IncompatibleSession,
        says: "version or capability negotiation failed, or the request met an expired session",
        fits: |f| f.seen.session.rung == Rung::Failed,
        act: acts::session,
        impact: Impact::Blocked,
    },
    Row {
        state: State::Unreachable,
        says: "transport failed before the request could run, or after it where nothing can have \
               happened",
        fits: |f| unsent(f.seen) || transport_lost(f.seen),
        act: acts::transport,
        impact: Impact::Blocked,
    },
    Row {
        state: State::StaleCatalog,
        says: "the catalog was stale or incomplete at the call, or its contract drifted",
        fits: |f| f.seen.catalog_failed(),
        act: acts::catalog,
        impact: Impact::Blocked,
    },
    Row {
        state: State::Working,
        says: "no final answer yet, inside both clocks; or a person or a task is waited for",
        fits: |f| f.seen.waiting(),
        act: acts::working,
        impact: Impact::None,
    },
    Row {
        state: State::ProtocolError,
        says: "JSON-RPC error, a local refusal, or an unnamed failure without a possible effect",
        fits: |f| refused(f.seen) || f.seen.nameless(),
        act: acts::protocol,
        impact: Impact::Blocked,
    },
    Row {
        state: State::ToolFailed,
        says: "execution failed",
        fits: |f| f.seen.execution_failed(),
        act: acts::execution,
        impact: Impact::Blocked,
    },
    Row {
        state: State::Cancelled,
        says: "cancelled, and no effect is possible or the effect is known absent",
        fits: |f| called_off(f.seen),
        act: acts::cancelled,
        impact: Impact::None,
    },
    Row {
        state: State::EffectUnknown,
        says: "no final answer after a possible side effect and no receipt, or the effect is \
               said to be unknown",
        fits: |f| f.seen.effect_possible() && in_the_dark(f.seen),
        act: acts::effect,
        impact: Impact::PossibleEffect,
    },
    Row {
        state: State::FalseSuccess,
        says: "protocol success, and the outcome failed or is missing, or the effect is absent",
        fits: |f| f.seen.is_call() && f.seen.succeeded() && came_out_wrong(f.seen),
        act: acts::outcome,
        impact: Impact::WrongOutcome,
    },
    Row {
        state: State::Unverified,
        says: "nothing above fits and a required layer is unobserved",
        fits: |f| missing(f).is_some(),
        act: acts::unverified,
        impact: Impact::None,
    },
    Row {
        state: State::Healthy,
        says: "every required layer passed or is not applicable",
        fits: |_| true,
        act: acts::healthy,
        impact: Impact::None,
    },
];

/// The first row that fits, with its number from 1.
pub fn state(facts: &Facts) -> (usize, &'static Row) {
    let hit = STATES.iter().position(|row| (row.fits)(facts)).unwrap_or(STATES.len() - 1);
    (hit + 1, &STATES[hit])
}

fn unsent(seen: &Seen) -> bool {
    matches!(seen.standing, Standing::Ended(Ending::NotSent { .. }))
}

fn refused(seen: &Seen) -> bool {
    matches!(seen.standing, Standing::Ended(Ending::Error { .. } | Ending::RefusedLocally))
}

fn called_off(seen: &Seen) -> bool {
    let cancelled = seen.standing == Standing::Ended(Ending::Cancelled);
    cancelled && (!seen.effect_possible() || seen.effect_absent())
        || seen.standing == Standing::Abandoned
}

fn in_the_dark(seen: &Seen) -> bool {
    seen.lost() && !seen.given() && !seen.effect_absent() || seen.effect() == Some(Effect::Unknown)
}

fn came_out_wrong(seen: &Seen) -> bool {
    seen.outcome_failed() || seen.effect_possible() && seen.effect_absent()
}

/// The order in which `unverified` names what is missing.
const MISSING: [(Layer, Owner, NextStep); 5] = [
    (Layer::Request, Owner::IntegrationOwner, NextStep::RecordResult),
    (Layer::Outcome, Owner::OutcomeOwner, NextStep::VerifyOutcome),
    (Layer::Effect, Owner::OutcomeOwner, NextStep::VerifyOutcome),
    (Layer::Catalog, Owner::IntegrationOwner, NextStep::PlanBoundedRefresh),
    (Layer::Session, Owner::IntegrationOwner, NextStep::RecordNegotiation),
];

/// The first required layer, in that order, that neither passed nor is without meaning here.
fn missing(facts: &Facts) -> Option<&'static (Layer, Owner, NextStep)> {
    MISSING.iter().find(|(layer, ..)| {
        facts.seen.case.requires.contains(layer)
            && !matches!(facts.layers.get(*layer), Rung::Passed | Rung::NotApplicable)
    })
}

/// What to do, row by row. Each also serves the failure ladder's rung of the same name.
pub mod acts {
    use super::*;

    const fn act(reason: Option<Reason>, owner: Owner, next_step: NextStep, retry: Retry) -> Act {
        Act { reason, owner, next_step, retry, weak: false }
    }

    pub fn authority(f: &Facts) -> Act {
        let reason = match f.seen.standing {
            Standing::Ended(Ending::Unauthorized { reason }) => reason,
            _ => Reason::InvalidToken,
        };
        let (owner, next_step, retry) = match reason {
            Reason::InsufficientScope => {
                (Owner::AuthorizationOwner, NextStep::RequestScope, Retry::Never)
            }
            Reason::Forbidden => {
                (Owner::AuthorizationOwner, NextStep::InspectAuthorization, Retry::Never)
            }
            _ => (Owner::CredentialOwner, NextStep::RefreshCredentialOnce, Retry::Once),
        };
        let weak = reason == Reason::Forbidden;
        Act { weak, ..act(Some(reason), owner, next_step, retry) }
    }

    pub fn session(f: &Facts) -> Act {
        let reason = session::refusal(f.seen.case, f.seen.ending);
        let next_step = match reason {
            Some(Reason::SessionExpired) => NextStep::StartNewSession,
            _ => NextStep::AlignVersions,
        };
        act(reason, Owner::IntegrationOwner, next_step, Retry::Never)
    }

    pub fn transport(f: &Facts) -> Act {
        let weak = !unsent(f.seen) && !f.seen.is_call();
        let act = act(
            how_lost(f.seen),
            Owner::AvailabilityOwner,
            NextStep::CheckAvailability,
            Retry::BoundedBackoff,
        );
        Act { weak, ..act }
    }

    /// The name of the way in which a request got no answer.
    fn how_lost(seen: &Seen) -> Option<Reason> {
        Some(match seen.standing {
            Standing::RanOut(reason) => reason,
            Standing::Ended(Ending::NotSent { reason } | Ending::Lost { reason }) => reason,
            Standing::Ended(Ending::TimedOut) => Reason::Timeout,
            Standing::Ended(Ending::Cancelled) => Reason::Cancelled,
            Standing::Ended(Ending::Unnamed) => Reason::ClientException,
            _ => return None,
        })
    }

    pub fn catalog(f: &Facts) -> Act {
        let catalog = &f.seen.case.catalog;
        let (reason, next_step) = match catalog.convergence {
            Some(Convergence::Stale) => (Some(Reason::Stale), NextStep::RediscoverOnce),
            Some(Convergence::Incomplete) => (Some(Reason::Incomplete), NextStep::ResumeFromCursor),
            _ => (catalog.contract.red, NextStep::ReviewContract),
        };
        act(reason, Owner::IntegrationOwner, next_step, Retry::AfterRediscovery)
    }

    pub fn working(f: &Facts) -> Act {
        let reason = match f.seen.standing {
            Standing::AwaitingInput => Reason::AwaitingInput,
            Standing::TaskRunning => Reason::TaskRunning,
            _ => Reason::InProgress,
        };
        act(Some(reason), Owner::None, NextStep::Wait, Retry::Never)
    }

    pub fn protocol(f: &Facts) -> Act {
        let (reason, next_step) = match f.seen.standing {
            Standing::Ended(Ending::Error { code }) => by_code(f.seen, code),
            Standing::Ended(Ending::RefusedLocally) => {
                (Reason::RefusedLocally, NextStep::FixRequestContract)
            }
            _ => (Reason::ClientException, NextStep::FixClientContract),
        };
        let act = act(Some(reason), Owner::ClientImplementer, next_step, Retry::Never);
        Act { weak: f.seen.nameless(), ..act }
    }

    fn by_code(seen: &Seen, code: Option<i64>) -> (Reason, NextStep) {
        let modern = seen.case.exchange.era == Era::Modern;
        match code {
            Some(-32601) => (Reason::MethodNotFound, NextStep::RefreshDiscovery),
            Some(-32602) => (Reason::InvalidParams, NextStep::FixRequestContract),
            Some(-32603) => (Reason::InternalError, NextStep::FixClientContract),
            Some(-32020 | -32001) if modern => {
                (Reason::HeaderMismatch, NextStep::FixClientContract)
            }
            _ => (Reason::JsonrpcError, NextStep::FixClientContract),
        }
    }

    pub fn execution(f: &Facts) -> Act {
        let reason = match f.seen.standing {
            Standing::TaskFailed => Reason::TaskFailed,
            _ if f.seen.output_mismatch() => Reason::OutputSchemaMismatch,
            _ => how_lost(f.seen).unwrap_or(Reason::ToolError),
        };
        act(Some(reason), Owner::ToolOwner, NextStep::InspectToolOrInput, Retry::IfReversible)
    }

    pub fn cancelled(f: &Facts) -> Act {
        let reason = match f.seen.standing {
            Standing::Abandoned => Reason::InputRequiredNeverResumed,
            _ => Reason::Cancelled,
        };
        act(Some(reason), Owner::None, NextStep::None, Retry::Never)
    }

    /// A call that is known to be idempotent may be sent once more.
    pub fn effect(f: &Facts) -> Act {
        let retry = match f.seen.case.exchange.idempotent {
            Some(true) => Retry::Once,
            _ => Retry::Blocked,
        };
        let reason = how_lost(f.seen).unwrap_or(Reason::EffectUnknown);
        act(Some(reason), Owner::Operator, NextStep::ReconcileByOperationKey, retry)
    }

    pub fn outcome(f: &Facts) -> Act {
        let reason = match f.seen.outcome() {
            Some(OutcomeStatus::Failed) => Reason::OutcomeFailed,
            Some(OutcomeStatus::Missing) => Reason::OutcomeMissing,
            _ => Reason::EffectAbsent,
        };
        let act =
            act(Some(reason), Owner::OutcomeOwner, NextStep::OpenOutcomeIncident, Retry::Blocked);
        Act { weak: f.seen.outcome_failed() && f.seen.weak_outcome(), ..act }
    }

    pub fn unverified(f: &Facts) -> Act {
        let weak = rests_on_opinion(f.seen);
        let Some((layer, owner, next_step)) = missing(f) else {
            return Act { weak, ..act(None, Owner::None, NextStep::Continue, Retry::Never) };
        };
        let reason = Some(Reason::Unobserved(*layer));
        Act { weak, ..act(reason, *owner, *next_step, Retry::Never) }
    }

    pub fn healthy(f: &Facts) -> Act {
        let weak = rests_on_opinion(f.seen) || f.seen.session.weak;
        Act { weak, ..act(None, Owner::None, NextStep::Continue, Retry::Never) }
    }

    fn rests_on_opinion(seen: &Seen) -> bool {
        seen.is_call() && seen.outcome() == Some(OutcomeStatus::Verified) && seen.weak_outcome()
    }
}

/// What the failure ladder's first failed rung asks for, whatever the state is.
pub fn failure(facts: &Facts, layer: FailureLayer) -> Act {
    match layer {
        FailureLayer::Transport => acts::transport(facts),
        FailureLayer::Protocol if facts.seen.session.rung == Rung::Failed => acts::session(facts),
        FailureLayer::Protocol => acts::protocol(facts),
        FailureLayer::Authority => acts::authority(facts),
        FailureLayer::Execution => acts::execution(facts),
        FailureLayer::Outcome => acts::outcome(facts),
    }
}
