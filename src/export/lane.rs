//! One exporter's queue for one signal: nothing in another lane can block it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use super::apart::{Mood, apart};
use super::batch::{Batch, Unsendable, Waiting, form};
use super::client::Client;
use super::counters::LaneCounters;
use super::ledger::Ledger;
use super::outcome::{Outcome, Reason};
use super::parcel::{Parcel, Receipt};
use super::settings::Retry;
use super::shelf::{Behind, Page, Present, Shelved, Taken};
use crate::clock::{monotonic_millis, timer};
use crate::model::ids::Position;
use crate::wire::Signal;

/// Requests of one lane on the wire at one time.
const SLOTS: usize = 8;
/// Batches of one lane that were taken off the queue: on the wire, or waiting to be tried again.
/// More than slots, so that refused batches do not keep the next ones from a try.
const TAKEN: usize = 64;

/// How soon the log is looked at again.
const AGAIN: Duration = Duration::from_millis(20);

/// What waits, and what was left in the log.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    behind: Option<Behind>,
}

/// Queue, slots and client of one exporter and signal.
pub struct Lane {
    pub index: usize,
    pub exporter: String,
    pub signal: Signal,
    client: Arc<Client>,
    retry: Retry,
    queue: Mutex<Queue>,
    present: Arc<Present>,
    shelf: OnceLock<Shelved>,
    wake: Notify,
    slots: Arc<Semaphore>,
    taken: Arc<Semaphore>,
    ledger: Arc<Ledger>,
    counters: LaneCounters,
    unsupported: AtomicBool,
    mood: Mood,
    progress: Progress,
    /// Set at the end: waits between tries are cut short.
    hurry: watch::Receiver<bool>,
}

/// Whether a lane moves: it has no work, or some of it ended a moment ago.
#[derive(Default)]
struct Progress {
    /// Batches that were taken off the queue and are not finished.
    taken: AtomicUsize,
    /// Milliseconds since the process started, when work last began or ended.
    last: AtomicU64,
}

impl Progress {
    fn moved(&self) {
        self.last.store(monotonic_millis(), Ordering::Relaxed);
    }
}

/// What a lane is made of.
pub struct Parts {
    pub index: usize,
    pub exporter: String,
    pub signal: Signal,
    pub client: Arc<Client>,
    pub retry: Retry,
    pub ledger: Arc<Ledger>,
    pub counters: LaneCounters,
    pub hurry: watch::Receiver<bool>,
}

