//! Wiring: which part feeds which, in what order they start and stop.

pub mod settings;

pub use settings::Settings;
