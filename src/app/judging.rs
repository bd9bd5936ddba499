//! The one thread that owns the engine: events in, effects out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::checkpoints::Ticket;
use super::effects::{Effects, Said};
use super::explaining::evidence;
use crate::clock;
use crate::engine::{Checkpoint, Claim, Engine};
use crate::log::OutId;
use crate::model::fact::{Bone, Fact, Sighting};
use crate::model::ids::{Arrival, Position};
use crate::model::policy::Policy;
use crate::page::Board;

/// All that reaches the engine.
enum Event {
    Sighting {
        position: Position,
        sighting: Sighting,
        room: OwnedSemaphorePermit,
        unfolded: Ticket,
    },
    Claims(Vec<OutId>),
    /// All that an earlier process left has been seen.
    Begin(oneshot::Sender<()>),
    Tick,
    Reload(Box<Reload>),
    Checkpoint(oneshot::Sender<Snapshot>),
    Drain(oneshot::Sender<Snapshot>),
}

/// What there is of an earlier process, and whether a later one will go on.
pub struct Left {
    pub engine: Option<Checkpoint>,
    pub goes_on: bool,
}

/// What the engine and its effects know, for the next process.
pub struct Snapshot {
    pub engine: Checkpoint,
    pub told: Vec<u8>,
    /// Outputs that were handed over by then: what the engine has said is in them.
    pub handed: u64,
}

/// What a reload changes of judging.
pub struct Reload {
    pub policy: Arc<Policy>,
    pub said: Said,
}

/// The way to the engine.
#[derive(Clone)]
pub struct Judging {
    events: mpsc::Sender<Event>,
    /// Blocks of bytes that sightings may take while they wait, and how many there are.
    room: Arc<Semaphore>,
    blocks: usize,
    progress: Arc<Progress>,
}

#[derive(Default)]
struct Progress {
    /// Milliseconds since the process started, at the end of the last event.
    last: AtomicU64,
    ticking: AtomicBool,
    /// Milliseconds between two ticks.
    every: AtomicU64,
    open_requests: AtomicU64,
    ended: AtomicBool,
}

/// Room for one sighting, got before its export is promised.
pub struct Room(OwnedSemaphorePermit);

const BLOCK: usize = 256;
/// How long an export waits for the engine before it is refused.
const PATIENCE: Duration = Duration::from_millis(500);

/// Four times in a settle, within reason.
fn tick_every(settle: Duration) -> Duration {
    (settle / 4).clamp(Duration::from_millis(10), Duration::from_millis(250))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Judging {
    /// Starts the thread and its ticks. The engine is ticked at least four times in a `settle`;
    /// sightings that wait for it may take `room` bytes.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(
        engine: Engine,
        effects: Effects,
        board: Arc<Board>,
        settle: Duration,
        room: usize,
        left: Left,
    ) -> std::io::Result<Self> {
        let blocks = (room / BLOCK).clamp(1, Semaphore::MAX_PERMITS / 2);
        // Every event holds at least one block, ticks aside.
        let (events, received) = mpsc::channel(blocks + 16);
        let progress = Arc::new(Progress::default());
        progress.every.store(millis(tick_every(settle)), Ordering::Relaxed);
        let room = Arc::new(Semaphore::new(blocks));
        let judging = Judging { events, room, blocks, progress: progress.clone() };
        let thread = std::thread::Builder::new().name("engine".into());
        thread.spawn(move || {
            let goes_on = left.goes_on;
            let mut thread = Thread { engine, effects, board, goes_on, progress: progress.clone() };
            thread.restore(left.engine);
            thread.run(received);
            progress.ended.store(true, Ordering::Relaxed);
        })?;
        tokio::spawn(judging.clone().tick());
        Ok(judging)
    }

    async fn tick(self) {
        loop {
            let every = self.progress.every.load(Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(every)).await;
            // One tick at a time: a busy engine catches up by one, not by many.
            let waits = self.progress.ticking.swap(true, Ordering::Relaxed);
            if !waits && self.events.send(Event::Tick).await.is_err() {
                return;
            }
        }
    }

    /// Room for a sighting, which may have to be waited for: it ends with `None` when the engine is
    /// that far behind. `None` at once for a sighting that shows nothing.
    pub fn room_for(
        &self,
        sighting: &Sighting,
    ) -> Option<impl Future<Output = Option<Room>> + use<>> {
        if sighting.bones.is_empty() && sighting.facts.is_empty() {
            return None;
        }
        let definitions = sighting.facts.iter().filter_map(|fact| fact.definitions());
        let bytes = sighting.bones.len() * size_of::<Bone>()
            + sighting.facts.len() * (size_of::<Fact>() + 512)
            + definitions.map(|page| page.size()).sum::<usize>();
        let blocks = u32::try_from((bytes / BLOCK + 1).min(self.blocks)).unwrap_or(1);
        let permit = self.room.clone().acquire_many_owned(blocks);
        Some(async { tokio::time::timeout(PATIENCE, permit).await.ok()?.ok().map(Room) })
    }

    /// Shows the engine what one export held.
    pub fn see(&self, position: Position, sighting: Sighting, room: Room, unfolded: Ticket) {
        // There is a place for every block; the thread ends with the process.
        let _ =
            self.events.try_send(Event::Sighting { position, sighting, room: room.0, unfolded });
    }

    /// Another policy for what is seen after this.
    pub async fn reload(&self, reload: Reload) {
        let every = tick_every(Duration::from_nanos(reload.policy.settle));
        self.progress.every.store(millis(every), Ordering::Relaxed);
        // An engine that has ended judges nothing any more.
        let _ = self.events.send(Event::Reload(Box::new(reload))).await;
    }

    /// Tells the engine what an earlier process said.
    pub async fn claim(&self, ids: Vec<OutId>) {
        // The thread ends with the process.
        let _ = self.events.send(Event::Claims(ids)).await;
    }

    /// Lets the engine judge; before, it only gathers what an earlier process left. Returns when
    /// that is taken up, and the page and the API know of it.
    pub async fn begin(&self) {
        let (done, begun) = oneshot::channel();
        if self.events.send(Event::Begin(done)).await.is_ok() {
            // An engine that has ended answers nobody.
            let _ = begun.await;
        }
    }

    /// What the engine knows when it has seen all that was sent to it before.
    pub async fn snapshot(&self) -> Option<Snapshot> {
        let (done, snapshot) = oneshot::channel();
        self.events.send(Event::Checkpoint(done)).await.ok()?;
        snapshot.await.ok()
    }

    /// Everything held leaves; the engine ends. What it knew at the end.
    pub async fn drain(&self) -> Option<Snapshot> {
        let (done, drained) = oneshot::channel();
        self.events.send(Event::Drain(done)).await.ok()?;
        // An engine that has ended holds nothing.
        drained.await.ok()
    }

    /// Exports that wait for the engine.
    pub fn waiting(&self) -> usize {
        self.events.max_capacity() - self.events.capacity()
    }

    /// Requests without an answer.
    pub fn open_requests(&self) -> u64 {
        self.progress.open_requests.load(Ordering::Relaxed)
    }

    /// How long the engine has not moved; it always has work, its ticks.
    pub fn still(&self) -> Duration {
        let last = self.progress.last.load(Ordering::Relaxed);
        Duration::from_millis(clock::monotonic_millis().saturating_sub(last))
    }

    /// Whether the thread is gone.
    pub fn ended(&self) -> bool {
        self.progress.ended.load(Ordering::Relaxed)
    }
}

