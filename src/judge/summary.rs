//! The summary of a run (judgment.md §8): counts over `tools/call`, superseded attempts left out.

use std::collections::BTreeMap;

use crate::model::record::{Summary, Verdict};
use crate::model::words::Lifecycle;

/// Counts final verdicts; `incidents` is the number of incident records beside them.
pub fn summary<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>, incidents: u64) -> Summary {
    let mut sum = Summary { incidents, ..Summary::default() };
    let calls = verdicts.into_iter().filter(|verdict| verdict.method.as_str() == "tools/call");
    for verdict in calls.filter(|verdict| verdict.lifecycle != Lifecycle::Superseded) {
        sum.attempts += 1;
        sum.protocol_success += u64::from(verdict.protocol_success());
        sum.verified_success += u64::from(verdict.verified_success());
        count(&mut sum.states, verdict.state);
        if let Some(layer) = verdict.first_failed_layer {
            count(&mut sum.first_failed_layers, layer);
        }
    }
    let rate = |part: u64| (sum.attempts > 0).then(|| part as f64 / sum.attempts as f64);
    sum.protocol_success_rate = rate(sum.protocol_success);
    sum.verified_success_rate = rate(sum.verified_success);
    sum
}

fn count<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K) {
    *counts.entry(key).or_default() += 1;
}
