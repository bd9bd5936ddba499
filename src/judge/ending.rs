//! How a request ended (judgment.md §2, 4.3, 5): one table of rules over both halves' answers, the
//! deciding HTTP exchange and cancel notes. The first rule that says something wins.
//!
//! The order is the argument: what the caller itself received, then what HTTP refused, then how the
//! caller gave up, then what the answering half says, and only then the absence of evidence.

use super::capabilities::outside_capabilities;
use crate::model::case::{Ending, Exchange, Half, ScopeSeen};
use crate::model::fact::{Answer, End, Failure, Fault};
use crate::model::ids::{Name, Nanos};
use crate::model::words::{Era, Reason, ResultType, Transport};

/// One rule: its name, the sentence it stands for, and what it makes of a request.
pub struct Rule {
    pub id: &'static str,
    pub says: &'static str,
    when: fn(&Ends) -> Option<Ending>,
}

const fn rule(id: &'static str, says: &'static str, when: fn(&Ends) -> Option<Ending>) -> Rule {
    Rule { id, says, when }
}

/// In order of precedence.
pub const RULES: [Rule; 18] = [
    rule("refused_locally", "the caller refused it itself; nothing was sent", refused_locally),
    rule("received", "the caller holds a result that is no error", received),
    rule("unauthorized", "401, 403, or an authorization error by name", unauthorized),
    rule("session_expired", "404 in a scope that lived, or a dead session by name", expired),
    rule("http_refused", "HTTP says that the request did not run", http_refused),
    rule("http_lost", "HTTP 5xx: sent, and the answer is lost", http_lost),
    rule("not_connected", "no connection or no TLS: nothing was sent", not_connected),
    rule("timed_out", "the caller gave up waiting", timed_out),
    rule("cancelled", "somebody called it off before an answer came", cancelled),
    rule("connection_lost", "the connection broke after sending", connection_lost),
    rule("incompatible", "version or capability refused", incompatible),
    rule("answered", "a half shows a result or a JSON-RPC error", answered),
    rule("http_error", "HTTP 4xx without a JSON-RPC error", http_error),
    rule("server_failed", "the answering half failed without a code", server_failed),
    rule("unnamed", "a failure that only the caller saw, without a name", unnamed),
    rule("served", "the answering half ended without an error", served),
    rule("open", "not ended", open),
    rule("unobserved", "ended, and nothing says with what", |_| Some(Ending::Unobserved)),
];

/// How the request ended, before its clocks, its task and its operation are looked at.
pub fn ending(x: &Exchange, scope: &ScopeSeen) -> Ending {
    ruled(x, scope).0
}

/// The ending, and the rule that gave it.
pub fn ruled(x: &Exchange, scope: &ScopeSeen) -> (Ending, &'static Rule) {
    let ends = Ends { x, scope };
    let (last, rules) = (&RULES[RULES.len() - 1], RULES.iter());
    let mut hits = rules.filter_map(|rule| (rule.when)(&ends).map(|ending| (ending, rule)));
    hits.next().unwrap_or((Ending::Unobserved, last))
}

/// A request and its scope, with the questions that the rules share.
struct Ends<'a> {
    x: &'a Exchange,
    scope: &'a ScopeSeen,
}

/// Whether a half says itself how it was answered: `isError`, a code, a typed result, or a result
/// beside no failure.
pub(super) fn own_answer(answer: &Answer) -> bool {
    answer.is_error.is_some()
        || answer.code.is_some()
        || answer.result_type.is_some()
        || shows_result(answer)
}

/// A dialect's own OK next to a failure proves nothing: frameworks print errors as output.
fn shows_result(answer: &Answer) -> bool {
    answer.result_seen && answer.failure.is_none()
}

