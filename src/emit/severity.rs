//! How loud a state is, and what damage it means: two tables by state (judgment.md §8.2).

use crate::model::record::Verdict;
use crate::model::words::{Impact, Rung, State};

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

/// What the chain may have done to the world, or kept from happening. A failed outcome is a wrong
/// one whatever else is wrong; a call that ran on a stale catalog may have had its effect.
pub fn impact(verdict: &Verdict) -> Impact {
    if verdict.failure_layers.outcome == Rung::Failed {
        return Impact::WrongOutcome;
    }
    match verdict.state {
        State::FalseSuccess => Impact::WrongOutcome,
        State::EffectUnknown => Impact::PossibleEffect,
        State::StaleCatalog if verdict.layers.request != Rung::Passed => Impact::Blocked,
        State::StaleCatalog if verdict.layers.effect == Rung::NotApplicable => Impact::None,
        State::StaleCatalog => Impact::PossibleEffect,
        State::NeedsAuth
        | State::IncompatibleSession
        | State::Unreachable
        | State::ProtocolError
        | State::ToolFailed => Impact::Blocked,
        State::Working | State::Cancelled | State::Unverified | State::Healthy => Impact::None,
    }
}
