//! Edits the attributes of a span or record inside its bytes.
//!
//! Promises: what an [`Edit`] does not name stays byte for byte and in its order, unknown fields
//! included. Added attributes come last. Bytes that cannot be read come back unchanged. Lengths
//! around an edited item are repaired by whoever writes it: [`super::regroup`] or
//! [`redact_export`].

use std::borrow::Cow;
use std::ops::Range;

use super::Signal;
use super::encode::{NewAttr, NewValue, put_attr, put_value};
use super::fields::{Fields, WireValue, put_bytes_field};
use super::scan::{Attr, ValueRef};

pub use super::regroup::{Part, Split, concat, regroup, remove_items, split};

/// Where a value stands that may have to be redacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// An attribute with this key, of a span, an event, a link or a record.
    Attribute(&'a str),
    /// The body of a log record.
    Body,
}

/// What happens to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redaction {
    Keep,
    /// The whole attribute, or the body, goes.
    Drop,
    /// This text, such as a digest, takes its place under the same key.
    Replace(String),
}

/// Decides what happens to a value.
pub type Redact<'e> = &'e dyn Fn(Place<'_>, &ValueRef<'_>) -> Redaction;

/// What to change in one span or record.
#[derive(Clone, Copy, Default)]
pub struct Edit<'e> {
    /// Attributes to append; one already present under the same key goes.
    pub add: &'e [NewAttr<'e>],
    /// Attributes already present under a key with this prefix go (`mcp_verdict.`).
    pub replace_prefix: Option<&'e str>,
    /// Asked for every other attribute, also of events and links, and for a record's body.
    pub redact: Option<Redact<'e>>,
}

/// Where the attributes of an item stand.
struct Shape {
    attributes: u32,
    body: Option<u32>,
    /// Messages that hold attributes of their own.
    nested: &'static [(u32, Shape)],
}

const fn leaf(attributes: u32) -> Shape {
    Shape { attributes, body: None, nested: &[] }
}

const SPAN: Shape = Shape { attributes: 9, body: None, nested: &[(11, leaf(3)), (13, leaf(4))] };
const RECORD: Shape = Shape { attributes: 6, body: Some(5), nested: &[] };

/// The body of a `Span` message with `edit` applied.
pub fn enrich(span: &[u8], edit: &Edit<'_>) -> Vec<u8> {
    apply(&SPAN, span, edit).unwrap_or_else(|| span.to_vec())
}

/// The body of a `LogRecord` message with `edit` applied.
pub fn enrich_record(record: &[u8], edit: &Edit<'_>) -> Vec<u8> {
    apply(&RECORD, record, edit).unwrap_or_else(|| record.to_vec())
}

/// A traces or logs export with every item redacted; borrowed when nothing changed. Other signals
/// hold no content that is redacted and come back as they are.
pub fn redact_export<'b>(signal: Signal, export: &'b [u8], redact: Redact<'_>) -> Cow<'b, [u8]> {
    let shape = match signal {
        Signal::Traces => &SPAN,
        Signal::Logs => &RECORD,
        Signal::Metrics | Signal::Profiles => return Cow::Borrowed(export),
    };
    let edit = Edit { redact: Some(redact), ..Edit::default() };
    let scope = |body: &[u8]| map_fields(body, 2, |item| apply(shape, item, &edit));
    let resource = |body: &[u8]| map_fields(body, 2, scope);
    map_fields(export, 1, resource).map_or(Cow::Borrowed(export), Cow::Owned)
}

/// The message with every payload of one field mapped; `None` when nothing changed.
fn map_fields(
    bytes: &[u8],
    number: u32,
    map: impl Fn(&[u8]) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let mut copy = Copy::new(bytes, 0);
    for field in Fields::new(bytes) {
        let field = field.ok()?;
        if field.number == number
            && let WireValue::Bytes(body) = field.value
            && let Some(new) = map(body)
        {
            copy.replace(field.range, |out| put_bytes_field(out, number, &new));
        }
    }
    copy.changed()
}

