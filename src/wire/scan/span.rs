//! A span, parsed in one pass over its fields.

use std::ops::Range;

use super::value::{Attrs, Text, next_body};
use crate::wire::fields::{Fields, WireValue};

const ATTRIBUTES: u32 = 9;
const EVENTS: u32 = 11;
const LINKS: u32 = 13;

/// A borrowed span. Its scalars were read once; its lists are ranges that iterate on demand.
#[derive(Clone)]
pub struct SpanView<'a> {
    /// The body of the `Span` message.
    pub bytes: &'a [u8],
    /// Where the body begins in the export.
    pub offset: usize,
    trace_id: &'a [u8],
    span_id: &'a [u8],
    parent_span_id: &'a [u8],
    trace_state: Text<'a>,
    name: Text<'a>,
    status_message: Text<'a>,
    start: u64,
    end: u64,
    kind: i32,
    status_code: i32,
    flags: Option<u32>,
    attributes: Range<usize>,
    events: Range<usize>,
    links: Range<usize>,
}

/// Widens the range of a list by one more field of it; other fields may lie between.
#[inline]
pub(super) fn widen(list: &mut Range<usize>, field: Range<usize>) {
    if list.start == list.end {
        *list = field;
    } else {
        list.end = field.end;
    }
}

impl<'a> SpanView<'a> {
    /// Reads the body of a `Span` that begins at `offset` of its export.
    pub fn parse(bytes: &'a [u8], offset: usize) -> Self {
        let mut span = SpanView {
            bytes,
            offset,
            trace_id: &[],
            span_id: &[],
            parent_span_id: &[],
            trace_state: Text::default(),
            name: Text::default(),
            status_message: Text::default(),
            start: 0,
            end: 0,
            kind: 0,
            status_code: 0,
            flags: None,
            attributes: 0..0,
            events: 0..0,
            links: 0..0,
        };
        for field in Fields::new(bytes).flatten() {
            match (field.number, field.value) {
                (1, WireValue::Bytes(id)) => span.trace_id = id,
                (2, WireValue::Bytes(id)) => span.span_id = id,
                (3, WireValue::Bytes(text)) => span.trace_state = Text(text),
                (4, WireValue::Bytes(id)) => span.parent_span_id = id,
                (5, WireValue::Bytes(text)) => span.name = Text(text),
                (6, WireValue::Varint(kind)) => span.kind = kind as i32,
                (7, WireValue::Fixed64(time)) => span.start = time,
                (8, WireValue::Fixed64(time)) => span.end = time,
                (ATTRIBUTES, WireValue::Bytes(_)) => widen(&mut span.attributes, field.range),
                (EVENTS, WireValue::Bytes(_)) => widen(&mut span.events, field.range),
                (LINKS, WireValue::Bytes(_)) => widen(&mut span.links, field.range),
                (15, WireValue::Bytes(status)) => span.merge_status(status),
                (16, WireValue::Fixed32(flags)) => span.flags = Some(flags),
                _ => {}
            }
        }
        span
    }

    fn merge_status(&mut self, status: &'a [u8]) {
        for field in Fields::new(status).flatten() {
            match (field.number, field.value) {
                (2, WireValue::Bytes(text)) => self.status_message = Text(text),
                (3, WireValue::Varint(code)) => self.status_code = code as i32,
                _ => {}
            }
        }
    }

    /// 16 bytes unless the sender broke the rules; empty where absent.
    pub fn trace_id(&self) -> &'a [u8] {
        self.trace_id
    }

    /// 8 bytes unless the sender broke the rules; empty where absent.
    pub fn span_id(&self) -> &'a [u8] {
        self.span_id
    }

    /// Empty for a root.
    pub fn parent_span_id(&self) -> &'a [u8] {
        self.parent_span_id
    }

    /// The W3C `tracestate`.
    pub fn trace_state(&self) -> Text<'a> {
        self.trace_state
    }

    pub fn name(&self) -> Text<'a> {
        self.name
    }

    /// `SpanKind`, unknown values included; 0 where absent.
    pub fn kind(&self) -> i32 {
        self.kind
    }

    /// Nanoseconds since the Unix epoch; 0 where absent.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Nanoseconds since the Unix epoch; 0 where absent.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// `StatusCode`: 0 unset, 1 ok, 2 error.
    pub fn status_code(&self) -> i32 {
        self.status_code
    }

    pub fn status_message(&self) -> Text<'a> {
        self.status_message
    }

    /// W3C trace flags and whether the parent is remote; `None` where the sender sets none.
    pub fn flags(&self) -> Option<u32> {
        self.flags
    }

    /// The attributes in their order, duplicates included.
    pub fn attributes(&self) -> Attrs<'a> {
        Attrs::new(self.attributes_bytes(), ATTRIBUTES)
    }

    /// The stretch of the span that holds all attributes, for a substring search before a walk.
    pub fn attributes_bytes(&self) -> &'a [u8] {
        &self.bytes[self.attributes.clone()]
    }

    /// The stretch of the span that holds all events.
    pub fn events_bytes(&self) -> &'a [u8] {
        &self.bytes[self.events.clone()]
    }

    pub fn events(&self) -> impl Iterator<Item = EventView<'a>> + Clone + use<'a> {
        let mut fields = Fields::new(self.events_bytes());
        std::iter::from_fn(move || next_body(&mut fields, EVENTS).map(EventView::parse))
    }

    pub fn links(&self) -> impl Iterator<Item = LinkView<'a>> + Clone + use<'a> {
        let mut fields = Fields::new(&self.bytes[self.links.clone()]);
        std::iter::from_fn(move || next_body(&mut fields, LINKS).map(LinkView::parse))
    }
}

/// An event of a span.
#[derive(Clone, Copy)]
pub struct EventView<'a> {
    /// The body of the `Event` message.
    pub bytes: &'a [u8],
    pub name: Text<'a>,
    /// Nanoseconds since the Unix epoch.
    pub time: u64,
}

impl<'a> EventView<'a> {
    fn parse(bytes: &'a [u8]) -> Self {
        let mut event = EventView { bytes, name: Text::default(), time: 0 };
        for field in Fields::new(bytes).flatten() {
            match (field.number, field.value) {
                (1, WireValue::Fixed64(time)) => event.time = time,
                (2, WireValue::Bytes(name)) => event.name = Text(name),
                _ => {}
            }
        }
        event
    }

    pub fn attributes(&self) -> Attrs<'a> {
        Attrs::new(self.bytes, 3)
    }
}

/// A link of a span.
#[derive(Clone, Copy)]
pub struct LinkView<'a> {
    /// The body of the `Link` message.
    pub bytes: &'a [u8],
    pub trace_id: &'a [u8],
    pub span_id: &'a [u8],
}

impl<'a> LinkView<'a> {
    fn parse(bytes: &'a [u8]) -> Self {
        let mut link = LinkView { bytes, trace_id: &[], span_id: &[] };
        for field in Fields::new(bytes).flatten() {
            match (field.number, field.value) {
                (1, WireValue::Bytes(id)) => link.trace_id = id,
                (2, WireValue::Bytes(id)) => link.span_id = id,
                _ => {}
            }
        }
        link
    }

    pub fn attributes(&self) -> Attrs<'a> {
        Attrs::new(self.bytes, 4)
    }
}
