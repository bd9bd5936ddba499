//! Messages in the frames of gRPC.

use std::borrow::Cow;
use std::io::Read;

use bytes::{Bytes, BytesMut};

/// Bytes before a message: whether it is compressed, and its length.
pub const PREFIX: usize = 5;

/// A body that is ready to be sent.
#[derive(Clone)]
pub struct Packet {
    /// As gRPC has it.
    pub framed: Bytes,
    pub gzip: bool,
}

impl Packet {
    pub fn new(message: &[u8], gzip: bool) -> Self {
        let mut framed = BytesMut::with_capacity(PREFIX + message.len());
        framed.extend_from_slice(&[u8::from(gzip)]);
        framed.extend_from_slice(&u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes());
        framed.extend_from_slice(message);
        Self { framed: framed.freeze(), gzip }
    }

    /// As HTTP has it.
    pub fn message(&self) -> Bytes {
        self.framed.slice(PREFIX..)
    }
}

/// The message of a frame; `None` where there is not one whole.
pub fn inflated<'a>(framed: &'a [u8], coding: Option<&str>) -> Option<Cow<'a, [u8]>> {
    let (prefix, body) = framed.split_first_chunk::<PREFIX>()?;
    let length = u32::from_be_bytes(*prefix.last_chunk()?);
    if body.len() != length as usize {
        return None;
    }
    let mut message = Vec::new();
    match (prefix[0], coding) {
        (0, _) => return Some(body.into()),
        (_, Some("gzip")) => {
            flate2::read::GzDecoder::new(body).read_to_end(&mut message).ok()?;
        }
        (_, Some("zstd")) => message = zstd::decode_all(body).ok()?,
        _ => return None,
    }
    Some(message.into())
}
