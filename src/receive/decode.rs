//! From a gathered body to a checked export: inflate, convert JSON, check the structure.

use bytes::Bytes;

use super::budget::Share;
use super::content::Form;
use super::{Received, Refusal, body};
use crate::wire::inflate::{Coding, InflateError, Limits, inflate};
use crate::wire::{Signal, json, scan};

/// Bodies that cost less than this are decoded where they were read; others go to a pool, so that
/// they do not hold up the connections of their thread.
const IN_PLACE: usize = 64 << 10;

/// A body and what its headers said of it.
pub struct Raw {
    pub signal: Signal,
    pub form: Form,
    pub coding: Coding,
    pub body: Bytes,
    /// The setting that caps the body, and its bytes.
    pub limit: (&'static str, usize),
    pub max_ratio: usize,
}

/// Decodes a body, on this thread or on the pool for long work.
///
/// # Errors
/// When it does not inflate, is over a limit, or is no OTLP request.
pub async fn decode(raw: Raw, mut share: Share) -> Result<(Received, Share), Refusal> {
    let small = raw.body.len() < IN_PLACE && raw.form == Form::Protobuf;
    let work = move || read(raw, &mut share).map(|received| (received, share));
    if small {
        return work();
    }
    // The task is cut off only when the runtime ends.
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(Refusal::Stopping))
}

fn read(raw: Raw, share: &mut Share) -> Result<Received, Refusal> {
    let (setting, limit) = raw.limit;
    let limits = Limits { max_bytes: limit, max_ratio: raw.max_ratio };
    let plain = match inflate(raw.coding, &raw.body, limits) {
        Ok(std::borrow::Cow::Borrowed(_)) => raw.body.clone(),
        Ok(std::borrow::Cow::Owned(plain)) => Bytes::from(plain),
        Err(InflateError::TooLarge { limit }) => {
            return Err(Refusal::TooLarge { setting, limit });
        }
        Err(InflateError::RatioTooLarge { limit }) => {
            return Err(Refusal::TooLarge { setting: "limits.inflate_ratio", limit });
        }
        Err(InflateError::Corrupt(coding)) => return Err(Refusal::Inflate(coding.name())),
    };
    if raw.coding != Coding::Identity && !share.grow(plain.len()) {
        return Err(Refusal::Overloaded { what: "the receiver", after: body::COME_BACK });
    }
    match raw.form {
        Form::Protobuf => protobuf(raw, plain),
        Form::Json => from_json(raw.signal, &plain, setting, limit),
    }
}

fn protobuf(raw: Raw, plain: Bytes) -> Result<Received, Refusal> {
    let counts = scan::check(raw.signal, &plain);
    let counts = counts.map_err(|error| Refusal::Malformed(error.to_string()))?;
    Ok(Received {
        signal: raw.signal,
        wire: raw.body,
        coding: raw.coding,
        plain,
        items: counts.items,
        rejected: 0,
        message: String::new(),
    })
}

fn from_json(
    signal: Signal,
    plain: &[u8],
    setting: &'static str,
    limit: usize,
) -> Result<Received, Refusal> {
    // OTLP/HTTP: no bytes are no export, whatever the encoding.
    let plain = if plain.is_empty() { b"{}" } else { plain };
    let converted = json::to_protobuf(signal, plain, json::Limits { max_bytes: limit });
    let converted = converted.map_err(|error| match error.too_large {
        true => Refusal::TooLarge { setting, limit },
        false => Refusal::Malformed(error.to_string()),
    })?;
    let bytes = Bytes::from(converted.bytes);
    let counts = scan::check(signal, &bytes);
    let counts = counts.map_err(|error| Refusal::Malformed(error.to_string()))?;
    Ok(Received {
        signal,
        wire: bytes.clone(),
        coding: Coding::Identity,
        plain: bytes,
        items: counts.items,
        rejected: converted.rejected,
        message: converted.message,
    })
}
