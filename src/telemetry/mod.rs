//! Our own telemetry: metrics, health, logs. Nothing that a client sent stands in any of them.

pub mod settings;

pub use settings::Settings;
