//! An export that is encoded once and sent many times, each time with ids that no other number gives,
//! and what every one of its spans has to look like when it comes out.

use std::io::Write;
use std::ops::Range;

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;

use crate::frame::Packet;
use crate::protobuf::fields;

/// Stands in every trace id, where the number of the export will be; the rest is the trace's.
pub const TRACE_MARK: [u8; 8] = *b"\xf7BENCH\x00\xf7";
/// Stands in every span id, before the span's place in the export.
pub const SPAN_MARK: [u8; 6] = *b"\xf6BNCH\xf6";
/// Stands in every session, before its number in the export.
pub const SESSION_MARK: &str = "bench-sessions";

/// Where a number is written, and how.
#[derive(Clone, Copy)]
enum Mark {
    Trace,
    Span,
    Session,
}

struct Item {
    range: Range<usize>,
    marks: Vec<(usize, Mark)>,
    /// Of a half of an MCP request: what its verdict will say.
    state: Option<State>,
}

/// What becomes of a call of the loads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Answered, and nobody saw what it did.
    Unverified,
    /// Answered with an error of the tool: a problem.
    Failed,
}

impl State {
    pub fn word(self) -> &'static [u8] {
        match self {
            State::Unverified => b"unverified",
            State::Failed => b"tool_failed",
        }
    }
}

pub struct Template {
    bytes: Bytes,
    /// in the order of their places
    spans: Vec<Item>,
    /// What becomes of each call.
    calls: Vec<State>,
}

impl Template {
    pub fn new(request: &ExportTraceServiceRequest, calls: Vec<State>) -> Self {
        let bytes = Bytes::from(request.encode_to_vec());
        let mut spans = Vec::new();
        for (_, resource) in fields(&bytes).filter(|(number, _)| *number == 1) {
            for (_, scope) in fields(resource).filter(|(number, _)| *number == 2) {
                for (_, span) in fields(scope).filter(|(number, _)| *number == 2) {
                    let start = span.as_ptr() as usize - bytes.as_ptr() as usize;
                    let has = |text: &[u8]| memchr::memmem::find(span, text).is_some();
                    let state = if has(b"error.type") { State::Failed } else { State::Unverified };
                    let state = has(b"mcp.method.name").then_some(state);
                    let marks = marks(span, start);
                    let (place, _) = place_of(span).expect("every span has ids");
                    spans.push((place, Item { range: start..start + span.len(), marks, state }));
                }
            }
        }
        spans.sort_by_key(|(place, _)| *place);
        assert!(spans.iter().enumerate().all(|(n, (place, _))| n == *place), "a place each");
        Self { bytes, spans: spans.into_iter().map(|(_, item)| item).collect(), calls }
    }

    pub fn spans(&self) -> u64 {
        self.spans.len() as u64
    }

    /// Bytes of an export.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub fn state(&self, place: usize) -> Option<State> {
        self.spans[place].state
    }

    pub fn halves(&self) -> u64 {
        self.spans.iter().filter(|item| item.state.is_some()).count() as u64
    }

    pub fn calls(&self) -> &[State] {
        &self.calls
    }

    /// The export with ids and sessions of this number.
    pub fn numbered(&self, number: u64) -> Vec<u8> {
        let mut copy = self.bytes.to_vec();
        for item in &self.spans {
            write(&mut copy, 0, &item.marks, number);
        }
        copy
    }

    pub fn packet(&self, number: u64) -> Packet {
        Packet::new(&self.numbered(number), false)
    }

    /// As an SDK with `compression: gzip` sends it.
    pub fn gzipped(&self, number: u64) -> Packet {
        let level = flate2::Compression::default();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), level);
        gzip.write_all(&self.numbered(number)).expect("memory takes it");
        Packet::new(&gzip.finish().expect("memory takes it"), true)
    }

    /// What the span at a place of this export was when it was sent, written into `copy`.
    pub fn span<'a>(&self, number: u64, place: usize, copy: &'a mut Vec<u8>) -> &'a [u8] {
        let item = &self.spans[place];
        copy.clear();
        copy.extend_from_slice(&self.bytes[item.range.clone()]);
        write(copy, item.range.start, &item.marks, number);
        copy
    }
}

/// The place in its export, and the export's number as it is on the wire, of a span.
pub fn place_of(span: &[u8]) -> Option<(usize, u64)> {
    let id = |wanted| fields(span).find(|(number, _)| *number == wanted).map(|(_, id)| id);
    let (trace, span) = (id(1)?, id(2)?);
    let number = u64::from_be_bytes(*trace.first_chunk()?);
    Some((u16::from_be_bytes(*span.last_chunk()?).into(), number.wrapping_sub(1)))
}

fn marks(span: &[u8], start: usize) -> Vec<(usize, Mark)> {
    let all: [(&[u8], Mark); 3] = [
        (&TRACE_MARK, Mark::Trace),
        (&SPAN_MARK, Mark::Span),
        (SESSION_MARK.as_bytes(), Mark::Session),
    ];
    let places = all.into_iter().flat_map(|(text, mark)| {
        memchr::memmem::find_iter(span, text).map(move |at| (start + at, mark)).collect::<Vec<_>>()
    });
    places.collect()
}

/// Numbers begin at 1 on the wire: an id that is all zero is none.
fn write(bytes: &mut [u8], offset: usize, marks: &[(usize, Mark)], number: u64) {
    let id = (number + 1).to_be_bytes();
    for &(at, mark) in marks {
        let at = at - offset;
        match mark {
            Mark::Trace => bytes[at..at + 8].copy_from_slice(&id),
            Mark::Span => bytes[at..at + 6].copy_from_slice(&id[2..]),
            Mark::Session => bytes[at..at + SESSION_MARK.len()]
                .copy_from_slice(format!("{number:014x}").as_bytes()),
        }
    }
}