impl<'a> Ends<'a> {
    fn asking(&self) -> Option<&'a Answer> {
        self.x.asking.as_ref().map(|half| &half.answer)
    }

    fn answering(&self) -> Option<&'a Answer> {
        self.x.answering.as_ref().map(|half| &half.answer)
    }

    fn asking_failure(&self) -> Option<Failure> {
        self.asking().and_then(|answer| answer.failure)
    }

    fn answering_failure(&self) -> Option<Failure> {
        self.answering().and_then(|answer| answer.failure)
    }

    fn asking_answered(&self) -> bool {
        self.asking().is_some_and(own_answer)
    }

    fn answering_answered(&self) -> bool {
        self.answering().is_some_and(own_answer)
    }

    /// The caller's half says nothing of how it went.
    fn asking_silent(&self) -> bool {
        !self.asking_answered() && self.asking_failure().is_none()
    }

    fn failed_by(&self, wanted: &[Failure]) -> Option<Failure> {
        let both = [self.asking_failure(), self.answering_failure()];
        both.into_iter().flatten().find(|failure| wanted.contains(failure))
    }

    /// The status that decides: the caller's own POST, its own span, then the server's side.
    fn http_status(&self) -> Option<u16> {
        let seen = |asking: bool| {
            let http = self.x.http.filter(|http| (http.by == End::Asking) == asking)?;
            (http.status != 0).then_some(http.status)
        };
        let own = |answer: Option<&Answer>| answer.and_then(|answer| answer.http_status);
        seen(true)
            .or_else(|| own(self.asking()))
            .or_else(|| seen(false))
            .or_else(|| own(self.answering()))
    }

    /// A fault of the exchange itself counts where nobody received anything over it.
    fn fault(&self) -> Option<Fault> {
        let answered =
            self.asking_answered() || self.answering_answered() && self.asking_failure().is_none();
        self.x.http.filter(|_| !answered).and_then(|http| http.fault)
    }

    fn code(&self) -> Option<i64> {
        let code = |answer: Option<&Answer>| answer.and_then(|answer| answer.code);
        code(self.answering()).or_else(|| code(self.asking()))
    }

    /// The server ran it and both halves tell the same story, whatever HTTP status carried it.
    fn agreed(&self) -> bool {
        match (self.asking(), self.answering()) {
            (Some(asking), Some(answering)) => {
                own_answer(answering)
                    && (asking.code, asking.is_error) == (answering.code, answering.is_error)
            }
            _ => false,
        }
    }

    fn modern(&self) -> bool {
        self.x.era == Era::Modern
    }

    fn is(&self, method: &str) -> bool {
        self.x.method.as_str() == method
    }
}

fn refused_locally(e: &Ends) -> Option<Ending> {
    let unsent = e.x.answering.is_none() && e.http_status().is_none() && e.x.http.is_none();
    (unsent && e.asking_failure() == Some(Failure::RefusedLocally))
        .then_some(Ending::RefusedLocally)
}

fn received(e: &Ends) -> Option<Ending> {
    let asking = e.asking()?;
    let holds = asking.is_error == Some(false) || asking.result_type.is_some();
    if holds { answered(e) } else { None }
}

fn unauthorized(e: &Ends) -> Option<Ending> {
    use Failure::{Forbidden, InsufficientScope, InvalidToken};
    let reason = match e.failed_by(&[InvalidToken, InsufficientScope, Forbidden]) {
        Some(InvalidToken) => Reason::InvalidToken,
        Some(InsufficientScope) => Reason::InsufficientScope,
        Some(_) => Reason::Forbidden,
        None => match e.http_status()? {
            401 => Reason::InvalidToken,
            403 => Reason::Forbidden,
            _ => return None,
        },
    };
    Some(Ending::Unauthorized { reason })
}

/// -32001 beside an HTTP refusal is a server's "unknown session"; without one it is a caller's own
/// "I gave up waiting" (`timed_out`), and in modern a header refused (`answered`). An `initialize`
/// opens a session: it can't meet an expired one.
fn expired(e: &Ends) -> Option<Ending> {
    if e.modern() || e.is("initialize") || e.answering().is_some_and(|a| a.code == Some(-32601)) {
        return None;
    }
    let lived = e.x.session_id.is_some() || e.scope.answered_before;
    let unknown = e.code() == Some(-32001);
    let refused = match e.http_status() {
        Some(404) => lived || unknown,
        Some(400) => lived && unknown,
        _ => false,
    };
    let named = e.failed_by(&[Failure::SessionExpired]).is_some();
    (refused || named).then_some(Ending::SessionExpired)
}

