//! Text, attributes and values, borrowed.

use std::borrow::Cow;
use std::fmt;

use crate::wire::fields::{Fields, WireValue};

/// A protobuf string as it came: UTF-8 unless the sender broke the rules.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<'a>(pub &'a [u8]);

impl<'a> Text<'a> {
    /// The text, or `None` where it is not UTF-8.
    pub fn as_str(self) -> Option<&'a str> {
        std::str::from_utf8(self.0).ok()
    }

    /// The text with U+FFFD in place of what is not UTF-8.
    pub fn lossy(self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.0)
    }

    /// The bytes as they came.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.lossy())
    }
}

/// Says only how long the text is: debug output may end in logs and panics.
impl fmt::Debug for Text<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Text({} bytes)", self.0.len())
    }
}

/// An `AnyValue`.
#[derive(Clone)]
pub enum ValueRef<'a> {
    Str(&'a str),
    /// A string value that is not UTF-8.
    NotUtf8(&'a [u8]),
    Bool(bool),
    Int(i64),
    Double(f64),
    Bytes(&'a [u8]),
    Array(Values<'a>),
    KvList(Attrs<'a>),
    /// No member of the oneof is set, or one that this program does not know.
    Empty,
}

impl<'a> ValueRef<'a> {
    /// Reads the body of an `AnyValue`; the last member on the wire wins.
    pub fn parse(bytes: &'a [u8]) -> Self {
        let mut value = ValueRef::Empty;
        for field in Fields::new(bytes).flatten() {
            match (field.number, field.value) {
                (1, WireValue::Bytes(text)) => {
                    value =
                        std::str::from_utf8(text).map_or(ValueRef::NotUtf8(text), ValueRef::Str);
                }
                (2, WireValue::Varint(bits)) => value = ValueRef::Bool(bits != 0),
                (3, WireValue::Varint(bits)) => value = ValueRef::Int(bits as i64),
                (4, WireValue::Fixed64(bits)) => value = ValueRef::Double(f64::from_bits(bits)),
                (5, WireValue::Bytes(list)) => value = ValueRef::Array(Values::new(list)),
                (6, WireValue::Bytes(list)) => value = ValueRef::KvList(Attrs::new(list, 1)),
                (7, WireValue::Bytes(bytes)) => value = ValueRef::Bytes(bytes),
                _ => {}
            }
        }
        value
    }

    /// The text of a string value that is UTF-8.
    pub fn as_str(&self) -> Option<&'a str> {
        if let ValueRef::Str(text) = self { Some(text) } else { None }
    }

    pub fn as_int(&self) -> Option<i64> {
        if let ValueRef::Int(value) = self { Some(*value) } else { None }
    }

    pub fn as_bool(&self) -> Option<bool> {
        if let ValueRef::Bool(value) = self { Some(*value) } else { None }
    }

    pub fn as_double(&self) -> Option<f64> {
        if let ValueRef::Double(value) = self { Some(*value) } else { None }
    }

    /// The kind of value, in OTLP's words.
    pub fn kind(&self) -> &'static str {
        match self {
            ValueRef::Str(_) | ValueRef::NotUtf8(_) => "string",
            ValueRef::Bool(_) => "bool",
            ValueRef::Int(_) => "int",
            ValueRef::Double(_) => "double",
            ValueRef::Bytes(_) => "bytes",
            ValueRef::Array(_) => "array",
            ValueRef::KvList(_) => "kvlist",
            ValueRef::Empty => "empty",
        }
    }
}

/// Says only the kind: debug output may end in logs and panics.
impl fmt::Debug for ValueRef<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ValueRef({})", self.kind())
    }
}

/// The values of an `ArrayValue`.
#[derive(Clone)]
pub struct Values<'a>(Fields<'a>);

impl<'a> Values<'a> {
    fn new(list: &'a [u8]) -> Self {
        Values(Fields::new(list))
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = ValueRef<'a>;

    fn next(&mut self) -> Option<ValueRef<'a>> {
        next_body(&mut self.0, 1).map(ValueRef::parse)
    }
}

/// One attribute.
#[derive(Clone, Debug)]
pub struct Attr<'a> {
    pub key: Text<'a>,
    pub value: ValueRef<'a>,
}

impl<'a> Attr<'a> {
    /// The key alone of the body of a `KeyValue`: enough to decide whether to look further.
    pub fn key_of(bytes: &'a [u8]) -> Text<'a> {
        let mut key = Text::default();
        for field in Fields::new(bytes).flatten() {
            if let (1, WireValue::Bytes(text)) = (field.number, field.value) {
                key = Text(text);
            }
        }
        key
    }

    /// Reads the body of a `KeyValue`.
    pub fn parse(bytes: &'a [u8]) -> Self {
        let mut attr = Attr { key: Text::default(), value: ValueRef::Empty };
        for field in Fields::new(bytes).flatten() {
            match (field.number, field.value) {
                (1, WireValue::Bytes(key)) => attr.key = Text(key),
                (2, WireValue::Bytes(value)) => match ValueRef::parse(value) {
                    // A value split in two fields is merged: an empty half changes nothing.
                    ValueRef::Empty => {}
                    set => attr.value = set,
                },
                _ => {}
            }
        }
        attr
    }
}

/// The attributes among the fields of a message, in their order, duplicates included.
#[derive(Clone)]
pub struct Attrs<'a> {
    fields: Fields<'a>,
    number: u32,
}

impl<'a> Attrs<'a> {
    pub(crate) fn new(bytes: &'a [u8], number: u32) -> Self {
        Attrs { fields: Fields::new(bytes), number }
    }

    /// The bodies of the `KeyValue`s, for those who look before they parse.
    pub fn next_bytes(&mut self) -> Option<&'a [u8]> {
        next_body(&mut self.fields, self.number)
    }
}

impl<'a> Iterator for Attrs<'a> {
    type Item = Attr<'a>;

    fn next(&mut self) -> Option<Attr<'a>> {
        self.next_bytes().map(Attr::parse)
    }
}

/// The payload of the next length-delimited field with this number.
pub(crate) fn next_body<'a>(fields: &mut Fields<'a>, number: u32) -> Option<&'a [u8]> {
    fields.flatten().find_map(|field| match field.value {
        WireValue::Bytes(body) if field.number == number => Some(body),
        _ => None,
    })
}
