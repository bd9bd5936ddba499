//! One program under one load, once: started, warmed, timed, and held to what it promised.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::Failure;
use crate::client::Client;
use crate::figures::{Figure, Run, Spread};
use crate::ledger::Ledger;
use crate::load::{CONNECTIONS, Offer, Sent};
use crate::rows::{Flow, WARM};
use crate::sink::Sink;
use crate::subject::{Binaries, Subject, Target, ports};

/// Nothing has come for so long: then nothing more will, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(30);
/// What comes twice comes soon.
const AFTER: Duration = Duration::from_millis(300);

/// Between two looks at the memory of a program.
const LOOK: Duration = Duration::from_millis(250);
/// So many looks, 20 s, it may grow; whether it is flat is asked of what follows, if that is as long.
const SETTLED: usize = 80;

/// Everything measured of the program, or what was wrong with it.
pub async fn run(subject: &Subject, binaries: &Binaries, flow: &Flow, offer: &Arc<Offer>) -> Run {
    timed(subject, binaries, flow, offer).await.map_err(|error| error.to_string())
}

async fn timed(
    subject: &Subject,
    binaries: &Binaries,
    flow: &Flow,
    offer: &Arc<Offer>,
) -> Result<BTreeMap<Figure, f64>, Failure> {
    let exports = offer.exports;
    let all = WARM + exports;
    let sink = Sink::new(Some(Ledger::new(offer.template.clone(), all, subject.promise())));
    let port = ports()?.grpc;
    let _serving = Serving(tokio::spawn(sink.clone().serve(port)));
    let target = Target::start(subject, binaries, flow, port, &[])?;
    let clients = clients(flow, &target)?;
    offer.send(&clients, 0..WARM).await?;
    if !sink.complete(WARM, PATIENCE).await {
        return Err(format!("while warming up: {}", faults(&sink, WARM)).into());
    }
    let (cpu, bytes) = (target.cpu()?, sink.bytes());
    let (sent, memory) = watched(&target, offer.send(&clients, WARM..all)).await?;
    sink.complete(all, PATIENCE).await;
    let cpu = target.cpu()? - cpu;
    let bytes = sink.bytes() - bytes;
    tokio::time::sleep(AFTER).await;
    let faults = faults(&sink, all);
    if !faults.is_empty() {
        return Err(faults.into());
    }
    let spans = (exports * offer.template.spans()) as f64;
    let mut run = BTreeMap::from([
        (Figure::Cpu, cpu.as_nanos() as f64 / spans),
        (Figure::Rate, spans / sent.took.as_secs_f64()),
        (Figure::Peak, target.memory("VmHWM")?),
        (Figure::BytesOut, bytes as f64 / sent_bytes(offer, WARM..all)),
        (Figure::Refused, sent.refused as f64),
        (Figure::Revisions, sink.ledger().map_or(0, |ledger| ledger.revisions) as f64),
    ]);
    run.extend(latencies(&sink, &sent));
    let later = memory.get(SETTLED..).filter(|later| later.len() >= SETTLED);
    let later = later.and_then(|memory| Spread::of(memory.iter().copied()));
    run.extend(later.map(|memory| (Figure::Swing, memory.most / memory.least)));
    Ok(run)
}

/// What became of the load, and the resident memory of the program meanwhile, again and again.
async fn watched(
    target: &Target,
    sending: impl Future<Output = Result<Sent, Failure>>,
) -> Result<(Sent, Vec<f64>), Failure> {
    let mut sending = std::pin::pin!(sending);
    let mut ticks = tokio::time::interval(LOOK);
    let mut memory = Vec::new();
    loop {
        tokio::select! {
            sent = &mut sending => return Ok((sent?, memory)),
            _ = ticks.tick() => memory.push(target.memory("VmRSS")?),
        }
    }
}

fn faults(sink: &Sink, exports: u64) -> String {
    let mut faults = sink.ledger().map(|ledger| ledger.faults(exports)).unwrap_or_default();
    if sink.unreadable() > 0 {
        faults.push(format!("{} exports that cannot be read", sink.unreadable()));
    }
    faults.join(", ")
}

fn clients(flow: &Flow, target: &Target) -> Result<Vec<Client>, Failure> {
    match flow.http {
        // The library keeps as many connections as are used at once.
        true => Ok(vec![Client::http(target.ports.http)]),
        false => (0..CONNECTIONS).map(|_| Client::grpc(target.ports.grpc)).collect(),
    }
}

fn sent_bytes(offer: &Offer, numbers: Range<u64>) -> f64 {
    let each = |number: u64| match offer.gzipped.get(number as usize) {
        Some(packet) => packet.message().len() as u64,
        None => offer.template.bytes(),
    };
    numbers.map(each).sum::<u64>() as f64
}

/// From when an export was due until its last span was at the backend, and until it was answered.
fn latencies(sink: &Sink, sent: &Sent) -> Vec<(Figure, f64)> {
    let Some(ledger) = sink.ledger() else { return Vec::new() };
    let due = sent.due.iter().enumerate().filter_map(|(n, due)| Some((n as u64, (*due)?)));
    let delivered = due.filter_map(|(n, due)| Some(ledger.arrived(n)?.duration_since(due)));
    let delivered: Vec<Duration> = delivered.collect();
    vec![
        (Figure::DeliveredP50, percentile(&delivered, 50)),
        (Figure::DeliveredP99, percentile(&delivered, 99)),
        (Figure::AnsweredP99, percentile(&sent.answers, 99)),
    ]
}

/// ms
pub fn percentile(times: &[Duration], percent: usize) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort();
    let at = sorted.len().saturating_sub(1) * percent / 100;
    sorted.get(at).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
}

/// The sink's task ends with the run.
pub struct Serving(pub tokio::task::JoinHandle<Result<(), tonic::transport::Error>>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}
