//! The load generator: numbered copies of a template, as fast as they are taken or at a pace.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tonic::transport::Channel;

use crate::payload::Template;
use crate::{Failure, raw};

/// Exports under way at once, over so many connections.
pub const IN_FLIGHT: usize = 16;
pub const CONNECTIONS: usize = 4;

/// What is sent to a target.
pub struct Offer {
    pub template: Arc<Template>,
    /// spans a second, where it is not as many as are taken
    pub rate: Option<u64>,
}

/// What became of it.
#[derive(Default)]
pub struct Sent {
    pub accepted: u64,
    pub refused: u64,
    pub took: Duration,
    /// of each accepted export, sorted
    answers: Vec<Duration>,
}

impl Sent {
    /// ms
    pub fn percentile(&self, percent: usize) -> f64 {
        let at = self.answers.len().saturating_sub(1) * percent / 100;
        self.answers.get(at).map_or(0.0, |d| d.as_secs_f64() * 1e3)
    }
}

impl Offer {
    /// Sends for so long; the numbers of exports count up from `first`.
    pub async fn send(&self, port: u16, time: Duration, first: u64) -> Result<Sent, Failure> {
        let channels =
            (0..CONNECTIONS).map(|_| raw::connect(port)).collect::<Result<Vec<_>, _>>()?;
        let began = Instant::now();
        let turns = Arc::new(Turns {
            template: self.template.clone(),
            began,
            time,
            gap: self.rate.map(|rate| {
                Duration::from_secs_f64(self.template.spans() as f64 / rate.max(1) as f64)
            }),
            first,
            next: AtomicU64::new(0),
        });
        let mut senders = tokio::task::JoinSet::new();
        for sender in 0..IN_FLIGHT {
            senders.spawn(turns.clone().take(channels[sender % CONNECTIONS].clone()));
        }
        let mut all = Sent::default();
        while let Some(sent) = senders.join_next().await {
            let sent = sent?;
            all.refused += sent.refused;
            all.answers.extend(sent.answers);
        }
        all.took = began.elapsed();
        all.accepted = all.answers.len() as u64;
        all.answers.sort();
        Ok(all)
    }
}

/// Whose turn it is to send which export, and when.
struct Turns {
    template: Arc<Template>,
    began: Instant,
    time: Duration,
    gap: Option<Duration>,
    first: u64,
    next: AtomicU64,
}

impl Turns {
    async fn take(self: Arc<Self>, channel: Channel) -> Sent {
        let mut sent = Sent::default();
        loop {
            let turn = self.next.fetch_add(1, Ordering::Relaxed);
            if let Some(gap) = self.gap {
                let due = self.began + gap.mul_f64(turn as f64);
                tokio::time::sleep_until(due.into()).await;
            }
            if self.began.elapsed() >= self.time {
                return sent;
            }
            let body = self.template.numbered(self.first + turn);
            let asked = Instant::now();
            match raw::export(&channel, raw::TRACES, body).await {
                Ok(_) => sent.answers.push(asked.elapsed()),
                // Overload is an answer; the sender waits as a real one would.
                Err(_) => {
                    sent.refused += 1;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }
}
