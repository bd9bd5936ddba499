//! Metrics of the process: name, kind, labels, and what it tells. Docs and tests read it; what
//! verdicts count stands in the registry of `emit`.

/// How a metric counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
}

/// One metric. On Prometheus dots become underscores and counters end in `_total`.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    pub says: &'static str,
}

const fn counter(name: &'static str, labels: &'static [&'static str], says: &'static str) -> Row {
    Row { name, kind: Kind::Counter, labels, says }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], says: &'static str) -> Row {
    Row { name, kind: Kind::Gauge, labels, says }
}

pub const HELD_BYTES: &str = "mcp_verdict.held.bytes";
pub const STORAGE_BYTES: &str = "mcp_verdict.storage.bytes";
pub const STORAGE_PENDING: &str = "mcp_verdict.storage.pending_bytes";
pub const STORAGE_RECORDS: &str = "mcp_verdict.storage.records";
pub const STORAGE_DAMAGED: &str = "mcp_verdict.storage.damaged";
pub const ENGINE_QUEUE: &str = "mcp_verdict.engine.queue";
pub const OUTPUTS_WAITING: &str = "mcp_verdict.outputs.waiting";
pub const EXPORTER_QUEUE: &str = "otelcol_exporter_queue_size";
pub const EXPORTER_BYTES: &str = "mcp_verdict.exporter.bytes";

/// How the process does.
pub const PROCESS_METRICS: &[Row] = &[
    gauge(HELD_BYTES, &[], "Copies of spans that wait for their verdict."),
    gauge(
        STORAGE_BYTES,
        &[],
        "Bytes that count against storage.max_size: on disk all files, with those of what is done \
         and not in a checkpoint yet, and the room kept for the next checkpoint.",
    ),
    gauge(STORAGE_PENDING, &[], "Bytes of records that are not done: what waits."),
    gauge(STORAGE_RECORDS, &[], "Records that are not done."),
    counter(STORAGE_DAMAGED, &["kind"], "What was found damaged, or left out, by kind."),
    gauge(ENGINE_QUEUE, &[], "Exports that wait for the engine."),
    gauge(OUTPUTS_WAITING, &[], "Bytes of events and verdict spans that are not logged yet."),
    counter("otelcol_receiver_accepted_spans", &["receiver", "transport"], "Spans taken."),
    counter("otelcol_receiver_accepted_log_records", &["receiver", "transport"], "Records taken."),
    counter("otelcol_receiver_accepted_metric_points", &["receiver", "transport"], "Points taken."),
    counter(
        "otelcol_receiver_accepted_profile_samples",
        &["receiver", "transport"],
        "Samples taken.",
    ),
    counter("otelcol_receiver_refused_spans", &["receiver", "transport"], "Spans not taken."),
    counter(
        "otelcol_receiver_refused_log_records",
        &["receiver", "transport"],
        "Records not taken.",
    ),
    counter(
        "otelcol_receiver_refused_metric_points",
        &["receiver", "transport"],
        "Points not taken.",
    ),
    counter(
        "otelcol_receiver_refused_profile_samples",
        &["receiver", "transport"],
        "Samples not taken.",
    ),
    counter(
        "otelcol_receiver_requests",
        &["receiver", "transport", "outcome"],
        "Export requests by outcome.",
    ),
    counter("otelcol_receiver_refused_connections", &["reason"], "Connections closed at once."),
    counter("otelcol_exporter_sent_spans", &["exporter"], "Spans that a backend took."),
    counter("otelcol_exporter_sent_log_records", &["exporter"], "Records that a backend took."),
    counter("otelcol_exporter_sent_metric_points", &["exporter"], "Points that a backend took."),
    counter("otelcol_exporter_sent_profile_samples", &["exporter"], "Samples that a backend took."),
    counter("otelcol_exporter_send_failed_spans", &["exporter", "reason"], "Spans dropped."),
    counter(
        "otelcol_exporter_send_failed_log_records",
        &["exporter", "reason"],
        "Records dropped.",
    ),
    counter(
        "otelcol_exporter_send_failed_metric_points",
        &["exporter", "reason"],
        "Points dropped.",
    ),
    counter(
        "otelcol_exporter_send_failed_profile_samples",
        &["exporter", "reason"],
        "Samples dropped.",
    ),
    counter("otelcol_exporter_retries", &["exporter", "reason"], "Attempts to be repeated."),
    gauge(
        EXPORTER_QUEUE,
        &["exporter", "signal"],
        "Exports that wait or are on the wire, in memory and in the log.",
    ),
    gauge(
        EXPORTER_BYTES,
        &["exporter", "signal", "place"],
        "Bytes of them, by place: memory, or storage, from where they are read back.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_sentences_end() {
        let mut seen = std::collections::BTreeSet::new();
        for row in PROCESS_METRICS {
            assert!(seen.insert(row.name), "{} is there twice", row.name);
            assert!(row.says.ends_with('.'), "{}", row.name);
        }
    }
}
