//! The load generator: so many numbered exports, as fast as they are taken or at a pace.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::Failure;
use crate::client::{Answer, Client};
use crate::frame::Packet;
use crate::raw::TRACES;
use crate::rows::{Flow, Pace, WARM};
use crate::template::Template;

/// Exports under way at once, over so many connections.
pub const IN_FLIGHT: u64 = 16;
pub const CONNECTIONS: usize = 4;
/// Overload is an answer: the sender waits as a real one would, and sends it again.
const BACK_OFF: Duration = Duration::from_millis(20);

/// What is sent to a target.
pub struct Offer {
    pub template: Arc<Template>,
    /// Exports that are timed, after those that warm.
    pub exports: u64,
    /// All exports, compressed beforehand, where they are; each is sent once, by its number.
    pub gzipped: Vec<Packet>,
    pub pace: Pace,
}

/// What became of it.
#[derive(Default)]
pub struct Sent {
    /// of each export, when its turn was: by the pace, or when a sender was free
    pub due: Vec<Option<Instant>>,
    /// of each export, from when it was due until it was answered
    pub answers: Vec<Duration>,
    /// How often it had to be sent again.
    pub refused: u64,
    pub took: Duration,
}

impl Offer {
    pub fn new(flow: &Flow, exports: u64) -> Self {
        let template = Arc::new(flow.load.template(flow.spans));
        let compressed = if flow.gzip { 0..WARM + exports } else { 0..0 };
        let gzipped = compressed.map(|number| template.gzipped(number)).collect();
        Self { template, exports, gzipped, pace: flow.pace }
    }

    /// In words, of a row.
    pub fn says(&self, flow: &Flow, rounds: usize) -> String {
        let pace = match self.pace {
            Pace::At(rate) => format!("{rate} spans/s"),
            Pace::Fast(_) => "as fast as they are taken".to_owned(),
        };
        let (spans, bytes) = (self.template.spans(), self.template.bytes());
        format!(
            "{}: {} exports of {spans} spans, {} bytes a span, {pace}, {IN_FLIGHT} under way over \
             {CONNECTIONS} connections; rounds: {rounds}.",
            flow.load.says(),
            self.exports,
            bytes / spans,
        )
    }

    /// Sends exports of these numbers.
    pub async fn send(
        self: &Arc<Self>,
        clients: &[Client],
        numbers: std::ops::Range<u64>,
    ) -> Result<Sent, Failure> {
        let began = Instant::now();
        let next = Arc::new(AtomicU64::new(numbers.start));
        let mut senders = tokio::task::JoinSet::new();
        for sender in 0..IN_FLIGHT as usize {
            let client = clients[sender % clients.len()].clone();
            senders.spawn(self.clone().turns(client, numbers.clone(), next.clone(), began));
        }
        let mut all = Sent { due: vec![None; numbers.end as usize], ..Sent::default() };
        while let Some(sent) = senders.join_next().await {
            for turn in sent?? {
                all.refused += turn.refused;
                all.answers.push(turn.answered);
                all.due[turn.number as usize] = Some(turn.due);
            }
        }
        all.took = began.elapsed();
        Ok(all)
    }

    /// Takes turns until there are no more.
    async fn turns(
        self: Arc<Self>,
        client: Client,
        numbers: std::ops::Range<u64>,
        next: Arc<AtomicU64>,
        began: Instant,
    ) -> Result<Vec<Turn>, Failure> {
        let spans = self.template.spans() as f64;
        let gap = match self.pace {
            Pace::At(rate) => Some(Duration::from_secs_f64(spans / rate as f64)),
            Pace::Fast(_) => None,
        };
        let mut turns = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= numbers.end {
                return Ok(turns);
            }
            let mut due = Instant::now();
            if let Some(gap) = gap {
                due = began + gap.mul_f64((number - numbers.start) as f64);
                tokio::time::sleep_until(due.into()).await;
            }
            let packet = match self.gzipped.get(number as usize) {
                Some(packet) => packet.clone(),
                None => self.template.packet(number),
            };
            let mut refused = 0;
            while client.export(TRACES, packet.clone()).await? == Answer::Refused {
                refused += 1;
                tokio::time::sleep(BACK_OFF).await;
            }
            turns.push(Turn { number, due, answered: due.elapsed(), refused });
        }
    }
}

/// One export.
struct Turn {
    number: u64,
    due: Instant,
    answered: Duration,
    refused: u64,
}
