//! A request that a backend refuses for what it holds, taken apart until what it refuses is alone.
//!
//! Promises: no export is dropped for what another one holds: each is taken, or is refused by
//! itself, once. What one export holds is taken apart too, item by item at the last, while the
//! backend takes anything at all; nothing is copied before that.

use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;

use super::batch::{Batch, Waiting};
use crate::wire::inflate::Coding;
use crate::wire::{Signal, regroup, scan};

/// How many refusals in a row say that a backend refuses whatever comes. A poisoned item among
/// 10,000 is found with some 28 requests, of which every other one is taken.
const IN_A_ROW: u32 = 256;

/// What a backend did with the last requests of a lane.
#[derive(Default)]
pub struct Mood {
    refused: AtomicU32,
}

impl Mood {
    pub fn took(&self) {
        self.refused.store(0, Ordering::Relaxed);
    }

    pub fn refused(&self) {
        // A count that wraps around would say that all is well.
        let more = |refused: u32| refused.checked_add(1);
        let _ = self.refused.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }

    fn takes_something(&self) -> bool {
        self.refused.load(Ordering::Relaxed) < IN_A_ROW
    }
}

/// What to send instead of a request that was refused for what it holds, the first on top.
///
/// # Errors
/// The request, where it must be dropped as it is.
pub fn apart(batch: Batch, signal: Signal, mood: &Mood) -> Result<Vec<Batch>, Batch> {
    match (batch.parts.len(), mood.takes_something()) {
        (0 | 1, false) => Err(batch),
        // Who refuses everything is not asked twice for each.
        (_, false) => Ok(batch.parts.into_iter().rev().map(alone).collect()),
        (_, true) => smaller(batch, signal),
    }
}

/// A request in halves, by exports and then by items, the first on top.
///
/// # Errors
/// The request, where it is one item.
pub fn smaller(batch: Batch, signal: Signal) -> Result<Vec<Batch>, Batch> {
    let Batch { mut parts } = batch;
    if parts.len() > 1 {
        let second = parts.split_off(parts.len() / 2);
        return Ok(vec![Batch { parts: second }, Batch { parts }]);
    }
    match parts.pop().map(|only| halves(only, signal)) {
        Some(Ok(halves)) => Ok(halves.into_iter().rev().map(alone).collect()),
        Some(Err(only)) => Err(alone(only)),
        None => Err(Batch { parts }),
    }
}

fn alone(part: Waiting) -> Batch {
    Batch { parts: vec![part] }
}

