//! The two clocks of an open request (judgment.md §5): an absolute deadline that never moves and an
//! inactivity window that valid progress resets. Both run on event time; a start that nobody can
//! believe runs neither.

use crate::model::case::{Ending, Exchange, OperationSeen, ProgressSeen};
use crate::model::ids::{Nanos, sane};
use crate::model::words::{Reason, TaskStatus};

/// A stream that stays open for as long as its client likes.
pub const LISTEN: &str = "subscriptions/listen";

/// When an open request runs out, and by which clock. `None` where no clock runs.
pub fn expiry(x: &Exchange) -> Option<(Nanos, Reason)> {
    let start = x.start();
    if x.method.as_str() == LISTEN || !sane(start) {
        return None;
    }
    let deadline = start.saturating_add(x.deadline);
    let mut alive = start;
    for progress in valid_progress(&x.progress) {
        if progress.at > alive.saturating_add(x.inactivity) {
            break;
        }
        alive = alive.max(progress.at);
    }
    let silent = alive.saturating_add(x.inactivity);
    Some(match silent < deadline {
        true => (silent, Reason::Inactive),
        false => (deadline, Reason::DeadlineExceeded),
    })
}

/// Progress that proves life: strictly above every value before it. Times are event times.
pub fn valid_progress(progress: &[ProgressSeen]) -> impl Iterator<Item = &ProgressSeen> {
    let mut best = f64::NEG_INFINITY;
    progress.iter().filter(move |seen| match seen.value {
        Some(value) if value > best && sane(seen.at) => {
            best = value;
            true
        }
        _ => false,
    })
}

/// The deadline that the call stated itself: the only one that waiting for a person can pass.
pub fn stated_deadline(x: &Exchange) -> Option<Nanos> {
    let own = x.halves().find_map(|half| half.call.deadline)?;
    sane(x.start()).then(|| x.start().saturating_add(own))
}

/// The time after which a task that says nothing is called unfinished.
pub fn task_due(x: &Exchange, operation: &OperationSeen) -> Option<Nanos> {
    let last = match &operation.task {
        Some(task) if task.status.terminal() || task.status == TaskStatus::InputRequired => {
            return None;
        }
        Some(task) => task.at,
        None => x.primary().map_or(0, |half| half.end),
    };
    sane(last).then(|| last.saturating_add(x.deadline))
}

/// The event time at which a verdict on this request changes by time alone, whatever `now` is:
/// judging again at or after it gives the later verdict.
pub fn due(x: &Exchange, ending: Ending, operation: &OperationSeen) -> Option<Nanos> {
    match ending {
        Ending::Open => expiry(x).map(|(at, _)| at),
        Ending::InputRequired if !operation.resumed => stated_deadline(x),
        Ending::Task => task_due(x, operation),
        _ => None,
    }
}
