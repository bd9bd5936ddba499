//! What keeps a lane from delivering, for whoever is on call: said when it begins, once a minute
//! while it lasts, and when it is over.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::lane::Lane;
use super::shelf::Backlog;

/// How soon it is said again.
const EVERY: Duration = Duration::from_secs(60);

/// A backend that does not take what is sent, or does again.
#[derive(Default)]
pub struct Trouble {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// `None` while all is well.
    now: Option<Now>,
    /// When it was last said that there is one.
    said: Option<Instant>,
}

struct Now {
    since: Instant,
    attempts: u64,
    cause: String,
    /// Whether anybody was told: nobody hears of the end of what nobody heard of.
    told: bool,
}

/// A trouble as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub lasts: Duration,
    /// That failed.
    pub attempts: u64,
    pub cause: String,
}

impl Now {
    fn standing(&self, now: Instant) -> Standing {
        let lasts = now.saturating_duration_since(self.since);
        Standing { lasts, attempts: self.attempts, cause: self.cause.clone() }
    }
}

/// Says that a backend does not take what is sent.
pub fn say(lane: &Lane, standing: &Standing) {
    let (exporter, signal, endpoint) = (&lane.exporter, lane.signal.name(), &lane.place);
    let Standing { lasts, attempts, cause } = standing;
    let Backlog { exports, bytes } = lane.waits();
    tracing::warn!(
        exporter,
        signal,
        endpoint,
        cause,
        attempts,
        seconds = lasts.as_secs(),
        waiting_exports = exports,
        waiting_bytes = bytes,
        "the backend does not take what is sent: it waits and is tried again"
    );
}

/// Says that a backend answers again.
pub fn say_over(lane: &Lane, over: &Standing) {
    let (exporter, signal, endpoint) = (&lane.exporter, lane.signal.name(), &lane.place);
    let Backlog { exports, bytes } = lane.waits();
    tracing::info!(
        exporter,
        signal,
        endpoint,
        attempts = over.attempts,
        seconds = over.lasts.as_secs(),
        waiting_exports = exports,
        waiting_bytes = bytes,
        "the backend answers again"
    );
}

impl Trouble {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An attempt failed and will be repeated. What is to be said of it, if anything.
    pub fn failed(&self, cause: String, at: Instant) -> Option<Standing> {
        let mut state = self.state();
        let State { now, said } = &mut *state;
        let now = now.get_or_insert_with(|| Now {
            since: at,
            attempts: 0,
            cause: String::new(),
            told: false,
        });
        now.attempts += 1;
        now.cause = cause;
        if said.is_some_and(|said| at.saturating_duration_since(said) < EVERY) {
            return None;
        }
        *said = Some(at);
        now.told = true;
        Some(now.standing(at))
    }

    /// The backend answered. What is to be said of the trouble that this ends, if anything.
    pub fn answered(&self, at: Instant) -> Option<Standing> {
        let over = self.state().now.take()?;
        over.told.then(|| over.standing(at))
    }

    /// What it is now; `None` while all is well.
    pub fn standing(&self, at: Instant) -> Option<Standing> {
        self.state().now.as_ref().map(|now| now.standing(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_at_once_then_once_a_minute_and_its_end_too() {
        let trouble = Trouble::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(trouble.answered(at(0)), None);
        let first = trouble.failed("refused".into(), at(1)).unwrap();
        assert_eq!((first.lasts, first.attempts), (Duration::ZERO, 1));
        let said: Vec<u64> =
            (2..=180).filter(|s| trouble.failed("refused".into(), at(*s)).is_some()).collect();
        assert_eq!(said, [61, 121]);
        let over = trouble.answered(at(190)).unwrap();
        assert_eq!((over.lasts, over.attempts), (Duration::from_secs(189), 180));
        assert_eq!((trouble.answered(at(191)), trouble.standing(at(191))), (None, None));
    }

    #[test]
    fn one_that_comes_and_goes_is_said_once_a_minute() {
        let trouble = Trouble::default();
        let start = Instant::now();
        let mut said = Vec::new();
        for second in 0..120 {
            let at = start + Duration::from_secs(second);
            let began = trouble.failed("http_429".into(), at).is_some();
            let ended = trouble.answered(at).is_some();
            assert_eq!(began, ended);
            said.extend(began.then_some(second));
        }
        assert_eq!(said, [0, 60]);
    }
}
