//! OTLP out: held spans, the outbox, batches by bytes, exporters and their retries.

pub mod settings;
