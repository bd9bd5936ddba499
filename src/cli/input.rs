//! Recorded OTLP from files and stdin: JSON documents (one a line, or spread over lines), protobuf
//! by `.pb` or `.bin` (one message, or messages behind 4-byte lengths as the Collector's file
//! exporter writes them), gzip and zstd by ending. Metrics and profiles are skipped.

use std::borrow::Cow;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::terminal;
use crate::wire::inflate::{self, Coding};
use crate::wire::{Signal, json, scan};

/// Why a file could not be read as OTLP. Holds a place and a reason, never content.
#[derive(Debug)]
pub struct InputError(String);

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Called with each export of traces or logs, in the order of the input.
pub type Take<'a> = &'a mut dyn FnMut(Signal, &[u8]);

/// A recording may inflate to this much: more would not fit in memory either.
const MAX_BYTES: usize = 4 << 30;

/// As a receiver's `limits.inflate_ratio`, where nobody sets it.
const MAX_RATIO: usize = 1000;

/// Reads every export of `paths`; `-` is stdin.
pub fn read(paths: &[PathBuf], take: Take<'_>) -> Result<(), InputError> {
    paths.iter().try_for_each(|path| read_file(path, take))
}

fn read_file(path: &Path, take: Take<'_>) -> Result<(), InputError> {
    let shown = path.display().to_string();
    let wrong = |says: &dyn fmt::Display| InputError(format!("{shown}: {says}"));
    let stdin = path == Path::new("-");
    let raw = match stdin {
        true => {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
        }
        false => std::fs::read(path),
    };
    let raw = raw.map_err(|error| wrong(&format!("cannot be read: {error}")))?;
    let (coding, rest) = if stdin { sniff(&raw) } else { by_ending(path) };
    let limits = inflate::Limits { max_bytes: MAX_BYTES, max_ratio: MAX_RATIO };
    let bytes = inflate::inflate(coding, &raw, limits).map_err(|error| wrong(&error))?;
    let protobuf = match stdin {
        true => !starts_like_json(&bytes),
        false => matches!(rest.extension().and_then(|e| e.to_str()), Some("pb" | "bin")),
    };
    match protobuf {
        true => read_protobuf(&shown, &bytes, take),
        false => read_json(&shown, &bytes, take),
    }
}

/// The coding that the name's ending says, and the name without it.
fn by_ending(path: &Path) -> (Coding, Cow<'_, Path>) {
    let coding = match path.extension().and_then(|ending| ending.to_str()) {
        Some("gz" | "gzip") => Coding::Gzip,
        Some("zst" | "zstd") => Coding::Zstd,
        _ => return (Coding::Identity, Cow::Borrowed(path)),
    };
    (coding, Cow::Owned(path.with_extension("")))
}

/// stdin has no ending; both codings begin with a magic number.
fn sniff(bytes: &[u8]) -> (Coding, Cow<'static, Path>) {
    let coding = match bytes {
        [0x1f, 0x8b, ..] => Coding::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Coding::Zstd,
        _ => Coding::Identity,
    };
    (coding, Cow::Borrowed(Path::new("-")))
}

fn starts_like_json(bytes: &[u8]) -> bool {
    let first = strip_mark(bytes).iter().find(|b| !b.is_ascii_whitespace());
    matches!(first, None | Some(b'{'))
}

/// Without a byte order mark.
fn strip_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

fn read_json(shown: &str, bytes: &[u8], take: Take<'_>) -> Result<(), InputError> {
    let bytes = strip_mark(bytes);
    let mut documents = serde_json::Deserializer::from_slice(bytes).into_iter::<&RawValue>();
    let (mut line, mut counted) = (1, 0);
    loop {
        let at = documents.byte_offset();
        let start = at + bytes[at..].iter().take_while(|b| b.is_ascii_whitespace()).count();
        line += count_lines(&bytes[counted..start]);
        counted = start;
        match documents.next() {
            None => return Ok(()),
            Some(Ok(document)) => read_document(shown, line, document.get().as_bytes(), take)?,
            Some(Err(error)) => {
                // The error counts from the beginning of the file.
                let reason = if error.is_eof() { "is cut off" } else { "is not JSON" };
                let (at, column) = (error.line(), error.column());
                return Err(InputError(format!(
                    "{shown}:{at}: {reason} at column {column}; each line must hold one export"
                )));
            }
        }
    }
}

fn count_lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|b| **b == b'\n').count()
}

