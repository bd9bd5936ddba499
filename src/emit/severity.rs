//! How loud a state is (judgment.md §8.2).

use crate::model::words::State;

/// OTLP severities that we use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    Info,
    Warn,
    Error,
}

impl Severity {
    /// OTLP `SeverityNumber`.
    pub fn number(self) -> i32 {
        match self {
            Self::Info => 9,
            Self::Warn => 13,
            Self::Error => 17,
        }
    }

    pub fn text(self) -> &'static str {
        match self {
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }
}

/// ERROR for states with an owner, WARN for `unverified`, else INFO.
pub fn severity(state: State) -> Severity {
    match state {
        State::NeedsAuth
        | State::IncompatibleSession
        | State::Unreachable
        | State::StaleCatalog
        | State::ProtocolError
        | State::ToolFailed
        | State::EffectUnknown
        | State::FalseSuccess => Severity::Error,
        State::Unverified => Severity::Warn,
        State::Working | State::Cancelled | State::Healthy => Severity::Info,
    }
}

/// Whether somebody must act: every state with an owner except `unverified`.
pub fn is_problem(state: State) -> bool {
    severity(state) == Severity::Error
}
