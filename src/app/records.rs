//! What a record of the log is to the rest of the program: an export again, what leaves of it at
//! once, and what is held.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;

use super::checkpoints::Unfolded;
use super::release::Changes;
use crate::export::{Due, Page, Parcel, Shelf, Taken};
use crate::log::{Kind, Log, Mark, Part, Pending, Record};
use crate::model::fact::{Bone, Sighting};
use crate::model::ids::{Position, SpanRef, sane};
use crate::model::policy::Policy;
use crate::normalise::sight;
use crate::receive::Received;
use crate::wire::inflate::{Coding, Limits, inflate};
use crate::wire::{Signal, regroup, scan};

/// What a reload may change of what happens to an export.
#[derive(Clone)]
pub struct Live {
    pub policy: Arc<Policy>,
    pub changes: Changes,
}

/// A record of the log, readable again.
pub struct Recovered {
    pub kind: Kind,
    pub received: Received,
}

pub fn received(record: Record) -> Option<Recovered> {
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

/// A span without times that can be believed never says that it is over: there is nothing to wait
/// for. It leaves with its export, in its order; its verdict follows as an event and a span.
pub fn leave_untimed(sighting: &mut Sighting) {
    let timed = |bone: &&Bone| sane(bone.start) && sane(bone.end) && bone.start <= bone.end;
    let timed: HashSet<SpanRef> = match sighting.held.is_empty() {
        true => return,
        false => sighting.bones.iter().filter(timed).map(|bone| bone.at).collect(),
    };
    sighting.held.retain(|held| timed.contains(&held.at));
}

/// Held spans, by how many copies are kept: an index that stands twice is one.
pub fn held(sighting: &Sighting) -> u32 {
    let mut indices: Vec<usize> = sighting.held.iter().map(|held| held.index).collect();
    indices.sort_unstable();
    indices.dedup();
    u32::try_from(indices.len()).unwrap_or(u32::MAX)
}

/// What leaves at once: the body as it came where nothing touches it; `None` where every item
/// is held.
pub fn rest(live: &Live, export: &Received, sighting: &Sighting) -> Option<Rest> {
    let Received { signal, items, .. } = *export;
    let changes = live.changes;
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

/// The part of an export that leaves at once.
pub struct Rest {
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

pub fn parcel(position: Position, rest: Rest) -> Parcel {
    Parcel {
        signal: rest.signal,
        bytes: rest.bytes,
        coding: rest.coding,
        plain_length: rest.plain_length,
        items: rest.items,
        dues: [Due { position, part: Part::Rest, weight: 1 }].into(),
    }
}

/// The log as lanes read it that fell behind.
pub struct Shelved {
    pub log: Arc<dyn Log>,
    pub live: Arc<ArcSwap<Live>>,
    pub unfolded: Arc<Unfolded>,
}

impl Shelf for Shelved {
    fn page(
        &self,
        signal: Signal,
        exporter: &str,
        after: Position,
        bytes: u64,
    ) -> io::Result<Page> {
        // Before the look: what was handed to the lanes by now is in the log.
        let until = self.unfolded.seen(&*self.log);
        let rest = Mark::Delivered { exporter: exporter.to_owned(), part: Part::Rest };
        let owed = |marks: &[Mark]| !marks.contains(&Mark::Done) && !marks.contains(&rest);
        let pending = self.log.page(after, bytes, &owed)?;
        let size: u64 = pending.iter().map(|pending| pending.record.cost()).sum();
        // A page that is not full reached the end.
        let last = pending.last().filter(|_| size >= bytes).map(|pending| pending.position);
        let up_to = last.unwrap_or(until).min(until);
        let read = pending.into_iter().take_while(|pending| pending.position <= up_to);
        let of_signal = read.filter(|pending| pending.record.signal == signal);
        let taken = of_signal.filter_map(|pending| self.taken(pending)).collect();
        Ok(Page { taken, up_to })
    }
}

impl Shelved {
    fn taken(&self, pending: Pending) -> Option<Taken> {
        let Recovered { kind, received: export } = received(pending.record)?;
        let live = self.live.load();
        let mut sighting = match kind {
            Kind::In if matches!(export.signal, Signal::Traces | Signal::Logs) => {
                sight(export.signal, &export.plain, &live.policy)
            }
            _ => Sighting::default(),
        };
        leave_untimed(&mut sighting);
        let rest = rest(&live, &export, &sighting)?;
        let holds = !sighting.held.is_empty();
        Some(Taken { parcel: parcel(pending.position, rest), holds })
    }
}
