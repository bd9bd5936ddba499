//! `console`: verdicts, or the spans that pass, as lines on the standard output.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::export::batch::Batch;
use crate::export::outcome::Outcome;
use crate::export::settings::Show;
use crate::model::attributes::VERDICT_PREFIX;
use crate::wire::scan::{self, Attrs, RecordView, SpanView, ValueRef};
use crate::wire::{Signal, regroup};

pub struct Console {
    show: Show,
}

impl Console {
    pub fn new(show: Show) -> Self {
        Console { show }
    }

    pub fn send(&self, signal: Signal, batch: &Batch) -> Outcome {
        let Ok(plain) = batch.plain() else { return Outcome::Refused("unreadable") };
        let text = match (self.show, signal) {
            (Show::Verdicts, Signal::Logs) => {
                lines(&plain, |bytes| verdict(&RecordView::parse(bytes, 0)))
            }
            (Show::Spans, Signal::Traces) => {
                lines(&plain, |bytes| Some(span(&SpanView::parse(bytes, 0))))
            }
            _ => String::new(),
        };
        let mut out = std::io::stdout().lock();
        // A terminal that went away is no reason to hold back what other exporters get.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        Outcome::Accepted { rejected: 0, warned: false }
    }
}

fn lines(export: &[u8], line: impl Fn(&[u8]) -> Option<String>) -> String {
    let mut text = String::new();
    for line in regroup::items(export).filter_map(|item| line(item.bytes)) {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn verdict(record: &RecordView<'_>) -> Option<String> {
    let event = record.event_name;
    let kind = event.as_str()?.strip_prefix(VERDICT_PREFIX)?;
    let field = |key: &str| attribute(record.attributes(), VERDICT_PREFIX, key);
    if kind != "verdict" && kind != "revised" {
        return None;
    }
    let mut line = String::new();
    let state = field("state").unwrap_or_default();
    let call = match field("tool") {
        Some(tool) => format!("{} {tool}", field("method").unwrap_or_default()),
        None => field("method").unwrap_or_default(),
    };
    // Writing to a string cannot fail.
    let _ = write!(line, "{state:<20} {:<24} {call:<32}", field("server").unwrap_or_default());
    for key in ["reason", "next_step", "owner"] {
        if let Some(value) = field(key).filter(|value| value != "none") {
            let _ = write!(line, " {key}={value}");
        }
    }
    if kind == "revised" {
        let _ = write!(line, " revision={}", field("revision").unwrap_or_default());
    }
    let _ = write!(line, " trace={}", hex(record.trace_id));
    Some(line)
}

fn span(span: &SpanView<'_>) -> String {
    let length = span.end().saturating_sub(span.start()) / 1_000_000;
    let name = crate::model::ids::Name::new(&span.name().lossy());
    let state = attribute(span.attributes(), VERDICT_PREFIX, "state").unwrap_or_default();
    format!("{} {} {length:>6} ms {name} {state}", hex(span.trace_id()), hex(span.span_id()))
}

fn attribute(attributes: Attrs<'_>, prefix: &str, key: &str) -> Option<String> {
    let is = |attr: &scan::Attr<'_>| {
        attr.key.as_str().and_then(|whole| whole.strip_prefix(prefix)) == Some(key)
    };
    attributes.filter(is).last().and_then(|attr| match attr.value {
        ValueRef::Str(text) => Some(text.to_owned()),
        ValueRef::Int(value) => Some(value.to_string()),
        ValueRef::Bool(value) => Some(value.to_string()),
        _ => None,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
