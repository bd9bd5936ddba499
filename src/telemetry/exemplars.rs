//! Which call a count came from: for each series the newest, as ids alone.
//!
//! Promises: bounded by series; nothing but ids and a time is kept.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry::KeyValue;

use crate::model::ids::{Digest16, Nanos, SpanRef};

/// Whom to look at for one addition to a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exemplar {
    /// The request's span, or the record's.
    pub at: SpanRef,
    /// By which id the page and the API know it.
    pub chain: Option<Digest16>,
    /// When it was counted, in Unix nanoseconds.
    pub when: Nanos,
}

/// Series that have one; what comes beyond has none.
const SERIES: usize = 10_000;

type Series = (&'static str, Vec<KeyValue>);

/// The newest exemplar of each series.
#[derive(Clone, Default)]
pub struct Exemplars {
    newest: Arc<Mutex<HashMap<Series, Exemplar>>>,
}

/// By the name on Prometheus, without its ending, and the labels in order.
pub type BySeries = BTreeMap<(String, Vec<(String, String)>), Exemplar>;

impl Exemplars {
    /// From now on this one stands for the series.
    pub fn put(&self, metric: &'static str, labels: Vec<KeyValue>, exemplar: Exemplar) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let series = (metric, labels);
        let room = newest.len() < SERIES || newest.contains_key(&series);
        if room && exemplar.at.recorded() {
            newest.insert(series, exemplar);
        }
    }

    /// All of them, as a scrape looks for them.
    pub fn by_series(&self) -> BySeries {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let one = |((metric, labels), exemplar): (&Series, &Exemplar)| {
            let label =
                |pair: &KeyValue| (pair.key.as_str().replace('.', "_"), pair.value.to_string());
            let mut labels: Vec<_> = labels.iter().map(label).collect();
            labels.sort();
            ((metric.replace('.', "_"), labels), *exemplar)
        };
        newest.iter().map(one).collect()
    }
}
