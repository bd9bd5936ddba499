//! What of ours leaves: events and verdict spans, logged before they are sent, and spans that name
//! a verdict, sent after it is logged.

use std::sync::Arc;

use bytes::Bytes;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Counter;
use tokio::sync::{mpsc, oneshot};

use super::checkpoints::Unfolded;
use crate::export::{Due, Origin, Outbox, Parcel};
use crate::log::{Kind, Log, OutId, Part, Record, Refused};
use crate::wire::Signal;
use crate::wire::inflate::Coding;
use crate::wire::regroup;

/// Items of ours, gathered until they are sent together.
pub struct Gathered {
    signal: Signal,
    items: Vec<(Origin, Vec<u8>)>,
    ids: Vec<OutId>,
    bytes: usize,
}

/// A round that says much says it in parts of this size.
const PART: usize = 1 << 20;

impl Gathered {
    pub fn new(signal: Signal) -> Self {
        Gathered { signal, items: Vec::new(), ids: Vec::new(), bytes: 0 }
    }

    /// Whether it is time to take what was gathered.
    pub fn is_full(&self) -> bool {
        self.bytes >= PART
    }

    /// Adds the body of a `LogRecord` or `Span`, under the resource of what it speaks of.
    pub fn add(&mut self, resource: Origin, item: Vec<u8>, id: Option<OutId>) {
        self.bytes += item.len();
        self.items.push((resource, item));
        self.ids.extend(id);
    }

    /// Names a verdict that is said by no item here, so that it is logged all the same.
    pub fn name(&mut self, id: OutId) {
        self.ids.push(id);
    }

    /// What was gathered, as one request; `None` when nothing was.
    pub fn take(&mut self, scope: &[u8]) -> Option<Output> {
        let items = std::mem::take(&mut self.items);
        let ids = std::mem::take(&mut self.ids);
        self.bytes = 0;
        if items.is_empty() && ids.is_empty() {
            return None;
        }
        let part = |(resource, item)| {
            let resource: &Origin = resource;
            regroup::Part { resource, scope, item }
        };
        let parts: Vec<regroup::Part<'_>> =
            items.iter().map(|(resource, item)| part((resource, item.as_slice()))).collect();
        let bytes = Bytes::from(regroup::regroup(&parts));
        Some(Output { signal: self.signal, bytes, items: items.len(), ids })
    }
}

/// An export request of our own making.
pub struct Output {
    signal: Signal,
    bytes: Bytes,
    items: usize,
    ids: Vec<OutId>,
}

enum Event {
    Output(Output),
    Release(Vec<Parcel>),
    Flush(oneshot::Sender<()>),
}

/// Takes outputs in order; full, it makes the engine wait, never the network.
#[derive(Clone)]
pub struct Outputs {
    sender: mpsc::Sender<Event>,
}

const WAITING: usize = 256;

impl Outputs {
    /// Starts the task that logs and sends.
    pub fn start(writer: Writer) -> Self {
        let (sender, mut events) = mpsc::channel(WAITING);
        tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                match event {
                    Event::Output(output) => writer.say(output).await,
                    Event::Release(parcels) => {
                        for parcel in parcels {
                            writer.release(parcel).await;
                        }
                    }
                    // Who asked may have stopped waiting.
                    Event::Flush(done) => {
                        let _ = done.send(());
                    }
                }
            }
        });
        Outputs { sender }
    }

    /// Hands over one output, from a thread that may wait.
    pub fn push(&self, output: Option<Output>) {
        if let Some(output) = output {
            // The task ends with the process.
            let _ = self.sender.blocking_send(Event::Output(output));
        }
    }

    /// Hands over spans that leave once everything handed over before is logged: no verdict is seen
    /// that a next process would not know of.
    pub fn release(&self, parcels: Vec<Parcel>) {
        if !parcels.is_empty() {
            // The task ends with the process.
            let _ = self.sender.blocking_send(Event::Release(parcels));
        }
    }

    /// Waits until everything handed over before is logged and on its way.
    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.sender.send(Event::Flush(done)).await.is_ok() {
            // An ended task has nothing to flush.
            let _ = flushed.await;
        }
    }
}

/// Logs and sends.
pub struct Writer {
    pub log: Arc<dyn Log>,
    pub outbox: Arc<Outbox>,
    pub unfolded: Arc<Unfolded>,
    pub lost: Counter<u64>,
}

impl Writer {
    async fn say(&self, output: Output) {
        let Output { signal, bytes, items, ids } = output;
        if let Err(error) = self.send(Kind::Out(ids), signal, bytes, items).await {
            self.lost.add(items as u64, &[KeyValue::new("reason", "not_logged")]);
            tracing::warn!(%error, items, "events or verdict spans were dropped");
        }
    }

    /// Held spans leave from memory, unless an exporter is so far behind that they go to the log
    /// first, to be read back when their turn comes.
    async fn release(&self, parcel: Parcel) {
        if !self.log.survives() || !self.outbox.is_behind(parcel.signal) {
            return self.outbox.push(&parcel);
        }
        let Parcel { signal, bytes, items, dues, .. } = parcel.clone();
        match self.send(Kind::Out(Vec::new()), signal, bytes, items).await {
            Ok(()) => {
                let lanes = self.outbox.lanes_of(signal).iter();
                lanes.for_each(|lane| self.outbox.ledger.settle(*lane, &dues));
            }
            // What they were held of is still in the log.
            Err(_) => self.outbox.push(&parcel),
        }
    }

    /// # Errors
    /// When the log does not take it.
    async fn send(
        &self,
        kind: Kind,
        signal: Signal,
        bytes: Bytes,
        items: usize,
    ) -> Result<(), Refused> {
        let coding = Coding::Identity;
        // Nobody looks for it in the log before it was handed on.
        let _unfolded = self.unfolded.clone().begin(&*self.log);
        let record = Record { kind, signal, coding, payload: bytes.clone() };
        let position = self.log.append(record).await?;
        let lanes = self.outbox.lanes_of(signal);
        self.outbox.ledger.open(position, lanes, items > 0, 0);
        if items > 0 {
            let plain_length = bytes.len();
            let dues = [Due { position, part: Part::Rest, weight: 1 }].into();
            self.outbox.push(&Parcel { signal, bytes, coding, plain_length, items, dues });
        }
        Ok(())
    }
}
