//! What must hold for any bytes: the bodies of the fuzz targets, also run by the tests.

use std::sync::Arc;

use bytes::Bytes;
use mcp_verdict::catalog::lockfile::Lockfile;
use mcp_verdict::config;
use mcp_verdict::engine::{Checkpoint, Engine, FORMAT, Limits, Revisions, replay};
use mcp_verdict::log::record::{Entry, Found, Marker, put_record, walk};
use mcp_verdict::log::{Kind, Record, checkpoint as checkpoint_file};
use mcp_verdict::model::fact::Sighting;
use mcp_verdict::model::ids::{Arrival, Position, SECOND};
use mcp_verdict::model::policy::Policy;
use mcp_verdict::normalise::sight;
use mcp_verdict::wire::Signal;
use mcp_verdict::wire::encode::NewAttr;
use mcp_verdict::wire::fields::Fields;
use mcp_verdict::wire::inflate::{self, Coding, deflate};
use mcp_verdict::wire::json::{self, from_protobuf, to_protobuf};
use mcp_verdict::wire::regroup::{Part, items, regroup, remove_items};
use mcp_verdict::wire::scan::{Attrs, ValueRef, check, resource_logs, resource_spans};
use mcp_verdict::wire::splice::{Edit, Place, Redaction, enrich, redact_export, split};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::{DecodeError, Message};

fn decode(signal: Signal, bytes: &[u8]) -> Result<(), DecodeError> {
    match signal {
        Signal::Traces => ExportTraceServiceRequest::decode(bytes).map(drop),
        Signal::Logs => ExportLogsServiceRequest::decode(bytes).map(drop),
        Signal::Metrics => ExportMetricsServiceRequest::decode(bytes).map(drop),
        Signal::Profiles => ExportProfilesServiceRequest::decode(bytes).map(drop),
    }
}

/// Visits every value and counts the leaves.
fn leaves(value: &ValueRef<'_>) -> usize {
    match value {
        ValueRef::Array(values) => values.clone().map(|value| leaves(&value)).sum(),
        ValueRef::KvList(pairs) => all(pairs.clone()),
        _ => 1,
    }
}

fn all(attributes: Attrs<'_>) -> usize {
    attributes.map(|attribute| leaves(&attribute.value)).sum()
}

/// Counts matter only for having been counted.
fn drop_count(_: usize) {}

/// What the other reader refuses and we forward: text that is not UTF-8, and numbers of another
/// width, which are unknown fields to most readers.
fn forwarded(error: &str) -> bool {
    let width = error.contains("invalid wire type") && !error.contains("LengthDelimited");
    width || error.contains("UTF-8")
}

/// The check agrees with an independent reader, and views of what it accepts show every item.
pub fn scan(bytes: &[u8]) {
    for signal in Signal::ALL {
        let ours = check(signal, bytes);
        let theirs = decode(signal, bytes);
        match (&ours, &theirs) {
            (Ok(_), Err(error)) => assert!(forwarded(&error.to_string()), "{error}"),
            // We count the request as the first level, as the strictest readers do.
            (Err(error), Ok(())) => assert!(error.reason.contains("deep"), "{error}"),
            _ => {}
        }
    }
    let mut spans = 0;
    for scope in resource_spans(bytes).flat_map(|resource| resource.scopes()) {
        for span in scope.spans() {
            spans += 1;
            assert_eq!(span.bytes, &bytes[span.offset..span.offset + span.bytes.len()]);
            all(span.attributes());
            span.events().map(|event| all(event.attributes())).for_each(drop_count);
            span.links().map(|link| all(link.attributes())).for_each(drop_count);
        }
    }
    if let Ok(counts) = check(Signal::Traces, bytes) {
        assert_eq!(counts.items, spans);
    }
    for record in resource_logs(bytes).flat_map(|r| r.scopes()).flat_map(|s| s.records()) {
        all(record.attributes());
        record.body.as_ref().map(leaves);
    }
}

