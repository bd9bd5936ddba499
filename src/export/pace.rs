//! How much of a lane is sent at one time: less where a backend does not answer in time, more again
//! where it does.
//!
//! Promises: a backend that is slower than a full load of requests within their timeout still gets
//! ever smaller ones, until some are answered: what times out is work that is done for nothing, and
//! done again. One request is always on its way.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedSemaphorePermit;

/// Bytes of a request that is not made smaller.
const LEAST: usize = 256 << 10;

/// A lane's pace.
pub struct Pace {
    state: Mutex<State>,
    /// Bytes of the largest request, and how many may be on their way, when all is well.
    most: usize,
    slots: usize,
}

struct State {
    bytes: usize,
    /// Slots that nobody gets for now.
    parked: Vec<OwnedSemaphorePermit>,
    /// Answers since a slot was parked or given back.
    answers: usize,
}

impl Pace {
    pub fn new(most: usize, slots: usize) -> Self {
        let state = State { bytes: most, parked: Vec::new(), answers: 0 };
        Pace { state: Mutex::new(state), most, slots }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that a request should have at most, before compression.
    pub fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// A request of so many bytes was not answered in time.
    pub fn slower(&self, bytes: usize, slot: Option<OwnedSemaphorePermit>) {
        let mut state = self.state();
        // Many that left together are late together: each halves its own size, not the others'.
        state.bytes = state.bytes.min((bytes / 2).max(LEAST)).min(self.most);
        state.answers = 0;
        if state.parked.len() + 1 < self.slots {
            state.parked.extend(slot);
        }
    }

    /// One was answered in time.
    pub fn faster(&self) {
        let mut state = self.state();
        state.bytes = state.bytes.saturating_mul(2).min(self.most);
        state.answers += 1;
        // One more on its way for each round of those that are.
        if state.answers >= self.slots - state.parked.len() {
            state.answers = 0;
            state.parked.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::*;

    #[test]
    fn late_answers_make_it_slower_and_others_faster_again() {
        let slots = Arc::new(Semaphore::new(4));
        let take = || slots.clone().try_acquire_owned().ok();
        let pace = Pace::new(4 << 20, 4);
        for _ in 0..10 {
            let slot = take();
            assert!(slot.is_some(), "one is always left");
            pace.slower(pace.bytes(), slot);
        }
        assert_eq!((pace.bytes(), slots.available_permits()), (LEAST, 1));
        let mut answers = 0;
        while slots.available_permits() < 4 {
            pace.faster();
            answers += 1;
        }
        assert_eq!((pace.bytes(), answers), (4 << 20, 1 + 2 + 3));
    }

    #[test]
    fn those_that_are_late_together_halve_it_once() {
        let pace = Pace::new(4 << 20, 8);
        (0..8).for_each(|_| pace.slower(4 << 20, None));
        assert_eq!(pace.bytes(), 2 << 20);
        // A small one that is late says that nothing is answered.
        pace.slower(100, None);
        assert_eq!(pace.bytes(), LEAST);
        let small = Pace::new(1_000, 8);
        small.slower(1_000, None);
        assert_eq!(small.bytes(), 1_000, "what is set holds");
    }
}
