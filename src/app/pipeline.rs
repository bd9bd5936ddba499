//! What happens to an accepted export: logged, sent on, and shown to the engine.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use super::checkpoints::{Ticket, Unfolded};
use super::judging::{Judging, Room};
use super::outputs::{Output, Outputs};
use super::records::{Live, held, leave_untimed, parcel, received, rest};
use super::release::Release;
use crate::export::{Hold, Outbox};
use crate::log::{Kind, Log, Mark, Pending, Record, Refused};
use crate::model::fact::Sighting;
use crate::model::ids::Position;
use crate::normalise::sight;
use crate::receive::{Intake, Received, Refusal, Taking};
use crate::telemetry::VerdictMeters;
use crate::wire::Signal;

/// The intake of the receivers.
pub struct Pipeline {
    pub log: Arc<dyn Log>,
    pub outbox: Arc<Outbox>,
    pub hold: Arc<Hold>,
    pub judging: Judging,
    pub live: Arc<ArcSwap<Live>>,
    pub meters: VerdictMeters,
    pub unfolded: Arc<Unfolded>,
    /// Bytes that may wait to be delivered, where all of them lie in memory.
    pub backlog: Option<u64>,
}

/// When a sender that met a full log or a busy engine may come again.
const COME_BACK: Duration = Duration::from_secs(2);
/// What is full when the log is.
const STORAGE: &str = "storage (storage.max_size, or the device of storage.directory)";
/// Bytes of the log that are taken up at a time.
const PAGE: u64 = 8 << 20;
/// Exports up to this size are looked at where they were read, larger ones on the pool.
const IN_PLACE: usize = 64 << 10;

impl Pipeline {
    async fn accept(self: Arc<Self>, export: Received) -> Result<(), Refusal> {
        let mut sighting = self.sight(&export).await?;
        leave_untimed(&mut sighting);
        let room = self.room(&sighting).await?;
        // A sender that leaves now cancels its request, but not what was written of it.
        let stored = tokio::spawn(async move {
            let unfolded = self.unfolded.clone().begin(&*self.log);
            let position = self.append(&export).await?;
            self.dispatch(position, export, sighting, room, unfolded);
            Ok(())
        });
        stored.await.unwrap_or(Err(Refusal::Stopping))
    }

    async fn sight(&self, export: &Received) -> Result<Sighting, Refusal> {
        if !matches!(export.signal, Signal::Traces | Signal::Logs) {
            return Ok(Sighting::default());
        }
        if export.plain.len() <= IN_PLACE {
            return Ok(sight(export.signal, &export.plain, &self.live.load().policy));
        }
        let (signal, plain) = (export.signal, export.plain.clone());
        let policy = self.live.load().policy.clone();
        let seen = tokio::task::spawn_blocking(move || sight(signal, &plain, &policy));
        // The pool ends with the process.
        seen.await.map_err(|_| Refusal::Stopping)
    }

    /// Nothing is promised that the engine has no room for.
    async fn room(&self, sighting: &Sighting) -> Result<Option<Room>, Refusal> {
        let Some(room) = self.judging.room_for(sighting) else { return Ok(None) };
        let room = room.await;
        room.map(Some).ok_or(Refusal::Overloaded { what: "the engine", after: COME_BACK })
    }

    async fn append(&self, export: &Received) -> Result<Position, Refusal> {
        if self.backlog.is_some_and(|most| self.log.usage().pending_bytes > most) {
            return Err(Refusal::Overloaded { what: "delivery (limits.memory)", after: COME_BACK });
        }
        let record = Record {
            kind: Kind::In,
            signal: export.signal,
            coding: export.coding,
            payload: export.wire.clone(),
        };
        self.log.append(record).await.map_err(|refused| match refused {
            Refused::Full { .. } => Refusal::Overloaded { what: STORAGE, after: COME_BACK },
            Refused::Failed(error) => {
                tracing::error!(%error, "an export could not be stored");
                Refusal::Storage
            }
        })
    }

