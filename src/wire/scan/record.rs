//! A log record, parsed in one pass over its fields.

use std::ops::Range;

use super::span::widen;
use super::value::{Attrs, Text, ValueRef};
use crate::wire::fields::{Fields, WireValue};

const ATTRIBUTES: u32 = 6;

/// A borrowed log record.
#[derive(Clone)]
pub struct RecordView<'a> {
    /// The body of the `LogRecord` message.
    pub bytes: &'a [u8],
    /// Where the body begins in the export.
    pub offset: usize,
    /// Nanoseconds since the Unix epoch; 0 where unknown.
    pub time: u64,
    /// When the record was collected, nanoseconds since the Unix epoch.
    pub observed_time: u64,
    pub event_name: Text<'a>,
    /// `SeverityNumber`, unknown values included; 0 where absent.
    pub severity_number: i32,
    pub severity_text: Text<'a>,
    pub body: Option<ValueRef<'a>>,
    /// 16 bytes unless the sender broke the rules; empty where absent.
    pub trace_id: &'a [u8],
    /// 8 bytes unless the sender broke the rules; empty where absent.
    pub span_id: &'a [u8],
    pub flags: Option<u32>,
    attributes: Range<usize>,
}

impl<'a> RecordView<'a> {
    /// Reads the body of a `LogRecord` that begins at `offset` of its export.
    pub fn parse(bytes: &'a [u8], offset: usize) -> Self {
        let mut record = RecordView {
            bytes,
            offset,
            time: 0,
            observed_time: 0,
            event_name: Text::default(),
            severity_number: 0,
            severity_text: Text::default(),
            body: None,
            trace_id: &[],
            span_id: &[],
            flags: None,
            attributes: 0..0,
        };
        for field in Fields::new(bytes).flatten() {
            match (field.number, field.value) {
                (1, WireValue::Fixed64(time)) => record.time = time,
                (2, WireValue::Varint(number)) => record.severity_number = number as i32,
                (3, WireValue::Bytes(text)) => record.severity_text = Text(text),
                (5, WireValue::Bytes(body)) => record.body = Some(ValueRef::parse(body)),
                (ATTRIBUTES, WireValue::Bytes(_)) => widen(&mut record.attributes, field.range),
                (8, WireValue::Fixed32(flags)) => record.flags = Some(flags),
                (9, WireValue::Bytes(id)) => record.trace_id = id,
                (10, WireValue::Bytes(id)) => record.span_id = id,
                (11, WireValue::Fixed64(time)) => record.observed_time = time,
                (12, WireValue::Bytes(text)) => record.event_name = Text(text),
                _ => {}
            }
        }
        record
    }

    /// The attributes in their order, duplicates included.
    pub fn attributes(&self) -> Attrs<'a> {
        Attrs::new(self.attributes_bytes(), ATTRIBUTES)
    }

    /// The stretch of the record that holds all attributes, for a substring search before a walk.
    pub fn attributes_bytes(&self) -> &'a [u8] {
        &self.bytes[self.attributes.clone()]
    }
}
