//! Everything `mcp-verdict run` needs, resolved: what configuration produces and `app` consumes.

use std::time::Duration;

use crate::{export, log, model::policy::Policy, receive, telemetry};

#[derive(Clone, Debug)]
pub struct Settings {
    pub receive: receive::Settings,
    pub policy: Policy,
    pub outputs: Outputs,
    pub limits: Limits,
    pub storage: log::Settings,
    pub exporters: Vec<export::settings::Exporter>,
    pub shutdown_timeout: Duration,
    pub telemetry: telemetry::Settings,
}

/// Which verdicts become what (`verdict_events`, `verdict_spans`, `enrich`).
#[derive(Clone, Copy, Debug)]
pub struct Outputs {
    pub events: Which,
    pub spans: Which,
    pub full: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    All,
    Problems,
    None,
}

/// Bytes, and counts where the name says so.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Copies of spans that wait for their verdict.
    pub held_spans: usize,
    /// Distinct values of one label of one metric (a count).
    pub label_values: usize,
}

impl Default for Outputs {
    fn default() -> Self {
        Outputs { events: Which::All, spans: Which::Problems, full: false }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits { held_spans: 64 << 20, label_values: 2000 }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            receive: receive::Settings::default(),
            policy: Policy::default(),
            outputs: Outputs::default(),
            limits: Limits::default(),
            storage: log::Settings::default(),
            exporters: Vec::new(),
            shutdown_timeout: Duration::from_secs(30),
            telemetry: telemetry::Settings::default(),
        }
    }
}