/// What is accepted is readable protobuf, and its JSON is a fixed point.
pub fn json(bytes: &[u8]) {
    let limits = json::Limits { max_bytes: 1 << 20 };
    for signal in Signal::ALL {
        let Ok(converted) = to_protobuf(signal, bytes, limits) else { continue };
        decode(signal, &converted.bytes).expect("what we write is readable");
        let written = from_protobuf(signal, &converted.bytes);
        let again = to_protobuf(signal, &written, limits).expect("what we write, we read");
        assert_eq!(again.rejected, 0);
        assert_eq!(from_protobuf(signal, &again.bytes), written);
        // Any protobuf has a JSON form, readable or not.
        from_protobuf(signal, bytes);
    }
}

/// Nothing inflates beyond the limit, and what is deflated comes back.
pub fn inflate(bytes: &[u8]) {
    let limits = inflate::Limits { max_bytes: 1 << 21, max_ratio: 300 };
    for coding in [Coding::Identity, Coding::Gzip, Coding::Zstd] {
        if let Ok(out) = inflate::inflate(coding, bytes, limits) {
            assert!(out.len() <= limits.max_bytes);
        }
        let body = deflate(coding, bytes).expect("memory suffices");
        assert_eq!(inflate::inflate(coding, &body, limits).expect("our own body"), bytes);
    }
}

fn readable(bytes: &[u8]) -> bool {
    Fields::new(bytes).all(|field| field.is_ok())
}

fn but_attributes(span: &[u8]) -> Vec<u8> {
    let fields = Fields::new(span).flatten().filter(|field| field.number != 9);
    fields.flat_map(|field| span[field.range].to_vec()).collect()
}

fn redact(place: Place<'_>, value: &ValueRef<'_>) -> Redaction {
    match (place, leaves(value) % 3) {
        (_, 0) => Redaction::Keep,
        (Place::Body, _) | (_, 1) => Redaction::Replace("digest".into()),
        _ => Redaction::Drop,
    }
}

/// An edit leaves a span readable and its other fields alone; no item is lost when exports are
/// taken apart.
pub fn splice(bytes: &[u8]) {
    let add = [NewAttr::new("mcp_verdict.state", "healthy"), NewAttr::new("a", 1i64)];
    let edit = Edit { add: &add, replace_prefix: Some("mcp_verdict."), redact: None };
    let new = enrich(bytes, &edit);
    if readable(bytes) {
        assert!(readable(&new));
        assert_eq!(but_attributes(&new), but_attributes(bytes));
        assert!(readable(&enrich(bytes, &Edit { redact: Some(&redact), ..edit })));
    } else {
        assert_eq!(new, bytes);
    }
    for signal in Signal::ALL {
        let redacted = redact_export(signal, bytes, &redact);
        // What cannot be read may go with the attribute it stood in, so only one way.
        assert!(check(signal, bytes).is_err() || check(signal, &redacted).is_ok());
    }
    let held = |index: usize| (index * 7 + bytes.len()).is_multiple_of(3);
    let rest = remove_items(bytes, held);
    let parts = split(bytes, bytes.len() / 2);
    if let Ok(counts) = check(Signal::Traces, bytes) {
        let held = (0..counts.items).filter(|index| held(*index)).count();
        let left = check(Signal::Traces, &rest).expect("the rest is readable").items;
        assert_eq!(left + held, counts.items);
        let arrived: usize = parts.parts.iter().map(|part| items(part).count()).sum();
        assert_eq!(arrived + parts.too_big.len(), counts.items);
        let all: Vec<_> = items(bytes).collect();
        let origins: Vec<_> = all.iter().map(|i| (i.resource.origin(), i.scope.origin())).collect();
        let whole: Vec<_> = all
            .iter()
            .zip(&origins)
            .map(|(item, (resource, scope))| Part { resource, scope, item: item.bytes })
            .collect();
        assert_eq!(check(Signal::Traces, &regroup(&whole)).map(|c| c.items), Ok(counts.items));
    }
}

