//! What the attempts of one operation say of each other (judgment.md §3, 4.8, 5, 7): which attempts
//! are superseded by which, when a retry was one too many, and when the work was done twice.
//!
//! Budgets and double execution are judged first, on what each attempt is by itself.

use super::findings;
use crate::model::case::{Ending, Exchange};
use crate::model::findings::{Code, Detail, Finding};
use crate::model::ids::Name;
use crate::model::policy::RetryBudget;
use crate::model::record::Verdict;
use crate::model::words::*;

/// One request of an operation with its own verdict, before the others are looked at.
#[derive(Clone, Debug)]
pub struct Attempt<'a> {
    pub exchange: &'a Exchange,
    pub ending: Ending,
    pub verdict: Verdict,
}

impl Attempt<'_> {
    fn method(&self) -> &Name {
        &self.verdict.method
    }

    /// Came back with a result: a refusal answers nothing for the attempts before it.
    fn answered(&self) -> bool {
        matches!(self.ending, Ending::Result { .. } | Ending::InputRequired | Ending::Task)
    }

    /// Timed out or broke after sending, and no receipt stands in for the answer.
    fn lost(&self) -> bool {
        let ran_out =
            matches!(self.verdict.reason, Some(Reason::DeadlineExceeded | Reason::Inactive));
        let lost = match self.ending {
            Ending::TimedOut | Ending::Lost { .. } => true,
            Ending::Open => ran_out,
            _ => false,
        };
        lost && self.verdict.layers.request != Rung::Passed
    }

    /// Reached its tool and may have done its work: a server half that refused nothing, a result
    /// that is no error, or a receipt.
    fn ran(&self) -> bool {
        let x = self.exchange;
        let served = x.answering.as_ref().is_some_and(|half| half.answer.code.is_none());
        let done = match self.ending {
            Ending::Result { is_error } => is_error != Some(true),
            Ending::TimedOut | Ending::Cancelled | Ending::Lost { .. } | Ending::Unnamed => served,
            _ => false,
        };
        let receipt = self.verdict.effect == Some(Effect::Confirmed);
        x.is_call() && (done || receipt) && self.verdict.effect != Some(Effect::Absent)
    }
}

/// The final verdicts of one operation, in the order of its attempts, which are sorted by (start,
/// trace, span). An operation of one attempt comes out as it went in.
pub fn finish(attempts: &[Attempt], budget: &RetryBudget) -> Vec<Verdict> {
    let mut done: Vec<Verdict> = attempts.iter().map(|attempt| attempt.verdict.clone()).collect();
    for (at, verdict) in done.iter_mut().enumerate() {
        let mut found = std::mem::take(&mut verdict.findings);
        found.extend(over_budget(attempts, at, budget));
        found.extend(executed_again(attempts, at));
        verdict.findings = findings::merged(found);
    }
    // From the last backwards: a successor is final before it is copied.
    for at in (0..attempts.len()).rev() {
        if let Some(successor) = successor(attempts, at) {
            done[at] = superseded(&done[at], &done[successor]);
        }
    }
    done
}

/// More failures of a layer among the attempts before this one than its budget allows.
fn over_budget(attempts: &[Attempt], at: usize, budget: &RetryBudget) -> Option<Finding> {
    let this = &attempts[at];
    let earlier = attempts[..at].iter().filter(|earlier| earlier.method() == this.method());
    let failed: Vec<FailureLayer> =
        earlier.filter_map(|earlier| earlier.verdict.first_failed_layer).collect();
    let count = |layer| failed.iter().filter(|failed| **failed == layer).count();
    let worst = FailureLayer::ALL
        .iter()
        .copied()
        .find(|layer| count(*layer) as u64 > u64::from(budget.of(*layer)))?;
    let spans = this.exchange.spans();
    let detail = Detail::Count(count(worst) as u64);
    Some(Finding::new(Code::RetryBudgetExceeded, spans).detail(detail))
}

/// An attempt before this one ran as well, and running twice is not the same as running once.
fn executed_again(attempts: &[Attempt], at: usize) -> Option<Finding> {
    let this = &attempts[at];
    let x = this.exchange;
    if !this.ran() || x.read_only == Some(true) || x.idempotent == Some(true) {
        return None;
    }
    let twin = |earlier: &&Attempt| earlier.ran() && earlier.exchange.tool == x.tool;
    let first = attempts[..at].iter().find(twin)?;
    let mut spans = x.spans();
    spans.extend(first.exchange.spans());
    Some(Finding::new(Code::DuplicateExecution, spans))
}

/// The attempt whose conclusion replaces this one's.
fn successor(attempts: &[Attempt], at: usize) -> Option<usize> {
    let this = &attempts[at];
    let later = |fits: &dyn Fn(&Attempt) -> bool| {
        (at + 1..attempts.len()).find(|next| fits(&attempts[*next]))
    };
    // An input round that was resumed: the same request once more.
    if this.ending == Ending::InputRequired {
        return later(&|next| {
            next.method() == this.method() && next.ending != Ending::RefusedLocally
        });
    }
    // A probe for the modern era that found a legacy server.
    if this.method().as_str() == "server/discover" {
        let failed = !this.answered() && this.verdict.state != State::Working;
        return later(&|next| failed && next.method().as_str() == "initialize");
    }
    let key = this.exchange.operation_key?;
    let same = |next: &Attempt| {
        next.answered()
            && next.exchange.operation_key == Some(key)
            && next.method() == this.method()
    };
    later(&|next| this.lost() && same(next))
}

/// The attempt as its successor concludes it: what happened to it stays, what is to be done does
/// not.
fn superseded(own: &Verdict, successor: &Verdict) -> Verdict {
    let mut operator = own.operator.clone();
    operator.impact = successor.operator.impact;
    operator.failure = successor.operator.failure;
    Verdict {
        state: successor.state,
        reason: Some(Reason::Superseded),
        lifecycle: Lifecycle::Superseded,
        layers: successor.layers,
        failure_layers: successor.failure_layers,
        first_failed_layer: successor.first_failed_layer,
        confidence: successor.confidence,
        next_step: successor.next_step,
        owner: successor.owner,
        retry: successor.retry,
        operator,
        ..own.clone()
    }
}
