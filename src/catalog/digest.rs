//! A digest of a tool or a registry, as it is written, read and compared.
//!
//! Promises: a text that names another scheme never becomes a value that can be compared with
//! ours, and reading is total: every text is ours, foreign or malformed.

use sha2::{Digest as _, Sha256};
use std::fmt;

/// The projection that our digests are taken over; it stands in front of every digest we write.
pub const SCHEME: &str = "mcp-tool/1";

/// SHA-256 over an RFC 8785 form under the scheme [`SCHEME`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// What a text says that should be a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stated {
    /// `mcp-tool/1:sha256:<64 hex>`, `sha256:<64 hex>` or 64 bare hex digits.
    Ours(Digest),
    /// Another scheme or another hash: evidence that a digest exists, never comparable.
    Foreign,
    /// No digest at all.
    Malformed,
}

impl Digest {
    /// The digest of `canonical`, which the caller has brought into RFC 8785 form.
    pub fn of(canonical: &[u8]) -> Digest {
        Digest(Sha256::digest(canonical).into())
    }

    /// A digest known as its 32 bytes, for instance from a checkpoint.
    pub fn from_bytes(bytes: [u8; 32]) -> Digest {
        Digest(bytes)
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// All 64 hex digits without a scheme.
    pub fn hex(&self) -> String {
        hex(&self.0)
    }

    /// The first 16 hex digits, for people; never to be compared.
    pub fn short(&self) -> String {
        hex(&self.0[..8])
    }

    /// What `text` says; surrounding blanks and the case of hex digits do not matter.
    pub fn read(text: &str) -> Stated {
        let text = text.trim();
        let hex = match text.rsplit_once(':') {
            None => text,
            Some(("sha256", hex)) => hex,
            Some((prefix, hex)) if prefix.strip_suffix(":sha256") == Some(SCHEME) => hex,
            Some(_) => return Stated::Foreign,
        };
        unhex(hex).map_or(Stated::Malformed, |bytes| Stated::Ours(Digest(bytes)))
    }

    /// The digest that `text` states, if it is one of ours.
    pub fn ours(text: &str) -> Option<Digest> {
        match Digest::read(text) {
            Stated::Ours(digest) => Some(digest),
            Stated::Foreign | Stated::Malformed => None,
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{SCHEME}:sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Digest({})", self.short())
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let nibbles = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    nibbles.map(|nibble| char::from(DIGITS[usize::from(nibble)])).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let text = text.as_bytes();
    if text.len() != 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let digest = Digest::of(b"{}");
        assert_eq!(
            digest.to_string(),
            "mcp-tool/1:sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
        assert_eq!(digest.short(), "44136fa355b3678a");
        for text in [digest.to_string(), digest.hex(), format!("sha256:{}", digest.hex())] {
            assert_eq!(Digest::read(&text), Stated::Ours(digest), "{text}");
            assert_eq!(
                Digest::read(
                    &text
                        .to_uppercase()
                        .replace("MCP-TOOL", "mcp-tool")
                        .replace("SHA256", "sha256")
                ),
                Stated::Ours(digest),
                "{text}"
            );
        }
    }

    #[test]
    fn another_scheme_is_foreign_and_noise_is_malformed() {
        let hex = Digest::of(b"{}").hex();
        for text in [
            format!("sep-2636:sha256:{hex}"),
            format!("mcp-tool/2:sha256:{hex}"),
            format!("mcp-tool/1:sha512:{hex}"),
            format!("md5:{hex}"),
            format!("xmcp-tool/1:sha256:{hex}"),
        ] {
            assert_eq!(Digest::read(&text), Stated::Foreign, "{text}");
        }
        for text in ["", "abc", &hex[1..], &format!("{hex}0"), &hex.replace('4', "g"), "sha256:é"]
        {
            assert_eq!(Digest::read(text), Stated::Malformed, "{text}");
        }
    }
}
