//! An explained chain for people and, with the same contents, as JSON. Names, codes, ids and times
//! only: facts hold no content.

use std::io::{self, Write};

use anstyle::Style;
use serde_json::{Value as Json, json};

use super::trials::Change;
use crate::engine::{Explained, Role};
use crate::model::fact::Fact;
use crate::model::record::Verdict;
use crate::model::words::Owner;
use crate::show::evidence::{beside, name, note, said, source};
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
