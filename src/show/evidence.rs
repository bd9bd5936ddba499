//! What a chain rests on, in words: the same in the terminal, on the page and in the API. Names,
//! codes, ids and times only: facts hold no content.

use crate::engine::Role;
use crate::judge::Note;
use crate::model::case::Exchange;
use crate::model::fact::{Fact, HalfFact, Origin, Says, Signal};

/// What a record is to the chain.
pub fn name(role: Role) -> &'static str {
    match role {
        Role::Asking => "asking",
        Role::Answering => "answering",
        Role::Evidence => "evidence",
        Role::Notification => "meanwhile",
    }
}

/// What kind of record it is.
pub fn source(fact: &Fact) -> &'static str {
    match fact.id.signal {
        Signal::Span => "span",
        Signal::Log => "log record at span",
    }
}

/// What one record says, in the words of MCP.
pub fn said(fact: &Fact) -> Vec<String> {
    let mut said = match &fact.says {
        Says::Half(half) | Says::Connection(half) => half_says(half),
        Says::Started(half) => {
            let mut said = half_says(half);
            said.insert(0, "has begun".to_string());
            said
        }
        Says::Notification(note) => vec![note.method.to_string()],
        Says::Agent { run, .. } => {
            vec![if *run { "an agent's run" } else { "an agent's name" }.to_string()]
        }
        Says::Model { .. } => vec!["what a model was offered".to_string()],
        Says::Http(http) => vec![format!("HTTP {}", http.status)],
        Says::Tool => {
            let told = fact.evidence.request.as_deref().map(half_says);
            let ended = told.into_iter().flatten().skip(1);
            std::iter::once("how a framework's tool ended".to_string()).chain(ended).collect()
        }
        Says::Evidence => Vec::new(),
    };
    for effect in &fact.evidence.effects {
        said.push(format!("effect {}{}", effect.status, origin(effect.from)));
    }
    for outcome in &fact.evidence.outcomes {
        let method = outcome.method.map_or("unknown method", |method| method.as_str());
        said.push(format!("outcome {} by {method}{}", outcome.status, origin(outcome.from)));
    }
    said
}

fn origin(origin: Origin) -> String {
    match origin {
        Origin::Attribute => String::new(),
        Origin::Rule(number) => format!(" (evidence rule {})", u32::from(number) + 1),
    }
}

fn half_says(half: &HalfFact) -> Vec<String> {
    let mut said = vec![half.method.to_string()];
    let mut say = |label: &str, value: Option<String>| {
        said.extend(value.map(|value| format!("{label}{value}")));
    };
    let answer = &half.answer;
    say("tool ", half.tool.as_ref().map(|tool| tool.to_string()));
    say("id ", half.request_id.as_ref().map(|id| id.to_string()));
    say("session ", half.session.as_ref().map(|(id, _)| id.to_string()));
    say("version ", half.version.as_ref().map(|version| version.to_string()));
    say("isError ", answer.is_error.map(|flag| flag.to_string()));
    say("code ", answer.code.map(|code| code.to_string()));
    say("HTTP ", answer.http_status.map(|status| status.to_string()));
    say("failure ", answer.failure.map(|failure| format!("{failure:?}")));
    say("result type ", answer.result_type.map(|kind| kind.to_string()));
    say("", (answer.result_seen && answer.is_error.is_none()).then(|| "a result".to_string()));
    say("read-only ", half.call.read_only.map(|flag| flag.to_string()));
    said
}

/// What was found beside the records themselves.
pub fn beside(exchange: &Exchange) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(http) = exchange.http {
        let status = if http.status == 0 { "no status".into() } else { http.status.to_string() };
        let fault = http.fault.map(|fault| format!(", {fault:?}")).unwrap_or_default();
        lines.push(format!("http       {status}{fault}"));
    }
    if let Some(cancel) = exchange.cancel {
        lines.push(format!("cancelled  by the {:?} end", cancel.by).to_lowercase());
    }
    if let Some(last) = exchange.progress.last() {
        let count = exchange.progress.len();
        lines.push(format!("progress   {count} notifications, the last on span {}", last.span));
    }
    lines
}

/// What was decided at a step, and by which rule; `None` for rungs, which the ladders show.
pub fn note(note: &Note) -> Option<String> {
    match note {
        Note::Ending { rule, says, .. } => Some(format!("ended by rule `{rule}`: {says}")),
        Note::Effect(fact) => Some(format!("the effect that counts: {}", fact.status)),
        Note::Outcome(fact) => Some(format!("the outcome that counts: {}", fact.status)),
        Note::Row { number, state, says } => {
            Some(format!("row {number} of the state table fits first, `{state}`: {says}"))
        }
        Note::Finding { code, when } => Some(format!("finding `{code}`: {when}")),
        Note::Health { .. } | Note::Failure { .. } => None,
    }
}
