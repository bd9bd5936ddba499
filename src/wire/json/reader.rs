//! Reads one OTLP/JSON document and writes its protobuf.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::scalar::{self, Refusal};
use crate::wire::Signal;
use crate::wire::fields::{close_message, open_message};
use crate::wire::scan::MAX_DEPTH;
use crate::wire::schema::{self, Field, Kind, Message, Role, Rule};

/// What a document may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of protobuf that may come out.
    pub max_bytes: usize,
}

/// A document as protobuf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The export request.
    pub bytes: Vec<u8>,
    /// Items left out because an id in them cannot be one.
    pub rejected: u64,
    /// Why they were left out; empty when none was. Fit for `partial_success`.
    pub message: String,
}

/// Why a document was refused. Holds a place and a reason, never content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1.
    pub column: usize,
    pub reason: String,
    /// Whether the document is readable but over [`Limits::max_bytes`].
    pub too_large: bool,
}

impl fmt::Display for JsonError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JsonError { line, column, reason, .. } = self;
        write!(out, "not readable as OTLP/JSON: {reason} (line {line}, column {column})")
    }
}

impl std::error::Error for JsonError {}

/// Converts the one OTLP/JSON document in `json` to an export request of `signal`.
///
/// # Errors
/// The place and the reason, when it is not JSON, not one document, has a value of the wrong type,
/// an enum by name, more than [`MAX_DEPTH`] nested messages, or is over a limit; also when it is
/// not UTF-8 throughout. Half of a surrogate pair, which JSON can write with `\u`, becomes U+FFFD:
/// senders that cut texts at a length leave it behind.
pub fn to_protobuf(signal: Signal, json: &[u8], limits: Limits) -> Result<Converted, JsonError> {
    let json = std::str::from_utf8(json).map_err(|error| not_utf8(json, error.valid_up_to()))?;
    let mut state = State {
        out: Vec::with_capacity(json.len() / 2),
        limits,
        depth: 0,
        in_item: false,
        item_fault: None,
        rejected: 0,
        rejection: None,
        field: "the document",
        expects: "an object",
        failure: None,
        too_large: false,
    };
    let mut reader = serde_json::Deserializer::from_str(json);
    // Depth is counted in messages by us; the reader would count brackets and stop too early.
    reader.disable_recursion_limit();
    let request = schema::request(signal);
    let read = MessageSeed { message: request, state: &mut state }.deserialize(&mut reader);
    match read.and_then(|()| reader.end()) {
        Ok(()) => Ok(state.converted()),
        Err(error) => Err(state.refused(&error)),
    }
}

/// RFC 8259 wants UTF-8. Other bytes come from a sender that wrote its texts as they were.
fn not_utf8(json: &[u8], at: usize) -> JsonError {
    let before = &json[..at];
    let line_start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    JsonError {
        line: memchr::memchr_iter(b'\n', before).count() + 1,
        column: at - line_start + 1,
        reason: "a byte that is not UTF-8, as all of JSON must be; send U+FFFD in its place".into(),
        too_large: false,
    }
}

/// What the visitors share.
struct State {
    out: Vec<u8>,
    limits: Limits,
    depth: usize,
    in_item: bool,
    /// Why the item being read will be left out.
    item_fault: Option<String>,
    rejected: u64,
    rejection: Option<String>,
    /// The field being read and what it should be, for errors that the JSON reader finds.
    field: &'static str,
    expects: &'static str,
    failure: Option<String>,
    too_large: bool,
}

impl State {
    fn expect(&mut self, field: &'static Field, expects: &'static str) {
        self.field = field.json;
        self.expects = expects;
    }

    fn fail<E: de::Error>(&mut self, reason: String) -> E {
        self.failure.get_or_insert(reason);
        E::custom("refused")
    }

    fn check_size<E: de::Error>(&mut self) -> Result<(), E> {
        if self.out.len() <= self.limits.max_bytes {
            return Ok(());
        }
        self.too_large = true;
        let limit = self.limits.max_bytes;
        Err(self.fail(format!("the export is larger than the limit of {limit} bytes")))
    }

    fn converted(self) -> Converted {
        let message = self.rejection.unwrap_or_default();
        Converted { bytes: self.out, rejected: self.rejected, message }
    }

    fn refused(self, error: &serde_json::Error) -> JsonError {
        use serde_json::error::Category;
        let reason = self.failure.unwrap_or_else(|| match error.classify() {
            Category::Data => format!("`{}` must be {}", self.field, self.expects),
            Category::Eof => "the document ends before it is complete".to_owned(),
            Category::Syntax | Category::Io => {
                "not exactly one valid JSON document; check the text at this place".to_owned()
            }
        });
        let (line, column) = (error.line(), error.column());
        JsonError { line, column, reason, too_large: self.too_large }
    }

