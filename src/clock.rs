//! The only place that asks what time it is.
//!
//! Promises: monotonic time starts with the process and never runs backwards; the core
//! gets both times as an argument and never asks.

use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::model::ids::{Arrival, Nanos, SECOND};

static START: LazyLock<Instant> = LazyLock::new(Instant::now);
/// What the core's time starts at: what is older than the process has a time too.
const BEGAN: Nanos = 86_400 * SECOND;

/// Both clocks, in nanoseconds.
pub fn now() -> Arrival {
    let elapsed = u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Arrival { monotonic: BEGAN.saturating_add(elapsed), wall: wall() }
}

/// Unix time in nanoseconds; zero before 1970.
fn wall() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Milliseconds since the process started.
pub fn monotonic_millis() -> u64 {
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// The clock that timers of the runtime wait for; it stands still where a test pauses it.
pub fn timer() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// The wall clock, for dates in protocols.
pub fn system() -> SystemTime {
    SystemTime::now()
}
