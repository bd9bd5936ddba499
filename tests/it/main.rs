//! The one integration test binary: a module an area, so that the crate links once.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says why on the terminal"
)]

mod canary;
mod coverage;
mod dice;
mod digests;
mod docs;
mod edge;
mod fixtures;
mod growth;
mod log;
mod order;
mod packaging;
mod page;
mod pinning;
mod ports;
mod records;
mod reload;
mod rename;
mod semconv;
mod sim;
mod tidy;
mod wire;