/// The first and the second half of the items of one parcel; the parcel where it is one item.
fn halves(whole: Waiting, signal: Signal) -> Result<[Waiting; 2], Waiting> {
    // What profiles hold beside their items would be sent twice, and is most of them.
    if whole.items < 2 || signal == Signal::Profiles {
        return Err(whole);
    }
    let Ok(plain) = whole.plain() else { return Err(whole) };
    let half = regroup::items(&plain).count() / 2;
    if half == 0 {
        return Err(whole);
    }
    let first = regroup::remove_items(&plain, |index| index >= half);
    let second = regroup::remove_items(&plain, |index| index < half);
    whole.receipt.add_pieces(1);
    let receipts = [whole.receipt.clone(), whole.receipt];
    let mut receipts = receipts.into_iter();
    Ok([first, second].map(|bytes| Waiting {
        plain_length: bytes.len(),
        // What was readable as a whole is readable in halves.
        items: scan::check(signal, &bytes).map_or(0, |counts| counts.items),
        bytes: Bytes::from(bytes),
        coding: Coding::Identity,
        receipt: receipts.next().expect("one for each half"),
    }))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;

    use super::super::ledger::Ledger;
    use super::super::parcel::{Due, Receipt};
    use super::*;
    use crate::log::{Log, Memory, Part};
    use crate::model::ids::Position;
    use crate::wire::fields::put_bytes_field;
    use crate::wire::inflate::deflate;

    /// An export of spans with these names, all of one scope.
    fn export(names: &[&str]) -> Vec<u8> {
        let mut scope = Vec::new();
        for name in names {
            let mut span = Vec::new();
            put_bytes_field(&mut span, 5, name.as_bytes());
            put_bytes_field(&mut scope, 2, &span);
        }
        let (mut resource, mut out) = (Vec::new(), Vec::new());
        put_bytes_field(&mut resource, 2, &scope);
        put_bytes_field(&mut out, 1, &resource);
        out
    }

    /// A backend that takes no request with an item that is `poison`.
    #[derive(Default)]
    struct Backend {
        requests: usize,
        taken: usize,
        dropped: Vec<usize>,
        mood: Mood,
    }

    impl Backend {
        fn sent(&mut self, batch: Batch, signal: Signal) {
            let mut left = VecDeque::from([batch]);
            while let Some(batch) = left.pop_back() {
                self.requests += 1;
                let plain = batch.plain().unwrap();
                if memchr::memmem::find(&plain, b"poison").is_none() {
                    self.mood.took();
                    self.taken += batch.items();
                    batch.finish();
                    continue;
                }
                self.mood.refused();
                match apart(batch, signal, &self.mood) {
                    Ok(parts) => left.extend(parts),
                    Err(whole) => {
                        self.dropped.push(whole.items());
                        whole.finish();
                    }
                }
            }
        }
    }

    /// A batch of these exports, and the accounts of their records.
    fn batch(exports: &[&[&str]]) -> (Batch, Arc<Ledger>) {
        let log: Arc<dyn Log> = Arc::new(Memory::new(1 << 20));
        let ledger = Arc::new(Ledger::new(log, vec!["otlp".into()]));
        let part = |(index, names): (usize, &&[&str])| {
            let position = Position(index as u64 + 1);
            ledger.open(position, &[0], true, 0);
            let dues: Arc<[Due]> = [Due { position, part: Part::Rest, weight: 1 }].into();
            let plain = export(names);
            // Every other one is compressed.
            let coding = if index % 2 == 0 { Coding::Identity } else { Coding::Gzip };
            Waiting {
                plain_length: plain.len(),
                bytes: Bytes::from(deflate(coding, &plain).unwrap().into_owned()),
                coding,
                items: names.len(),
                receipt: Receipt::new(ledger.clone(), 0, dues, 1),
            }
        };
        let parts = exports.iter().enumerate().map(part).collect();
        (Batch { parts }, ledger)
    }

    #[test]
    fn only_the_poison_is_dropped_wherever_it_stands() {
        let good: &[&str] = &["a", "b", "c"];
        for place in 0..9 {
            for name in 0..3 {
                let mut bad = ["a", "b", "c"];
                bad[name] = "poison";
                let mut exports = [good; 9];
                exports[place] = &bad;
                let (batch, ledger) = batch(&exports);
                let mut backend = Backend::default();
                backend.sent(batch, Signal::Traces);
                assert_eq!((backend.taken, &backend.dropped[..]), (26, &[1][..]));
                assert_eq!(ledger.outstanding(), 0, "every record is done");
                assert!(backend.requests <= 13, "{} requests", backend.requests);
            }
        }
    }

    #[test]
    fn profiles_are_dropped_whole_and_their_neighbours_are_not() {
        let (batch, ledger) = batch(&[&["a"], &["b", "poison"], &["c"]]);
        let mut backend = Backend::default();
        backend.sent(batch, Signal::Profiles);
        assert_eq!((backend.taken, backend.dropped, ledger.outstanding()), (2, vec![2], 0));
    }

    #[test]
    fn who_refuses_everything_is_asked_once_for_each_export() {
        let poison: &[&str] = &["poison", "poison", "poison", "poison"];
        let exports = vec![poison; 100];
        let mut backend = Backend::default();
        for _ in 0..3 {
            backend.sent(batch(&exports).0, Signal::Traces);
        }
        let before = backend.requests;
        let (many, ledger) = batch(&exports);
        backend.sent(many, Signal::Traces);
        assert_eq!(backend.requests - before, 101);
        assert_eq!((backend.taken, backend.dropped.iter().sum::<usize>()), (0, 1_600));
        assert_eq!(ledger.outstanding(), 0);
        // Each export was asked for alone, and the first that is taken ends it.
        let (mixed, _) = batch(&[&["a"], poison, &["poison", "b"]]);
        backend.sent(mixed, Signal::Traces);
        assert_eq!(backend.taken, 2);
    }
}