/// Copies a message in long stretches, with some ranges left out or replaced.
struct Copy<'a> {
    bytes: &'a [u8],
    out: Vec<u8>,
    copied: usize,
}

impl<'a> Copy<'a> {
    fn new(bytes: &'a [u8], extra: usize) -> Self {
        let out = if extra > 0 { Vec::with_capacity(bytes.len() + extra) } else { Vec::new() };
        Copy { bytes, out, copied: 0 }
    }

    /// Leaves `range` out and lets `write` put something in its place.
    fn replace(&mut self, range: Range<usize>, write: impl FnOnce(&mut Vec<u8>)) {
        self.out.extend_from_slice(&self.bytes[self.copied..range.start]);
        self.copied = range.end;
        write(&mut self.out);
    }

    /// The result, or `None` when no range was replaced.
    fn changed(mut self) -> Option<Vec<u8>> {
        if self.copied == 0 && self.out.is_empty() {
            return None;
        }
        self.out.extend_from_slice(&self.bytes[self.copied..]);
        Some(self.out)
    }
}

/// `None` when nothing changes or the bytes cannot be read.
fn apply(shape: &Shape, bytes: &[u8], edit: &Edit<'_>) -> Option<Vec<u8>> {
    // A key and a value take about so much; one allocation is enough for usual edits.
    let mut copy = Copy::new(bytes, edit.add.len() * 64);
    for field in Fields::new(bytes) {
        let field = field.ok()?;
        let WireValue::Bytes(body) = field.value else { continue };
        if field.number == shape.attributes {
            edit_attribute(&mut copy, field.range, shape.attributes, body, edit);
        } else if Some(field.number) == shape.body {
            edit_body(&mut copy, field.range, field.number, body, edit);
        } else if let Some((_, inner)) = shape.nested.iter().find(|(n, _)| *n == field.number) {
            let nested = Edit { redact: edit.redact, ..Edit::default() };
            if edit.redact.is_some()
                && let Some(new) = apply(inner, body, &nested)
            {
                copy.replace(field.range, |out| put_bytes_field(out, field.number, &new));
            }
        }
    }
    if !edit.add.is_empty() {
        copy.replace(bytes.len()..bytes.len(), |out| {
            edit.add.iter().for_each(|attr| put_attr(out, shape.attributes, attr));
        });
    }
    copy.changed()
}

fn edit_attribute(
    copy: &mut Copy<'_>,
    range: Range<usize>,
    number: u32,
    body: &[u8],
    edit: &Edit<'_>,
) {
    // A key that is not UTF-8 is none that anybody could have named.
    let Some(key) = Attr::key_of(body).as_str() else { return };
    let replaced = edit.replace_prefix.is_some_and(|prefix| key.starts_with(prefix))
        || edit.add.iter().any(|added| added.key == key);
    if replaced {
        return copy.replace(range, |_| ());
    }
    let Some(redact) = edit.redact else { return };
    match redact(Place::Attribute(key), &Attr::parse(body).value) {
        Redaction::Keep => {}
        Redaction::Drop => copy.replace(range, |_| ()),
        Redaction::Replace(text) => {
            let pair = with_value(body, NewValue::from(text));
            copy.replace(range, |out| put_bytes_field(out, number, &pair));
        }
    }
}

fn edit_body(copy: &mut Copy<'_>, range: Range<usize>, number: u32, body: &[u8], edit: &Edit<'_>) {
    let Some(redact) = edit.redact else { return };
    match redact(Place::Body, &ValueRef::parse(body)) {
        Redaction::Keep => {}
        Redaction::Drop => copy.replace(range, |_| ()),
        Redaction::Replace(text) => {
            copy.replace(range, |out| put_value(out, number, &NewValue::from(text)));
        }
    }
}

/// A `KeyValue` with another value; its other fields stay.
fn with_value(pair: &[u8], value: NewValue<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(pair.len());
    for field in Fields::new(pair).flatten().filter(|field| field.number != 2) {
        out.extend_from_slice(&pair[field.range]);
    }
    put_value(&mut out, 2, &value);
    out
}
