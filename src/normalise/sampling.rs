//! What a span says of how its trace was sampled: its flags and its tracestate.

use crate::model::fact::Sampling;
use crate::model::ids::TraceId;

/// Reads `flags` and the OpenTelemetry entry of a tracestate (`ot=th:…;rv:…`).
pub fn sampling(flags: Option<u32>, state: &str, trace: TraceId) -> Sampling {
    let flags = flags.unwrap_or(0);
    Sampling {
        sampled_bit: flags & 1 != 0,
        has_flags: flags & 0x100 != 0,
        below_threshold: below_threshold(state, trace).unwrap_or(false),
    }
}

fn below_threshold(state: &str, trace: TraceId) -> Option<bool> {
    let entry = state.split(',').find_map(|entry| entry.trim().strip_prefix("ot="))?;
    let field = |name: &str| entry.split(';').find_map(|pair| pair.strip_prefix(name));
    let threshold = field("th:").filter(|hex| (1..=14).contains(&hex.len()))?;
    // Trailing zeros of a threshold are left out by convention.
    let threshold = u64::from_str_radix(&format!("{threshold:0<14}"), 16).ok()?;
    let random = match field("rv:") {
        Some(hex) if hex.len() == 14 => u64::from_str_radix(hex, 16).ok()?,
        // Without `rv` the last 56 bits of the trace id are the randomness.
        _ => trace.0[9..].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
    };
    Some(random < threshold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_read_from_tracestate() {
        let trace = TraceId([0xff; 16]);
        for (state, want) in [
            ("ot=th:8;rv:00000000000000", true),
            ("ot=th:8;rv:ffffffffffffff", false),
            ("ot=th:8", false),
            ("other=1, ot=rv:7fffffffffffff;th:8", true),
            ("ot=th:xyz", false),
            ("", false),
        ] {
            assert_eq!(sampling(Some(0), state, trace).below_threshold, want, "{state}");
        }
        let seen = sampling(Some(0x101), "", trace);
        assert!(seen.sampled_bit && seen.has_flags);
    }
}
