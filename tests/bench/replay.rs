//! A recorded file judged by `replay`, and beside it decoded by others with one insert a span.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;

use crate::Failure;
use crate::figures::{Figure, Measured, Run};
use crate::payload::Load;
use crate::subject::Binaries;

const SPANS: u64 = 500;
const EXPORTS: u64 = 200;

pub fn measure(binaries: &Binaries, rounds: usize) -> Result<Vec<Measured>, Failure> {
    let file = tempfile::Builder::new().suffix(".pb").tempfile()?;
    let template = Load::Mcp.template(SPANS);
    let mut framed = Vec::new();
    for number in 0..EXPORTS {
        framed.extend_from_slice(&u32::try_from(template.bytes())?.to_be_bytes());
        framed.extend_from_slice(&template.numbered(number));
    }
    fs::write(file.path(), framed)?;
    let calls = EXPORTS * template.calls().len() as u64;
    let mut decoded = Measured { subject: "decoded, an insert a span", runs: Vec::new() };
    let mut replayed = Measured { subject: "replay", runs: Vec::new() };
    for _ in 0..rounds {
        let mut peer = Command::new(std::env::current_exe()?);
        let peer = peer.arg("--decode").arg(file.path());
        decoded.runs.push(timed(peer, &EXPORTS.saturating_mul(SPANS).to_string(), 1)?);
        let mut replay = Command::new(&binaries.verdict);
        let replay = replay.arg("replay").args(["--format", "json"]).arg(file.path());
        replayed.runs.push(timed(replay, r#""record":"verdict""#, calls)?);
    }
    Ok(vec![decoded, replayed])
}

/// The peer: every span decoded, and found again by its ids.
pub fn decode(arguments: &[String]) -> Result<(), Failure> {
    let [file] = arguments else { return Err("--decode FILE".into()) };
    let bytes = fs::read(Path::new(file))?;
    let mut rest = bytes.as_slice();
    let (mut spans, mut exports) = (HashMap::new(), Vec::new());
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (message, after) = after.split_at(u32::from_be_bytes(*length) as usize);
        rest = after;
        let export = ExportTraceServiceRequest::decode(message)?;
        let scopes = export.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
        for span in scopes.flat_map(|scope| &scope.spans) {
            spans.insert((span.trace_id.clone(), span.span_id.clone()), exports.len());
        }
        exports.push(export);
    }
    println!("{}", spans.len());
    Ok(())
}

/// Runs it to its end; it has to print so many lines with this in them.
fn timed(command: &mut Command, wanted: &str, lines: u64) -> Result<Run, Failure> {
    let before = children()?;
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let out = child.stdout.take().ok_or("no stdout")?;
    let mut found = 0;
    for line in BufReader::new(out).lines() {
        found += u64::from(line?.contains(wanted));
    }
    let ended = child.wait()?;
    let spent = children()? - before;
    if !ended.success() || found != lines {
        return Ok(Err(format!("{found} of {lines} results, {ended}")));
    }
    let each = spent.as_nanos() as f64 / (EXPORTS * SPANS) as f64;
    Ok(Ok(BTreeMap::from([(Figure::Cpu, each)])))
}

/// CPU time of all processes that this one started and that ended.
fn children() -> Result<Duration, Failure> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = |time: nix::sys::time::TimeVal| {
        time.tv_sec().unsigned_abs() * 1_000_000 + time.tv_usec().unsigned_abs()
    };
    Ok(Duration::from_micros(micros(usage.user_time()) + micros(usage.system_time())))
}
