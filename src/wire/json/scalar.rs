//! One scalar of OTLP/JSON: how it must be written, and its protobuf.

use std::fmt;

use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde::de::{self, Deserializer, Visitor};

use crate::wire::fields::{
    put_bytes_field, put_fixed32_field, put_fixed64_field, put_varint, put_varint_field, zigzag,
};
use crate::wire::schema::{Field, Kind};

/// A value of the right JSON type that is no value of its field.
pub(super) enum Refusal {
    /// Costs the item it stands in.
    Item(&'static str),
    /// Costs the document.
    Document(&'static str),
}

/// What a field of this kind must be, for errors.
pub(super) fn expects(kind: Kind) -> &'static str {
    match kind {
        Kind::String => "a string",
        Kind::Bytes => "a string of base64",
        Kind::Id(8) => "a string of 16 hexadecimal digits",
        Kind::Id(_) => "a string of 32 hexadecimal digits",
        Kind::Bool => "true or false",
        Kind::Enum => "an integer, as OTLP/JSON writes every enum",
        Kind::Int32 | Kind::SInt32 | Kind::UInt32 | Kind::Fixed32 => "a 32-bit integer",
        Kind::Int64 | Kind::SFixed64 => "a 64-bit integer, as a decimal string or a number",
        Kind::UInt64 | Kind::Fixed64 => {
            "a 64-bit integer without sign, as a decimal string or a number"
        }
        Kind::Double => "a number, or \"NaN\", \"Infinity\" or \"-Infinity\"",
        Kind::Message(_) => "an object",
    }
}

/// What the elements of a list of this kind must be, for errors.
pub(super) fn expects_element(kind: Kind) -> &'static str {
    match kind {
        Kind::Message(_) => "a list of objects",
        Kind::String => "a list of strings",
        Kind::Double => "a list of numbers",
        _ => "a list of integers",
    }
}

/// Reads a scalar and appends its field, or in a packed list its value alone.
pub(super) fn read<'de, D: Deserializer<'de>>(
    reader: D,
    field: &'static Field,
    packed: bool,
    out: &mut Vec<u8>,
) -> Result<Option<Refusal>, D::Error> {
    let bits = match field.kind {
        Kind::String | Kind::Bytes | Kind::Id(_) => {
            return reader.deserialize_bytes(TextVisitor { field, out });
        }
        kind => match reader.deserialize_any(NumberVisitor(kind))? {
            Ok(bits) => bits,
            Err(refusal) => return Ok(Some(refusal)),
        },
    };
    match (field.kind.wire_type(), packed) {
        (0, false) => put_varint_field(out, field.number, bits),
        (0, true) => put_varint(out, bits),
        (5, false) => put_fixed32_field(out, field.number, bits as u32),
        (5, true) => out.extend_from_slice(&(bits as u32).to_le_bytes()),
        (_, false) => put_fixed64_field(out, field.number, bits),
        (_, true) => out.extend_from_slice(&bits.to_le_bytes()),
    }
    Ok(None)
}

struct TextVisitor<'o> {
    field: &'static Field,
    out: &'o mut Vec<u8>,
}

/// Base64 of either alphabet after translation, padded or not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl Visitor<'_> for TextVisitor<'_> {
    type Value = Option<Refusal>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a string")
    }

    fn visit_bytes<E: de::Error>(self, text: &[u8]) -> Result<Self::Value, E> {
        let number = self.field.number;
        match self.field.kind {
            Kind::Id(length) => {
                let Some(id) = hex(text, length) else {
                    return Ok(Some(Refusal::Item(match length {
                        8 => "must be 16 hexadecimal digits, not base64",
                        _ => "must be 32 hexadecimal digits, not base64",
                    })));
                };
                put_bytes_field(self.out, number, &id[..text.len() / 2]);
            }
            Kind::Bytes => {
                let standard: Vec<u8> = text.iter().map(|b| translate(*b)).collect();
                let Ok(bytes) = BASE64.decode(standard) else {
                    return Ok(Some(Refusal::Document("must be base64")));
                };
                put_bytes_field(self.out, number, &bytes);
            }
            // Half of a surrogate pair arrives here as bytes that are not UTF-8; readers of
            // protobuf refuse those with all that stands beside them.
            _ => {
                let text = String::from_utf8_lossy(text);
                put_bytes_field(self.out, number, text.as_bytes());
            }
        }
        Ok(None)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        self.visit_bytes(text.as_bytes())
    }
}

