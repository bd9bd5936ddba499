//! Sets that mostly have few members: indexes by request id, by join, by token; what a scope knows
//! of its requests.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeBounds};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A sorted set that takes no allocation for one member, a list for some, and a tree for many.
#[derive(Clone, Debug, Default)]
pub enum Few<T> {
    #[default]
    None,
    One(T),
    Some(Vec<T>),
    Many(BTreeSet<T>),
}

/// How many a list takes before it becomes a tree.
const LISTED: usize = 32;

impl<T: Ord> Few<T> {
    /// The members as a sorted list, unless they are many.
    fn listed(&self) -> Result<&[T], &BTreeSet<T>> {
        match self {
            Self::None => Ok(&[]),
            Self::One(one) => Ok(std::slice::from_ref(one)),
            Self::Some(all) => Ok(all),
            Self::Many(all) => Err(all),
        }
    }

    /// Whether it was new.
    pub fn insert(&mut self, value: T) -> bool {
        let at = match self.listed() {
            Ok(all) => all.binary_search(&value),
            Err(_) => Err(0),
        };
        let Err(at) = at else { return false };
        match std::mem::take(self) {
            Self::None => *self = Self::One(value),
            Self::One(one) if at == 0 => *self = Self::Some(vec![value, one]),
            Self::One(one) => *self = Self::Some(vec![one, value]),
            Self::Some(mut all) if all.len() < LISTED => {
                all.insert(at, value);
                *self = Self::Some(all);
            }
            Self::Some(all) => *self = Self::Many(all.into_iter().chain([value]).collect()),
            Self::Many(mut all) => {
                let new = all.insert(value);
                *self = Self::Many(all);
                return new;
            }
        }
        true
    }

    /// Whether it was there.
    pub fn remove(&mut self, value: &T) -> bool {
        let there = match self {
            Self::None => false,
            Self::One(one) => one == value,
            Self::Some(all) => all.binary_search(value).map(|at| all.remove(at)).is_ok(),
            Self::Many(all) => all.remove(value),
        };
        let left = self.len();
        if there && (left == 0 || matches!(self, Self::One(_))) {
            *self = Self::None;
        }
        there
    }

    pub fn len(&self) -> usize {
        self.listed().map_or_else(BTreeSet::len, <[T]>::len)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.range(..)
    }

    pub fn first(&self) -> Option<&T> {
        self.listed().map_or_else(BTreeSet::first, <[T]>::first)
    }

    pub fn last(&self) -> Option<&T> {
        self.listed().map_or_else(BTreeSet::last, <[T]>::last)
    }

    /// Members within bounds, in order.
    pub fn range(&self, bounds: impl RangeBounds<T>) -> impl DoubleEndedIterator<Item = &T> {
        let (list, tree) = match self.listed() {
            Ok(all) => {
                let from = all.partition_point(|member| match bounds.start_bound() {
                    Bound::Included(start) => member < start,
                    Bound::Excluded(start) => member <= start,
                    Bound::Unbounded => false,
                });
                let to = all.partition_point(|member| match bounds.end_bound() {
                    Bound::Included(end) => member <= end,
                    Bound::Excluded(end) => member < end,
                    Bound::Unbounded => true,
                });
                (all.get(from..to), None)
            }
            Err(all) => (None, Some(all.range(bounds))),
        };
        list.into_iter().flatten().chain(tree.into_iter().flatten())
    }

    /// At most `most` members before `value`, nearest first.
    pub fn before(&self, value: T, most: usize) -> impl Iterator<Item = &T> {
        self.range(..value).rev().take(most)
    }

    /// At most `most` members after `value`, nearest first.
    pub fn after(&self, value: T, most: usize) -> impl Iterator<Item = &T> {
        self.range((Bound::Excluded(value), Bound::Unbounded)).take(most)
    }
}

/// Whatever they are kept in.
impl<T: Ord> PartialEq for Few<T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Ord> Extend<T> for Few<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, members: I) {
        for member in members {
            self.insert(member);
        }
    }
}

impl<T: Ord> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(members: I) -> Self {
        let mut few = Self::None;
        few.extend(members);
        few
    }
}

impl<T: Ord + Serialize> Serialize for Few<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        // Written with its length in front, which an iterator alone does not know.
        self.iter().collect::<Vec<_>>().serialize(s)
    }
}

impl<'de, T: Ord + Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Vec::deserialize(d).map(Self::from_iter)
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
        for bits in [29, 26] {
            let (mut few, mut set) = (Few::default(), BTreeSet::new());
            for step in 0..4_000_u32 {
                let value = step.wrapping_mul(2_654_435_761) >> bits;
                // It grows into a tree and shrinks to nothing by turns.
                match (step / 100) % 2 == 0 || step % 3 == 0 {
                    true => assert_eq!(few.insert(value), set.insert(value)),
                    false => assert_eq!(few.remove(&value), set.remove(&value)),
                }
                assert_eq!((few.len(), few.is_empty()), (set.len(), set.is_empty()));
                assert!(few.iter().eq(&set) && few.iter().rev().eq(set.iter().rev()));
                assert_eq!((few.first(), few.last()), (set.first(), set.last()));
                assert!(few.range(2..=value.max(2)).eq(set.range(2..=value.max(2))));
                assert!(few.before(value, 2).eq(set.range(..value).rev().take(2)));
                assert!(few.after(value, 2).eq(set.range(value + 1..).take(2)));
                assert_eq!(few, set.iter().copied().collect());
            }
        }
    }
}
