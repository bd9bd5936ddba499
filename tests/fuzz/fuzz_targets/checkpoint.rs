#![no_main]
//! Feeds any bytes to the `checkpoint` target.

#[allow(dead_code)]
#[path = "../targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::checkpoint(bytes));
