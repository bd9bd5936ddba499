//! Writes the OTLP messages that this program originates: attributes, log records, spans, origins.
//!
//! Promises: a default value is left out, as protobuf does; bytes are equal for equal input. A
//! resource that came from a sender is never re-encoded: its bytes are handed to
//! [`super::regroup::regroup`] as they are.

use std::borrow::Cow;

use super::fields::{
    close_message, open_message, put_bytes_field, put_fixed32_field, put_fixed64_field,
    put_varint_field,
};

/// The value of an attribute that is added.
#[derive(Clone, Debug, PartialEq)]
pub enum NewValue<'a> {
    Str(Cow<'a, str>),
    Int(i64),
    Bool(bool),
    Double(f64),
    StrArray(Vec<Cow<'a, str>>),
}

impl<'a> From<&'a str> for NewValue<'a> {
    fn from(text: &'a str) -> Self {
        NewValue::Str(Cow::Borrowed(text))
    }
}

impl From<String> for NewValue<'_> {
    fn from(text: String) -> Self {
        NewValue::Str(Cow::Owned(text))
    }
}

impl From<i64> for NewValue<'_> {
    fn from(value: i64) -> Self {
        NewValue::Int(value)
    }
}

impl From<bool> for NewValue<'_> {
    fn from(value: bool) -> Self {
        NewValue::Bool(value)
    }
}

impl From<f64> for NewValue<'_> {
    fn from(value: f64) -> Self {
        NewValue::Double(value)
    }
}

impl<'a> FromIterator<&'a str> for NewValue<'a> {
    fn from_iter<I: IntoIterator<Item = &'a str>>(texts: I) -> Self {
        NewValue::StrArray(texts.into_iter().map(Cow::Borrowed).collect())
    }
}

/// An attribute that is added.
#[derive(Clone, Debug, PartialEq)]
pub struct NewAttr<'a> {
    pub key: &'a str,
    pub value: NewValue<'a>,
}

impl<'a> NewAttr<'a> {
    pub fn new(key: &'a str, value: impl Into<NewValue<'a>>) -> Self {
        NewAttr { key, value: value.into() }
    }
}

const STRING_VALUE: u32 = 1;
const ARRAY_VALUE: u32 = 5;

/// Appends an `AnyValue` field.
pub fn put_value(out: &mut Vec<u8>, number: u32, value: &NewValue<'_>) {
    let mark = open_message(out, number);
    match value {
        NewValue::Str(text) => put_bytes_field(out, STRING_VALUE, text.as_bytes()),
        NewValue::Bool(value) => put_varint_field(out, 2, u64::from(*value)),
        NewValue::Int(value) => put_varint_field(out, 3, *value as u64),
        NewValue::Double(value) => put_fixed64_field(out, 4, value.to_bits()),
        NewValue::StrArray(texts) => {
            let array = open_message(out, ARRAY_VALUE);
            for text in texts {
                let element = open_message(out, 1);
                put_bytes_field(out, STRING_VALUE, text.as_bytes());
                close_message(out, element);
            }
            close_message(out, array);
        }
    }
    close_message(out, mark);
}

/// Appends a `KeyValue` field.
pub fn put_attr(out: &mut Vec<u8>, number: u32, attr: &NewAttr<'_>) {
    let mark = open_message(out, number);
    put_bytes_field(out, 1, attr.key.as_bytes());
    put_value(out, 2, &attr.value);
    close_message(out, mark);
}

fn put_attrs(out: &mut Vec<u8>, number: u32, attrs: &[NewAttr<'_>]) {
    attrs.iter().for_each(|attr| put_attr(out, number, attr));
}

fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    if !bytes.is_empty() {
        put_bytes_field(out, number, bytes);
    }
}

fn put_number(out: &mut Vec<u8>, number: u32, value: i32) {
    if value != 0 {
        put_varint_field(out, number, i64::from(value) as u64);
    }
}

fn put_time(out: &mut Vec<u8>, number: u32, nanos: u64) {
    if nanos != 0 {
        put_fixed64_field(out, number, nanos);
    }
}

