//! Resources and scopes: the same shape for all four signals.

use std::borrow::Cow;

use super::record::RecordView;
use super::span::SpanView;
use super::value::{Attr, Attrs, Text};
use crate::wire::fields::{Fields, WireValue};

const RESOURCE: u32 = 1;
const SCOPE: u32 = 1;
const ITEMS: u32 = 2;
const SCHEMA_URL: u32 = 3;

/// The resources of a traces export.
pub fn resource_spans(export: &[u8]) -> impl Iterator<Item = ResourceView<'_>> + Clone {
    resources(export)
}

/// The resources of a logs export.
pub fn resource_logs(export: &[u8]) -> impl Iterator<Item = ResourceView<'_>> + Clone {
    resources(export)
}

/// The resources of an export of any signal.
pub fn resources(export: &[u8]) -> impl Iterator<Item = ResourceView<'_>> + Clone {
    bodies(export, 0, 1).map(|(bytes, offset)| ResourceView { bytes, offset })
}

/// Payloads of the fields with one number, each with its offset in the export.
fn bodies(bytes: &[u8], base: usize, number: u32) -> impl Iterator<Item = (&[u8], usize)> + Clone {
    Fields::new(bytes).flatten().filter_map(move |field| match field.value {
        WireValue::Bytes(body) if field.number == number => Some((body, base + field.body_start())),
        _ => None,
    })
}

/// The last string with this number.
fn last_text(bytes: &[u8], number: u32) -> Text<'_> {
    bodies(bytes, 0, number).last().map(|(text, _)| Text(text)).unwrap_or_default()
}

/// `ResourceSpans`, `ResourceLogs` or their like.
#[derive(Clone, Copy)]
pub struct ResourceView<'a> {
    /// The message's body.
    pub bytes: &'a [u8],
    /// Where the body begins in the export.
    pub offset: usize,
}

impl<'a> ResourceView<'a> {
    /// The attributes of the resource.
    pub fn attributes(&self) -> impl Iterator<Item = Attr<'a>> + Clone + use<'a> {
        bodies(self.bytes, 0, RESOURCE).flat_map(|(body, _)| Attrs::new(body, 1))
    }

    /// The value of the last attribute with this key that is UTF-8 text.
    pub fn text_attribute(&self, key: &str) -> Option<&'a str> {
        self.attributes().filter(|attr| attr.key == key).filter_map(|a| a.value.as_str()).last()
    }

    pub fn schema_url(&self) -> Text<'a> {
        last_text(self.bytes, SCHEMA_URL)
    }

    /// The scopes in their order.
    pub fn scopes(&self) -> impl Iterator<Item = ScopeView<'a>> + Clone + use<'a> {
        bodies(self.bytes, self.offset, ITEMS).map(|(bytes, offset)| ScopeView { bytes, offset })
    }

    /// Every byte of the message but its scopes: what a regrouped export repeats. It walks the
    /// whole message, so take it once a resource.
    pub fn origin(&self) -> Cow<'a, [u8]> {
        without(self.bytes, ITEMS)
    }
}

/// `ScopeSpans`, `ScopeLogs` or their like.
#[derive(Clone, Copy)]
pub struct ScopeView<'a> {
    /// The message's body.
    pub bytes: &'a [u8],
    /// Where the body begins in the export.
    pub offset: usize,
}

impl<'a> ScopeView<'a> {
    fn scope_text(&self, number: u32) -> Text<'a> {
        bodies(self.bytes, 0, SCOPE)
            .flat_map(|(scope, _)| bodies(scope, 0, number))
            .last()
            .map(|(text, _)| Text(text))
            .unwrap_or_default()
    }

    /// Name of the instrumentation scope.
    pub fn name(&self) -> Text<'a> {
        self.scope_text(1)
    }

    /// Version of the instrumentation scope.
    pub fn version(&self) -> Text<'a> {
        self.scope_text(2)
    }

    /// Attributes of the instrumentation scope.
    pub fn attributes(&self) -> impl Iterator<Item = Attr<'a>> + Clone + use<'a> {
        bodies(self.bytes, 0, SCOPE).flat_map(|(body, _)| Attrs::new(body, 3))
    }

    pub fn schema_url(&self) -> Text<'a> {
        last_text(self.bytes, SCHEMA_URL)
    }

    /// The spans of a `ScopeSpans`, each parsed in one pass.
    pub fn spans(&self) -> impl Iterator<Item = SpanView<'a>> + Clone + use<'a> {
        self.items().map(|(bytes, offset)| SpanView::parse(bytes, offset))
    }

    /// The records of a `ScopeLogs`, each parsed in one pass.
    pub fn records(&self) -> impl Iterator<Item = RecordView<'a>> + Clone + use<'a> {
        self.items().map(|(bytes, offset)| RecordView::parse(bytes, offset))
    }

    /// The bodies of the items, unparsed, with their offsets in the export.
    pub fn items(&self) -> impl Iterator<Item = (&'a [u8], usize)> + Clone + use<'a> {
        bodies(self.bytes, self.offset, ITEMS)
    }

    /// Every byte of the message but its items: what a regrouped export repeats. It walks the
    /// whole message, so take it once a scope, not once an item.
    pub fn origin(&self) -> Cow<'a, [u8]> {
        without(self.bytes, ITEMS)
    }
}

/// The fields of a message but those with one number; borrowed when they lie together.
fn without(bytes: &[u8], number: u32) -> Cow<'_, [u8]> {
    let mut kept: Option<std::ops::Range<usize>> = None;
    let mut fields = Fields::new(bytes).flatten().filter(|field| field.number != number);
    for field in fields.by_ref() {
        match &mut kept {
            None => kept = Some(field.range),
            Some(range) if range.end == field.range.start => range.end = field.range.end,
            Some(range) => {
                let mut joined = bytes[range.clone()].to_vec();
                joined.extend_from_slice(&bytes[field.range]);
                fields.for_each(|field| joined.extend_from_slice(&bytes[field.range]));
                return Cow::Owned(joined);
            }
        }
    }
    Cow::Borrowed(kept.map_or(&[], |range| &bytes[range]))
}
