//! One span or log record, flattened. The only place of this module that reads wire views: the rest
//! sees text, numbers and bags of attributes.
//!
//! Promises: total; an attribute whose key is not UTF-8 is passed over, text that is not UTF-8 is
//! read with replacement characters.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::sampling::sampling;
use crate::model::fact::{Process, Sampling, Signal};
use crate::model::ids::{Nanos, SpanId, SpanRef, TraceId};
use crate::wire::scan::{Attrs, RecordView, SpanView, ValueRef};

/// Text read as JSON may be this long, in bytes; longer content is treated as absent.
pub const MAX_JSON: usize = 1 << 20;

/// Events of one span that are looked at; the rest says nothing.
const MAX_EVENTS: usize = 4096;

/// Links of one span that are followed.
const MAX_LINKS: usize = 128;

/// Attributes in their order, duplicates included.
#[derive(Clone, Default)]
pub struct Bag<'a>(pub Vec<(&'a str, ValueRef<'a>)>);

pub struct Event<'a> {
    pub name: Cow<'a, str>,
    pub time: Nanos,
    pub attributes: Bag<'a>,
}

/// One span or log record.
pub struct Item<'a> {
    pub signal: Signal,
    /// A log record's context; zero ids where it has none.
    pub at: SpanRef,
    pub parent: Option<SpanId>,
    pub process: &'a Arc<Process>,
    pub resource: &'a Bag<'a>,
    /// Instrumentation scope.
    pub scope: &'a str,
    /// Span name, or event name of a log record.
    pub name: Cow<'a, str>,
    /// OTLP SpanKind number; 0 for log records.
    pub kind: u8,
    /// OTLP status code number; 0 for log records.
    pub status: u8,
    pub message: Cow<'a, str>,
    pub start: Nanos,
    pub end: Nanos,
    pub attributes: Bag<'a>,
    pub body: Option<ValueRef<'a>>,
    pub events: Vec<Event<'a>>,
    pub links: Vec<SpanRef>,
    pub sampling: Sampling,
}

/// Where an item came from.
#[derive(Clone, Copy)]
pub struct Origin<'a> {
    pub process: &'a Arc<Process>,
    pub resource: &'a Bag<'a>,
    pub scope: &'a str,
}

impl<'a> Item<'a> {
    /// `None` for a span without valid ids: nothing can be said of it by name.
    pub fn of_span(span: &SpanView<'a>, origin: Origin<'a>) -> Option<Self> {
        let events = span.events().take(MAX_EVENTS).map(|event| Event {
            name: event.name.lossy(),
            time: event.time,
            attributes: Bag::read(event.attributes()),
        });
        let links = span.links().take(MAX_LINKS);
        let item = Self::skeleton(span, origin)?;
        Some(Self {
            name: span.name().lossy(),
            message: span.status_message().lossy(),
            attributes: Bag::read(span.attributes()),
            events: events.collect(),
            links: links.filter_map(|l| span_ref(l.trace_id, l.span_id)).collect(),
            sampling: sampling(span.flags(), &span.trace_state().lossy(), item.at.trace),
            ..item
        })
    }

    /// Ids, times and numbers of a span alone.
    pub fn skeleton(span: &SpanView<'a>, origin: Origin<'a>) -> Option<Self> {
        Some(Self {
            signal: Signal::Span,
            at: span_ref(span.trace_id(), span.span_id())?,
            parent: SpanId::read(span.parent_span_id()),
            kind: small(span.kind()),
            status: small(span.status_code()),
            start: span.start(),
            end: span.end(),
            ..Self::blank(origin)
        })
    }

    pub fn of_record(record: &RecordView<'a>, origin: Origin<'a>) -> Self {
        let time = if record.time != 0 { record.time } else { record.observed_time };
        Self {
            signal: Signal::Log,
            at: SpanRef {
                trace: TraceId::read(record.trace_id).unwrap_or_default(),
                span: SpanId::read(record.span_id).unwrap_or_default(),
            },
            name: record.event_name.lossy(),
            start: time,
            end: time,
            attributes: Bag::read(record.attributes()),
            body: record.body.clone(),
            ..Self::blank(origin)
        }
    }

