//! The byte layer, checked against an independent reader (`opentelemetry-proto` and `prost`).

mod arbitrary;
mod cost;
mod encode;
mod fuzz;
mod inflate;
mod json;
mod regroup;
mod round_trip;
mod scan;
mod splice;
