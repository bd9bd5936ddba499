//! Batches by bytes: formed from what waits when a send slot is free.

use std::borrow::Cow;
use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use super::parcel::{Parcel, Receipt};
use crate::wire::inflate::{Coding, InflateError, Limits, deflate, inflate};
use crate::wire::{Signal, regroup, scan};

/// A parcel, or a piece of one, in a lane.
pub struct Waiting {
    pub bytes: Bytes,
    pub coding: Coding,
    pub plain_length: usize,
    pub items: usize,
    pub receipt: Receipt,
}

impl Waiting {
    pub fn new(parcel: &Parcel, receipt: Receipt) -> Self {
        Waiting {
            bytes: parcel.bytes.clone(),
            coding: parcel.coding,
            plain_length: parcel.plain_length,
            items: parcel.items,
            receipt,
        }
    }

    /// The protobuf without its coding. It was inflated once before, so it can be again.
    pub fn plain(&self) -> Result<Bytes, InflateError> {
        let limits = Limits { max_bytes: self.plain_length, max_ratio: usize::MAX };
        Ok(match inflate(self.coding, &self.bytes, limits)? {
            Cow::Borrowed(_) => self.bytes.clone(),
            Cow::Owned(plain) => Bytes::from(plain),
        })
    }
}

/// What one request will hold.
pub struct Batch {
    pub parts: Vec<Waiting>,
}

/// Why something waiting can never be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsendable {
    /// One item alone is over `max_batch_size`.
    TooLarge,
    Unreadable,
}

impl Batch {
    pub fn items(&self) -> usize {
        self.parts.iter().map(|part| part.items).sum()
    }

    /// Without codings.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.plain_length).sum()
    }

    /// Of its items those that a record of the log stands for.
    pub fn accepted(&self) -> usize {
        let accepted = self.parts.iter().filter(|part| part.receipt.is_due());
        accepted.map(|part| part.items).sum()
    }

    /// Everything in it was delivered or dropped.
    pub fn finish(self) {
        self.parts.into_iter().for_each(|part| part.receipt.finish());
    }

    /// The request in protobuf, in this coding; as received where it can be.
    ///
    /// # Errors
    /// When what was received does not inflate, or memory ends.
    pub fn encode(&self, coding: Coding) -> Result<Vec<Bytes>, InflateError> {
        if let [only] = &self.parts[..]
            && only.coding == coding
        {
            return Ok(vec![only.bytes.clone()]);
        }
        let plain: Vec<Bytes> = self.parts.iter().map(Waiting::plain).collect::<Result<_, _>>()?;
        if coding == Coding::Identity {
            return Ok(plain);
        }
        Ok(vec![Bytes::from(deflate(coding, &join(&plain))?.into_owned())])
    }

    /// The request in protobuf, in one buffer without coding.
    ///
    /// # Errors
    /// As [`Batch::encode`].
    pub fn plain(&self) -> Result<Bytes, InflateError> {
        self.encode(Coding::Identity).map(|parts| join(&parts))
    }
}

/// Requests of one signal, one behind the other, are one request.
pub fn join(parts: &[Bytes]) -> Bytes {
    if let [only] = parts {
        return only.clone();
    }
    let mut out = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out.freeze()
}

/// Takes the next batch off the queue, of at most `max` bytes, and of at most `joined` where it is
/// more than one parcel. What is in the exporter's own coding
/// leaves alone, as it came; a parcel over the limit is split in place, and what cannot be sent at
/// all is handed to `unsendable`.
pub fn form(
    queue: &mut VecDeque<Waiting>,
    signal: Signal,
    coding: Coding,
    (joined, max): (usize, usize),
    mut unsendable: impl FnMut(Unsendable, usize),
) -> Option<Batch> {
    let mut batch = Batch { parts: Vec::new() };
    let mut size = 0;
    while let Some(next) = queue.front() {
        if next.plain_length > max {
            if !batch.parts.is_empty() {
                break;
            }
            let large = queue.pop_front()?;
            split(large, signal, max, queue, &mut unsendable);
            continue;
        }
        let alone = signal == Signal::Profiles
            || (next.coding != Coding::Identity && next.coding == coding);
        if !batch.parts.is_empty() && (alone || size + next.plain_length > joined) {
            break;
        }
        size += next.plain_length;
        batch.parts.push(queue.pop_front()?);
        if alone {
            break;
        }
    }
    (!batch.parts.is_empty()).then_some(batch)
}