fn read_document(
    shown: &str,
    line: usize,
    document: &[u8],
    take: Take<'_>,
) -> Result<(), InputError> {
    let found = signals(document).ok_or_else(|| {
        InputError(format!("{shown}:{line}: is no OTLP export: expected an object"))
    })?;
    if found.others && found.signals.is_empty() {
        return Err(InputError(format!(
            "{shown}:{line}: is no OTLP export: expected `resourceSpans` or `resourceLogs`"
        )));
    }
    let limits = json::Limits { max_bytes: MAX_BYTES };
    for signal in found.signals {
        if !matches!(signal, Signal::Traces | Signal::Logs) {
            continue;
        }
        let export = json::to_protobuf(signal, document, limits).map_err(|error| {
            let (line, column) = (line + error.line - 1, error.column);
            InputError(format!(
                "{shown}:{line}: not readable as OTLP/JSON: {} (column {column})",
                error.reason
            ))
        })?;
        if export.rejected > 0 {
            let (left_out, why) = (export.rejected, &export.message);
            terminal::tell(&format!("{shown}:{line}: {left_out} left out: {why}"));
        }
        take(signal, &export.bytes);
    }
    Ok(())
}

/// What a document's own keys say it is.
#[derive(Default)]
struct Found {
    signals: Vec<Signal>,
    /// Keys that are none of OTLP's.
    others: bool,
}

fn signals(document: &[u8]) -> Option<Found> {
    struct Keys;

    impl<'de> Visitor<'de> for Keys {
        type Value = Found;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Found, M::Error> {
            let mut found = Found::default();
            while let Some(key) = map.next_key::<Cow<'_, str>>()? {
                match &*key {
                    "resourceSpans" => found.signals.push(Signal::Traces),
                    "resourceLogs" => found.signals.push(Signal::Logs),
                    "resourceMetrics" => found.signals.push(Signal::Metrics),
                    "resourceProfiles" => found.signals.push(Signal::Profiles),
                    _ => found.others = true,
                }
                map.next_value::<IgnoredAny>()?;
            }
            found.signals.dedup();
            Ok(found)
        }
    }

    impl<'de> DeserializeSeed<'de> for Keys {
        type Value = Found;

        fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Found, D::Error> {
            reader.deserialize_map(self)
        }
    }

    Keys.deserialize(&mut serde_json::Deserializer::from_slice(document)).ok()
}

fn read_protobuf(shown: &str, bytes: &[u8], take: Take<'_>) -> Result<(), InputError> {
    let messages = framed(bytes).unwrap_or_else(|| vec![bytes]);
    for (at, message) in messages.iter().enumerate() {
        match signal_of(message) {
            Ok(Some(signal)) => take(signal, message),
            Ok(None) => {}
            Err(why) => {
                let number = at + 1;
                return Err(InputError(format!(
                    "{shown}: message {number} is not readable as an OTLP export: {why}"
                )));
            }
        }
    }
    Ok(())
}

/// Messages behind big-endian 4-byte lengths, where the whole file is such a sequence. A bare
/// export begins with 0x0a, which as a length would be 160 MiB.
fn framed(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut messages = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (message, rest) = rest.split_at_checked(length)?;
        messages.push(message);
        bytes = rest;
    }
    (bytes.is_empty() && !messages.is_empty()).then_some(messages)
}