/// Any bytes as a file of the log are covered without a gap, and a whole entry behind any damage is
/// found.
pub fn record(bytes: &[u8]) {
    // What the corpus is written with.
    let marker = Marker(0x6d63_7076_6572_6463);
    let mut at = 0;
    for found in walk(marker, bytes) {
        let (Found::Entry { at: range, .. } | Found::Damaged(range) | Found::Torn(range)) = found;
        assert!(range.start == at && range.end > at, "a gap at {at}");
        at = range.end;
    }
    assert_eq!(at, bytes.len());
    let payload = Bytes::from_static(b"whole");
    let whole = Record { kind: Kind::In, signal: Signal::Logs, coding: Coding::Gzip, payload };
    let mut file = bytes.to_vec();
    put_record(marker, Position(7), &whole, &mut file);
    file.extend_from_slice(&whole.payload);
    let last = walk(marker, &file).last();
    assert!(
        matches!(last, Some(Found::Entry { entry: Entry::Record { payload: b"whole", .. }, .. })),
        "the whole entry is not found"
    );
}

/// Any bytes as a checkpoint are refused or taken up: as a file, and as the slices of one, whose
/// checksums would hold. An engine that takes them up goes on, and its own can be read.
pub fn checkpoint(bytes: &[u8]) {
    let _ = checkpoint_file::read(&mut &bytes[..], FORMAT);
    let (length, rest) = bytes.split_first_chunk().unwrap_or((&[0; 4], bytes));
    let (remains, traces) = rest.split_at(rest.len().min(u32::from_le_bytes(*length) as usize));
    let slices = [remains.to_vec(), traces.to_vec()];
    let mut file = Vec::new();
    let left_out =
        checkpoint_file::write(&mut file, FORMAT, Position(7), 0, &mut slices.iter().cloned());
    assert_eq!(left_out.expect("memory suffices"), 0);
    let read = checkpoint_file::read(&mut file.as_slice(), FORMAT).expect("our own file");
    assert_eq!((read.position, &read.slices[..]), (Position(7), &slices[..]));
    for slices in [&slices[..1], &slices[..]] {
        let Some(found) = Checkpoint::from_slices(slices) else { continue };
        let mut engine = Engine::new(Policy::default().into(), Limits::default());
        let mut now = Arrival { monotonic: 86_400 * SECOND, wall: 1_800_000_000 * SECOND };
        engine.restore(found, now);
        for _ in 0..2 {
            now.monotonic += 7 * SECOND;
            engine.tick(now);
        }
        let again: Vec<Vec<u8>> = engine.checkpoint(now).into_slices().collect();
        assert!(Checkpoint::from_slices(&again).is_some(), "our own checkpoint");
    }
}

/// Any text is a configuration or a list of mistakes, each of which says something; whichever it
/// is, it is so again.
pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let env = |name: &str| (name.len() > 3).then(|| format!("[{name}]"));
    match config::read_text("fuzz.yaml", text, &env) {
        Ok(settings) => {
            assert!(!settings.exporters.is_empty());
            assert_eq!(config::read_text("fuzz.yaml", text, &env), Ok(settings));
        }
        Err(mistakes) => {
            assert!(mistakes.iter().any(|mistake| !mistake.warning));
            assert!(mistakes.iter().all(|mistake| !mistake.says.is_empty()));
        }
    }
}

/// Any text is a lockfile or damage with a line of it; what is read is printed and read again.
pub fn lockfile(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Lockfile::parse(text) {
        Ok(lockfile) => {
            let printed = lockfile.print();
            let again = Lockfile::parse(&printed).expect("what is printed is read");
            assert_eq!(again.pins(), lockfile.pins());
            assert_eq!(again.print(), printed);
        }
        Err(damage) => assert!(!damage.to_string().is_empty()),
    }
}

/// Any export is judged, and judged the same when it comes twice.
pub fn judged(bytes: &[u8]) {
    let policy = Arc::new(Policy::default());
    let of = |signal| sight(signal, bytes, &policy);
    let sightings: Vec<Sighting> = [Signal::Traces, Signal::Logs].into_iter().map(of).collect();
    let once = replay(sightings.clone(), &policy, Revisions::Final);
    let twice = replay([&sightings[..], &sightings[..]].concat(), &policy, Revisions::Final);
    assert_eq!(format!("{once:?}"), format!("{twice:?}"));
}