    /// A record of its own at the same place: what one of its events says.
    pub fn of_event(&self, event: &Event<'a>) -> Self {
        let origin = Origin { process: self.process, resource: self.resource, scope: self.scope };
        Self {
            at: self.at,
            parent: self.parent,
            name: event.name.clone(),
            kind: self.kind,
            start: event.time,
            end: event.time,
            attributes: event.attributes.clone(),
            sampling: self.sampling,
            ..Self::blank(origin)
        }
    }

    fn blank(origin: Origin<'a>) -> Self {
        Self {
            signal: Signal::Log,
            at: SpanRef::default(),
            parent: None,
            process: origin.process,
            resource: origin.resource,
            scope: origin.scope,
            name: Cow::Borrowed(""),
            kind: 0,
            status: 0,
            message: Cow::Borrowed(""),
            start: 0,
            end: 0,
            attributes: Bag::default(),
            body: None,
            events: Vec::new(),
            links: Vec::new(),
            sampling: Sampling::default(),
        }
    }

    /// The `exception` events of a span.
    pub fn exceptions(&self) -> impl Iterator<Item = &Event<'a>> {
        self.events.iter().filter(|event| event.name == "exception")
    }

    /// Whether the status is ERROR.
    pub fn failed(&self) -> bool {
        self.status == 2
    }
}

fn span_ref(trace: &[u8], span: &[u8]) -> Option<SpanRef> {
    Some(SpanRef { trace: TraceId::read(trace)?, span: SpanId::read(span)? })
}

/// Enum numbers that OTLP knows fit a byte; others are read as unspecified.
fn small(number: i32) -> u8 {
    u8::try_from(number).unwrap_or(0)
}

impl<'a> Bag<'a> {
    pub fn read(attributes: impl Iterator<Item = crate::wire::scan::Attr<'a>>) -> Self {
        Self(attributes.filter_map(|a| Some((a.key.as_str()?, a.value))).collect())
    }

    /// The first value under `key`.
    pub fn get(&self, key: &str) -> Option<&ValueRef<'a>> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The first of `keys` that is there and not empty.
    pub fn first(&self, keys: &[&str]) -> Option<&ValueRef<'a>> {
        keys.iter().find_map(|key| self.get(key).filter(|value| !is_blank(value)))
    }

    /// The first of `keys` as text; numbers and booleans by their text.
    pub fn text(&self, keys: &[&str]) -> Option<Cow<'a, str>> {
        keys.iter().find_map(|key| text(self.get(key)?).filter(|text| !text.is_empty()))
    }

    pub fn int(&self, keys: &[&str]) -> Option<i64> {
        keys.iter().find_map(|key| int(self.get(key)?))
    }

    pub fn flag(&self, keys: &[&str]) -> Option<bool> {
        keys.iter().find_map(|key| flag(self.get(key)?))
    }

    pub fn json(&self, keys: &[&str]) -> Option<Value> {
        keys.iter().find_map(|key| json(self.get(key)?))
    }

    /// Every key that begins with `prefix`, without it.
    pub fn under<'s>(
        &'s self,
        prefix: &'s str,
    ) -> impl Iterator<Item = (&'a str, &'s ValueRef<'a>)> + 's {
        self.0.iter().filter_map(move |(key, value)| Some((key.strip_prefix(prefix)?, value)))
    }

    /// Whether any key begins with one of `prefixes`.
    pub fn speaks(&self, prefixes: &[&str]) -> bool {
        self.0.iter().any(|(key, _)| prefixes.iter().any(|prefix| key.starts_with(prefix)))
    }
}

fn is_blank(value: &ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Empty | ValueRef::Str(""))
}

/// A value as text: numbers and booleans by their text, a list of one by its only member.
pub fn text<'a>(value: &ValueRef<'a>) -> Option<Cow<'a, str>> {
    match value {
        ValueRef::Str(text) => Some(Cow::Borrowed(text)),
        ValueRef::NotUtf8(bytes) => Some(String::from_utf8_lossy(bytes)),
        ValueRef::Bool(flag) => Some(Cow::Borrowed(if *flag { "true" } else { "false" })),
        ValueRef::Int(number) => Some(number.to_string().into()),
        ValueRef::Double(number) => Some(number.to_string().into()),
        ValueRef::Array(values) => {
            let mut values = values.clone();
            let only = values.next()?;
            (values.next().is_none() && !matches!(only, ValueRef::Array(_)))
                .then(|| text(&only))
                .flatten()
        }
        ValueRef::Bytes(_) | ValueRef::KvList(_) | ValueRef::Empty => None,
    }
}

