//! Bytes of request bodies that may be held at one time, counted as they arrive.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Permits are counted in blocks, so that a budget of any size fits a semaphore.
const BLOCK: usize = 256;

/// The budget all requests share.
#[derive(Clone)]
pub struct Budget {
    blocks: Arc<Semaphore>,
}

/// What one request holds of the budget; given back on drop.
pub struct Share {
    blocks: Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
    bytes: usize,
}

impl Budget {
    /// `bytes`: the whole.
    pub fn new(bytes: usize) -> Self {
        let blocks = (bytes / BLOCK).clamp(1, Semaphore::MAX_PERMITS);
        Budget { blocks: Arc::new(Semaphore::new(blocks)) }
    }

    /// An empty share.
    pub fn share(&self) -> Share {
        Share { blocks: self.blocks.clone(), held: None, bytes: 0 }
    }
}

impl Share {
    /// Holds so many bytes more; `false` when the budget has no more. Never waits: requests that
    /// hold a part and wait for the rest would wait for each other.
    #[must_use]
    pub fn grow(&mut self, bytes: usize) -> bool {
        let before = self.bytes.div_ceil(BLOCK);
        let after = (self.bytes + bytes).div_ceil(BLOCK);
        if after > before {
            let Ok(more) = u32::try_from(after - before) else { return false };
            let Ok(permit) = self.blocks.clone().try_acquire_many_owned(more) else {
                return false;
            };
            match &mut self.held {
                Some(held) => held.merge(permit),
                None => self.held = Some(permit),
            }
        }
        self.bytes += bytes;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_given_back() {
        let budget = Budget::new(1024);
        let (mut one, mut two) = (budget.share(), budget.share());
        assert!(one.grow(600) && one.grow(100));
        assert!(!two.grow(600), "700 of 1024 are held");
        assert!(two.grow(256));
        drop(one);
        assert!(two.grow(600));
    }
}
