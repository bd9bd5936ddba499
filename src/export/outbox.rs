//! All lanes: every parcel of a signal goes to each exporter of the signal.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::client::{self, Client, ExporterError};
use super::counters::Counters;
use super::lane::{Lane, Parts};
use super::ledger::Ledger;
use super::parcel::Parcel;
use super::settings::Exporter;
use super::shelf::{Shelf, Shelved};
use crate::log::Log;
use crate::wire::Signal;

/// Every lane may have so many bytes in memory.
const LEAST: usize = 4 << 20;

/// The way out.
pub struct Outbox {
    lanes: Vec<Arc<Lane>>,
    by_signal: [Vec<usize>; 4],
    pub ledger: Arc<Ledger>,
    hurry: watch::Sender<bool>,
}

impl Outbox {
    /// Builds every exporter and its lanes; [`Outbox::start`] makes them move.
    ///
    /// # Errors
    /// When an exporter's settings cannot be used.
    pub fn new(
        exporters: &[Exporter],
        log: Arc<dyn Log>,
        counters: &Counters,
    ) -> Result<Self, ExporterError> {
        let named = exporters
            .iter()
            .flat_map(|exporter| exporter.signals.iter().map(move |signal| (exporter, *signal)));
        let named: Vec<(&Exporter, Signal)> = named.collect();
        let names = named.iter().map(|(exporter, _)| exporter.name.clone()).collect();
        let ledger = Arc::new(Ledger::new(log, names));
        let (hurry, hurried) = watch::channel(false);
        let mut clients = Vec::new();
        for exporter in exporters {
            clients.push((&exporter.name, Arc::new(Client::new(exporter)?)));
        }
        let client = |name: &String| {
            let found = clients.iter().find(|(of, _)| *of == name);
            found.map(|(_, client)| client.clone()).expect("every exporter has its client")
        };
        let mut by_signal: [Vec<usize>; 4] = Default::default();
        let mut lanes = Vec::new();
        for (index, (exporter, signal)) in named.into_iter().enumerate() {
            by_signal[signal as usize].push(index);
            lanes.push(Arc::new(Lane::new(Parts {
                index,
                exporter: exporter.name.clone(),
                signal,
                place: client::place(&exporter.kind, signal),
                client: client(&exporter.name),
                retry: client::retry(&exporter.kind),
                ledger: ledger.clone(),
                counters: counters.lane(&exporter.name, signal),
                hurry: hurried.clone(),
            })));
        }
        Ok(Outbox { lanes, by_signal, ledger, hurry })
    }

    /// Lets every lane leave in the log what would take more than its share of `memory` bytes, and
    /// take it from the shelf later. To be called before anything is pushed.
    pub fn shelve(&self, shelf: &Arc<dyn Shelf>, memory: usize) {
        let bound = (memory / self.lanes.len().max(1)).max(LEAST);
        for lane in &self.lanes {
            let lanes = self.lanes_of(lane.signal).to_vec();
            lane.shelve(Shelved { shelf: shelf.clone(), bound, lanes });
        }
    }

    /// Whether an exporter of a signal has so much to send that more should not lie in memory.
    pub fn is_behind(&self, signal: Signal) -> bool {
        self.lanes_of(signal).iter().any(|lane| self.lanes[*lane].is_behind())
    }

    /// Starts to send, on the runtime of the caller.
    pub fn start(&self) {
        for lane in &self.lanes {
            tokio::spawn(lane.clone().run());
        }
    }

    /// The lanes of a signal.
    pub fn lanes_of(&self, signal: Signal) -> &[usize] {
        &self.by_signal[signal as usize]
    }

    /// Every lane.
    pub fn lanes(&self) -> &[Arc<Lane>] {
        &self.lanes
    }

    /// Hands a parcel to each exporter of its signal. Its records' accounts must be open.
    pub fn push(&self, parcel: &Parcel) {
        self.push_to(self.lanes_of(parcel.signal), parcel);
    }

    /// Hands a parcel to some lanes alone: those that do not have it yet.
    pub fn push_to(&self, lanes: &[usize], parcel: &Parcel) {
        for lane in lanes.iter().filter_map(|lane| self.lanes.get(*lane)) {
            lane.push(parcel);
        }
    }

    /// Hands over a parcel of our own making, that no record stands for: where a lane does not keep
    /// up, the next one will say what this one did.
    pub fn push_own(&self, parcel: &Parcel) {
        for lane in self.lanes_of(parcel.signal) {
            if self.lanes[*lane].waiting() < 16 {
                self.lanes[*lane].push(parcel);
            }
        }
    }

    /// Items that were accepted and dropped for good, by any exporter.
    pub fn lost(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.lost()).sum()
    }

    /// Waits until everything is delivered or dropped, at most so long. Returns how many records
    /// still owe something.
    pub async fn drain(&self, patience: Duration) -> usize {
        self.hurry.send_replace(true);
        let idle = async {
            self.ledger.all_settled().await;
            while self.lanes.iter().any(|lane| lane.still().is_some()) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        // Too late is told by what is outstanding.
        let _ = tokio::time::timeout(patience, idle).await;
        self.ledger.outstanding()
    }
}
