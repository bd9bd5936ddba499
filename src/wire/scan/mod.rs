//! Checks a whole export once, then lends views of what is in it.
//!
//! Promises: [`check`] refuses what readers behind us would refuse (cut-off fields, text and
//! messages that are written as numbers or the other way round, more than [`MAX_DEPTH`] nested
//! messages) and nothing else: invalid UTF-8, unknown fields and enum values, duplicate keys, odd
//! times and numbers of another width pass. Views borrow from the
//! export and follow proto3: the last scalar wins, a message that occurs twice is merged. On bytes
//! that were not checked a view ends at the first unreadable field; it never panics.

mod record;
mod resource;
mod span;
mod value;

pub use record::RecordView;
pub use resource::{ResourceView, ScopeView, resource_logs, resource_spans, resources};
pub use span::{EventView, LinkView, SpanView};
pub use value::{Attr, Attrs, Text, ValueRef, Values};

use super::Signal;
use super::fields::{Fields, Malformed, WireValue, read_varint};
use super::schema::{self, Kind, Message, Role, Rule};

/// Messages may nest this deep, the request being the first; common readers refuse more.
pub const MAX_DEPTH: usize = 100;

/// What an export holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Spans, log records, data points or samples.
    pub items: usize,
    /// Resources: `ResourceSpans` and their like.
    pub resources: usize,
}

/// Walks every message of an export as OTLP describes it and counts its items.
///
/// # Errors
/// The place and the reason, when some reader of OTLP could not read it.
pub fn check(signal: Signal, bytes: &[u8]) -> Result<Counts, Malformed> {
    let mut counts = Counts::default();
    walk(schema::request(signal), bytes, 0, 1, &mut counts)?;
    Ok(counts)
}

fn walk(
    message: &Message,
    bytes: &[u8],
    base: usize,
    depth: usize,
    counts: &mut Counts,
) -> Result<(), Malformed> {
    if depth > MAX_DEPTH {
        return Err(Malformed { offset: base, reason: "messages nested more than 100 deep" });
    }
    if message.role == Role::Item {
        counts.items += 1;
    }
    for field in Fields::at(bytes, base) {
        let field = field?;
        let Some(known) = message.by_number(field.number) else { continue };
        match (known.kind, field.value) {
            (Kind::Message(inner), WireValue::Bytes(body)) => {
                counts.resources += usize::from(depth == 1 && field.number == 1);
                walk(inner, body, base + field.body_start(), depth + 1, counts)?;
            }
            (kind, value) if kind.wire_type() == wire_type(value) => {}
            (kind, WireValue::Bytes(packed)) if known.rule == Rule::Many => {
                check_packed(kind, packed, base + field.body_start())?;
            }
            // A number written as another kind of number: to protobuf an unknown field.
            (kind, value) if kind.wire_type() != 2 && wire_type(value) != 2 => {}
            _ => {
                let offset = base + field.range.start;
                return Err(Malformed { offset, reason: "a known field of another wire type" });
            }
        }
    }
    Ok(())
}

#[inline]
fn wire_type(value: WireValue<'_>) -> u8 {
    match value {
        WireValue::Varint(_) => 0,
        WireValue::Fixed64(_) => 1,
        WireValue::Bytes(_) => 2,
        WireValue::Group(_) => 3,
        WireValue::Fixed32(_) => 5,
    }
}

#[cold]
fn check_packed(kind: Kind, packed: &[u8], base: usize) -> Result<(), Malformed> {
    let width = match kind.wire_type() {
        1 => 8,
        5 => 4,
        _ => {
            let mut at = 0;
            while at < packed.len() {
                let read = read_varint(&packed[at..]);
                at += read.map_err(|reason| Malformed { offset: base + at, reason })?.1;
            }
            return Ok(());
        }
    };
    if packed.len().is_multiple_of(width) {
        return Ok(());
    }
    Err(Malformed { offset: base, reason: "a packed list that ends inside a number" })
}
