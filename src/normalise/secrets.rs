//! Values that look like credentials (`secret_in_attribute`). Said by key, never by value.

use super::item::Bag;
use crate::wire::scan::ValueRef;

/// Beginnings of keys that vendors give a fixed shape: prefix and how many characters follow.
const VENDOR_KEYS: &[(&str, usize)] = &[
    ("sk-ant-", 20),
    ("sk-proj-", 20),
    ("sk-", 20),
    ("sk_live_", 16),
    ("rk_live_", 16),
    ("ghp_", 30),
    ("gho_", 30),
    ("ghs_", 30),
    ("github_pat_", 30),
    ("glpat-", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("xapp-", 20),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 35),
    ("ya29.", 20),
    ("npm_", 30),
    ("hf_", 30),
    ("dop_v1_", 40),
    ("SG.", 40),
];

/// The first `limit` keys whose value looks like a credential, each once.
pub fn keys<'a>(bag: &Bag<'a>, limit: usize) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for (key, value) in &bag.0 {
        if found.len() < limit && !found.contains(key) && holds(value, 0) {
            found.push(key);
        }
    }
    found
}

fn holds(value: &ValueRef<'_>, depth: usize) -> bool {
    match value {
        ValueRef::Str(text) => is_secret(text),
        ValueRef::Array(values) if depth < 4 => values.clone().any(|v| holds(&v, depth + 1)),
        ValueRef::KvList(pairs) if depth < 4 => {
            pairs.clone().any(|pair| holds(&pair.value, depth + 1))
        }
        _ => false,
    }
}

/// Whether a text is or holds a credential: a bearer or basic header, a private key block, a JSON
/// web token, or a key with a vendor's prefix.
pub fn is_secret(text: &str) -> bool {
    text.contains("PRIVATE KEY-----") || words(text).any(is_token) || header(text)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "\"',;:=()[]{}<>&?".contains(c))
}

fn is_token(word: &str) -> bool {
    if word.len() < 20 {
        return false;
    }
    is_jwt(word)
        || VENDOR_KEYS.iter().any(|(prefix, rest)| {
            word.strip_prefix(prefix).is_some_and(|tail| {
                tail.len() >= *rest && tail.bytes().all(is_key_byte) && varied(tail)
            })
        })
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}

/// Keys mix digits into letters; words of a language do not.
fn varied(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit()) && text.bytes().any(|b| b.is_ascii_alphabetic())
}

/// Three base64url parts of which the first is a JSON object (`eyJ` is `{"` encoded).
fn is_jwt(word: &str) -> bool {
    let parts: Vec<&str> = word.split('.').collect();
    parts.len() == 3
        && parts[0].starts_with("eyJ")
        && parts[1].starts_with("eyJ")
        && parts[2].len() >= 16
        && word.bytes().all(is_key_byte)
}

/// `Bearer <token>` or `Basic <base64>` with something that can be one, not prose.
fn header(text: &str) -> bool {
    let mut tokens = text.split(|c: char| c.is_whitespace() || "\"'".contains(c));
    let mut before = "";
    tokens.any(|word| {
        let scheme = before;
        before = word;
        let bearer = scheme.trim_end_matches(':').eq_ignore_ascii_case("bearer");
        let basic = scheme.trim_end_matches(':').eq_ignore_ascii_case("basic");
        let shaped = word.bytes().all(|b| is_key_byte(b) || b"+/=~".contains(&b));
        let dense = varied(word) || word.ends_with('=') || word.len() >= 40;
        (bearer && word.len() >= 16 || basic && word.len() >= 8) && shaped && dense
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_seen_and_prose_is_not() {
        for (text, want) in [
            ("Bearer PLACEHOLDER-not-a-real-token-0000", true),
            ("authorization: bearer abcdef0123456789abcd", true),
            ("Basic dXNlcjpwYXNzd29yZA==", true),
            ("-----BEGIN RSA PRIVATE KEY-----\nMII", true),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlc2lnbmF0dXJl", true),
            ("key=ghp_0123456789abcdefghijABCDEFGHIJ0123", true),
            ("bearer of good news, basic functionality", false),
            ("basic authentication required", false),
            ("sk-test-0000", false),
            ("Bearer error=\"invalid_token\"", false),
            ("task-force-one-is-on-its-way-home", false),
            ("", false),
        ] {
            assert_eq!(is_secret(text), want, "{text}");
        }
    }
}
