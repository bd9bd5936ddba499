//! What happens to an accepted export: logged, sent on, and shown to the engine.

use std::sync::Arc;
use std::time::Duration;

use crate::export::{Due, Outbox, Parcel};
use crate::log::{Kind, Log, Part, Record, Refused};
use crate::model::ids::Position;
use crate::receive::{Intake, Received, Refusal, Taking};

/// The intake of the receivers.
pub struct Pipeline {
    log: Arc<dyn Log>,
    outbox: Arc<Outbox>,
}

/// When a sender that met a full log may come again.
const COME_BACK: Duration = Duration::from_secs(2);

impl Pipeline {
    pub fn new(log: Arc<dyn Log>, outbox: Arc<Outbox>) -> Self {
        Pipeline { log, outbox }
    }

    async fn accept(&self, export: Received) -> Result<(), Refusal> {
        let position = self.append(&export).await?;
        self.forward(position, &export);
        Ok(())
    }

    async fn append(&self, export: &Received) -> Result<Position, Refusal> {
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

    /// A body that nothing touches leaves with the bytes it came with.
    fn forward(&self, position: Position, export: &Received) {
        self.outbox.ledger.open(position, self.outbox.lanes_of(export.signal), true, 0);
        self.outbox.push(&Parcel {
            signal: export.signal,
            bytes: export.wire.clone(),
            coding: export.coding,
            plain_length: export.plain.len(),
            items: export.items,
            dues: [Due { position, part: Part::Rest, weight: 1 }].into(),
        });
    }
}

impl Intake for Pipeline {
    fn take(&self, export: Received) -> Taking<'_> {
        Box::pin(self.accept(export))
    }
}
