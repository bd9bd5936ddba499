//! Verdicts as they are said, to whoever listens.
//!
//! Promises: every revision in the order in which it was said, and only once; who reads slower than
//! verdicts come is told how many were forgotten meanwhile; who listens holds no more than one
//! block of revisions, and delays nobody.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::super::Board;
use super::super::listing::{Filter, Wanted};
use super::super::question::Wrong;
use crate::proto::WatchVerdictsResponse;

/// Messages that are ready before they are read.
const READY: usize = 16;

/// What a listener reads.
pub type Verdicts = ReceiverStream<Result<WatchVerdictsResponse, Status>>;

/// Begins to listen. `remembered`: with what was said before.
///
/// # Errors
/// For a word that there is not.
pub fn watch(board: Arc<Board>, wanted: &Wanted, remembered: bool) -> Result<Verdicts, Wrong> {
    let filter = Filter::new(wanted)?;
    let (send, receive) = mpsc::channel(READY);
    let before = if remembered { Recalled::All } else { Recalled::Nothing };
    tokio::spawn(tell(board, filter, before, send));
    Ok(ReceiverStream::new(receive))
}

enum Recalled {
    All,
    Nothing,
}

async fn tell(
    board: Arc<Board>,
    filter: Filter,
    recalled: Recalled,
    send: mpsc::Sender<Result<WatchVerdictsResponse, Status>>,
) {
    // Before the first look: what is published between the two rings.
    let mut more = board.more();
    let mut before = match recalled {
        Recalled::All => board.recent().first(),
        Recalled::Nothing => board.recent().ever(),
    };
    let mut missed = 0;
    loop {
        let recent = board.recent();
        let (forgotten, block) = recent.from(before);
        before += forgotten;
        missed += forgotten;
        let mut any = false;
        for said in block {
            (any, before) = (true, before + 1);
            if !filter.fits(said) {
                continue;
            }
            let missed = std::mem::take(&mut missed);
            let message = WatchVerdictsResponse { verdict: Some((&***said).into()), missed };
            if send.send(Ok(message)).await.is_err() {
                return;
            }
        }
        drop(recent);
        if any {
            // A block in which nothing fits must not keep a thread from others.
            tokio::task::yield_now().await;
            continue;
        }
        tokio::select! {
            () = send.closed() => return,
            rung = more.changed() => if rung.is_err() { return },
        }
    }
}