impl Lane {
    pub fn new(parts: Parts) -> Self {
        Lane {
            index: parts.index,
            exporter: parts.exporter,
            signal: parts.signal,
            client: parts.client,
            retry: parts.retry,
            queue: Mutex::default(),
            present: Arc::default(),
            shelf: OnceLock::new(),
            wake: Notify::new(),
            slots: Arc::new(Semaphore::new(SLOTS)),
            taken: Arc::new(Semaphore::new(TAKEN)),
            ledger: parts.ledger,
            counters: parts.counters,
            unsupported: AtomicBool::new(false),
            mood: Mood::default(),
            progress: Progress::default(),
            hurry: parts.hurry,
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a parcel behind what waits.
    pub fn push(&self, parcel: &Parcel) {
        if self.still().is_none() {
            self.progress.moved();
        }
        let mut queue = self.queue();
        if let (Some(shelf), Some(position)) = (self.shelf.get(), parcel.rest_of())
            && (queue.behind.is_some() || !self.present.fits(parcel.bytes.len(), shelf.bound))
        {
            // Under the lock of the queue: it is taken up after this or not at all.
            self.ledger.shelve(position, self.index);
            queue.behind = Some(Behind::with(queue.behind, position));
            drop(queue);
            return self.wake.notify_one();
        }
        self.add(&mut queue, parcel);
        drop(queue);
        self.wake.notify_one();
    }

    fn add(&self, queue: &mut Queue, parcel: &Parcel) {
        let load = self.present.load(parcel.bytes.len(), parcel.rest_of());
        let (ledger, dues) = (self.ledger.clone(), parcel.dues.clone());
        let receipt = Receipt::loaded(ledger, self.index, dues, 1, Some(load));
        queue.waiting.push_back(Waiting::new(parcel, receipt));
    }

    /// Where what finds no room in memory is taken from later. Without one, all of it is kept.
    pub fn shelve(&self, shelved: Shelved) {
        // Once, before anything is pushed.
        let _ = self.shelf.set(shelved);
    }

    /// Whether it has so much to send that more should not lie in memory.
    pub fn is_behind(&self) -> bool {
        let half = self.shelf.get().map_or(usize::MAX, |shelf| shelf.bound / 2);
        self.queue().behind.is_some() || !self.present.fits(0, half)
    }

    /// Takes up what was left in the log, once little is left in memory.
    async fn refill(&self) {
        let Some(shelf) = self.shelf.get() else { return };
        let room = shelf.bound / 2;
        let behind = self.queue().behind.filter(|_| self.present.fits(0, room));
        let Some(Behind { after, .. }) = behind else { return };
        // What is here before the look and not marked then is in no page twice.
        let here = self.present.here();
        let (from, signal, exporter) = (shelf.shelf.clone(), self.signal, self.exporter.clone());
        let page = move || from.page(signal, &exporter, after, (room / 2) as u64);
        match tokio::task::spawn_blocking(page).await {
            Ok(Ok(page)) => {
                self.take_up(shelf, &page, &here);
                if page.up_to <= after {
                    // Somebody is between the log and this lane.
                    tokio::time::sleep(AGAIN).await;
                }
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "what waits for delivery cannot be read back yet");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            // The pool ends with the process.
            Err(_) => {}
        }
    }

    fn take_up(&self, shelf: &Shelved, page: &Page, here: &BTreeSet<Position>) {
        let mut queue = self.queue();
        for Taken { parcel, holds } in &page.taken {
            let Some(position) = parcel.rest_of().filter(|at| !here.contains(at)) else { continue };
            self.ledger.take_up(position, self.index, &shelf.lanes, *holds);
            self.add(&mut queue, parcel);
        }
        queue.behind = queue.behind.and_then(|behind| behind.read(page.up_to));
    }

    /// Parcels that wait for a batch.
    pub fn waiting(&self) -> usize {
        self.queue().waiting.len()
    }

    /// How long nothing has moved although there is work; `None` without work.
    pub fn still(&self) -> Option<Duration> {
        let work = self.progress.taken.load(Ordering::Relaxed) + self.waiting();
        let last = self.progress.last.load(Ordering::Relaxed);
        let still = Duration::from_millis(monotonic_millis().saturating_sub(last));
        (work > 0).then_some(still)
    }

    /// Sends what comes, for ever.
    pub async fn run(self: Arc<Self>) {
        loop {
            let Ok(taken) = self.taken.clone().acquire_owned().await else { return };
            let Ok(slot) = self.slots.clone().acquire_owned().await else { return };
            let batch = self.next().await;
            self.progress.taken.fetch_add(1, Ordering::Relaxed);
            let lane = self.clone();
            tokio::spawn(async move {
                lane.deliver(batch, slot).await;
                drop(taken);
            });
        }
    }

    async fn next(&self) -> Batch {
        loop {
            if !*self.hurry.borrow() {
                self.refill().await;
            }
            let (signal, coding) = (self.signal, self.client.coding());
            let max = self.client.max_batch_size();
            let batch = form(&mut self.queue().waiting, signal, coding, max, |why, items| {
                self.unsendable(why, items);
            });
            match batch {
                Some(batch) => return batch,
                None => self.more().await,
            }
        }
    }

    /// Waits until there may be something to send.
    async fn more(&self) {
        let behind = self.queue().behind.is_some();
        match behind {
            true => tokio::time::sleep(AGAIN).await,
            false => self.wake.notified().await,
        }
    }

    fn unsendable(&self, why: Unsendable, items: usize) {
        let reason = match why {
            Unsendable::TooLarge => "too_large",
            Unsendable::Unreadable => "unreadable",
        };
        self.dropped(reason, items);
    }

    fn dropped(&self, reason: Reason, items: usize) {
        self.counters.failed(reason, items);
        let (exporter, signal) = (&self.exporter, self.signal.name());
        tracing::warn!(exporter, signal, reason, items, "dropped");
    }

    /// Sends a batch, and where it is refused for what it holds the parts of it.
    async fn deliver(&self, batch: Batch, slot: OwnedSemaphorePermit) {
        let (began, mut slot) = (timer(), Some(slot));
        let mut left = vec![batch];
        while let Some(batch) = left.pop() {
            let Some(outcome) = self.attempt(&batch, began, &mut slot).await else { return };
            let Outcome::Unfit(reason) = outcome else {
                self.end(&outcome, &batch);
                self.finish(batch, left.is_empty());
                continue;
            };
            self.mood.refused();
            match apart(batch, self.signal, &self.mood) {
                Ok(parts) => {
                    self.counters.retried(reason);
                    left.extend(parts);
                }
                Err(whole) => {
                    self.dropped(reason, whole.items());
                    self.finish(whole, left.is_empty());
                }
            }
        }
    }

    /// Sends one request until its outcome is final; `None` at the end of the process.
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
            let outcome = self.client.send(self.signal, batch).await;
            drop(slot.take());
            let Outcome::Again { reason, after } = outcome else { return Some(outcome) };
            self.counters.retried(reason);
            let delay = backoff.next().unwrap_or(self.retry.max_interval);
            let wait = after.map_or(delay, |after| after.max(delay));
            if self.gives_up(began.elapsed() + wait) {
                return Some(Outcome::Refused("retries_exhausted"));
            }
            self.pause(wait).await;
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
                    self.dropped("partial_success", rejected);
                } else if warned {
                    let (exporter, signal) = (&self.exporter, self.signal.name());
                    tracing::warn!(exporter, signal, "the backend took a batch with a warning");
                }
            }
            Outcome::Refused(reason) | Outcome::Unfit(reason) => self.dropped(reason, items),
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
