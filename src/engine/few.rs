//! Sets that mostly have one member: indexes by request id, by join, by token.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

/// A sorted set that takes no allocation for one member.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Few<T> {
    #[default]
    None,
    One(T),
    Many(BTreeSet<T>),
}

impl<T: Ord> Few<T> {
    /// Whether it was new.
    pub fn insert(&mut self, value: T) -> bool {
        match self {
            Self::None => *self = Self::One(value),
            Self::One(known) if *known == value => return false,
            Self::One(_) => {
                let Self::One(known) = std::mem::take(self) else { return false };
                *self = Self::Many(BTreeSet::from([known, value]));
            }
            Self::Many(all) => return all.insert(value),
        }
        true
    }

    pub fn remove(&mut self, value: &T) -> bool {
        match self {
            Self::None => false,
            Self::One(known) => {
                let was = known == value;
                if was {
                    *self = Self::None;
                }
                was
            }
            Self::Many(all) => all.remove(value),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(_) => 1,
            Self::Many(all) => all.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        let (one, many) = match self {
            Self::None => (None, None),
            Self::One(one) => (Some(one), None),
            Self::Many(all) => (None, Some(all)),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    /// At most `most` members before `value`, nearest first.
    pub fn before(&self, value: T, most: usize) -> impl Iterator<Item = &T> + use<'_, T> {
        let (one, many) = match self {
            Self::None => (None, None),
            Self::One(one) => (Some(one).filter(|one| **one < value), None),
            Self::Many(all) => (None, Some(all.range(..value).rev())),
        };
        one.into_iter().chain(many.into_iter().flatten()).take(most)
    }

    /// At most `most` members after `value`, nearest first.
    pub fn after(&self, value: T, most: usize) -> impl Iterator<Item = &T> + use<'_, T> {
        use std::ops::Bound::{Excluded, Unbounded};
        let (one, many) = match self {
            Self::None => (None, None),
            Self::One(one) => (Some(one).filter(|one| **one > value), None),
            Self::Many(all) => (None, Some(all.range((Excluded(value), Unbounded)))),
        };
        one.into_iter().chain(many.into_iter().flatten()).take(most)
    }
}

/// Adds to a set in a map.
pub fn add<K: Ord, V: Ord>(map: &mut BTreeMap<K, Few<V>>, key: K, value: V) {
    map.entry(key).or_default().insert(value);
}

/// Removes from a set in a map, leaving no empty set behind.
pub fn take<K: Ord, V: Ord>(map: &mut BTreeMap<K, Few<V>>, key: &K, value: &V) {
    if let Some(set) = map.get_mut(key) {
        set.remove(value);
        if set.is_empty() {
            map.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_like_a_sorted_set() {
        let (mut few, mut set) = (Few::default(), BTreeSet::new());
        for step in 0..400_u32 {
            let value = step.wrapping_mul(2_654_435_761) >> 29;
            match step % 3 {
                0 | 1 => assert_eq!(few.insert(value), set.insert(value)),
                _ => assert_eq!(few.remove(&value), set.remove(&value)),
            }
            assert_eq!((few.len(), few.is_empty()), (set.len(), set.is_empty()));
            assert!(few.iter().eq(&set));
            assert!(few.before(value, 2).eq(set.range(..value).rev().take(2)));
            assert!(few.after(value, 2).eq(set.range(value + 1..).take(2)));
        }
    }
}
