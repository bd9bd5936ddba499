//! Free text over what is remembered: part of a name, of a code, or of an id.
//!
//! Promises: letters of either case are one; a search makes no copy of what it looks through.

use crate::model::ids::{Digest16, SpanId, TraceId};
use crate::model::record::{Session, Verdict};

/// A text that is looked for; the empty one is everywhere.
pub struct Text {
    wanted: Vec<u8>,
    /// The same as hex digits, where it can be part of an id.
    digits: Option<Vec<u8>>,
}

impl Text {
    pub fn new(text: &str) -> Self {
        let wanted = text.trim().to_ascii_lowercase().into_bytes();
        let value = |byte: &u8| char::from(*byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
        let digits: Option<Vec<u8>> = wanted.iter().map(value).collect();
        Text { digits: digits.filter(|digits| digits.len() >= 4), wanted }
    }

    /// In the names, codes and ids of a verdict.
    pub fn of_verdict(&self, verdict: &Verdict) -> bool {
        if self.wanted.is_empty() {
            return true;
        }
        let names = [
            verdict.tool.as_deref(),
            Some(verdict.server.as_str()),
            verdict.agent.as_deref(),
            Some(verdict.method.as_str()),
            Some(verdict.state.as_str()),
            verdict.request_id.as_deref(),
            verdict.session_id.as_deref(),
            verdict.operation_id.as_deref(),
            Some(verdict.scope.as_str()),
        ];
        let findings = verdict.findings.iter().map(|finding| finding.code.as_str());
        let ids = || {
            let Digest16(id) = verdict.id;
            let spans = [verdict.client_span_id, verdict.server_span_id];
            self.is_in(&id)
                || verdict.trace_id.is_some_and(|TraceId(id)| self.is_in(&id))
                || spans.into_iter().flatten().any(|SpanId(id)| self.is_in(&id))
        };
        names.into_iter().flatten().chain(findings).any(|name| self.within(name))
            || ids()
            || verdict.reason.is_some_and(|reason| self.within(&reason.to_string()))
    }

    /// In the names and codes of a session.
    pub fn of_session(&self, session: &Session) -> bool {
        let names = [
            Some(session.scope.as_str()),
            session.session_id.as_deref(),
            session.protocol_version.as_deref(),
            session.discovered_digest.as_deref(),
            session.installed_digest.as_deref(),
        ];
        let findings = session.findings.iter().map(|finding| finding.code.as_str());
        names.into_iter().flatten().chain(findings).any(|name| self.within(name))
    }

    fn within(&self, name: &str) -> bool {
        let Some((first, rest)) = self.wanted.split_first() else { return true };
        let name = name.as_bytes();
        let Some(last) = name.len().checked_sub(self.wanted.len()) else { return false };
        let starts = memchr::memchr2_iter(*first, first.to_ascii_uppercase(), &name[..=last]);
        starts
            .map(|at| &name[at + 1..at + 1 + rest.len()])
            .any(|following| following.eq_ignore_ascii_case(rest))
    }

    /// Among the hex digits of an id.
    fn is_in(&self, id: &[u8]) -> bool {
        let Some(digits) = &self.digits else { return false };
        let digit = |at: usize| match at % 2 {
            0 => id[at / 2] >> 4,
            _ => id[at / 2] & 15,
        };
        let Some(last) = (id.len() * 2).checked_sub(digits.len()) else { return false };
        (0..=last).any(|from| digits.iter().enumerate().all(|(at, d)| digit(from + at) == *d))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_anywhere_in_either_case() {
        let within = |text: &str, name: &str| Text::new(text).within(name);
        for (text, name, found) in [
            ("", "", true),
            ("a", "", false),
            ("ticket", "create_TICKET", true),
            ("TICKET", "tickets.example.com", true),
            ("tickets", "ticket", false),
            ("é", "caf\u{e9}s", true),
        ] {
            assert_eq!(within(text, name), found, "{text} in {name}");
        }
    }

    #[test]
    fn hex_digits_are_part_of_an_id_from_four_on() {
        let id = [0x01, 0x23, 0xab, 0xcd];
        for (text, found) in
            [("0123", true), ("123A", true), ("bcd", false), ("abcd", true), ("0123abcd0", false)]
        {
            assert_eq!(Text::new(text).is_in(&id), found, "{text}");
        }
    }
}
