//! The log in memory: everything but survival.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Appended, Kind, Log, Mark, Pending, Record, Refused, Usage};
use crate::model::ids::Position;

/// A bounded log in memory. Payloads are shared with whoever sends them, not copied.
pub struct Memory {
    limit: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: u64,
    bytes: u64,
    pending: BTreeMap<Position, (Record, Vec<Mark>)>,
}

impl Memory {
    /// `limit`: bytes of records that are not done.
    pub fn new(limit: u64) -> Self {
        Memory { limit, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves the maps whole: every change below is one step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log for Memory {
    fn append(&self, record: Record) -> Appended {
        let mut state = self.state();
        let cost = record.cost();
        let limit = match record.kind {
            Kind::In => self.limit,
            // What was accepted may still be told of: ours have a tenth more.
            Kind::Out(_) => self.limit.saturating_add(self.limit / 10),
        };
        if state.bytes.saturating_add(cost) > limit {
            return Appended::Now(Some(Err(Refused::Full { limit: self.limit })));
        }
        state.bytes += cost;
        state.last += 1;
        let position = Position(state.last);
        state.pending.insert(position, (record, Vec::new()));
        Appended::Now(Some(Ok(position)))
    }

    fn read(&self, position: Position) -> io::Result<Option<Record>> {
        Ok(self.state().pending.get(&position).map(|(record, _)| record.clone()))
    }

    fn mark(&self, position: Position, mark: Mark) {
        let mut state = self.state();
        if mark == Mark::Done {
            if let Some((record, _)) = state.pending.remove(&position) {
                state.bytes -= record.cost();
            }
        } else if let Some((_, marks)) = state.pending.get_mut(&position)
            && let Err(place) = marks.binary_search(&mark)
        {
            marks.insert(place, mark);
        }
    }

    fn page(
        &self,
        after: Position,
        bytes: u64,
        wanted: &dyn Fn(&[Mark]) -> bool,
    ) -> io::Result<Vec<Pending>> {
        let state = self.state();
        let behind = state.pending.range((Bound::Excluded(after), Bound::Unbounded));
        let behind = behind.filter(|(_, (_, marks))| wanted(marks));
        let mut size = 0_u64;
        let fits = |(_, (record, _)): &(&Position, &(Record, Vec<Mark>))| {
            let fits = size < bytes;
            size = size.saturating_add(record.cost());
            fits
        };
        let pending = behind.take_while(fits).map(|(position, (record, marks))| Pending {
            position: *position,
            record: record.clone(),
            marks: marks.clone(),
        });
        Ok(pending.collect())
    }

    fn marks(&self, position: Position) -> Vec<Mark> {
        let known = self.state().pending.get(&position).map(|(_, marks)| marks.clone());
        known.unwrap_or_else(|| vec![Mark::Done])
    }

    fn usage(&self) -> Usage {
        let state = self.state();
        let (records, bytes) = (state.pending.len() as u64, state.bytes);
        Usage { records, pending_bytes: bytes, bytes, foldable: 0, limit: self.limit }
    }

    fn head(&self) -> Position {
        Position(self.state().last)
    }

    fn survives(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::log::Part;
    use crate::wire::Signal;
    use crate::wire::inflate::Coding;

    fn record(size: usize) -> Record {
        Record {
            kind: Kind::In,
            signal: Signal::Traces,
            coding: Coding::Identity,
            payload: Bytes::from(vec![0; size]),
        }
    }

    fn append(log: &Memory, size: usize) -> Result<Position, Refused> {
        let Appended::Now(Some(result)) = log.append(record(size)) else { panic!("must be now") };
        result
    }

    #[test]
    fn what_is_not_done_comes_back_with_its_marks() {
        let log = Memory::new(10_000);
        let [first, second] = [append(&log, 1).unwrap(), append(&log, 2).unwrap()];
        let delivered = Mark::Delivered { exporter: "otlp".into(), part: Part::Rest };
        log.mark(second, delivered.clone());
        log.mark(second, delivered.clone());
        log.mark(first, Mark::Done);
        let pending = log.recover().unwrap();
        assert_eq!(pending.len(), 1);
        assert_eq!((pending[0].position, &pending[0].marks), (second, &vec![delivered]));
        assert_eq!(log.read(first).unwrap(), None);
        assert_eq!(log.read(second).unwrap(), Some(record(2)));
    }

    #[test]
    fn a_full_log_refuses_until_something_is_done() {
        let log = Memory::new(2 * (100 + Record::OVERHEAD));
        let first = append(&log, 100).unwrap();
        append(&log, 100).unwrap();
        assert!(matches!(append(&log, 100), Err(Refused::Full { .. })));
        log.mark(first, Mark::Done);
        assert_eq!(append(&log, 100).unwrap(), Position(3), "positions are never reused");
        assert_eq!(log.usage().records, 2);
    }

    #[test]
    fn a_full_log_still_takes_a_little_of_ours() {
        let log = Memory::new(1_000);
        append(&log, 1_000 - Record::OVERHEAD as usize).unwrap();
        assert!(append(&log, 0).is_err());
        let ours = || {
            let record = Record { kind: Kind::Out(Vec::new()), ..record(0) };
            let Appended::Now(Some(taken)) = log.append(record) else { panic!("must be now") };
            taken
        };
        assert!(ours().is_ok() && ours().is_err(), "96 of 100 bytes, then no more");
    }
}