/// Spans, log records and metrics stand under the same field numbers: the first item tells them
/// apart. `None` for metrics and for an empty export.
fn signal_of(message: &[u8]) -> Result<Option<Signal>, String> {
    let first = scan::resource_spans(message)
        .flat_map(|resource| resource.scopes())
        .find_map(|scope| scope.items().next().map(|(item, _)| item));
    let Some(item) = first else {
        return scan::check(Signal::Traces, message).map(|_| None).map_err(|e| e.to_string());
    };
    let span = scan::SpanView::parse(item, 0);
    if span.trace_id().len() == 16 && span.span_id().len() == 8 {
        return scan::check(Signal::Traces, message)
            .map(|_| Some(Signal::Traces))
            .map_err(|e| e.to_string());
    }
    let is = |signal| scan::check(signal, message).is_ok();
    // A log record begins with a fixed-width time, a metric with its name.
    let record = scan::RecordView::parse(item, 0);
    let timed = record.time != 0 || record.observed_time != 0;
    match (is(Signal::Logs), is(Signal::Metrics)) {
        (true, false) => Ok(Some(Signal::Logs)),
        (true, true) => Ok(timed.then_some(Signal::Logs)),
        (false, true) => Ok(None),
        (false, false) => Err("neither spans nor log records".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPANS: &str = concat!(
        r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"#,
        r#""traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708","name":"a"}"#,
        "]}]}]}"
    );
    const LOGS: &str = concat!(
        r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"#,
        r#""timeUnixNano":"5","body":{"stringValue":"b"}}]}]}]}"#
    );
    const METRICS: &str =
        r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m","gauge":{}}]}]}]}"#;

    fn protobuf(signal: Signal, json: &str) -> Vec<u8> {
        json::to_protobuf(signal, json.as_bytes(), json::Limits { max_bytes: 1 << 20 })
            .unwrap()
            .bytes
    }

    /// Signals and lengths of what a file of this name and content holds, or the error.
    fn read_as(name: &str, bytes: &[u8]) -> Result<Vec<Signal>, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let mut seen = Vec::new();
        read(&[path], &mut |signal, _| seen.push(signal)).map(|()| seen).map_err(|error| {
            error.to_string().replace(&format!("{}/", directory.path().display()), "")
        })
    }

    #[test]
    fn json_lines_by_key_and_also_spread_over_lines() {
        let text = format!("\u{feff}{SPANS}\n\n{METRICS}\n{LOGS}\n{{}}\n");
        assert_eq!(read_as("a.jsonl", text.as_bytes()), Ok(vec![Signal::Traces, Signal::Logs]));
        let pretty: serde_json::Value = serde_json::from_str(SPANS).unwrap();
        let pretty = serde_json::to_string_pretty(&pretty).unwrap();
        assert_eq!(read_as("a.json", pretty.as_bytes()), Ok(vec![Signal::Traces]));
    }

    #[test]
    fn both_codings_by_ending() {
        for (coding, name) in [(Coding::Gzip, "a.jsonl.gz"), (Coding::Zstd, "a.jsonl.zst")] {
            let packed = inflate::deflate(coding, SPANS.as_bytes()).unwrap();
            assert_eq!(read_as(name, &packed), Ok(vec![Signal::Traces]), "{name}");
        }
        let logs = protobuf(Signal::Logs, LOGS);
        let packed = inflate::deflate(Coding::Gzip, &logs).unwrap();
        assert_eq!(read_as("a.pb.gz", &packed), Ok(vec![Signal::Logs]));
    }

    #[test]
    fn what_inflates_beyond_measure_is_refused() {
        let blanks = vec![b' '; 64 << 20];
        let packed = inflate::deflate(Coding::Zstd, &blanks).unwrap();
        let error = read_as("a.jsonl.zst", &packed).unwrap_err();
        assert_eq!(error, "a.jsonl.zst: the body inflates to more than 1000 times its size");
    }

    #[test]
    fn protobuf_tells_its_signal_by_its_items() {
        let (spans, logs) = (protobuf(Signal::Traces, SPANS), protobuf(Signal::Logs, LOGS));
        let metrics = protobuf(Signal::Metrics, METRICS);
        assert_eq!(read_as("a.pb", &spans), Ok(vec![Signal::Traces]));
        assert_eq!(read_as("a.bin", &logs), Ok(vec![Signal::Logs]));
        assert_eq!(read_as("a.bin", &metrics), Ok(vec![]));
        assert_eq!(read_as("a.bin", b""), Ok(vec![]));
        let mut all = Vec::new();
        for message in [&spans, &metrics, &logs] {
            all.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
            all.extend(message);
        }
        assert_eq!(read_as("a.pb", &all), Ok(vec![Signal::Traces, Signal::Logs]));
    }

    #[test]
    fn errors_name_file_line_and_reason_and_no_content() {
        for (name, bytes, want) in [
            (
                "a.jsonl",
                format!("{SPANS}\n{{\"resourceSpans\": [secret]}}\n"),
                "a.jsonl:2: is not JSON at column 20; each line must hold one export",
            ),
            (
                "a.jsonl",
                format!("{SPANS}\n{}", &SPANS[..40]),
                "a.jsonl:2: is cut off at column 40; each line must hold one export",
            ),
            ("a.jsonl", "\n[1]\n".into(), "a.jsonl:2: is no OTLP export: expected an object"),
            (
                "a.jsonl",
                r#"{"secret": 1}"#.into(),
                "a.jsonl:1: is no OTLP export: expected `resourceSpans` or `resourceLogs`",
            ),
            ("a.pb", "secret".into(), "a.pb: message 1 is not readable as an OTLP export: "),
            ("a.gz", "secret".into(), "a.gz: the body is not complete, valid gzip"),
        ] {
            let error = read_as(name, bytes.as_bytes()).unwrap_err();
            assert!(error.starts_with(want), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
        let wrong = SPANS.replace("\"a\"", "5");
        let error = read_as("a.jsonl", format!("\n\n{wrong}").as_bytes()).unwrap_err();
        assert!(error.starts_with("a.jsonl:3: not readable as OTLP/JSON: "), "{error}");
    }
}
