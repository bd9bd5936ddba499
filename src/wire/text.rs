//! Text that is not UTF-8, in what this program says under somebody else's resource.
//!
//! Promises: only text is changed, and only where strict readers of protobuf would refuse the whole
//! request for it; every other byte stands as it stood. What is forwarded never comes through here.

use super::fields::{Fields, WireValue, put_bytes_field};
use super::schema::{Kind, Message};

/// The message with U+FFFD for what is not UTF-8 in its text; `None` where there is nothing to
/// change. What is no message is left as it is.
pub fn repaired(bytes: &[u8], message: &Message) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    // Everything before it is in `out`.
    let mut copied = 0;
    for field in Fields::new(bytes) {
        let field = field.ok()?;
        let WireValue::Bytes(value) = field.value else { continue };
        let changed = match message.by_number(field.number).map(|known| known.kind) {
            Some(Kind::String) if std::str::from_utf8(value).is_err() => {
                String::from_utf8_lossy(value).into_owned().into_bytes()
            }
            Some(Kind::Message(inner)) => match repaired(value, inner) {
                Some(changed) => changed,
                None => continue,
            },
            _ => continue,
        };
        out.extend_from_slice(&bytes[copied..field.range.start]);
        put_bytes_field(&mut out, field.number, &changed);
        copied = field.range.end;
    }
    if copied == 0 {
        return None;
    }
    out.extend_from_slice(&bytes[copied..]);
    Some(out)
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, any_value};
    use opentelemetry_proto::tonic::resource::v1::Resource;
    use opentelemetry_proto::tonic::trace::v1::ResourceSpans;
    use prost::Message as _;

    use super::super::schema::RESOURCE_SPANS;
    use super::*;

    /// A resource whose text stands in a value, in a list, in a key and in its schema's address.
    fn resource(text: &str) -> ResourceSpans {
        let value = |value| Some(AnyValue { value: Some(value) });
        let text_value = any_value::Value::StringValue(text.into());
        let list = ArrayValue { values: value(text_value.clone()).into_iter().collect() };
        let pair =
            |key: &str, of| KeyValue { key: key.into(), value: value(of), ..KeyValue::default() };
        let attributes = vec![
            pair("service.name", any_value::Value::StringValue("shop".into())),
            pair("note", text_value),
            pair(text, any_value::Value::IntValue(7)),
            pair("list", any_value::Value::ArrayValue(list)),
            pair("bytes", any_value::Value::BytesValue(vec![0xff, 0xfe])),
        ];
        ResourceSpans {
            resource: Some(Resource { attributes, ..Resource::default() }),
            schema_url: text.into(),
            ..ResourceSpans::default()
        }
    }

    #[test]
    fn what_is_no_text_becomes_text_and_nothing_else_changes() {
        let sound = resource("!!").encode_to_vec();
        assert_eq!(repaired(&sound, &RESOURCE_SPANS), None);
        let mut bytes = sound.clone();
        while let Some(at) = memchr::memmem::find(&bytes, b"!!") {
            bytes[at..at + 2].copy_from_slice(&[0xff, b'x']);
        }
        assert!(ResourceSpans::decode(&bytes[..]).is_err(), "a strict reader refuses it");
        let changed = repaired(&bytes, &RESOURCE_SPANS).expect("changed");
        assert_eq!(ResourceSpans::decode(&changed[..]).expect("readable"), resource("\u{fffd}x"));
    }

    #[test]
    fn what_is_no_message_is_left() {
        for bytes in [&[0xff, 0xff][..], &[0x0a, 0x7f, 0x00], &[]] {
            assert_eq!(repaired(bytes, &RESOURCE_SPANS), None);
        }
    }
}
