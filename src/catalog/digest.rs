//! How our digests are computed: SHA-256 over RFC 8785 text (judgment.md §6). What they are, how
//! they are written and read, is [`crate::model::digest`].
//!
//! Promises: equal values under RFC 8785 have equal digests (1.0 is 1, key order does not count).

use crate::model::digest::Digest;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::cmp::Ordering;

/// The RFC 8785 text of `value`. `None` only where memory or the value's form forbids one, which
/// no value read from JSON text does. Content: not for telemetry.
pub fn canonical_text(value: &Value) -> Option<String> {
    String::from_utf8(serde_json_canonicalizer::to_vec(value).ok()?).ok()
}

/// The digest of text that is in RFC 8785 form.
pub fn text_digest(canonical: &str) -> Digest {
    Digest::Tool(Sha256::digest(canonical.as_bytes()).into())
}

/// The digest of any JSON value.
pub fn value_digest(value: &Value) -> Option<Digest> {
    canonical_text(value).map(|text| text_digest(&text))
}

/// Compares as JavaScript and RFC 8785 do, by UTF-16 code units.
pub fn utf16_order(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_digest_is_over_the_canonical_text() {
        assert_eq!(
            value_digest(&json!({})).unwrap().to_string(),
            "mcp-tool/1:sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
        let spelled: Value =
            serde_json::from_str(r#"{"b":-0,"a":[1e0,10.0,1E21,0.000001]}"#).unwrap();
        assert_eq!(canonical_text(&spelled).unwrap(), r#"{"a":[1,10,1e+21,0.000001],"b":0}"#);
        assert_eq!(utf16_order("\u{1F600}", "\u{fb33}"), Ordering::Less);
    }
}
