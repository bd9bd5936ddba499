#![no_main]
//! Feeds any bytes to the `config` target.

#[allow(dead_code)]
#[path = "../targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::config(bytes));
