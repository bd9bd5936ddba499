//! Names of records by what they say: equal records, whatever the order of their attributes and
//! however they travelled, have equal digests; different ones differ.

use super::evidence::comparable;
use super::item::{Bag, Event, Item};
use crate::model::ids::Digest16;

/// Digest of one span or log record with the process and scope that wrote it.
pub fn record(item: &Item<'_>) -> Digest16 {
    let events: Vec<Digest16> =
        item.events.iter().enumerate().map(|(index, event)| self::event(event, index)).collect();
    let links: Vec<u8> =
        item.links.iter().flat_map(|link| link.trace.0.into_iter().chain(link.span.0)).collect();
    let body = item.body.as_ref().map(comparable).unwrap_or_default();
    let sampling = item.sampling;
    let sampling = [sampling.sampled_bit, sampling.has_flags, sampling.below_threshold];
    Digest16::of(&[
        &item.process.key.0,
        item.scope.as_bytes(),
        item.name.as_bytes(),
        item.message.as_bytes(),
        &[item.kind, item.status],
        &item.start.to_le_bytes(),
        &item.end.to_le_bytes(),
        item.parent.map(|span| span.0).unwrap_or_default().as_slice(),
        &bag(&item.attributes).0,
        &all(&events).0,
        &links,
        body.as_bytes(),
        &sampling.map(u8::from),
    ])
}

/// Digest of one event at its place.
pub fn event(event: &Event<'_>, index: usize) -> Digest16 {
    Digest16::of(&[
        event.name.as_bytes(),
        &event.time.to_le_bytes(),
        &(index as u64).to_le_bytes(),
        &bag(&event.attributes).0,
    ])
}

fn bag<'a>(bag: &Bag<'a>) -> Digest16 {
    let pair = |(key, value): &(&'a str, _)| (*key, comparable(value));
    let mut pairs: Vec<_> = bag.0.iter().map(pair).collect();
    pairs.sort_unstable();
    let parts = pairs.iter().flat_map(|(key, value)| [key.as_bytes(), value.as_bytes()]);
    Digest16::of(&parts.collect::<Vec<_>>())
}

fn all(digests: &[Digest16]) -> Digest16 {
    let parts: Vec<&[u8]> = digests.iter().map(|digest| digest.0.as_slice()).collect();
    Digest16::of(&parts)
}
