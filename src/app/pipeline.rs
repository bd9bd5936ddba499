//! What happens to an accepted export: logged, sent on, and shown to the engine.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;

use super::checkpoints::{Ticket, Unfolded};
use super::judging::{Judging, Room};
use super::release::{Changes, Release};
use crate::export::{Due, Hold, Outbox, Parcel};
use crate::log::{Kind, Log, Mark, Part, Pending, Record, Refused};
use crate::model::fact::{Bone, Sighting};
use crate::model::ids::{Position, SpanRef, sane};
use crate::model::policy::Policy;
use crate::normalise::sight;
use crate::receive::{Intake, Received, Refusal, Taking};
use crate::telemetry::VerdictMeters;
use crate::wire::inflate::{Coding, Limits, inflate};
use crate::wire::{Signal, regroup, scan};

/// What a reload may change of what happens to an export.
#[derive(Clone)]
pub struct Live {
    pub policy: Arc<Policy>,
    pub changes: Changes,
}

/// The intake of the receivers.
pub struct Pipeline {
    pub log: Arc<dyn Log>,
    pub outbox: Arc<Outbox>,
    pub hold: Arc<Hold>,
    pub judging: Judging,
    pub live: ArcSwap<Live>,
    pub meters: VerdictMeters,
    pub unfolded: Arc<Unfolded>,
    /// Bytes that may wait to be delivered: they lie in memory, also those that are on disk.
    pub backlog: u64,
}

/// When a sender that met a full log or a busy engine may come again.
const COME_BACK: Duration = Duration::from_secs(2);
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
            self.dispatch(position, export, sighting, room.map(|room| (room, unfolded)));
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
        if self.log.usage().pending_bytes > self.backlog {
            return Err(Refusal::Overloaded { what: "delivery (limits.memory)", after: COME_BACK });
        }
        let record = Record {
            kind: Kind::In,
            signal: export.signal,
            coding: export.coding,
            payload: export.wire.clone(),
        };
        self.log.append(record).await.map_err(|refused| match refused {
            Refused::Full { .. } => {
                Refusal::Overloaded { what: "storage (storage.max_size)", after: COME_BACK }
            }
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
        room: Option<(Room, Ticket)>,
    ) {
        self.deliver(position, &export, &sighting, &[]);
        if let Some((room, unfolded)) = room {
            self.judging.see(position, sighting, room, unfolded);
        }
    }

    /// Sends and keeps what `marks` do not tell to be delivered.
    fn deliver(&self, position: Position, export: &Received, sighting: &Sighting, marks: &[Mark]) {
        let lanes = self.outbox.lanes_of(export.signal);
        let rest = self.rest(export, sighting);
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
    /// engine sees all of it again and is told what was said already. It judges from then on.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn resume(&self) -> io::Result<usize> {
        let (mut count, mut after) = (0, Position(0));
        loop {
            let page = self.log.recover_page(after, PAGE)?;
            let Some(last) = page.last() else { break };
            after = last.position;
            for record in page {
                count += usize::from(record.marks != [Mark::Done]);
                self.take_up(record).await;
            }
        }
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

    /// What leaves at once: the body as it came where nothing touches it; `None` where every item
    /// is held.
    fn rest(&self, export: &Received, sighting: &Sighting) -> Option<Rest> {
        let Received { signal, items, .. } = *export;
        let changes = self.live.load().changes;
        let held = sighting.held.iter().map(|held| held.index);
        let held: std::collections::BTreeSet<usize> = held.collect();
        if !held.is_empty() {
            if held.len() >= items {
                return None;
            }
            let left = regroup::remove_items(&export.plain, |index| held.contains(&index));
            let bytes = changes.apply(signal, &Bytes::from(left));
            return Some(Rest::plain(signal, bytes, items - held.len()));
        }
        let changed = changes.apply(signal, &export.plain);
        if changed.as_ptr() != export.plain.as_ptr() {
            return Some(Rest::plain(signal, changed, items));
        }
        let (bytes, coding) = (export.wire.clone(), export.coding);
        Some(Rest { signal, bytes, coding, plain_length: export.plain.len(), items })
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

/// A span without times that can be believed never says that it is over: there is nothing to wait
/// for. It leaves with its export, in its order; its verdict follows as an event and a span.
fn leave_untimed(sighting: &mut Sighting) {
    let timed = |bone: &&Bone| sane(bone.start) && sane(bone.end) && bone.start <= bone.end;
    let timed: HashSet<SpanRef> = match sighting.held.is_empty() {
        true => return,
        false => sighting.bones.iter().filter(timed).map(|bone| bone.at).collect(),
    };
    sighting.held.retain(|held| timed.contains(&held.at));
}

/// Held spans, by how many copies are kept: an index that stands twice is one.
fn held(sighting: &Sighting) -> u32 {
    let mut indices: Vec<usize> = sighting.held.iter().map(|held| held.index).collect();
    indices.sort_unstable();
    indices.dedup();
    u32::try_from(indices.len()).unwrap_or(u32::MAX)
}

/// A record of the log, readable again.
struct Recovered {
    kind: Kind,
    received: Received,
}

fn received(record: Record) -> Option<Recovered> {
    let limits = Limits { max_bytes: usize::MAX, max_ratio: usize::MAX };
    let plain = match inflate(record.coding, &record.payload, limits).ok()? {
        Cow::Borrowed(_) => record.payload.clone(),
        Cow::Owned(plain) => Bytes::from(plain),
    };
    let items = scan::check(record.signal, &plain).ok()?.items;
    let received = Received {
        signal: record.signal,
        wire: record.payload,
        coding: record.coding,
        plain,
        items,
        rejected: 0,
        message: String::new(),
    };
    Some(Recovered { kind: record.kind, received })
}

struct Rest {
    signal: Signal,
    bytes: Bytes,
    coding: Coding,
    plain_length: usize,
    items: usize,
}

impl Rest {
    fn plain(signal: Signal, bytes: Bytes, items: usize) -> Self {
        let plain_length = bytes.len();
        Rest { signal, bytes, coding: Coding::Identity, plain_length, items }
    }
}

fn parcel(position: Position, rest: Rest) -> Parcel {
    Parcel {
        signal: rest.signal,
        bytes: rest.bytes,
        coding: rest.coding,
        plain_length: rest.plain_length,
        items: rest.items,
        dues: [Due { position, part: Part::Rest, weight: 1 }].into(),
    }
}

/// The receivers' end of the pipeline.
pub struct Entrance(pub Arc<Pipeline>);

impl Intake for Entrance {
    fn take(&self, export: Received) -> Taking<'_> {
        Box::pin(self.0.clone().accept(export))
    }
}
