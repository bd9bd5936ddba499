//! Gathers a request body: capped, counted against the budget as it arrives, never waiting long.

use std::pin::pin;
use std::time::Duration;

use bytes::{Buf, Bytes};
use http_body::Body;
use http_body_util::BodyExt;

use super::Refusal;
use super::budget::Share;

/// From the first bytes of a body to how long it may be.
pub type Announced<'a> = &'a (dyn Fn(&[u8]) -> Result<usize, Refusal> + Sync);

/// How a body is gathered.
pub struct Gather<'a> {
    pub share: &'a mut Share,
    /// Bytes that may come.
    pub limit: usize,
    /// The setting that the limit is, for the refusal.
    pub setting: &'static str,
    /// Longest time between two pieces.
    pub silence: Duration,
    /// Looks at the first bytes, once so many are there, and says how long the body may be.
    pub announced: Option<(usize, Announced<'a>)>,
}

/// Reads a whole body. What comes with trailers is ignored.
///
/// # Errors
/// Over the limit or the budget, silent for too long, or broken off.
pub async fn gather<B>(body: &mut B, mut how: Gather<'_>) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut gathered = Gathered::default();
    while let Some(piece) = next(body, how.silence).await? {
        if !how.share.grow(piece.len()) {
            return Err(Refusal::Overloaded { what: "the receiver", after: COME_BACK });
        }
        gathered.add(piece);
        if let Some((enough, announced)) = how.announced
            && gathered.bytes().len() >= enough
        {
            how.limit = announced(gathered.bytes())?;
            how.announced = None;
        }
        if gathered.bytes().len() > how.limit {
            return Err(Refusal::TooLarge { setting: how.setting, limit: how.limit });
        }
    }
    Ok(gathered.finish())
}

/// One piece as it came, or all pieces in one buffer.
#[derive(Default)]
struct Gathered {
    only: Bytes,
    joined: Vec<u8>,
}

impl Gathered {
    fn add(&mut self, piece: Bytes) {
        if self.bytes().is_empty() {
            self.only = piece;
            return;
        }
        if self.joined.is_empty() {
            self.joined.reserve(2 * (self.only.len() + piece.len()));
            self.joined.extend_from_slice(&std::mem::take(&mut self.only));
        }
        self.joined.extend_from_slice(&piece);
    }

    fn bytes(&self) -> &[u8] {
        if self.joined.is_empty() { &self.only } else { &self.joined }
    }

    fn finish(self) -> Bytes {
        if self.joined.is_empty() { self.only } else { Bytes::from(self.joined) }
    }
}

/// When a sender that met a full budget may come again.
pub const COME_BACK: Duration = Duration::from_secs(1);

async fn next<B>(body: &mut B, silence: Duration) -> Result<Option<Bytes>, Refusal>
where
    B: Body<Data = Bytes> + Unpin,
{
    loop {
        let frame = match tokio::time::timeout(silence, body.frame()).await {
            Err(_) => return Err(Refusal::Silent(silence)),
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => return Err(Refusal::Framing("the body was broken off")),
            Ok(Some(Ok(frame))) => frame,
        };
        match frame.into_data() {
            Ok(data) if data.has_remaining() => return Ok(Some(data)),
            _ => continue,
        }
    }
}

/// Reads on and forgets, so that a sender still writing gets to read the refusal.
pub async fn discard<B>(body: B, at_most: usize)
where
    B: Body<Data = Bytes>,
{
    let mut body = pin!(body);
    let mut left = at_most;
    let drain = async {
        while let Some(Ok(frame)) = body.frame().await {
            let size = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(size) {
                Some(after) => left = after,
                None => return,
            }
        }
    };
    // A sender that does not stop within this is cut off.
    let _ = tokio::time::timeout(Duration::from_secs(2), drain).await;
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::super::budget::Budget;
    use super::*;

    async fn read(size: usize, limit: usize, budget: usize) -> Result<Bytes, Refusal> {
        let mut share = Budget::new(budget).share();
        let silence = Duration::from_secs(1);
        let how = Gather { share: &mut share, limit, setting: "limit", silence, announced: None };
        gather(&mut Full::new(Bytes::from(vec![7; size])), how).await
    }

    #[tokio::test]
    async fn caps() {
        assert_eq!(read(10, 10, 1 << 20).await.unwrap().len(), 10);
        let too_large = Refusal::TooLarge { setting: "limit", limit: 9 };
        assert_eq!(read(10, 9, 1 << 20).await, Err(too_large));
        assert!(matches!(read(9999, 10_000, 1024).await, Err(Refusal::Overloaded { .. })));
    }
}
