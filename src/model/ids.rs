//! Identities and times: small copyable values with one text form each.
//!
//! Nothing here can fail: a malformed identity is simply absent (`None`), never a panic.

use std::fmt;

/// Unix time in nanoseconds, as OTLP carries it. Zero means absent.
pub type Nanos = u64;

/// Nanoseconds in a second and in a millisecond.
pub const SECOND: Nanos = 1_000_000_000;
pub const MILLI: Nanos = 1_000_000;

/// 2100-01-01T00:00:00Z: times from here on are nobody's real clock (`bad_timestamp`).
pub const FAR_FUTURE: Nanos = 4_102_444_800 * SECOND;

/// Whether a time can be believed at all: set, and before the year 2100.
pub fn sane(time: Nanos) -> bool {
    time != 0 && time < FAR_FUTURE
}

/// Where an accepted export stands in the log: its record's number, from 1, never reused. Travels
/// with every buffer, fact and held span from the moment the export is accepted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Position(pub u64);

/// When something reached this process. `monotonic` never runs backwards and drives `settle` and
/// `retention`; `wall` is Unix time and only bounds deadlines of open requests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Arrival {
    pub monotonic: Nanos,
    pub wall: Nanos,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TraceId(pub [u8; 16]);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SpanId(pub [u8; 8]);

impl TraceId {
    /// `None` for a wrong length and for the all-zero id, which OTLP calls invalid.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let id = Self(bytes.try_into().ok()?);
        (id.0 != [0; 16]).then_some(id)
    }
}

impl SpanId {
    /// `None` for a wrong length and for the all-zero id, which OTLP calls invalid.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let id = Self(bytes.try_into().ok()?);
        (id.0 != [0; 8]).then_some(id)
    }
}

/// A span, named as OTLP names it. Orders by trace, then span.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Debug,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct SpanRef {
    pub trace: TraceId,
    pub span: SpanId,
}

impl SpanRef {
    /// Whether it names a span that was recorded; a record without span context stands under a
    /// name of its own, with a zero span id.
    pub fn recorded(self) -> bool {
        self.span != SpanId::default()
    }
}

/// The first 16 bytes of a SHA-256: what facts, chains, scopes and arguments are named by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Digest16(pub [u8; 16]);

impl Digest16 {
    /// Digest over parts, each preceded by its length, so that ("ab","c") is not ("a","bc").
    pub fn of(parts: &[&[u8]]) -> Self {
        use sha2::{Digest, Sha256};
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self::first(&hash.finalize())
    }

    /// Digest over the bytes alone, nothing between them (judgment.md §8, chain ids).
    pub fn plain(parts: &[&[u8]]) -> Self {
        use sha2::{Digest, Sha256};
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(part);
        }
        Self::first(&hash.finalize())
    }

    /// Reads what it prints: 32 hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(|number| Self(number.to_be_bytes()))
    }

    fn first(full: &[u8]) -> Self {
        let mut out = [0; 16];
        out.copy_from_slice(&full[..16]);
        Self(out)
    }
}

macro_rules! hex_text {
    ($($kind:ty),*) => {$(
        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                let mut text = [0; 32];
                for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
                    pair[0] = HEX[usize::from(byte >> 4)];
                    pair[1] = HEX[usize::from(byte & 15)];
                }
                // Hex digits are text.
                f.write_str(std::str::from_utf8(&text[..2 * self.0.len()]).unwrap_or_default())
            }
        }
        impl fmt::Debug for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }
        impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                match s.is_human_readable() {
                    true => s.collect_str(self),
                    false => self.0.serialize(s),
                }
            }
        }
        /// As a checkpoint holds it: its bytes.
        impl<'de> serde::Deserialize<'de> for $kind {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                serde::Deserialize::deserialize(d).map(Self)
            }
        }
    )*};
}
hex_text!(TraceId, SpanId, Digest16);

/// A name that may be printed: at most 128 bytes, control characters escaped (judgment.md §1.6).
/// Names compare by their printed form.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(transparent)]
pub struct Name(smol_str::SmolStr);

impl Name {
    pub const MAX_BYTES: usize = 128;

    pub fn new(text: &str) -> Self {
        if text.len() <= Self::MAX_BYTES && !text.contains(char::is_control) {
            return Self(text.into());
        }
        let mut out = String::with_capacity(text.len().min(Self::MAX_BYTES));
        for c in text.chars() {
            let before = out.len();
            match c.is_control() {
                true => out.extend(c.escape_default()),
                false => out.push(c),
            }
            if out.len() > Self::MAX_BYTES {
                out.truncate(before);
                break;
            }
        }
        Self(out.into())
    }

    /// `None` for an empty text.
    pub fn some(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self::new(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> serde::Deserialize<'de> for Name {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'_, str>>::deserialize(d)?;
        Ok(Self::new(&text))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::ops::Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_capped_and_escaped() {
        assert_eq!(Name::new("a\nb").as_str(), "a\\nb");
        assert_eq!(Name::new(&"é".repeat(100)).len(), 128);
        assert_eq!(Name::new(&"x".repeat(500)).len(), 128);
    }

    #[test]
    fn zero_ids_are_absent() {
        assert_eq!(SpanId::read(&[0; 8]), None);
        assert_eq!(TraceId::read(&[1; 15]), None);
        assert!(SpanId::read(&[1; 8]).is_some());
    }
}
