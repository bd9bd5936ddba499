//! JSON values inside facts, as a checkpoint holds them: their text. Formats that do not describe
//! themselves cannot read a value back otherwise.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

pub fn serialize<S: Serializer>(value: &Value, s: S) -> Result<S::Ok, S::Error> {
    value.to_string().serialize(s)
}

/// # Errors
/// When the text is no JSON.
pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Value, D::Error> {
    let text = <std::borrow::Cow<'_, str>>::deserialize(d)?;
    serde_json::from_str(&text).map_err(serde::de::Error::custom)
}
