//! Writes protobuf as one line of OTLP/JSON.

use std::borrow::Cow;
use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::wire::Signal;
use crate::wire::fields::{Fields, WireValue, read_varint, unzigzag};
use crate::wire::scan::MAX_DEPTH;
use crate::wire::schema::{self, Field, Kind, Message, Role, Rule};

/// An export request as one OTLP/JSON document without a line break: ids in hex, 64-bit integers
/// as decimal strings, enums as integers. Unknown fields are left out, and so is what cannot be
/// read; text that is not UTF-8 gets U+FFFD.
pub fn from_protobuf(signal: Signal, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len().saturating_mul(3));
    put_message(&mut out, schema::request(signal), bytes, 1);
    out
}

/// Whether a value can be one of this field: single, or a packed list.
fn readable(field: &Field, value: WireValue<'_>) -> bool {
    let wire = match value {
        WireValue::Varint(_) => 0,
        WireValue::Fixed64(_) => 1,
        WireValue::Bytes(_) => 2,
        WireValue::Group(_) => return false,
        WireValue::Fixed32(_) => 5,
    };
    wire == field.kind.wire_type() || (wire == 2 && field.rule == Rule::Many)
}

/// Which fields a message holds.
struct Present {
    /// A bit for each position in the message's fields.
    positions: u32,
    /// The member of the oneof that the wire names last.
    chosen: Option<usize>,
}

fn present(message: &Message, bytes: &[u8]) -> Present {
    let mut present = Present { positions: 0, chosen: None };
    for field in Fields::new(bytes).flatten() {
        let Some(position) = message.position(field.number) else { continue };
        let known = &message.fields[position];
        if !readable(known, field.value) {
            continue;
        }
        present.positions |= 1 << position;
        if known.rule == Rule::OneOf {
            present.chosen = Some(position);
        }
    }
    present
}

/// The readable values of one field, in their order.
fn values<'b>(
    field: &'static Field,
    bytes: &'b [u8],
) -> impl Iterator<Item = WireValue<'b>> + use<'b> {
    Fields::new(bytes)
        .flatten()
        .filter(move |found| found.number == field.number && readable(field, found.value))
        .map(|found| found.value)
}

fn put_message(out: &mut Vec<u8>, message: &'static Message, bytes: &[u8], depth: usize) {
    out.push(b'{');
    let mut present = present(message, bytes);
    if message.role == Role::List {
        present.positions = 1;
    }
    let mut first = true;
    for (position, field) in message.fields.iter().enumerate() {
        let other_member = field.rule == Rule::OneOf && present.chosen != Some(position);
        if present.positions & (1 << position) == 0 || other_member {
            continue;
        }
        let start = out.len();
        if !first {
            out.push(b',');
        }
        out.push(b'"');
        out.extend_from_slice(field.json.as_bytes());
        out.extend_from_slice(b"\":");
        if field.rule == Rule::Many {
            put_list(out, field, bytes, depth);
        } else if !put_single(out, field, bytes, depth) {
            out.truncate(start);
            continue;
        }
        first = false;
    }
    out.push(b'}');
}

fn put_list(out: &mut Vec<u8>, field: &'static Field, bytes: &[u8], depth: usize) {
    out.push(b'[');
    let start = out.len();
    for value in values(field, bytes) {
        match (field.kind, value) {
            (Kind::Message(inner), _) => {
                separate(out, start);
                put_nested(out, inner, value.bytes(), depth);
            }
            (kind, WireValue::Bytes(packed)) if kind.wire_type() != 2 => {
                unpack(kind, packed, |value| {
                    separate(out, start);
                    put_scalar(out, kind, value);
                });
            }
            (kind, value) => {
                separate(out, start);
                put_scalar(out, kind, value);
            }
        }
    }
    out.push(b']');
}

fn separate(out: &mut Vec<u8>, start: usize) {
    if out.len() > start {
        out.push(b',');
    }
}

fn put_nested(out: &mut Vec<u8>, message: &'static Message, bytes: &[u8], depth: usize) {
    if depth < MAX_DEPTH {
        put_message(out, message, bytes, depth + 1);
    } else {
        out.extend_from_slice(b"{}");
    }
}

/// Writes the value of a field that has one; `false` when it is a default that says nothing.
fn put_single(out: &mut Vec<u8>, field: &'static Field, bytes: &[u8], depth: usize) -> bool {
    if let Kind::Message(inner) = field.kind {
        // A message that occurs several times is merged, and the merge of messages is the
        // concatenation of their bytes.
        let mut halves = values(field, bytes).map(WireValue::bytes);
        let first = halves.next().unwrap_or_default();
        let merged = halves.fold(Cow::Borrowed(first), |mut merged, half| {
            merged.to_mut().extend_from_slice(half);
            merged
        });
        put_nested(out, inner, &merged, depth);
        return true;
    }
    let Some(value) = values(field, bytes).last() else { return false };
    if field.rule == Rule::One && value.integer() == 0 && value.bytes().is_empty() {
        return false;
    }
    put_scalar(out, field.kind, value);
    true
}

/// The values of a packed list, up to the first that is cut off.
fn unpack(kind: Kind, packed: &[u8], mut each: impl FnMut(WireValue<'static>)) {
    match kind.wire_type() {
        1 => packed.as_chunks().0.iter().for_each(|chunk| {
            each(WireValue::Fixed64(u64::from_le_bytes(*chunk)));
        }),
        5 => packed.as_chunks().0.iter().for_each(|chunk| {
            each(WireValue::Fixed32(u32::from_le_bytes(*chunk)));
        }),
        _ => {
            let mut rest = packed;
            while let Ok((value, length)) = read_varint(rest) {
                each(WireValue::Varint(value));
                rest = &rest[length..];
            }
        }
    }
}

fn put_scalar(out: &mut Vec<u8>, kind: Kind, value: WireValue<'_>) {
    let bits = value.integer();
    // Writing to a vector cannot fail.
    let _ = match kind {
        Kind::String => {
            put_text(out, &String::from_utf8_lossy(value.bytes()));
            Ok(())
        }
        Kind::Bytes => write!(out, "\"{}\"", STANDARD.encode(value.bytes())),
        Kind::Id(_) => {
            put_hex(out, value.bytes());
            Ok(())
        }
        Kind::Bool => write!(out, "{}", bits != 0),
        Kind::Int32 | Kind::Enum => write!(out, "{}", bits as i32),
        Kind::SInt32 => write!(out, "{}", unzigzag(bits) as i32),
        Kind::UInt32 | Kind::Fixed32 => write!(out, "{}", bits as u32),
        Kind::Int64 | Kind::SFixed64 => write!(out, "\"{}\"", bits as i64),
        Kind::UInt64 | Kind::Fixed64 => write!(out, "\"{bits}\""),
        Kind::Double => {
            put_double(out, f64::from_bits(bits));
            Ok(())
        }
        Kind::Message(_) => out.write_all(b"{}"),
    };
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("text is JSON and a vector takes all");
}

fn put_double(out: &mut Vec<u8>, value: f64) {
    match value {
        value if value.is_nan() => out.extend_from_slice(b"\"NaN\""),
        f64::INFINITY => out.extend_from_slice(b"\"Infinity\""),
        f64::NEG_INFINITY => out.extend_from_slice(b"\"-Infinity\""),
        value => serde_json::to_writer(out, &value).expect("a finite number is JSON"),
    }
}

fn put_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
    out.push(b'"');
}
