//! A part of a record that mostly has nothing to say.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::evidence::Evidence;
use super::fact::CallFacts;

/// What a record says when it says nothing.
pub trait Blank: Clone + PartialEq + 'static {
    fn blank() -> &'static Self;
}

/// Reads as a `T` and is written as one; takes a pointer where it is blank, and copies share what
/// it says. A change to one copy is its own.
#[derive(Clone, Debug, Default)]
pub struct Rare<T>(Option<Arc<T>>);

impl<T: Blank> Rare<T> {
    /// Whether it says nothing, as far as its pointer tells.
    pub fn is_blank(&self) -> bool {
        self.0.is_none()
    }

    /// Gives back the room of what was written to and is blank all the same.
    pub fn tidy(&mut self) {
        if self.0.as_deref().is_some_and(|said| said == T::blank()) {
            self.0 = None;
        }
    }
}

impl<T: Blank> From<T> for Rare<T> {
    fn from(said: T) -> Self {
        Self((said != *T::blank()).then(|| Arc::new(said)))
    }
}

impl<T: Blank> Deref for Rare<T> {
    type Target = T;
    fn deref(&self) -> &T {
        match &self.0 {
            Some(said) => said,
            None => T::blank(),
        }
    }
}

impl<T: Blank> DerefMut for Rare<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(self.0.get_or_insert_with(|| Arc::new(T::blank().clone())))
    }
}

impl<T: Blank> PartialEq for Rare<T> {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(other)) if Arc::ptr_eq(one, other) => true,
            _ => **self == **other,
        }
    }
}

impl<T: Blank + Serialize> Serialize for Rare<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(s)
    }
}

impl<'de, T: Blank + Deserialize<'de>> Deserialize<'de> for Rare<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        T::deserialize(d).map(Self::from)
    }
}

impl Blank for CallFacts {
    fn blank() -> &'static Self {
        static BLANK: LazyLock<CallFacts> = LazyLock::new(CallFacts::default);
        &BLANK
    }
}

impl Blank for Evidence {
    fn blank() -> &'static Self {
        static BLANK: LazyLock<Evidence> = LazyLock::new(Evidence::default);
        &BLANK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_shares_until_it_is_changed() {
        let mut one = Rare::<CallFacts>::default();
        assert_eq!(one.operation_attempt, None);
        assert!(one.0.is_none(), "reading takes no room");
        one.operation_attempt = Some(2);
        let mut copy = one.clone();
        assert_eq!(one, copy);
        copy.operation_attempt = None;
        assert_eq!((one.operation_attempt, copy.operation_attempt), (Some(2), None));
        assert_eq!(copy, Rare::default(), "what is blank is equal, written to or not");
        copy.tidy();
        assert!(copy.0.is_none());
        assert!(Rare::from(CallFacts::default()).0.is_none());
    }

    #[test]
    fn it_is_written_as_what_it_says() {
        let said = CallFacts { operation_attempt: Some(3), ..CallFacts::default() };
        let plain = postcard::to_allocvec(&said).unwrap();
        let rare = Rare::from(said);
        assert_eq!(postcard::to_allocvec(&rare).unwrap(), plain);
        assert_eq!(postcard::from_bytes::<Rare<CallFacts>>(&plain).unwrap(), rare);
    }
}