/// What stands around the scopes of a `ResourceSpans` or `ResourceLogs`: its resource.
pub fn resource_origin(attributes: &[NewAttr<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mark = open_message(&mut out, 1);
    put_attrs(&mut out, 1, attributes);
    close_message(&mut out, mark);
    out
}

/// What stands around the items of a `ScopeSpans` or `ScopeLogs`: its scope.
pub fn scope_origin(name: &str, version: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mark = open_message(&mut out, 1);
    put_bytes(&mut out, 1, name.as_bytes());
    put_bytes(&mut out, 2, version.as_bytes());
    close_message(&mut out, mark);
    out
}

/// A log record to write. Times are nanoseconds since the Unix epoch.
#[derive(Clone, Debug, Default)]
pub struct NewRecord<'a> {
    pub time: u64,
    pub observed_time: u64,
    pub severity_number: i32,
    pub severity_text: &'a str,
    pub event_name: &'a str,
    pub body: Option<NewValue<'a>>,
    pub attributes: &'a [NewAttr<'a>],
    /// 16 bytes, or empty.
    pub trace_id: &'a [u8],
    /// 8 bytes, or empty.
    pub span_id: &'a [u8],
    pub flags: Option<u32>,
}

impl NewRecord<'_> {
    /// The body of the `LogRecord` message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        put_time(&mut out, 1, self.time);
        put_number(&mut out, 2, self.severity_number);
        put_bytes(&mut out, 3, self.severity_text.as_bytes());
        if let Some(body) = &self.body {
            put_value(&mut out, 5, body);
        }
        put_attrs(&mut out, 6, self.attributes);
        if let Some(flags) = self.flags {
            put_fixed32_field(&mut out, 8, flags);
        }
        put_bytes(&mut out, 9, self.trace_id);
        put_bytes(&mut out, 10, self.span_id);
        put_time(&mut out, 11, self.observed_time);
        put_bytes(&mut out, 12, self.event_name.as_bytes());
        out
    }
}

/// An event of a span to write.
#[derive(Clone, Debug, Default)]
pub struct NewEvent<'a> {
    /// Nanoseconds since the Unix epoch.
    pub time: u64,
    pub name: &'a str,
    pub attributes: &'a [NewAttr<'a>],
}

/// A link of a span to write.
#[derive(Clone, Debug, Default)]
pub struct NewLink<'a> {
    pub trace_id: &'a [u8],
    pub span_id: &'a [u8],
    pub attributes: &'a [NewAttr<'a>],
}

/// A span to write. Times are nanoseconds since the Unix epoch; ids are 16 and 8 bytes.
#[derive(Clone, Debug, Default)]
pub struct NewSpan<'a> {
    pub trace_id: &'a [u8],
    pub span_id: &'a [u8],
    /// Empty for a root.
    pub parent_span_id: &'a [u8],
    pub trace_state: &'a str,
    pub name: &'a str,
    /// `SpanKind`.
    pub kind: i32,
    pub start: u64,
    pub end: u64,
    pub attributes: &'a [NewAttr<'a>],
    pub events: &'a [NewEvent<'a>],
    pub links: &'a [NewLink<'a>],
    /// `StatusCode`: 0 unset, 1 ok, 2 error.
    pub status_code: i32,
    pub status_message: &'a str,
    pub flags: Option<u32>,
}

impl NewSpan<'_> {
    /// The body of the `Span` message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        put_bytes(&mut out, 1, self.trace_id);
        put_bytes(&mut out, 2, self.span_id);
        put_bytes(&mut out, 3, self.trace_state.as_bytes());
        put_bytes(&mut out, 4, self.parent_span_id);
        put_bytes(&mut out, 5, self.name.as_bytes());
        put_number(&mut out, 6, self.kind);
        put_time(&mut out, 7, self.start);
        put_time(&mut out, 8, self.end);
        put_attrs(&mut out, 9, self.attributes);
        for event in self.events {
            let mark = open_message(&mut out, 11);
            put_time(&mut out, 1, event.time);
            put_bytes(&mut out, 2, event.name.as_bytes());
            put_attrs(&mut out, 3, event.attributes);
            close_message(&mut out, mark);
        }
        for link in self.links {
            let mark = open_message(&mut out, 13);
            put_bytes(&mut out, 1, link.trace_id);
            put_bytes(&mut out, 2, link.span_id);
            put_attrs(&mut out, 4, link.attributes);
            close_message(&mut out, mark);
        }
        if self.status_code != 0 || !self.status_message.is_empty() {
            let mark = open_message(&mut out, 15);
            put_bytes(&mut out, 2, self.status_message.as_bytes());
            put_number(&mut out, 3, self.status_code);
            close_message(&mut out, mark);
        }
        if let Some(flags) = self.flags {
            put_fixed32_field(&mut out, 16, flags);
        }
        out
    }
}