/// URL-safe base64 to standard base64.
fn translate(byte: u8) -> u8 {
    match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => other,
    }
}

/// An id of `length` bytes, or the empty one: digits of either case.
fn hex(text: &[u8], length: usize) -> Option<[u8; 16]> {
    let mut id = [0; 16];
    if text.is_empty() {
        return Some(id);
    }
    if text.len() != 2 * length || length > id.len() {
        return None;
    }
    for (byte, pair) in id.iter_mut().zip(text.chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = (digit(0)? << 4 | digit(1)?) as u8;
    }
    Some(id)
}

/// Reads a bool or a number of a kind into the bits of its wire form.
struct NumberVisitor(Kind);

const ENUM_NAME: &str = "is an enum and must be an integer: write its number, not its name";
const RANGE: &str = "is an integer out of range";
const NOT_INTEGER: &str = "must be an integer";

impl NumberVisitor {
    fn integer(&self, value: i128) -> Result<u64, Refusal> {
        let fits = match self.0 {
            Kind::Int32 | Kind::SInt32 | Kind::Enum => i32::try_from(value).is_ok(),
            Kind::UInt32 | Kind::Fixed32 => u32::try_from(value).is_ok(),
            Kind::Int64 | Kind::SFixed64 => i64::try_from(value).is_ok(),
            Kind::UInt64 | Kind::Fixed64 => u64::try_from(value).is_ok(),
            Kind::Double => return Ok((value as f64).to_bits()),
            _ => return Err(Refusal::Document("must be true or false")),
        };
        match (fits, self.0) {
            (false, _) => Err(Refusal::Document(RANGE)),
            (true, Kind::SInt32) => Ok(zigzag(value as i64)),
            // Negative numbers travel sign-extended to 64 bits.
            (true, _) => Ok(value as u64),
        }
    }

    fn float(&self, value: f64) -> Result<u64, Refusal> {
        match self.0 {
            Kind::Double => Ok(value.to_bits()),
            Kind::Bool => Err(Refusal::Document("must be true or false")),
            // A float holds every integer exactly up to here; beyond, the value may be lost.
            _ if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0 => {
                self.integer(value as i128)
            }
            _ => Err(Refusal::Document(NOT_INTEGER)),
        }
    }

    fn text(&self, text: &str) -> Result<u64, Refusal> {
        match (self.0, text) {
            (Kind::Enum, _) => Err(Refusal::Document(ENUM_NAME)),
            (Kind::Bool, _) => Err(Refusal::Document("must be true or false")),
            (Kind::Double, "NaN") => Ok(f64::NAN.to_bits()),
            (Kind::Double, "Infinity") => Ok(f64::INFINITY.to_bits()),
            (Kind::Double, "-Infinity") => Ok(f64::NEG_INFINITY.to_bits()),
            (Kind::Double, _) => {
                number_text(text).map(f64::to_bits).ok_or(Refusal::Document("must be a number"))
            }
            _ => match text.parse::<i128>() {
                Ok(value) => self.integer(value),
                Err(_) => {
                    number_text(text).map_or(Err(Refusal::Document(NOT_INTEGER)), |v| self.float(v))
                }
            },
        }
    }
}

/// A JSON number in a string; Rust alone would also take `inf` and `nan`.
fn number_text(text: &str) -> Option<f64> {
    let digits = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    text.parse::<f64>().ok().filter(|value| digits && value.is_finite())
}

impl Visitor<'_> for NumberVisitor {
    type Value = Result<u64, Refusal>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(expects(self.0))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
        if matches!(self.0, Kind::Bool) {
            return Ok(Ok(u64::from(value)));
        }
        Ok(Err(Refusal::Document("must be a number, not true or false")))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(self.integer(i128::from(value)))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(self.integer(i128::from(value)))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(self.float(value))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.text(text))
    }
}
