//! What is said of a stop: at once what is waited for and until when, at the end what is left.

use std::time::Duration;

use super::watch::plight;
use crate::export::{Lane, Outbox};
use crate::log::Log;

/// How long a stop may take before it is said what it waits for.
const LONG: Duration = Duration::from_secs(1);

/// Says at once which backends a stop waits for that are known not to take anything.
pub fn say_troubled(outbox: &Outbox, patience: Duration) {
    say(outbox, patience, |lane| lane.trouble().is_some());
}

/// Waits until everything is delivered, at most so long, and says what for where that takes long
/// and was not said.
/// Returns how many records still owe something.
pub async fn drain(outbox: &Outbox, patience: Duration) -> usize {
    let drained = outbox.drain(patience);
    tokio::pin!(drained);
    tokio::select! {
        owed = &mut drained => return owed,
        () = tokio::time::sleep(LONG) => {}
    }
    say(outbox, patience.saturating_sub(LONG), |lane| lane.trouble().is_none());
    drained.await
}

fn say(outbox: &Outbox, patience: Duration, which: impl Fn(&Lane) -> bool) {
    let lanes = outbox.lanes().iter().filter(|lane| lane.waits().exports > 0 && which(lane));
    for lane in lanes {
        let (exporter, signal, waits_for) = (&lane.exporter, lane.signal.name(), plight(lane));
        let at_most_seconds = patience.as_secs();
        tracing::info!(
            exporter,
            signal,
            waits_for,
            at_most_seconds,
            "stopping: a second signal ends at once"
        );
    }
}

/// Says what the next start will find.
pub fn say_left(log: &dyn Log) {
    let usage = log.usage();
    if log.survives() && usage.records > 0 {
        let (exports, bytes) = (usage.records, usage.pending_bytes);
        tracing::info!(exports, bytes, "left in storage.directory: the next start delivers it");
    }
}
