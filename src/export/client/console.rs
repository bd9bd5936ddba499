//! `console`: verdicts as the table that `replay` prints, or the spans that pass, on the standard
//! output.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use crate::export::batch::Batch;
use crate::export::outcome::{Attempt, Outcome};
use crate::export::settings::Show;
use crate::model::attributes::VERDICT_PREFIX;
use crate::show::terminal;
use crate::show::verdicts::{Line, Stream};
use crate::wire::scan::{self, Attrs, RecordView, SpanView, ValueRef};
use crate::wire::{Signal, regroup};

pub struct Console {
    show: Show,
    /// Begun with the first verdict.
    table: Mutex<Option<Stream>>,
}

impl Console {
    pub fn new(show: Show) -> Self {
        Console { show, table: Mutex::default() }
    }

    pub async fn send(&self, signal: Signal, batch: &Batch) -> Attempt {
        let Ok(plain) = batch.plain() else { return Outcome::Unfit("unreadable").into() };
        let mut text = Vec::new();
        // Writing to memory cannot fail.
        let _ = self.print(signal, &plain, &mut text);
        // A terminal that is held takes nothing for as long as it likes: no task waits for it.
        let printed = tokio::task::spawn_blocking(move || {
            let mut out = terminal::out();
            out.write_all(&text).and_then(|()| out.flush())
        });
        // One that went away is no reason to hold back what other exporters get.
        let _ = printed.await;
        Outcome::Accepted { rejected: 0, warned: false }.into()
    }

    fn print(&self, signal: Signal, export: &[u8], out: &mut dyn Write) -> io::Result<()> {
        match (self.show, signal) {
            (Show::Verdicts, Signal::Logs) => {
                let records = regroup::items(export).map(|item| RecordView::parse(item.bytes, 0));
                let lines: Vec<Line> = records.filter_map(|record| verdict(&record)).collect();
                self.rows(&lines, out)?;
            }
            (Show::Spans, Signal::Traces) => {
                for item in regroup::items(export) {
                    writeln!(out, "{}", span(&SpanView::parse(item.bytes, 0)))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn rows(&self, lines: &[Line], out: &mut dyn Write) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = table.is_some();
        let table = table.get_or_insert_with(|| Stream::new(terminal::width()));
        if !begun {
            table.header(out)?;
        }
        lines.iter().try_for_each(|line| table.line(out, line))
    }
}

fn verdict(record: &RecordView<'_>) -> Option<Line> {
    let kind = record.event_name.as_str()?.strip_prefix(VERDICT_PREFIX)?;
    if kind != "verdict" && kind != "revised" {
        return None;
    }
    let get = |key: &str| attribute(record.attributes(), key).unwrap_or_default();
    Some(Line { trace: hex(record.trace_id), ..Line::of_event(get) })
}

fn span(span: &SpanView<'_>) -> String {
    let length = span.end().saturating_sub(span.start()) / 1_000_000;
    let name = crate::model::ids::Name::new(&span.name().lossy());
    let state = attribute(span.attributes(), "state").unwrap_or_default();
    format!("{} {} {length:>6} ms {name} {state}", hex(span.trace_id()), hex(span.span_id()))
}

/// One of our own attributes; the texts of a list are separated by blanks.
fn attribute(attributes: Attrs<'_>, key: &str) -> Option<String> {
    let is = |attr: &scan::Attr<'_>| {
        attr.key.as_str().and_then(|whole| whole.strip_prefix(VERDICT_PREFIX)) == Some(key)
    };
    attributes.filter(is).last().and_then(|attr| text(&attr.value))
}

fn text(value: &ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Str(text) => Some((*text).to_owned()),
        ValueRef::Int(value) => Some(value.to_string()),
        ValueRef::Bool(value) => Some(value.to_string()),
        ValueRef::Array(values) => {
            let texts: Vec<String> = values.clone().filter_map(|value| text(&value)).collect();
            Some(texts.join(" "))
        }
        _ => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
