//! An explained chain for people and, with the same contents, as JSON. Names, codes, ids and times
//! only: facts hold no content.

use std::io::{self, Write};

use anstyle::Style;
use serde_json::{Value as Json, json};

use super::trials::Change;
use crate::engine::{Explained, Role};
use crate::judge::Note;
use crate::model::case::Exchange;
use crate::model::fact::{Fact, HalfFact, Origin, Says, Signal};
use crate::model::record::Verdict;
use crate::model::words::Owner;
use crate::show::verdicts::{call_name, state_style};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

pub fn write(out: &mut dyn Write, explained: &Explained, changes: &[Change]) -> io::Result<()> {
    headline(out, &explained.verdict)?;
    writeln!(out, "\n{BOLD}Facts{BOLD:#}")?;
    for (role, fact) in &explained.facts {
        let at = fact.id.at;
        let source = source(fact);
        writeln!(out, "  {:<10} {source} {} {DIM}{}{DIM:#}", name(*role), at.span, fact.scope)?;
        let said = said(fact);
        if !said.is_empty() {
            writeln!(out, "             {}", said.join(", "))?;
        }
    }
    for line in beside(&explained.exchange) {
        writeln!(out, "  {line}")?;
    }
    writeln!(out, "\n{BOLD}Judgement{BOLD:#}")?;
    for line in explained.notes.iter().filter_map(note) {
        writeln!(out, "  {line}")?;
    }
    if let Some(alone) = &explained.alone {
        writeln!(out, "  by itself {}; its operation's other attempts decide", alone.state)?;
    }
    writeln!(out, "\n{BOLD}What would change it{BOLD:#}")?;
    if changes.is_empty() {
        writeln!(out, "  no single piece of evidence on these spans")?;
    }
    changes.iter().take(MOST_CHANGES).try_for_each(|change| write_change(out, change))?;
    if changes.len() > MOST_CHANGES {
        let more = changes.len() - MOST_CHANGES;
        writeln!(out, "  and {more} more: --format json lists them all")?;
    }
    Ok(())
}

/// People read so many; the most useful stand first.
const MOST_CHANGES: usize = 8;

fn headline(out: &mut dyn Write, verdict: &Verdict) -> io::Result<()> {
    let style = state_style(verdict.state);
    let reason = verdict.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let call = call_name(verdict);
    writeln!(
        out,
        "{BOLD}{call}{BOLD:#} at {}: {style}{}{style:#}{reason}",
        verdict.server, verdict.state
    )?;
    writeln!(out, "  chain      {}", verdict.id)?;
    if let Some(trace) = verdict.trace_id {
        writeln!(out, "  trace      {trace}")?;
    }
    if let Some(id) = &verdict.request_id {
        writeln!(out, "  request    {id}")?;
    }
    let owner = match verdict.owner {
        Owner::None => String::new(),
        owner => format!(", by {owner}"),
    };
    writeln!(out, "  next step  {}{owner}; retry: {}", verdict.next_step, verdict.retry)?;
    let layers = serde_json::to_value(verdict.layers)?;
    writeln!(out, "  contract   {}", rungs(&layers))?;
    let layers = serde_json::to_value(verdict.failure_layers)?;
    writeln!(out, "  failure    {}", rungs(&layers))?;
    for finding in &verdict.findings {
        let detail = finding.detail.as_ref().map(|d| format!(" {d}")).unwrap_or_default();
        let (code, blame, strength) = (finding.code, finding.blame, finding.strength);
        writeln!(out, "  finding    {code}{detail} (blame {blame}, {strength})")?;
    }
    Ok(())
}

fn rungs(layers: &Json) -> String {
    let rungs: Vec<String> = layers
        .as_object()
        .into_iter()
        .flatten()
        .map(|(layer, rung)| format!("{layer} {}", rung.as_str().unwrap_or_default()))
        .collect();
    rungs.join(" · ")
}

fn name(role: Role) -> &'static str {
    match role {
        Role::Asking => "asking",
        Role::Answering => "answering",
        Role::Evidence => "evidence",
        Role::Notification => "meanwhile",
    }
}

fn source(fact: &Fact) -> &'static str {
    match fact.id.signal {
        Signal::Span => "span",
        Signal::Log => "log record at span",
    }
}

/// What one record says, in the words of MCP.
fn said(fact: &Fact) -> Vec<String> {
    let mut said = match &fact.says {
        Says::Half(half) | Says::Connection(half) => half_says(half),
        Says::Started(half) => {
            let mut said = half_says(half);
            said.insert(0, "has begun".to_string());
            said
        }
        Says::Notification(note) => vec![note.method.to_string()],
        Says::Agent { .. } => vec!["an agent's run".to_string()],
        Says::Model { .. } => vec!["what a model was offered".to_string()],
        Says::Http(http) => vec![format!("HTTP {}", http.status)],
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
fn beside(exchange: &Exchange) -> Vec<String> {
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

/// Rungs stand in the headline already.
fn note(note: &Note) -> Option<String> {
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

fn write_change(out: &mut dyn Write, change: &Change) -> io::Result<()> {
    let attributes: Vec<String> =
        change.attributes.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let style = state_style(change.state);
    let reason = change.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    writeln!(out, "  {style}{}{style:#}{reason} with, on span {}:", change.state, change.span_id)?;
    attributes.iter().try_for_each(|line| writeln!(out, "      {line}"))
}

/// The same as one object.
pub fn json(explained: &Explained, changes: &[Change]) -> Json {
    let fact = |(role, fact): &(Role, std::sync::Arc<Fact>)| {
        json!({
            "role": name(*role),
            "source": source(fact),
            "trace_id": fact.id.at.trace,
            "span_id": fact.id.at.span,
            "instrumentation_scope": fact.scope,
            "says": said(fact),
        })
    };
    let change = |change: &Change| {
        let attributes: serde_json::Map<String, Json> =
            change.attributes.iter().map(|(key, value)| (key.to_string(), json!(value))).collect();
        json!({
            "trace_id": change.trace_id,
            "span_id": change.span_id,
            "attributes": attributes,
            "state": change.state,
            "reason": change.reason,
            "first_failed_layer": change.first_failed_layer,
        })
    };
    json!({
        "verdict": explained.verdict,
        "alone": explained.alone.as_ref().map(|alone| alone.state),
        "facts": explained.facts.iter().map(fact).collect::<Vec<_>>(),
        "beside": beside(&explained.exchange),
        "judgement": explained.notes.iter().filter_map(note).collect::<Vec<_>>(),
        "changes": changes.iter().map(change).collect::<Vec<_>>(),
    })
}
