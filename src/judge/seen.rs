//! What the judge sees of a case once the ending, the clocks and the task are taken together, and
//! which effect and outcome fact count. Ladders and states ask these questions and no others.

use super::session::{self, SessionSeen};
use super::{clocks, evidence};
use crate::model::case::{Case, Ending, TaskSeen};
use crate::model::fact::{EffectFact, OutcomeFact};
use crate::model::words::*;

/// Where a request stands, now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It ended so, finally.
    Ended(Ending),
    /// Open, inside both clocks.
    Running,
    /// A person is asked; no clock runs.
    AwaitingInput,
    /// Answered by a task that is not terminal.
    TaskRunning,
    /// The task ended as `failed`.
    TaskFailed,
    /// Open past one of its clocks.
    RanOut(Reason),
    /// An input round whose run ended, or whose own deadline passed.
    Abandoned,
}

pub fn standing(case: &Case, ending: Ending) -> Standing {
    match ending {
        Ending::Open => match clocks::expiry(&case.exchange) {
            Some((at, reason)) if case.now >= at => Standing::RanOut(reason),
            _ => Standing::Running,
        },
        Ending::InputRequired => {
            let operation = &case.operation;
            let late = clocks::stated_deadline(&case.exchange).is_some_and(|at| case.now >= at);
            match !operation.resumed && (operation.run_ended.is_some() || late) {
                true => Standing::Abandoned,
                false => Standing::AwaitingInput,
            }
        }
        Ending::Task => case
            .operation
            .task
            .as_ref()
            .map_or(Standing::TaskRunning, |task| task_standing(task, case.exchange.era)),
        ended => Standing::Ended(ended),
    }
}

/// judgment.md §2: the inner flag is read, never the status alone; a `failed` task has failed in
/// both eras, unless modern shows the JSON-RPC error it stands for.
fn task_standing(task: &TaskSeen, era: Era) -> Standing {
    match (task.status, task.code) {
        (TaskStatus::Working, _) => Standing::TaskRunning,
        (TaskStatus::InputRequired, _) => Standing::AwaitingInput,
        (TaskStatus::Cancelled, _) => Standing::Ended(Ending::Cancelled),
        (TaskStatus::Failed, code @ Some(_)) if era == Era::Modern => {
            Standing::Ended(Ending::Error { code })
        }
        (TaskStatus::Failed, _) => Standing::TaskFailed,
        (TaskStatus::Completed, _) => Standing::Ended(Ending::Result { is_error: task.is_error }),
    }
}

/// A case as the judge sees it.
pub struct Seen<'a> {
    pub case: &'a Case,
    pub ending: Ending,
    pub standing: Standing,
    pub session: SessionSeen,
    /// The facts that count among conflicting ones.
    pub effect_fact: Option<&'a EffectFact>,
    pub outcome_fact: Option<&'a OutcomeFact>,
}

impl<'a> Seen<'a> {
    pub fn new(case: &'a Case, ending: Ending) -> Self {
        Self {
            case,
            ending,
            standing: standing(case, ending),
            session: session::session(case, ending),
            effect_fact: evidence::effect(&case.exchange.effects),
            outcome_fact: evidence::outcome(&case.exchange.outcomes),
        }
    }

    pub fn is_call(&self) -> bool {
        self.case.exchange.is_call()
    }

    /// Unless `read_only` is known true (judgment.md §5).
    pub fn effect_possible(&self) -> bool {
        self.is_call() && self.case.exchange.read_only != Some(true)
    }

    pub fn outcome(&self) -> Option<OutcomeStatus> {
        self.outcome_fact.map(|fact| fact.status)
    }

    /// Verified by a check that is no opinion.
    pub fn verified(&self) -> bool {
        self.outcome() == Some(OutcomeStatus::Verified) && !self.weak_outcome()
    }

    pub fn weak_outcome(&self) -> bool {
        self.outcome_fact.is_some_and(|fact| evidence::weak(fact.method))
    }

    pub fn outcome_failed(&self) -> bool {
        matches!(self.outcome(), Some(OutcomeStatus::Failed | OutcomeStatus::Missing))
    }

    /// What is known of the effect: the effect fact, or a deterministic `verified` that is newer.
    pub fn effect(&self) -> Option<Effect> {
        let verified = self.outcome_fact.filter(|_| self.verified());
        match (self.effect_fact, verified) {
            (Some(effect), Some(check)) if check.time > effect.time => Some(Effect::Confirmed),
            (Some(effect), _) => Some(effect.status),
            (None, check) => check.map(|_| Effect::Confirmed),
        }
    }

    pub fn effect_absent(&self) -> bool {
        self.effect() == Some(Effect::Absent)
    }

    /// Ended without an answer that anybody received.
    pub fn lost(&self) -> bool {
        match self.standing {
            Standing::RanOut(_) => true,
            Standing::Ended(ending) => matches!(
                ending,
                Ending::TimedOut | Ending::Cancelled | Ending::Lost { .. } | Ending::Unnamed
            ),
            _ => false,
        }
    }

    /// Lost, but a receipt or a deterministic check shows that it was done: it counts as answered.
    pub fn given(&self) -> bool {
        let shown = self.effect() == Some(Effect::Confirmed);
        let ended_unseen = self.standing == Standing::Ended(Ending::Unobserved);
        self.is_call() && (self.lost() && shown || ended_unseen && self.verified())
    }

    /// Lost, and nothing can have happened: the tool only reads, or nothing was written.
    pub fn harmless(&self) -> bool {
        !self.given() && (!self.effect_possible() || self.effect_absent())
    }

    /// Gave up or ran out of time, as against broken or called off.
    pub fn out_of_time(&self) -> bool {
        matches!(self.standing, Standing::RanOut(_) | Standing::Ended(Ending::TimedOut))
    }

    pub fn broken(&self) -> bool {
        matches!(self.standing, Standing::Ended(Ending::Lost { .. }))
    }

    /// `isError` of the answer, where the answer is a result.
    pub fn result(&self) -> Option<Option<bool>> {
        match self.standing {
            Standing::Ended(Ending::Result { is_error }) => Some(is_error),
            _ => None,
        }
    }

    /// The wire says success, or a receipt does.
    pub fn succeeded(&self) -> bool {
        let result = self.result().is_some_and(|is_error| is_error != Some(true));
        result && !self.output_mismatch() || self.given()
    }

    /// Visible structured content that its schema refuses, on an answer that claims success.
    pub fn output_mismatch(&self) -> bool {
        let claims = self.result().is_some_and(|is_error| is_error != Some(true));
        self.is_call() && claims && self.case.catalog.output_mismatch
    }

    /// The tool failed, and there is evidence for it.
    pub fn execution_failed(&self) -> bool {
        let said = self.result() == Some(Some(true)) || self.standing == Standing::TaskFailed;
        let late = self.out_of_time() && self.harmless();
        self.is_call() && (said || self.output_mismatch() || late)
    }

    /// An unnamed failure that only the client saw, where no effect can be.
    pub fn nameless(&self) -> bool {
        self.standing == Standing::Ended(Ending::Unnamed) && self.harmless()
    }

    pub fn waiting(&self) -> bool {
        matches!(self.standing, Standing::Running | Standing::AwaitingInput | Standing::TaskRunning)
    }

    /// The catalog at the call's start was not what the server had, or its contract drifted.
    pub fn catalog_failed(&self) -> bool {
        let catalog = &self.case.catalog;
        let behind =
            matches!(catalog.convergence, Some(Convergence::Stale | Convergence::Incomplete));
        self.is_call() && (behind || catalog.contract.red.is_some())
    }
}
