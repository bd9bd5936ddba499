//! A batch on its way: tried, tried again, taken apart, and in the end delivered or dropped with a
//! reason.

use std::sync::atomic::Ordering;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::Lane;
use crate::clock::timer;
use crate::export::apart::{apart, smaller};
use crate::export::batch::{Batch, Unsendable};
use crate::export::outcome::{Attempt, Outcome, Reason, is_late};
use crate::export::trouble;

impl Lane {
    pub(super) fn unsendable(&self, why: Unsendable, items: usize) {
        let reason = match why {
            Unsendable::TooLarge => "too_large",
            Unsendable::Unreadable => "unreadable",
        };
        self.dropped(reason, items, items);
    }

    /// `accepted`: of them, those that are not of our own making.
    fn dropped(&self, reason: Reason, items: usize, accepted: usize) {
        self.counters.failed(reason, items);
        self.lost.fetch_add(accepted as u64, Ordering::Relaxed);
        let (exporter, signal) = (&self.exporter, self.signal.name());
        tracing::warn!(exporter, signal, reason, items, "dropped");
    }

    /// Sends a batch, and where it is refused for what it holds, or not answered in time, the parts
    /// of it.
    pub(super) async fn deliver(&self, batch: Batch, slot: OwnedSemaphorePermit) {
        let (began, mut slot) = (timer(), Some(slot));
        let mut left = vec![batch];
        while let Some(batch) = left.pop() {
            if batch.parts.len() > 1 && batch.bytes() > self.pace.bytes() {
                left.extend(self.smaller(batch));
                continue;
            }
            let Some(outcome) = self.attempt(&batch, began, &mut slot).await else { return };
            let reason = match outcome {
                Outcome::Unfit(reason) => reason,
                Outcome::Again { .. } => {
                    left.extend(self.smaller(batch));
                    continue;
                }
                _ => {
                    self.end(&outcome, &batch);
                    self.finish(batch, left.is_empty());
                    continue;
                }
            };
            self.mood.refused();
            match apart(batch, self.signal, &self.mood) {
                Ok(parts) => {
                    self.counters.retried(reason);
                    left.extend(parts);
                }
                Err(whole) => {
                    self.dropped(reason, whole.items(), whole.accepted());
                    self.finish(whole, left.is_empty());
                }
            }
        }
    }

    /// The halves of a request, or the request where it is one item.
    fn smaller(&self, batch: Batch) -> Vec<Batch> {
        smaller(batch, self.signal).unwrap_or_else(|whole| vec![whole])
    }

    /// Sends one request until its outcome is final, or less should be sent in its place (the
    /// outcome is to try again then); `None` at the end of the process.
    async fn attempt(
        &self,
        batch: &Batch,
        began: Instant,
        slot: &mut Option<OwnedSemaphorePermit>,
    ) -> Option<Outcome> {
        let mut backoff = ExponentialBuilder::default()
            .with_min_delay(self.retry.initial_interval)
            .with_max_delay(self.retry.max_interval)
            .with_jitter()
            .without_max_times()
            .build();
        loop {
            if slot.is_none() {
                *slot = Some(self.slots.clone().acquire_owned().await.ok()?);
            }
            let Attempt { outcome, detail } = self.client.send(self.signal, batch).await;
            let Outcome::Again { reason, after } = outcome else {
                drop(slot.take());
                self.pace.faster();
                self.answered();
                return Some(outcome);
            };
            let late = is_late(reason);
            match late {
                true => self.pace.slower(batch.bytes(), slot.take()),
                false => drop(slot.take()),
            }
            self.counters.retried(reason);
            self.failed(reason, detail);
            let delay = backoff.next().unwrap_or(self.retry.max_interval);
            let wait = after.map_or(delay, |after| after.max(delay));
            if self.gives_up(began.elapsed() + wait) {
                return Some(Outcome::Refused("retries_exhausted"));
            }
            self.pause(wait).await;
            if late && batch.items() > 1 && batch.bytes() > self.pace.bytes() {
                return Some(outcome);
            }
        }
    }

    fn failed(&self, reason: Reason, detail: Option<String>) {
        let cause = detail.map_or_else(|| reason.into(), |detail| format!("{reason}: {detail}"));
        if let Some(standing) = self.trouble.failed(cause, timer()) {
            trouble::say(self, &standing);
        }
    }

    fn answered(&self) {
        if let Some(over) = self.trouble.answered(timer()) {
            trouble::say_over(self, &over);
        }
    }

    /// Everything in a batch was delivered or dropped; `last`: and in all that it was a part of.
    fn finish(&self, batch: Batch, last: bool) {
        if last {
            self.progress.taken.fetch_sub(1, Ordering::Relaxed);
        }
        self.progress.moved();
        batch.finish();
    }

    fn gives_up(&self, elapsed: Duration) -> bool {
        let most = self.retry.max_elapsed_time;
        !self.retry.enabled || (!most.is_zero() && elapsed > most)
    }

    /// Waits, at the end of the process only briefly.
    async fn pause(&self, wait: Duration) {
        let mut hurry = self.hurry.clone();
        let until = timer() + wait;
        let hurried = async {
            // The sender lives as long as the lanes.
            let _ = hurry.wait_for(|hurry| *hurry).await;
            tokio::time::sleep(Duration::from_millis(250)).await;
        };
        tokio::select! {
            () = tokio::time::sleep_until(until) => {}
            () = hurried => {}
        }
    }

    /// Counts a final outcome.
    fn end(&self, outcome: &Outcome, batch: &Batch) {
        let items = batch.items();
        match *outcome {
            Outcome::Accepted { rejected, warned } => {
                self.mood.took();
                let rejected = usize::try_from(rejected).unwrap_or(items).min(items);
                self.counters.sent(items - rejected);
                if rejected > 0 {
                    self.dropped("partial_success", rejected, rejected.min(batch.accepted()));
                } else if warned {
                    let (exporter, signal) = (&self.exporter, self.signal.name());
                    tracing::warn!(exporter, signal, "the backend took a batch with a warning");
                }
            }
            Outcome::Refused(reason) | Outcome::Unfit(reason) => {
                self.dropped(reason, items, batch.accepted());
            }
            Outcome::Unsupported(reason) => self.unsupported(reason, items),
            Outcome::Again { .. } => {}
        }
    }

    /// Said once, with what to write; counted always.
    fn unsupported(&self, reason: Reason, items: usize) {
        self.counters.failed(reason, items);
        if self.unsupported.swap(true, Ordering::Relaxed) {
            return;
        }
        let (exporter, signal) = (&self.exporter, self.signal.name());
        tracing::warn!(
            exporter,
            signal,
            reason,
            "the backend takes no {signal}: they are dropped and counted; leave {exporter} out of \
             them with `service: {{ {signal}: [] }}`, or name exporters that take them there"
        );
    }
}
