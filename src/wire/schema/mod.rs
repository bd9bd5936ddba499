//! OTLP's messages as tables: number, JSON name and kind of every field.
//!
//! Promises: one description for the structural check and for both JSON directions, so that they
//! cannot disagree. Taken from opentelemetry-proto 1.9; a test compares it with an independent
//! reader. An unknown field is one that is not here.

mod messages;

pub use messages::*;

use super::Signal;

/// How a field stands on the wire and in JSON.
#[derive(Clone, Copy)]
pub enum Kind {
    /// UTF-8 text; JSON string.
    String,
    /// Raw bytes; base64 in JSON.
    Bytes,
    /// Trace, span or profile id of so many bytes; hex in JSON.
    Id(usize),
    Bool,
    Int32,
    SInt32,
    UInt32,
    /// Enum; an integer in OTLP/JSON, never a name.
    Enum,
    /// 64-bit integers are decimal strings in JSON.
    Int64,
    UInt64,
    Fixed32,
    Fixed64,
    SFixed64,
    Double,
    Message(&'static Message),
}

impl Kind {
    /// The wire type a single value has.
    pub fn wire_type(self) -> u8 {
        match self {
            Kind::String | Kind::Bytes | Kind::Id(_) | Kind::Message(_) => 2,
            Kind::Bool | Kind::Int32 | Kind::SInt32 | Kind::UInt32 | Kind::Enum => 0,
            Kind::Int64 | Kind::UInt64 => 0,
            Kind::Fixed32 => 5,
            Kind::Fixed64 | Kind::SFixed64 | Kind::Double => 1,
        }
    }
}

/// How often a field may occur, and whether its default value says something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// At most once; the default value is the same as absence.
    One,
    /// At most once; presence counts (`optional`).
    Optional,
    /// Member of the message's only `oneof`: the last on the wire wins, presence counts.
    OneOf,
    /// Any number of times; scalars packed or not.
    Many,
}

/// One field of a message.
pub struct Field {
    pub number: u32,
    /// lowerCamelCase, as in OTLP/JSON.
    pub json: &'static str,
    pub kind: Kind,
    pub rule: Rule,
}

/// What is special about a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Plain,
    /// A span, log record, data point or sample.
    Item,
    /// A list in a value. JSON writes it even when it is empty: some readers demand the key.
    List,
}

/// One message of OTLP.
pub struct Message {
    pub name: &'static str,
    pub role: Role,
    pub fields: &'static [Field],
    /// Field number to index in `fields` plus one; no OTLP message has a number above 16.
    index: [u8; 17],
}

impl Message {
    const fn new(name: &'static str, role: Role, fields: &'static [Field]) -> Message {
        let mut index = [0u8; 17];
        let mut at = 0;
        while at < fields.len() {
            index[fields[at].number as usize] = at as u8 + 1;
            at += 1;
        }
        Message { name, role, fields, index }
    }

    /// The position in `fields` of the field with this number.
    #[inline]
    pub fn position(&self, number: u32) -> Option<usize> {
        let index = *self.index.get(number as usize)?;
        (index > 0).then(|| usize::from(index) - 1)
    }

    /// The field with this number.
    #[inline]
    pub fn by_number(&self, number: u32) -> Option<&'static Field> {
        self.position(number).map(|position| &self.fields[position])
    }

    /// The field with this OTLP/JSON key.
    pub fn by_json(&self, key: &[u8]) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.json.as_bytes() == key)
    }
}

/// The export request of a signal.
pub fn request(signal: Signal) -> &'static Message {
    match signal {
        Signal::Traces => &TRACES_REQUEST,
        Signal::Logs => &LOGS_REQUEST,
        Signal::Metrics => &METRICS_REQUEST,
        Signal::Profiles => &PROFILES_REQUEST,
    }
}