struct Thread {
    engine: Engine,
    effects: Effects,
    board: Arc<Board>,
    goes_on: bool,
    progress: Arc<Progress>,
}

impl Thread {
    fn restore(&mut self, left: Option<Checkpoint>) {
        if let Some(checkpoint) = left {
            let now = clock::now();
            let effects = self.engine.restore(checkpoint, now);
            self.effects.apply(effects, &self.engine, now);
        }
    }

    fn run(mut self, mut events: mpsc::Receiver<Event>) {
        let mut began = false;
        while let Some(event) = events.blocking_recv() {
            match event {
                Event::Sighting { position, sighting, room, unfolded } => {
                    self.engine.see(position, sighting, clock::now());
                    drop((room, unfolded));
                }
                Event::Claims(ids) => {
                    for OutId { chain, span, revision, closes, digest } in ids {
                        let claim = Claim { key: span, revision, closes, digest };
                        self.engine.claim(chain, claim, clock::now());
                    }
                }
                Event::Begin(done) => {
                    began = true;
                    self.tick();
                    // Who asked may have stopped waiting.
                    let _ = done.send(());
                }
                Event::Tick if began => self.tick(),
                Event::Tick => self.progress.ticking.store(false, Ordering::Relaxed),
                Event::Reload(reload) => {
                    self.engine.reload(reload.policy);
                    self.effects.reload(reload.said);
                }
                Event::Checkpoint(done) => {
                    // Who asked may have stopped waiting.
                    let _ = done.send(self.snapshot());
                }
                Event::Drain(done) => {
                    self.drain();
                    let _ = done.send(self.snapshot());
                    return;
                }
            }
            self.progress.last.store(clock::monotonic_millis(), Ordering::Relaxed);
        }
    }

    fn publish(&mut self) {
        if let Some(catalogs) = self.engine.moved_references() {
            self.board.set_catalogs(catalogs);
        }
        if let Some(standing) = self.engine.moved_incidents() {
            self.effects.standing(standing);
        }
    }

    /// Answers who asked what a verdict rests on.
    fn explain(&self, now: Arrival) {
        for question in self.board.questions.take() {
            let found = self.engine.explained(&question.chain, now);
            question.answer(found.map(|(explained, changes)| evidence(&explained, &changes)));
        }
    }

    fn drain(&mut self) {
        let effects = self.engine.drain(self.goes_on, clock::now());
        self.publish();
        self.effects.apply(effects, &self.engine, clock::now());
        self.effects.end();
    }

    fn snapshot(&self) -> Snapshot {
        let handed = self.effects.parts.outputs.handed();
        let engine = self.engine.checkpoint(clock::now());
        Snapshot { engine, told: self.effects.told(), handed }
    }

    fn tick(&mut self) {
        self.progress.ticking.store(false, Ordering::Relaxed);
        // What cannot be logged is not said: facts wait, and are judged by what is known then.
        if self.effects.parts.outputs.is_congested() {
            return;
        }
        let began = clock::now();
        let effects = self.engine.tick(began);
        self.publish();
        self.effects.apply(effects, &self.engine, began);
        self.explain(began);
        self.effects.took(clock::now().monotonic.saturating_sub(began.monotonic));
        self.progress.open_requests.store(self.engine.open_requests(), Ordering::Relaxed);
    }
}
