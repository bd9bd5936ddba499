//! Content codings: gzip and zstd in, capped; gzip and zstd out, at their fastest level.
//!
//! Promises: no more than the limit is ever inflated or held; several gzip members and several
//! zstd frames are one body; a cut-off or damaged body is an error, not a short answer.

use std::borrow::Cow;
use std::fmt;
use std::io::{Read, Write};

/// A content coding that OTLP receivers and exporters must know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Coding {
    #[default]
    Identity,
    Gzip,
    Zstd,
}

impl Coding {
    /// The coding of a `Content-Encoding` or `grpc-encoding` value, in any case; `None` for one
    /// that is not known.
    pub fn parse(name: &str) -> Option<Coding> {
        let name = name.trim();
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match () {
            () if name.is_empty() || is("identity") => Some(Coding::Identity),
            () if is("gzip") || is("x-gzip") => Some(Coding::Gzip),
            () if is("zstd") => Some(Coding::Zstd),
            () => None,
        }
    }

    /// The name to send.
    pub fn name(self) -> &'static str {
        match self {
            Coding::Identity => "identity",
            Coding::Gzip => "gzip",
            Coding::Zstd => "zstd",
        }
    }
}

/// What inflating a body may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes that may come out, also without compression.
    pub max_bytes: usize,
    /// Bytes that may come out for each byte that went in, once more than
    /// [`Limits::RATIO_FLOOR`] have. Telemetry compresses well, so this is large.
    pub max_ratio: usize,
}

impl Limits {
    /// Bodies up to this size are small whatever their ratio.
    pub const RATIO_FLOOR: usize = 1 << 20;

    fn cap(&self, compressed: usize) -> (usize, bool) {
        let by_ratio = compressed.saturating_mul(self.max_ratio).max(Limits::RATIO_FLOOR);
        (self.max_bytes.min(by_ratio), by_ratio < self.max_bytes)
    }
}

/// Why a body could not be inflated. Holds no content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InflateError {
    /// More than `limit` bytes would come out.
    TooLarge { limit: usize },
    /// More than `limit` bytes would come out for each byte of the body.
    RatioTooLarge { limit: usize },
    /// The body is not what its coding says, or is cut off.
    Corrupt(Coding),
}

impl fmt::Display for InflateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InflateError::TooLarge { limit } => {
                write!(out, "the inflated body is larger than the limit of {limit} bytes")
            }
            InflateError::RatioTooLarge { limit } => {
                write!(out, "the body inflates to more than {limit} times its size")
            }
            InflateError::Corrupt(coding) => {
                write!(out, "the body is not complete, valid {}", coding.name())
            }
        }
    }
}

impl std::error::Error for InflateError {}

/// The body without its coding; borrowed when it has none. No bytes are an empty body in every
/// coding.
///
/// # Errors
/// When it is over a limit, damaged or cut off.
pub fn inflate(coding: Coding, body: &[u8], limits: Limits) -> Result<Cow<'_, [u8]>, InflateError> {
    if coding == Coding::Identity || body.is_empty() {
        if body.len() > limits.max_bytes {
            return Err(InflateError::TooLarge { limit: limits.max_bytes });
        }
        return Ok(Cow::Borrowed(body));
    }
    let corrupt = |_| InflateError::Corrupt(coding);
    let (cap, by_ratio) = limits.cap(body.len());
    let mut out = Vec::with_capacity(cap.min(body.len().saturating_mul(4)));
    // One byte more than allowed tells a body at the limit from one over it.
    let take = u64::try_from(cap).unwrap_or(u64::MAX).saturating_add(1);
    let read = match coding {
        Coding::Gzip => flate2::read::MultiGzDecoder::new(body).take(take).read_to_end(&mut out),
        _ => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(body).map_err(corrupt)?;
            decoder.window_log_max(window_log(limits.max_bytes)).map_err(corrupt)?;
            decoder.take(take).read_to_end(&mut out)
        }
    };
    if out.len() > cap {
        return Err(match by_ratio {
            true => InflateError::RatioTooLarge { limit: limits.max_ratio },
            false => InflateError::TooLarge { limit: limits.max_bytes },
        });
    }
    read.map_err(corrupt)?;
    Ok(Cow::Owned(out))
}

/// The largest zstd window that a body within the limit can need, at least the 8 MiB that every
/// decoder must offer, at most zstd's default bound.
fn window_log(max_bytes: usize) -> u32 {
    max_bytes.max(1).next_power_of_two().ilog2().clamp(23, 27)
}

/// The body in a coding, at level 1; it is given back as it is for `identity`.
///
/// # Errors
/// [`InflateError::Corrupt`] if the compressor itself fails, which memory alone can make it.
pub fn deflate(coding: Coding, bytes: &[u8]) -> Result<Cow<'_, [u8]>, InflateError> {
    let failed = |_| InflateError::Corrupt(coding);
    match coding {
        Coding::Identity => Ok(Cow::Borrowed(bytes)),
        Coding::Gzip => {
            let out = Vec::with_capacity(bytes.len() / 4);
            let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::fast());
            encoder.write_all(bytes).map_err(failed)?;
            encoder.finish().map(Cow::Owned).map_err(failed)
        }
        Coding::Zstd => zstd::bulk::compress(bytes, 1).map(Cow::Owned).map_err(failed),
    }
}