fn http_refused(e: &Ends) -> Option<Ending> {
    let ran = e.answering().is_some_and(|a| a.is_error.is_some() || shows_result(a));
    let reason = match e.http_status() {
        Some(404) if e.code() == Some(-32601) => return None,
        Some(404 | 405) => Reason::WrongUrl,
        Some(status @ (408 | 429 | 503)) => Reason::Http(status),
        // Old SDKs call every 404 a dead session; the first request of all has none.
        _ if e.is("initialize") && e.failed_by(&[Failure::SessionExpired]).is_some() => {
            Reason::WrongUrl
        }
        _ => return None,
    };
    match ran {
        false => Some(Ending::NotSent { reason }),
        true if e.agreed() => None,
        true => Some(Ending::Lost { reason }),
    }
}

fn http_lost(e: &Ends) -> Option<Ending> {
    let status = e.http_status().filter(|status| (500..600).contains(status))?;
    (!e.agreed()).then_some(Ending::Lost { reason: Reason::Http(status) })
}

fn not_connected(e: &Ends) -> Option<Ending> {
    let by_name = e.asking_failure().filter(|_| e.asking().is_some_and(|a| a.is_error.is_none()));
    let reason = match (e.x.http.and_then(|http| http.fault), by_name) {
        (Some(Fault::NotConnected), _) | (_, Some(Failure::NotConnected)) => {
            Reason::ConnectionFailed
        }
        (Some(Fault::Tls), _) | (_, Some(Failure::Tls)) => Reason::TlsFailed,
        _ => return None,
    };
    // A server half proves that something was sent.
    Some(match &e.x.answering {
        Some(_) => Ending::Lost { reason: Reason::ConnectionLost },
        None => Ending::NotSent { reason },
    })
}

fn timed_out(e: &Ends) -> Option<Ending> {
    let open_minded = e.asking().is_some_and(|a| a.is_error.is_none());
    let named = open_minded && e.asking_failure() == Some(Failure::Timeout);
    let unnamed = e.asking_failure().is_none_or(|failure| failure == Failure::Unnamed);
    let coded = open_minded && unnamed && gave_up_by_code(e);
    let by_server = e.asking_silent()
        && !e.answering_answered()
        && e.answering_failure() == Some(Failure::Timeout);
    let by_http = e.fault() == Some(Fault::Timeout);
    (named || coded || by_server || by_http).then_some(Ending::TimedOut)
}

/// An SDK's own -32001: seen by the caller alone, and refused by nobody.
fn gave_up_by_code(e: &Ends) -> bool {
    let caller = e.asking().is_some_and(|answer| answer.code == Some(-32001));
    let server = e.answering().is_some_and(|answer| answer.code.is_some());
    caller && !server && !e.http_status().is_some_and(|status| (400..500).contains(&status))
}

fn cancelled(e: &Ends) -> Option<Ending> {
    let open_minded = e.asking().is_some_and(|a| a.is_error.is_none());
    let by_name = open_minded && e.asking_failure() == Some(Failure::Cancelled);
    let by_server = e.asking_silent()
        && !e.answering_answered()
        && e.answering_failure() == Some(Failure::Cancelled);
    let hung_up = e.modern()
        && e.x.transport != Some(Transport::Stdio)
        && e.asking_silent()
        && e.answering_failure() == Some(Failure::ClientDisconnected);
    let by_http = e.asking_silent() && e.fault() == Some(Fault::Cancelled);
    (by_name || by_server || hung_up || by_http || noted(e)).then_some(Ending::Cancelled)
}

/// A cancel notification that came while its sender still waited. One that crossed a received
/// answer changes nothing.
fn noted(e: &Ends) -> bool {
    let Some(cancel) = e.x.cancel else { return false };
    let still_open = |half: &Half| !half.ended || half.end >= cancel.at || half.end == 0;
    match (&e.x.asking, &e.x.answering) {
        (Some(asking), _) => {
            !own_answer(&asking.answer)
                && (!asking.ended || just_before(asking, cancel.at))
                && e.asking_failure().is_none_or(|failure| failure == Failure::Unnamed)
        }
        (None, Some(answering)) => still_open(answering),
        (None, None) => true,
    }
}

/// SDKs send the cancel when the call returns to their caller, a moment after the span ended.
fn just_before(half: &Half, cancel: Nanos) -> bool {
    half.end == 0 || half.end.saturating_add(crate::model::ids::SECOND) >= cancel
}

