//! What is owed of every accepted record, to which exporter; turns deliveries into marks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::parcel::Due;
use crate::log::{Log, Mark, Part};
use crate::model::ids::Position;

/// Accounts of all records that are not done.
pub struct Ledger {
    log: Arc<dyn Log>,
    /// By lane: the exporter's name.
    exporters: Vec<String>,
    open: Mutex<BTreeMap<Position, Account>>,
    settled: Notify,
}

#[derive(Default)]
struct Account {
    owed: Vec<Owed>,
    /// A lane that is not listed will be owed the rest: it takes it from the log later.
    shelved: bool,
}

struct Owed {
    lane: usize,
    part: Part,
    weight: u32,
}

impl Ledger {
    /// `exporters`: the exporter of each lane.
    pub fn new(log: Arc<dyn Log>, exporters: Vec<String>) -> Self {
        Ledger { log, exporters, open: Mutex::default(), settled: Notify::new() }
    }

    fn accounts(&self) -> MutexGuard<'_, BTreeMap<Position, Account>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a record's account: each of `lanes` is owed the rest (where there is one) and so many
    /// held spans. A record of which nothing is owed is done.
    pub fn open(&self, position: Position, lanes: &[usize], rest: bool, held: u32) {
        self.reopen(position, lanes, rest, held, &[]);
    }

    /// As [`Ledger::open`], for a record of which some is delivered already. Returns the lanes that
    /// are still owed the rest, and whether any is owed held spans.
    pub fn reopen(
        &self,
        position: Position,
        lanes: &[usize],
        rest: bool,
        held: u32,
        marks: &[Mark],
    ) -> (Vec<usize>, bool) {
        let parts = [(Part::Rest, u32::from(rest)), (Part::Held, held)];
        let owed: Vec<Owed> = lanes
            .iter()
            .flat_map(|lane| parts.map(|(part, weight)| Owed { lane: *lane, part, weight }))
            .filter(|owed| {
                owed.weight > 0 && !marks.contains(&self.delivered(owed.lane, owed.part))
            })
            .collect();
        let of = |part| owed.iter().filter(move |owed| owed.part == part).map(|owed| owed.lane);
        let left = (of(Part::Rest).collect(), of(Part::Held).next().is_some());
        match owed.is_empty() {
            true => self.log.mark(position, Mark::Done),
            false => drop(self.accounts().insert(position, Account { owed, shelved: false })),
        }
        left
    }

    /// A lane leaves the rest of a record in the log, and takes it up later.
    pub fn shelve(&self, position: Position, lane: usize) {
        let mut accounts = self.accounts();
        let Some(account) = accounts.get_mut(&position) else { return };
        account.owed.retain(|owed| owed.lane != lane || owed.part != Part::Rest);
        account.shelved = true;
        if account.owed.is_empty() {
            accounts.remove(&position);
        }
    }

    /// A lane takes up the rest of a record that it left in the log. `lanes` are all that the
    /// record goes to; `holds`: spans of it were held.
    pub fn take_up(&self, position: Position, lane: usize, lanes: &[usize], holds: bool) {
        let mut accounts = self.accounts();
        let account = accounts.entry(position).or_default();
        account.owed.push(Owed { lane, part: Part::Rest, weight: 1 });
        let marks = self.log.marks(position);
        let parts = if holds { &[Part::Rest, Part::Held][..] } else { &[Part::Rest] };
        let listed = |lane: usize, part: Part| {
            account.owed.iter().any(|owed| owed.lane == lane && owed.part == part)
        };
        let mut all = lanes.iter().flat_map(|lane| parts.iter().map(move |part| (*lane, *part)));
        let unlisted = all.any(|(lane, part)| {
            !listed(lane, part) && !marks.contains(&self.delivered(lane, part))
        });
        account.shelved = unlisted;
    }

    fn delivered(&self, lane: usize, part: Part) -> Mark {
        Mark::Delivered { exporter: self.exporters.get(lane).cloned().unwrap_or_default(), part }
    }

    /// A lane has delivered these shares, or dropped them with a reason.
    pub fn settle(&self, lane: usize, dues: &[Due]) {
        for due in dues {
            // Under one lock: nobody finds a share neither owed nor marked.
            let mut accounts = self.accounts();
            if let Some(mark) = self.pay(&mut accounts, lane, due) {
                self.log.mark(due.position, mark);
            }
        }
        self.settled.notify_waiters();
    }

    /// The mark that follows from one payment: none while more of the part is owed.
    fn pay(
        &self,
        accounts: &mut BTreeMap<Position, Account>,
        lane: usize,
        due: &Due,
    ) -> Option<Mark> {
        let account = accounts.get_mut(&due.position)?;
        let of = |owed: &Owed| owed.lane == lane && owed.part == due.part;
        let index = account.owed.iter().position(of)?;
        let owed = &mut account.owed[index];
        owed.weight = owed.weight.saturating_sub(due.weight);
        if owed.weight > 0 {
            return None;
        }
        account.owed.remove(index);
        if account.owed.is_empty() {
            let shelved = account.shelved;
            accounts.remove(&due.position);
            if !shelved {
                return Some(Mark::Done);
            }
        }
        Some(self.delivered(lane, due.part))
    }

    /// Records of which something is owed.
    pub fn outstanding(&self) -> usize {
        self.accounts().len()
    }

    /// Waits until nothing is owed.
    pub async fn all_settled(&self) {
        loop {
            let changed = self.settled.notified();
            if self.outstanding() == 0 {
                return;
            }
            // A change between the look and the wait is caught by the next look.
            let _ = tokio::time::timeout(std::time::Duration::from_millis(100), changed).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Appended, Kind, Memory, Record};
    use crate::wire::Signal;
    use crate::wire::inflate::Coding;

    fn setup() -> (Arc<Memory>, Ledger, Position) {
        let log = Arc::new(Memory::new(1 << 20));
        let record = Record {
            kind: Kind::In,
            signal: Signal::Traces,
            coding: Coding::Identity,
            payload: Default::default(),
        };
        let Appended::Now(Some(Ok(position))) = log.append(record) else { panic!() };
        let ledger = Ledger::new(log.clone(), vec!["a".into(), "b".into()]);
        (log, ledger, position)
    }

    fn due(position: Position, part: Part, weight: u32) -> [Due; 1] {
        [Due { position, part, weight }]
    }

    #[test]
    fn done_when_every_exporter_has_every_part() {
        let (log, ledger, position) = setup();
        ledger.open(position, &[0, 1], true, 3);
        ledger.settle(0, &due(position, Part::Rest, 1));
        ledger.settle(0, &due(position, Part::Held, 2));
        let marks = |log: &Memory| log.recover().unwrap().first().map(|p| p.marks.clone());
        let rest = Mark::Delivered { exporter: "a".into(), part: Part::Rest };
        assert_eq!(marks(&log), Some(vec![rest.clone()]), "held: one of three is owed");
        ledger.settle(0, &due(position, Part::Held, 1));
        ledger.settle(1, &due(position, Part::Held, 3));
        assert_eq!(ledger.outstanding(), 1);
        ledger.settle(1, &due(position, Part::Rest, 1));
        assert_eq!((marks(&log), ledger.outstanding()), (None, 0));
    }

    #[test]
    fn nothing_owed_is_done_at_once() {
        let (log, ledger, position) = setup();
        ledger.open(position, &[], true, 1);
        assert!(log.recover().unwrap().is_empty());
    }
}
