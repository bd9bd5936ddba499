//! Content codings: both ways, in pieces, cut, damaged and too large.

use std::io::Write;

use mcp_verdict::wire::inflate::{Coding, InflateError, Limits, deflate, inflate};

const LIMITS: Limits = Limits { max_bytes: 4 << 20, max_ratio: 200 };
const BOTH: [Coding; 2] = [Coding::Gzip, Coding::Zstd];

#[test]
fn names_are_read_in_any_case() {
    for (name, coding) in [
        ("GZIP", Coding::Gzip),
        ("Zstd", Coding::Zstd),
        ("identity", Coding::Identity),
        ("", Coding::Identity),
    ] {
        assert_eq!(Coding::parse(name), Some(coding));
    }
    assert_eq!(Coding::parse("br"), None);
}

#[test]
fn members_and_frames_are_one_body() {
    for coding in BOTH {
        let first = deflate(coding, b"first ").expect("deflated");
        let second = deflate(coding, b"second").expect("deflated");
        let body = [first, second].concat();
        assert_eq!(inflate(coding, &body, LIMITS).expect("inflated"), &b"first second"[..]);
        assert_eq!(inflate(coding, b"", LIMITS).expect("no bytes"), &b""[..]);
    }
}

#[test]
fn a_cut_body_is_an_error_at_every_length() {
    for coding in BOTH {
        let text = b"some text that is long enough to be cut in many places";
        let body = deflate(coding, text).expect("deflated");
        for length in 1..body.len() {
            let cut = inflate(coding, &body[..length], LIMITS);
            assert_eq!(cut, Err(InflateError::Corrupt(coding)), "cut at {length}");
        }
    }
}

#[test]
fn limits_hold_for_size_and_for_ratio() {
    let at_limit: Vec<u8> = (0..LIMITS.max_bytes).map(|at| ((at * at) >> 5) as u8).collect();
    for coding in BOTH {
        let body = deflate(coding, &at_limit).expect("deflated");
        let loose = Limits { max_ratio: usize::MAX, ..LIMITS };
        assert_eq!(inflate(coding, &body, loose).map(|out| out.len()), Ok(LIMITS.max_bytes));
        let tight = Limits { max_bytes: LIMITS.max_bytes - 1, ..loose };
        let error = Err(InflateError::TooLarge { limit: tight.max_bytes });
        assert_eq!(inflate(coding, &body, tight), error);
        let zeros = deflate(coding, &vec![0; 3 << 20]).expect("deflated").into_owned();
        let error = Err(InflateError::RatioTooLarge { limit: 200 });
        assert_eq!(inflate(coding, &zeros, LIMITS), error);
    }
    let error = Err(InflateError::TooLarge { limit: 3 });
    let tiny = Limits { max_bytes: 3, max_ratio: 1 };
    assert_eq!(inflate(Coding::Identity, b"four", tiny), error);
}

#[test]
fn a_zstd_frame_of_a_large_window_within_the_limit_is_read() {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).expect("an encoder");
    encoder.window_log(24).expect("a window");
    encoder.write_all(&vec![7; 1000]).expect("written");
    let body = encoder.finish().expect("finished");
    let limits = Limits { max_bytes: 64 << 20, max_ratio: 200 };
    assert_eq!(inflate(Coding::Zstd, &body, limits).map(|out| out.len()), Ok(1000));
}
