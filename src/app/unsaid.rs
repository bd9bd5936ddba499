//! What is to be said and is not logged yet, and what may leave only after it.
//!
//! Promises: things are logged in the order in which they were handed over, and each is kept until
//! it is logged, however often the log refuses it; spans that name a verdict leave once everything
//! handed over before them is logged, or is in a checkpoint.

use std::collections::VecDeque;

/// Things to log (`O`), and what follows them (`R`).
pub struct Unsaid<O, R> {
    waiting: VecDeque<(u64, O)>,
    /// Each behind the thing of this number.
    following: VecDeque<(u64, R)>,
    /// The number of the last thing that was handed over, and of the last that is in a checkpoint.
    handed: u64,
    secured: u64,
}

impl<O, R> Default for Unsaid<O, R> {
    fn default() -> Self {
        let (waiting, following) = (VecDeque::new(), VecDeque::new());
        Unsaid { waiting, following, handed: 0, secured: 0 }
    }
}

impl<O, R> Unsaid<O, R> {
    /// Takes a thing to be logged.
    pub fn say(&mut self, thing: O) {
        self.handed += 1;
        self.waiting.push_back((self.handed, thing));
    }

    /// Takes what may leave once everything before it is safe.
    pub fn follow(&mut self, follower: R) {
        self.following.push_back((self.handed, follower));
    }

    /// What is to be logged next, and its number.
    pub fn next(&self) -> Option<(u64, &O)> {
        self.waiting.front().map(|(number, thing)| (*number, thing))
    }

    /// A thing was logged, and with it everything before it.
    pub fn logged(&mut self, number: u64) {
        while self.waiting.front().is_some_and(|(first, _)| *first <= number) {
            self.waiting.pop_front();
        }
    }

    /// What may leave now.
    pub fn leaving(&mut self) -> Option<R> {
        let logged = self.waiting.front().map_or(self.handed, |(first, _)| first - 1);
        let safe = logged.max(self.secured);
        let next = self.following.front().is_some_and(|(behind, _)| *behind <= safe);
        let next = if next { self.following.pop_front() } else { None };
        next.map(|(_, follower)| follower)
    }

    /// How many things were handed over so far.
    pub fn handed(&self) -> u64 {
        self.handed
    }

    /// What of the first so many things is not logged: a checkpoint of what was known then holds
    /// it.
    pub fn unlogged(&self, handed: u64) -> impl Iterator<Item = &O> {
        let of_these = self.waiting.iter().take_while(move |(number, _)| *number <= handed);
        of_these.map(|(_, thing)| thing)
    }

    /// The first so many things are logged or in a checkpoint.
    pub fn secure(&mut self, handed: u64) {
        self.secured = self.secured.max(handed);
    }

    /// Things that are neither logged nor in a checkpoint.
    pub fn unsafe_things(&self) -> impl Iterator<Item = &O> {
        let secured = self.secured;
        self.waiting.iter().filter(move |(number, _)| *number > secured).map(|(_, thing)| thing)
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.following.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(unsaid: &mut Unsaid<u8, char>) -> Vec<char> {
        std::iter::from_fn(|| unsaid.leaving()).collect()
    }

    #[test]
    fn spans_leave_behind_what_was_said_before_them() {
        let mut unsaid = Unsaid::default();
        unsaid.follow('a');
        unsaid.say(1);
        unsaid.say(2);
        unsaid.follow('b');
        unsaid.say(3);
        unsaid.follow('c');
        assert_eq!(left(&mut unsaid), ['a']);
        unsaid.logged(1);
        assert_eq!((left(&mut unsaid), unsaid.next()), (Vec::new(), Some((2, &2))));
        unsaid.logged(2);
        assert_eq!(left(&mut unsaid), ['b']);
        unsaid.logged(3);
        assert_eq!((left(&mut unsaid), unsaid.is_empty()), (vec!['c'], true));
    }

    #[test]
    fn a_checkpoint_is_as_good_as_the_log_and_what_waits_still_waits() {
        let mut unsaid = Unsaid::default();
        unsaid.say(1);
        unsaid.follow('a');
        let handed = unsaid.handed();
        unsaid.say(2);
        unsaid.follow('b');
        assert_eq!(unsaid.unlogged(handed).collect::<Vec<_>>(), [&1]);
        unsaid.secure(handed);
        assert_eq!(left(&mut unsaid), ['a']);
        assert_eq!(unsaid.unsafe_things().collect::<Vec<_>>(), [&2]);
        assert_eq!(unsaid.next(), Some((1, &1)), "it is still to be logged");
        unsaid.logged(1);
        assert_eq!(left(&mut unsaid), Vec::<char>::new());
        unsaid.logged(2);
        assert_eq!(left(&mut unsaid), ['b']);
    }
}
