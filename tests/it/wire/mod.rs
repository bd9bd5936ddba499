//! The byte layer, checked against an independent reader (`opentelemetry-proto` and `prost`).

mod json;
mod scan;
