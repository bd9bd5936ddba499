//! What memory an open request takes, and a span that waits for its verdict.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use prost::Message;

use crate::Failure;
use crate::client::{Answer, Client, LOGS};
use crate::figures::{Figure, Measured};
use crate::frame::Packet;
use crate::ledger::Ledger;
use crate::load::Offer;
use crate::payload::{Load, resource, text};
use crate::round::Serving;
use crate::rows::{Flow, Pace};
use crate::setups::{HOLDING, OPEN};
use crate::sink::Sink;
use crate::subject::{Binaries, Subject, Target, ports};

/// How many are open when memory is read, each on top of those before.
const STEPS: [(u64, &str); 3] = [
    (10_000, "10,000 open requests"),
    (100_000, "100,000 open requests"),
    (1_000_000, "1,000,000 open requests"),
];
/// Records an export, and requests a session.
const RECORDS: u64 = 500;
const A_SESSION: u64 = 20;
const FLOW: Flow =
    Flow { load: Load::Mcp, spans: 500, pace: Pace::At(50_000), gzip: false, http: false };
/// Exports whose request spans are held, and by how much longer the second time.
const HELD: u64 = 400;
const PADDING: usize = 2_000;
const PATIENCE: Duration = Duration::from_secs(60);

pub async fn measure(binaries: &Binaries, most: u64) -> Result<Vec<Measured>, Failure> {
    let mut measured = open(binaries, most).await?;
    let once = async {
        let (short, little) = held(binaries, 0).await?;
        let (long, much) = held(binaries, PADDING).await?;
        Ok::<_, Failure>((long - short) * f64::from(1 << 20) / (much - little))
    };
    let run = once.await.map(|ratio| BTreeMap::from([(Figure::BytesByte, ratio)]));
    measured.push(Measured::once("held spans", run.map_err(|error| error.to_string())));
    Ok(measured)
}

async fn open(binaries: &Binaries, most: u64) -> Result<Vec<Measured>, Failure> {
    let sink_port = ports()?.grpc;
    let _serving = Serving(tokio::spawn(Sink::new(None).serve(sink_port)));
    let target = Target::start(&Subject::Verdict(OPEN), binaries, &FLOW, sink_port, &[])?;
    let client = Client::grpc(target.ports.grpc)?;
    let empty = target.memory("VmRSS")?;
    let mut measured = Vec::new();
    let mut sent = 0;
    for (count, name) in STEPS.into_iter().filter(|(count, _)| *count <= most) {
        while sent < count {
            let export = Packet::new(&started(sent).encode_to_vec(), false);
            while client.export(LOGS, export.clone()).await? == Answer::Refused {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            sent += RECORDS;
        }
        let run = all_open(&target, count).await.and_then(|()| target.memory("VmRSS"));
        let each = |now: f64| (now - empty) * f64::from(1 << 20) / count as f64;
        let run = run.map(|now| BTreeMap::from([(Figure::BytesEach, each(now))]));
        measured.push(Measured::once(name, run.map_err(|error| error.to_string())));
    }
    Ok(measured)
}

/// Waits until the program itself counts so many open requests, and has said what it says of them.
async fn all_open(target: &Target, wanted: u64) -> Result<(), Failure> {
    let url = format!("http://127.0.0.1:{}/metrics", target.ports.metrics);
    let began = Instant::now();
    loop {
        let metrics = reqwest::get(&url).await?.text().await?;
        let line = metrics.lines().find_map(|l| l.strip_prefix("mcp_verdict_open_requests "));
        let open = line.and_then(|value| value.parse::<f64>().ok()).unwrap_or(0.0);
        if open as u64 == wanted {
            tokio::time::sleep(Duration::from_secs(5)).await;
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            return Err(format!("{open} requests are open, of {wanted} that were begun").into());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// An export that says of requests that they have begun, as the evidence conventions have it.
fn started(first: u64) -> ExportLogsServiceRequest {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
    let record = |number: u64| LogRecord {
        time_unix_nano: now,
        event_name: "mcp_evidence.request.started".to_owned(),
        trace_id: u128::from(number + 1).to_be_bytes().to_vec(),
        span_id: (number + 1).to_be_bytes().to_vec(),
        attributes: vec![
            text("mcp.method.name", "tools/call"),
            text("gen_ai.tool.name", "get_weather"),
            text("jsonrpc.request.id", &(number % A_SESSION).to_string()),
            text("mcp.session.id", &format!("session-{:08x}", number / A_SESSION)),
            text("mcp.protocol.version", "2025-11-25"),
        ],
        ..LogRecord::default()
    };
    let log_records = (first..first + RECORDS).map(record).collect();
    ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            resource: Some(resource("bench-agent")),
            scope_logs: vec![ScopeLogs { log_records, ..ScopeLogs::default() }],
            ..ResourceLogs::default()
        }],
    }
}

/// MiB that the program takes with so much held, and the bytes of what it was sent.
async fn held(binaries: &Binaries, padding: usize) -> Result<(f64, f64), Failure> {
    let template = Arc::new(FLOW.load.padded(FLOW.spans, padding));
    let subject = Subject::Verdict(HOLDING);
    let sink = Sink::new(Some(Ledger::new(template.clone(), HELD, subject.promise())));
    let port = ports()?.grpc;
    let _serving = Serving(tokio::spawn(sink.clone().serve(port)));
    let target = Target::start(&subject, binaries, &FLOW, port, &[])?;
    let offer =
        Offer { template: template.clone(), exports: HELD, gzipped: Vec::new(), pace: FLOW.pace };
    Arc::new(offer).send(&[Client::grpc(target.ports.grpc)?], 0..HELD).await?;
    let passing = HELD * (template.spans() - template.halves());
    let began = Instant::now();
    let came = || sink.ledger().map_or(0, |ledger| ledger.came());
    while came() < passing && began.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    match came() == passing {
        true => Ok((target.memory("VmRSS")?, (HELD * template.bytes()) as f64)),
        false => Err(format!("{} spans came out, not the {passing} that pass", came()).into()),
    }
}
