//! The edge as clients and backends see it: the whole program in this process, real ports, and
//! peers that know OTLP by `prost` and `tonic` instead of by our own code.

// A helper that cannot go on fails the test that called it.
#![allow(clippy::unwrap_used)]

mod asked;
mod delivery;
mod judged;
mod killed;
mod kills;
mod oncall;
mod outage;
mod overload;
mod poison;
mod receiving;
mod recovered;
mod refused;
mod slow;
mod starting;
pub mod support;