    /// Deals with a value that has the right JSON type and is still no value of its field.
    fn refuse<E: de::Error>(&mut self, refusal: Refusal, field: &'static Field) -> Result<(), E> {
        match refusal {
            Refusal::Item(reason) if self.in_item => {
                self.item_fault.get_or_insert_with(|| format!("`{}` {reason}", field.json));
                Ok(())
            }
            Refusal::Item(reason) | Refusal::Document(reason) => {
                Err(self.fail(format!("`{}` {reason}", field.json)))
            }
        }
    }
}

/// Reads one object as the payload of a message.
struct MessageSeed<'s> {
    message: &'static Message,
    state: &'s mut State,
}

impl<'de> DeserializeSeed<'de> for MessageSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MessageSeed<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let MessageSeed { message, state } = self;
        if state.depth >= MAX_DEPTH {
            return Err(state.fail(format!("messages nested more than {MAX_DEPTH} deep")));
        }
        state.depth += 1;
        while let Some(known) = map.next_key_seed(KeySeed(message))? {
            match known {
                Some(field) => map.next_value_seed(FieldSeed { field, state: &mut *state })?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        state.depth -= 1;
        Ok(())
    }
}

/// Reads a key and finds its field.
struct KeySeed(&'static Message);

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Option<&'static Field>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_bytes(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = Option<&'static Field>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a key")
    }

    fn visit_bytes<E: de::Error>(self, key: &[u8]) -> Result<Self::Value, E> {
        Ok(self.0.by_json(key))
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Self::Value, E> {
        self.visit_bytes(key.as_bytes())
    }
}

/// Reads the value behind a known key; `null` is absence.
struct FieldSeed<'s> {
    field: &'static Field,
    state: &'s mut State,
}

impl<'de> DeserializeSeed<'de> for FieldSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        let many = self.field.rule == Rule::Many;
        let expects = if many { "a list" } else { scalar::expects(self.field.kind) };
        self.state.expect(self.field, expects);
        reader.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for FieldSeed<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(scalar::expects(self.field.kind))
    }

    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        if self.field.rule == Rule::Many {
            return reader.deserialize_seq(ListVisitor { field: self.field, state: self.state });
        }
        ElementSeed { field: self.field, state: self.state, packed: false }.deserialize(reader)
    }
}

/// Reads the elements of a repeated field; scalars are written packed.
struct ListVisitor<'s> {
    field: &'static Field,
    state: &'s mut State,
}

impl<'de> Visitor<'de> for ListVisitor<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let ListVisitor { field, state } = self;
        let packed = field.kind.wire_type() != 2;
        let mark = packed.then(|| open_message(&mut state.out, field.number));
        loop {
            state.expect(field, scalar::expects_element(field.kind));
            let element = ElementSeed { field, state: &mut *state, packed };
            if list.next_element_seed(element)?.is_none() {
                break;
            }
        }
        if let Some(mark) = mark {
            close_message(&mut state.out, mark);
        }
        state.check_size()
    }
}

/// Reads one value: a field's only one, or one of a list's.
struct ElementSeed<'s> {
    field: &'static Field,
    state: &'s mut State,
    packed: bool,
}

impl<'de> DeserializeSeed<'de> for ElementSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        let ElementSeed { field, state, packed } = self;
        let Kind::Message(message) = field.kind else {
            return scalar::read(reader, field, packed, &mut state.out)?
                .map_or(Ok(()), |refusal| state.refuse(refusal, field));
        };
        let start = state.out.len();
        let is_item = message.role == Role::Item;
        state.in_item |= is_item;
        let mark = open_message(&mut state.out, field.number);
        if std::ptr::eq(message, &raw const schema::ANY_VALUE) && field.rule == Rule::Many {
            // `null` inside an array value is the empty value, not an absent field.
            reader.deserialize_option(NullableSeed(MessageSeed { message, state: &mut *state }))?;
        } else {
            MessageSeed { message, state: &mut *state }.deserialize(reader)?;
        }
        close_message(&mut state.out, mark);
        if is_item {
            state.in_item = false;
            if let Some(fault) = state.item_fault.take() {
                state.out.truncate(start);
                state.rejected += 1;
                state.rejection.get_or_insert(fault);
            }
        }
        state.check_size()
    }
}

struct NullableSeed<'s>(MessageSeed<'s>);

impl<'de> Visitor<'de> for NullableSeed<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        self.0.deserialize(reader)
    }
}