fn connection_lost(e: &Ends) -> Option<Ending> {
    let open_minded = e.asking().is_some_and(|a| a.is_error.is_none());
    let by_caller = open_minded && e.asking_failure() == Some(Failure::ConnectionLost);
    let by_http = e.fault() == Some(Fault::Lost);
    let by_server = e.asking_silent()
        && !e.answering_answered()
        && matches!(
            e.answering_failure(),
            Some(Failure::ClientDisconnected | Failure::ConnectionLost)
        );
    (by_caller || by_http || by_server).then_some(Ending::Lost { reason: Reason::ConnectionLost })
}

fn incompatible(e: &Ends) -> Option<Ending> {
    use Failure::{MissingCapability, UnsupportedVersion};
    let reason = match e.failed_by(&[UnsupportedVersion, MissingCapability])? {
        UnsupportedVersion => Reason::UnsupportedVersion,
        _ => Reason::MissingCapability,
    };
    Some(Ending::Incompatible { reason })
}

/// The answering half's own words first, then the caller's; on one half `isError` before a code,
/// because error texts quote codes.
fn answered(e: &Ends) -> Option<Ending> {
    let (asking, answering) = (e.asking(), e.answering());
    let typed = |a: Option<&Answer>| a.and_then(|a| a.result_type);
    match typed(answering).or_else(|| typed(asking)) {
        Some(ResultType::InputRequired) => return Some(Ending::InputRequired),
        Some(ResultType::Task) => return Some(Ending::Task),
        Some(ResultType::Complete) | None => {}
    }
    for answer in [answering, asking].into_iter().flatten() {
        if answer.is_error.is_some() {
            return Some(Ending::Result { is_error: answer.is_error });
        }
        if let Some(code) = answer.code {
            return Some(by_code(e, code));
        }
        if answer.failure == Some(Failure::Protocol) {
            return Some(Ending::Error { code: None });
        }
    }
    let seen = e.asking_answered() || e.answering_answered();
    let red = e.asking_failure() == Some(Failure::Unnamed);
    (seen && !red).then_some(Ending::Result { is_error: None })
}

/// What a JSON-RPC code means in this request's era (judgment.md §2).
fn by_code(e: &Ends, code: i64) -> Ending {
    let refused = |reason| Ending::Incompatible { reason };
    match (code, e.x.era) {
        (-32022 | -32004, Era::Modern) => refused(Reason::UnsupportedVersion),
        (-32021 | -32003, Era::Modern) => refused(Reason::MissingCapability),
        (-32602, Era::Legacy | Era::Unknown) if e.is("initialize") => {
            refused(Reason::UnsupportedVersion)
        }
        (-32042, Era::Legacy) if elicits_by_code(e.x.version.as_ref()) => Ending::InputRequired,
        (-32601 | -32600, _) if outside_capabilities(e.x, e.scope).is_some() => {
            refused(Reason::CapabilityNotNegotiated)
        }
        _ => Ending::Error { code: Some(code) },
    }
}

/// 2025-11-25 alone has -32042; a legacy request whose version nobody saw may be of it.
fn elicits_by_code(version: Option<&Name>) -> bool {
    version.is_none_or(|version| version.as_str() == "2025-11-25")
}

fn http_error(e: &Ends) -> Option<Ending> {
    let refused = e.http_status().is_some_and(|status| (400..500).contains(&status));
    refused.then_some(Ending::Error { code: None })
}

/// Evidence from the answering side: its handler raised, or its span is red without a name.
fn server_failed(e: &Ends) -> Option<Ending> {
    let half = e.x.answering.as_ref().filter(|half| half.ended)?;
    half.answer.failure?;
    Some(match e.x.is_call() {
        true => Ending::Result { is_error: Some(true) },
        false => Ending::Error { code: None },
    })
}

fn unnamed(e: &Ends) -> Option<Ending> {
    e.asking_failure().map(|_| Ending::Unnamed)
}

fn served(e: &Ends) -> Option<Ending> {
    let half = e.x.answering.as_ref()?;
    (half.ended && half.answer.failure.is_none()).then_some(Ending::Result { is_error: None })
}

fn open(e: &Ends) -> Option<Ending> {
    let closed = e.x.primary().is_some_and(|half| half.ended);
    (!closed).then_some(Ending::Open)
}