    /// Sends what need not wait, keeps what must, and tells the engine.
    fn dispatch(
        &self,
        position: Position,
        export: Received,
        sighting: Sighting,
        room: Option<Room>,
        unfolded: Ticket,
    ) {
        self.deliver(position, &export, &sighting, &[]);
        if let Some(room) = room {
            self.judging.see(position, sighting, room, unfolded);
        }
    }

    /// Sends and keeps what `marks` do not tell to be delivered.
    fn deliver(&self, position: Position, export: &Received, sighting: &Sighting, marks: &[Mark]) {
        let lanes = self.outbox.lanes_of(export.signal);
        let rest = rest(&self.live.load(), export, sighting);
        let held = held(sighting);
        let ledger = &self.outbox.ledger;
        let (lanes, holds) = ledger.reopen(position, lanes, rest.is_some(), held, marks);
        if let Some(rest) = rest {
            self.outbox.push_to(&lanes, &parcel(position, rest));
        }
        if holds {
            self.keep(position, &export.plain, sighting);
        }
    }

    /// Takes up what a log holds from before, in its order: what is not delivered leaves, the
    /// engine sees all of it again and is told what was said already. What is still to be logged
    /// of it, `unsaid`, goes to `outputs`. The engine judges from then on.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn resume(&self, mut unsaid: Vec<Output>, outputs: &Outputs) -> io::Result<usize> {
        let (mut count, mut after) = (0, Position(0));
        loop {
            // Nobody looks for it in the log before it was handed on.
            let _ahead = self.unfolded.clone().behind(after);
            let page = self.log.page(after, PAGE, &|_| true)?;
            let Some(last) = page.last() else { break };
            after = last.position;
            for record in page {
                count += usize::from(record.marks != [Mark::Done]);
                // It was logged after the checkpoint that holds it.
                unsaid.retain(|output| !output.is(&record.record));
                self.take_up(record).await;
            }
        }
        unsaid.into_iter().for_each(|output| outputs.push(Some(output)));
        self.judging.begin().await;
        Ok(count)
    }

    async fn take_up(&self, record: Pending) {
        let Pending { position, record, marks } = record;
        let done = marks == [Mark::Done];
        if let Kind::Out(ids) = &record.kind {
            self.judging.claim(ids.clone()).await;
            if done {
                return;
            }
        }
        let Some(export) = received(record) else {
            // It was readable when it was accepted: its damage is the log's to count.
            return self.log.mark(position, Mark::Done);
        };
        let mut sighting = match export.kind {
            Kind::In => {
                let policy = self.live.load().policy.clone();
                sight(export.received.signal, &export.received.plain, &policy)
            }
            Kind::Out(_) => Sighting::default(),
        };
        leave_untimed(&mut sighting);
        if done {
            self.hold.remember(&export.received.plain, &sighting.held);
            sighting.held.clear();
        } else {
            self.deliver(position, &export.received, &sighting, &marks);
        }
        let unfolded = self.unfolded.clone().begin(&*self.log);
        // Recovery waits for the engine as long as it takes.
        while let Some(room) = self.judging.room_for(&sighting) {
            if let Some(room) = room.await {
                return self.judging.see(position, sighting, room, unfolded);
            }
        }
    }

    fn keep(&self, position: Position, plain: &[u8], sighting: &Sighting) {
        let evicted = self.hold.keep(position, plain, &sighting.held);
        if evicted.is_empty() {
            return;
        }
        self.meters.evicted("held_spans", evicted.len() as u64);
        let mut release = Release::new(self.live.load().changes);
        for leaving in evicted {
            release.add(leaving, None);
        }
        release.parcels().iter().for_each(|parcel| self.outbox.push(parcel));
    }
}

/// The receivers' end of the pipeline.
pub struct Entrance(pub Arc<Pipeline>);

impl Intake for Entrance {
    fn take(&self, export: Received) -> Taking<'_> {
        Box::pin(self.0.clone().accept(export))
    }
}
