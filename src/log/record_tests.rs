//! Records on disk, written and walked: every entry comes back, whatever stands around it.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

const MARKER: Marker = Marker(0x1122_3344_5566_7788);

fn record(kind: Kind, payload: &[u8]) -> Record {
    let payload = Bytes::copy_from_slice(payload);
    Record { kind, signal: Signal::Logs, coding: Coding::Zstd, payload }
}

fn put(position: u64, record: &Record, out: &mut Vec<u8>) {
    put_record(MARKER, Position(position), record, out);
    out.extend_from_slice(&record.payload);
}

fn out_id(number: u8) -> OutId {
    let digest = |n: u8| Digest16([n; 16]);
    OutId {
        chain: digest(number),
        span: SpanRef { trace: TraceId([number; 16]), span: SpanId([number; 8]) },
        revision: number.into(),
        closes: number % 2 == 1,
        digest: digest(number + 1),
    }
}

/// The entries of a file, and what else is in it.
fn shape(bytes: &[u8]) -> Vec<String> {
    walk(MARKER, bytes)
        .map(|found| match found {
            Found::Entry { entry: Entry::Record { position, .. }, .. } => position.0.to_string(),
            Found::Entry { entry: Entry::Marks(marks), .. } => format!("marks {}", marks.len()),
            Found::Damaged(at) => format!("damaged {at:?}"),
            Found::Torn(at) => format!("torn {at:?}"),
        })
        .collect()
}

#[test]
fn the_format_is_fixed() {
    let mut out = Vec::new();
    put(7, &record(Kind::In, b"abc"), &mut out);
    let hex: String = out.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "88776655443322110e000000746642890107000000000000000102616263");
}

#[test]
fn entries_are_read_as_they_were_put() {
    let records = [
        record(Kind::In, b""),
        record(Kind::In, b"payload"),
        record(Kind::Out(vec![]), b"x"),
        record(Kind::Out(vec![out_id(1), out_id(2)]), b"events"),
    ];
    for record in &records {
        let mut bytes = Vec::new();
        put(9, record, &mut bytes);
        assert_eq!(entry_length(record), Some(bytes.len() as u64));
        let (entry, length) = entry(MARKER, &bytes).unwrap();
        assert_eq!(length, bytes.len());
        let want = Entry::Record {
            position: Position(9),
            kind: record.kind.clone(),
            signal: record.signal,
            coding: record.coding,
            payload: &record.payload,
        };
        assert_eq!(entry, want);
    }
    let part = |part| Mark::Delivered { exporter: "otlp/eu".into(), part };
    let marks = vec![
        Noted::new(Position(3), Mark::Done),
        Noted::Done { from: Position(4), to: Position(1 << 40) },
        Noted::new(Position(5), part(Part::Rest)),
        Noted::new(Position(6), part(Part::Held)),
    ];
    let mut bytes = Vec::new();
    put_marks(MARKER, &marks, &mut bytes);
    assert_eq!(entry(MARKER, &bytes).unwrap(), (Entry::Marks(marks), bytes.len()));
}

#[test]
fn every_signal_and_coding_has_its_byte() {
    for signal in Signal::ALL {
        for coding in [Coding::Identity, Coding::Gzip, Coding::Zstd] {
            let mut bytes = Vec::new();
            put(1, &Record { kind: Kind::In, signal, coding, payload: Bytes::new() }, &mut bytes);
            let (Entry::Record { signal: s, coding: c, .. }, _) = entry(MARKER, &bytes).unwrap()
            else {
                panic!("a record")
            };
            assert_eq!((s, c), (signal, coding));
        }
    }
}

#[test]
fn what_is_wrong_is_told() {
    let mut bytes = Vec::new();
    put(1, &record(Kind::In, b"payload"), &mut bytes);
    let fault = |bytes: &[u8]| entry(MARKER, bytes).unwrap_err();
    assert_eq!(fault(b""), Fault::Short);
    assert_eq!(fault(&bytes[..HEADER - 1]), Fault::Short);
    assert_eq!(fault(&bytes[..bytes.len() - 1]), Fault::Short);
    assert_eq!(entry(Marker(1), &bytes).unwrap_err(), Fault::Marker);
    let mut flipped = bytes.clone();
    *flipped.last_mut().unwrap() ^= 1;
    assert_eq!(fault(&flipped), Fault::Checksum);
    for body in [&b""[..], b"\x09", b"\x01short", &[1, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0]] {
        let mut unknown = Vec::new();
        let start = open_entry(MARKER, &mut unknown);
        unknown.extend_from_slice(body);
        close_entry(start, &[], &mut unknown);
        assert_eq!(fault(&unknown), Fault::Body, "{body:?}");
    }
}

#[test]
fn a_damaged_entry_costs_only_itself() {
    let mut bytes = Vec::new();
    let mut ends = Vec::new();
    for position in 1..=3 {
        put(position, &record(Kind::In, b"payload"), &mut bytes);
        ends.push(bytes.len());
    }
    assert_eq!(shape(&bytes), ["1", "2", "3"]);
    for at in ends[0]..ends[1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        let middle = format!("damaged {}..{}", ends[0], ends[1]);
        assert_eq!(shape(&damaged), ["1", middle.as_str(), "3"], "byte {at}");
    }
    let lost_inside = [&bytes[..ends[0]], &bytes[ends[0] + 5..]].concat();
    assert_eq!(shape(&lost_inside)[2], "3");
    for cut in ends[1] + 1..ends[2] {
        assert_eq!(shape(&bytes[..cut])[2], format!("torn {}..{cut}", ends[1]));
    }
    let mut last = bytes.clone();
    *last.last_mut().unwrap() ^= 1;
    let damaged = format!("damaged {}..{}", ends[1], ends[2]);
    assert_eq!(shape(&last)[2], damaged, "it was whole once");
    let zeroed = [&bytes[..], &[0; 100]].concat();
    let torn = format!("torn {}..{}", ends[2], ends[2] + 100);
    assert_eq!(shape(&zeroed)[3], torn, "room that was never written");
}

proptest! {
    /// Any bytes, with real entries in between: no panic, ranges without a gap, every entry found
    /// that no junk overlaps.
    #[test]
    fn any_bytes_are_walked(
        junk in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..6),
    ) {
        let mut bytes = Vec::new();
        for (position, junk) in junk.iter().enumerate() {
            bytes.extend_from_slice(junk);
            put(position as u64, &record(Kind::In, junk), &mut bytes);
        }
        let mut end = 0;
        let mut entries = 0;
        for found in walk(MARKER, &bytes) {
            let at = match &found {
                Found::Entry { at, .. } | Found::Damaged(at) | Found::Torn(at) => at.clone(),
            };
            prop_assert!(at.start == end && at.end > at.start);
            end = at.end;
            entries += usize::from(matches!(found, Found::Entry { .. }));
        }
        prop_assert_eq!((end, entries), (bytes.len(), junk.len()));
    }

    /// A body whose checksum holds may still say anything.
    #[test]
    fn any_body_is_read(body in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..5) {
        let mut bytes = Vec::new();
        let start = open_entry(MARKER, &mut bytes);
        bytes.push(kind);
        bytes.extend_from_slice(&body);
        close_entry(start, &[], &mut bytes);
        if let Ok((_, length)) = entry(MARKER, &bytes) {
            prop_assert_eq!(length, bytes.len());
        }
    }
}