/// Puts the pieces of a parcel that is over the limit in its place.
fn split(
    large: Waiting,
    signal: Signal,
    max: usize,
    queue: &mut VecDeque<Waiting>,
    unsendable: &mut impl FnMut(Unsendable, usize),
) {
    let Ok(plain) = large.plain() else {
        unsendable(Unsendable::Unreadable, large.items);
        return large.receipt.finish();
    };
    let pieces = regroup::split(&plain, max).parts;
    large.receipt.add_pieces(pieces.len());
    let mut left = large.items;
    for part in pieces.into_iter().rev() {
        // What was readable as a whole is readable in pieces.
        let items = scan::check(signal, &part).map_or(0, |counts| counts.items);
        left = left.saturating_sub(items);
        queue.push_front(Waiting {
            plain_length: part.len(),
            items,
            bytes: Bytes::from(part),
            coding: Coding::Identity,
            receipt: large.receipt.clone(),
        });
    }
    if left > 0 {
        unsendable(Unsendable::TooLarge, left);
    }
    large.receipt.finish();
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::ledger::Ledger;
    use super::super::parcel::Due;
    use super::*;
    use crate::log::{Log, Memory, Part};
    use crate::model::ids::Position;
    use crate::wire::fields::put_bytes_field;

    /// An export of spans with names of these lengths.
    fn export(names: &[usize]) -> Bytes {
        let mut scope = Vec::new();
        for length in names {
            let mut span = Vec::new();
            put_bytes_field(&mut span, 5, &vec![b'x'; *length]);
            put_bytes_field(&mut scope, 2, &span);
        }
        let (mut resource, mut out) = (Vec::new(), Vec::new());
        put_bytes_field(&mut resource, 2, &scope);
        put_bytes_field(&mut out, 1, &resource);
        Bytes::from(out)
    }

    struct Bench {
        ledger: Arc<Ledger>,
        queue: VecDeque<Waiting>,
        lost: usize,
    }

    impl Bench {
        fn new() -> Self {
            let log: Arc<dyn Log> = Arc::new(Memory::new(1 << 20));
            let ledger = Arc::new(Ledger::new(log, vec!["otlp".into()]));
            Bench { ledger, queue: VecDeque::new(), lost: 0 }
        }

        fn push(&mut self, names: &[usize], coding: Coding) {
            let plain = export(names);
            let position = Position(self.queue.len() as u64 + 1);
            self.ledger.open(position, &[0], true, 0);
            let dues: Arc<[Due]> = [Due { position, part: Part::Rest, weight: 1 }].into();
            self.queue.push_back(Waiting {
                bytes: Bytes::from(deflate(coding, &plain).unwrap().into_owned()),
                coding,
                plain_length: plain.len(),
                items: names.len(),
                receipt: Receipt::new(self.ledger.clone(), 0, dues, 1),
            });
        }

        fn form(&mut self, signal: Signal, coding: Coding, max: usize) -> Option<Batch> {
            let lost = &mut self.lost;
            form(&mut self.queue, signal, coding, (max, max), |_, items| *lost += items)
        }

        fn items(&mut self, signal: Signal, coding: Coding, max: usize) -> Vec<usize> {
            std::iter::from_fn(|| self.form(signal, coding, max))
                .map(|batch| {
                    let items = batch.items();
                    batch.finish();
                    items
                })
                .collect()
        }
    }

    #[test]
    fn small_parcels_are_joined_up_to_the_limit() {
        let mut bench = Bench::new();
        (0..5).for_each(|_| bench.push(&[100, 100], Coding::Identity));
        assert_eq!(bench.items(Signal::Traces, Coding::Identity, 500), [4, 4, 2]);
        assert_eq!(bench.ledger.outstanding(), 0);
    }

    #[test]
    fn less_is_joined_where_less_is_wanted_and_nothing_is_dropped_for_it() {
        let mut bench = Bench::new();
        for names in [&[100][..], &[100], &[900], &[100], &[100]] {
            bench.push(names, Coding::Identity);
        }
        let lost = &mut bench.lost;
        let next = || {
            form(&mut bench.queue, Signal::Traces, Coding::Identity, (300, 1_000), |_, items| {
                *lost += items;
            })
        };
        let items: Vec<usize> = std::iter::from_fn(next).map(|batch| batch.items()).collect();
        assert_eq!((items, bench.lost), (vec![2, 1, 2], 0));
    }

    #[test]
    fn profiles_are_never_joined() {
        let mut bench = Bench::new();
        (0..3).for_each(|_| bench.push(&[1], Coding::Identity));
        assert_eq!(bench.items(Signal::Profiles, Coding::Identity, 500), [1, 1, 1]);
    }

    #[test]
    fn what_is_compressed_alike_leaves_alone_as_it_came() {
        let mut bench = Bench::new();
        bench.push(&[10], Coding::Identity);
        bench.push(&[20], Coding::Gzip);
        bench.push(&[30], Coding::Zstd);
        bench.form(Signal::Traces, Coding::Gzip, 500).unwrap().finish();
        let alone = bench.queue.front().unwrap().bytes.clone();
        let batch = bench.form(Signal::Traces, Coding::Gzip, 500).unwrap();
        assert_eq!(batch.encode(Coding::Gzip).unwrap(), [alone]);
        assert_eq!(batch.plain().unwrap(), export(&[20]));
        let other = bench.form(Signal::Traces, Coding::Gzip, 500).unwrap();
        assert_eq!(other.plain().unwrap(), export(&[30]));
    }

    #[test]
    fn only_a_parcel_over_the_limit_is_split_and_an_item_over_it_is_dropped_alone() {
        let mut bench = Bench::new();
        bench.push(&[100, 100, 900, 100], Coding::Gzip);
        assert_eq!(bench.items(Signal::Traces, Coding::Identity, 300), [2, 1]);
        assert_eq!((bench.lost, bench.ledger.outstanding()), (1, 0));
        bench.push(&[900], Coding::Identity);
        assert!(bench.items(Signal::Traces, Coding::Identity, 300).is_empty());
        assert_eq!((bench.lost, bench.ledger.outstanding()), (2, 0));
    }
}