pub fn int(value: &ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int(number) => Some(*number),
        ValueRef::Double(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
            Some(*number as i64)
        }
        ValueRef::Str(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A finite number, whatever it is written as.
pub fn number(value: &ValueRef<'_>) -> Option<f64> {
    let number = match value {
        ValueRef::Int(number) => *number as f64,
        ValueRef::Double(number) => *number,
        ValueRef::Str(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

pub fn flag(value: &ValueRef<'_>) -> Option<bool> {
    match value {
        ValueRef::Bool(flag) => Some(*flag),
        ValueRef::Int(0) => Some(false),
        ValueRef::Int(1) => Some(true),
        ValueRef::Str(text) => match text.trim() {
            "true" | "True" | "TRUE" | "1" => Some(true),
            "false" | "False" | "FALSE" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Texts of a list, or of a text that lists them with commas or as JSON.
pub fn texts(value: &ValueRef<'_>) -> Option<Vec<String>> {
    let own = |list: &mut dyn Iterator<Item = &str>| {
        list.map(str::trim).filter(|t| !t.is_empty()).map(str::to_owned).collect()
    };
    match value {
        ValueRef::Array(values) => {
            Some(values.clone().filter_map(|v| text(&v).map(Cow::into_owned)).collect())
        }
        ValueRef::Str(text) if text.trim_start().starts_with('[') => {
            let Ok(Value::Array(list)) = serde_json::from_str(text) else { return None };
            Some(own(&mut list.iter().filter_map(Value::as_str)))
        }
        ValueRef::Str(text) => Some(own(&mut text.split(','))),
        _ => None,
    }
}

/// A value as JSON: maps and lists as they are, text that is JSON parsed, other text as itself.
pub fn json(value: &ValueRef<'_>) -> Option<Value> {
    json_within(value, 0)
}

fn json_within(value: &ValueRef<'_>, depth: usize) -> Option<Value> {
    if depth > 32 {
        return None;
    }
    Some(match value {
        ValueRef::Str(text) => parse(text).unwrap_or_else(|| Value::from(*text)),
        ValueRef::Bool(flag) => Value::from(*flag),
        ValueRef::Int(number) => Value::from(*number),
        ValueRef::Double(number) => Value::from(*number),
        ValueRef::Array(values) => {
            Value::Array(values.clone().filter_map(|v| json_within(&v, depth + 1)).collect())
        }
        ValueRef::KvList(pairs) => Value::Object(
            members(pairs)
                .filter_map(|(key, value)| Some((key, json_within(&value, depth + 1)?)))
                .collect(),
        ),
        ValueRef::Empty => Value::Null,
        ValueRef::Bytes(_) | ValueRef::NotUtf8(_) => return None,
    })
}

fn members<'a>(pairs: &Attrs<'a>) -> impl Iterator<Item = (String, ValueRef<'a>)> {
    pairs.clone().filter_map(|pair| Some((pair.key.as_str()?.to_owned(), pair.value)))
}

/// JSON text that is an object or a list; `None` for anything else or beyond [`MAX_JSON`].
pub fn parse(text: &str) -> Option<Value> {
    let trimmed = text.trim();
    let opens = trimmed.starts_with('{') || trimmed.starts_with('[');
    (opens && trimmed.len() <= MAX_JSON).then(|| serde_json::from_str(trimmed).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_only_where_they_are_unambiguous() {
        for (value, want) in [
            (ValueRef::Str("true"), Some(true)),
            (ValueRef::Str("False"), Some(false)),
            (ValueRef::Int(1), Some(true)),
            (ValueRef::Int(2), None),
            (ValueRef::Str("yes, mostly"), None),
        ] {
            assert_eq!(flag(&value), want);
        }
    }
}
