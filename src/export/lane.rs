//! One exporter's queue for one signal: nothing in another lane can block it.

mod deliver;

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, watch};

use super::apart::Mood;
use super::batch::{Batch, Waiting, form};
use super::client::Client;
use super::counters::LaneCounters;
use super::ledger::Ledger;
use super::pace::Pace;
use super::parcel::{Parcel, Receipt};
use super::settings::Retry;
use super::shelf::{Backlog, Behind, Page, Present, Shelved, Taken};
use super::trouble::{Standing, Trouble};
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
    /// What was left there, as far as it is known.
    left: Backlog,
}

/// Queue, slots and client of one exporter and signal.
pub struct Lane {
    pub index: usize,
    pub exporter: String,
    pub signal: Signal,
    /// Where it sends, without what may be a secret.
    pub place: String,
    client: Arc<Client>,
    retry: Retry,
    queue: Mutex<Queue>,
    present: Arc<Present>,
    shelf: OnceLock<Shelved>,
    wake: Notify,
    slots: Arc<Semaphore>,
    pace: Pace,
    taken: Arc<Semaphore>,
    ledger: Arc<Ledger>,
    counters: LaneCounters,
    unsupported: AtomicBool,
    mood: Mood,
    trouble: Trouble,
    /// Items that were accepted and dropped for good.
    lost: AtomicU64,
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
    pub place: String,
    pub client: Arc<Client>,
    pub retry: Retry,
    pub ledger: Arc<Ledger>,
    pub counters: LaneCounters,
    pub hurry: watch::Receiver<bool>,
}

impl Lane {
    pub fn new(parts: Parts) -> Self {
        Lane {
            pace: Pace::new(parts.client.max_batch_size(), SLOTS),
            index: parts.index,
            exporter: parts.exporter,
            signal: parts.signal,
            place: parts.place,
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
            trouble: Trouble::default(),
            lost: AtomicU64::new(0),
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
            queue.left.add(parcel.bytes.len());
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
            queue.left.remove(parcel.bytes.len());
            self.add(&mut queue, parcel);
        }
        queue.behind = queue.behind.and_then(|behind| behind.read(page.up_to));
        if queue.behind.is_none() {
            queue.left = Backlog::default();
        }
    }

    /// What waits in memory or is on the wire, and what was left in the log.
    pub fn backlog(&self) -> [Backlog; 2] {
        [self.present.backlog(), self.queue().left]
    }

    /// All that waits.
    pub fn waits(&self) -> Backlog {
        let [memory, log] = self.backlog();
        Backlog { exports: memory.exports + log.exports, bytes: memory.bytes + log.bytes }
    }

    /// What keeps it from delivering, while something does.
    pub fn trouble(&self) -> Option<Standing> {
        self.trouble.standing(timer())
    }

    /// Items that were accepted and dropped for good.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
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
            self.something().await;
            // Not before there is something to send: others may need it.
            let Ok(slot) = self.slots.clone().acquire_owned().await else { return };
            let Some(batch) = self.next() else { continue };
            self.progress.taken.fetch_add(1, Ordering::Relaxed);
            let lane = self.clone();
            tokio::spawn(async move {
                lane.deliver(batch, slot).await;
                drop(taken);
            });
        }
    }

    /// Waits until something waits to be sent.
    async fn something(&self) {
        loop {
            if !*self.hurry.borrow() {
                self.refill().await;
            }
            if self.waiting() > 0 {
                return;
            }
            self.more().await;
        }
    }

    fn next(&self) -> Option<Batch> {
        let (signal, coding) = (self.signal, self.client.coding());
        let limits = (self.pace.bytes(), self.client.max_batch_size());
        form(&mut self.queue().waiting, signal, coding, limits, |why, items| {
            self.unsendable(why, items);
        })
    }

    /// Waits until there may be something to send.
    async fn more(&self) {
        let behind = self.queue().behind.is_some();
        match behind {
            true => tokio::time::sleep(AGAIN).await,
            false => self.wake.notified().await,
        }
    }
}
