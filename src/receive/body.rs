//! Gathers a request body: capped, counted against the budget as it arrives, never waiting long.

use std::pin::pin;
use std::time::Duration;

use bytes::{Buf, Bytes};
use http_body::Body;
use http_body_util::BodyExt;

use super::Refusal;
use super::budget::Share;
use crate::clock::timer;

/// From the first bytes of a body to how long it may be.
pub type Announced<'a> = &'a (dyn Fn(&[u8]) -> Result<usize, Refusal> + Sync);

/// How a body is gathered.
pub struct Gather<'a> {
    pub share: &'a mut Share,
    /// Bytes that may come.
    pub limit: usize,
    /// The setting that the limit is, for the refusal.
    pub setting: &'static str,
    /// Longest time between two pieces, as far as anybody listened.
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

/// Into so many waits a silence is divided. A wait that took longer, because the machine or the
/// process stood still, counts as one: what came meanwhile is yet to be read.
const WAITS: u32 = 10;

async fn next<B>(body: &mut B, silence: Duration) -> Result<Option<Bytes>, Refusal>
where
    B: Body<Data = Bytes> + Unpin,
{
    let wait = silence / WAITS;
    let mut listened = Duration::ZERO;
    loop {
        let began = timer();
        let frame = tokio::time::timeout(wait, body.frame()).await;
        match frame {
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => return Err(Refusal::Framing("the body was broken off")),
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) if data.has_remaining() => return Ok(Some(data)),
                // What brings no byte is silence too.
                _ => {}
            },
            Err(_) => {}
        }
        listened += began.elapsed().min(wait);
        if listened >= silence {
            return Err(Refusal::Silent(silence));
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
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use http_body::Frame;
    use http_body_util::Full;

    use super::super::budget::Budget;
    use super::*;

    async fn read(size: usize, limit: usize, budget: usize) -> Result<Bytes, Refusal> {
        let mut share = Budget::new(budget).share();
        let silence = Duration::from_secs(1);
        let how = Gather { share: &mut share, limit, setting: "limit", silence, announced: None };
        gather(&mut Full::new(Bytes::from(vec![7; size])), how).await
    }

    /// A body that waits for what is sent.
    struct Late(tokio::sync::mpsc::UnboundedReceiver<Bytes>);

    impl Body for Late {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
        }
    }

    async fn read_late(mut late: Late) -> Result<Bytes, Refusal> {
        let mut share = Budget::new(1 << 20).share();
        let silence = Duration::from_millis(500);
        let (limit, setting) = (1 << 20, "limit");
        gather(&mut late, Gather { share: &mut share, limit, setting, silence, announced: None })
            .await
    }

    #[tokio::test]
    async fn silence_is_refused_and_empty_frames_are_silence() {
        let (sender, late) = tokio::sync::mpsc::unbounded_channel();
        let began = timer();
        let empty = tokio::spawn(async move {
            while sender.send(Bytes::new()).is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let refused = read_late(Late(late)).await;
        assert_eq!(refused, Err(Refusal::Silent(Duration::from_millis(500))));
        assert!(began.elapsed() >= Duration::from_millis(490), "{:?}", began.elapsed());
        empty.await.unwrap();
    }

    #[tokio::test]
    async fn a_process_that_stood_still_was_not_listening() {
        let (sender, late) = tokio::sync::mpsc::unbounded_channel();
        let feed = async move {
            // Nothing runs meanwhile: the one thread of the runtime sleeps.
            std::thread::sleep(Duration::from_millis(1_000));
            // Timers are looked at before what came is.
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            sender.send(Bytes::from_static(b"late")).unwrap();
        };
        let (read, ()) = tokio::join!(read_late(Late(late)), feed);
        assert_eq!(read, Ok(Bytes::from_static(b"late")));
    }

    #[tokio::test]
    async fn caps() {
        assert_eq!(read(10, 10, 1 << 20).await.unwrap().len(), 10);
        let too_large = Refusal::TooLarge { setting: "limit", limit: 9 };
        assert_eq!(read(10, 9, 1 << 20).await, Err(too_large));
        assert!(matches!(read(9999, 10_000, 1024).await, Err(Refusal::Overloaded { .. })));
    }
}
