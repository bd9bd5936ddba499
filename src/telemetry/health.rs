//! Health means progress: every part says what moved, and when something last should have.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;

/// How a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Ok,
    /// It will pass, or somebody outside must act: not ready, but alive.
    NotReady,
    /// Only a restart helps.
    Dead,
}

/// One part's word on itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub part: String,
    pub status: Status,
    /// Empty where all is well.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl Report {
    pub fn ok(part: impl Into<String>) -> Self {
        Report { part: part.into(), status: Status::Ok, why: String::new() }
    }

    pub fn not_ready(part: impl Into<String>, why: impl Into<String>) -> Self {
        Report { part: part.into(), status: Status::NotReady, why: why.into() }
    }

    pub fn dead(part: impl Into<String>, why: impl Into<String>) -> Self {
        Report { part: part.into(), status: Status::Dead, why: why.into() }
    }

    /// Not ready once nothing has moved for so long although there is work.
    pub fn moving(part: impl Into<String>, still: Option<Duration>) -> Self {
        match still {
            Some(still) if still >= STILL => {
                Report::not_ready(part, format!("nothing moved for {} s", still.as_secs()))
            }
            _ => Report::ok(part),
        }
    }
}

/// A part with work that does not move for this long is not ready.
pub const STILL: Duration = Duration::from_secs(8);

/// Asks a part.
pub type Check = Box<dyn Fn() -> Vec<Report> + Send + Sync>;

/// All parts that report.
#[derive(Clone, Default)]
pub struct Health {
    checks: Arc<Mutex<Vec<Check>>>,
}

/// What the endpoints answer.
#[derive(Debug, Serialize)]
pub struct Answer {
    pub status: Status,
    pub parts: Vec<Report>,
}

impl Health {
    /// Adds a part, or several that report together.
    pub fn add(&self, check: impl Fn() -> Vec<Report> + Send + Sync + 'static) {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(check));
    }

    /// Asks every part; the worst one decides.
    pub fn ask(&self) -> Answer {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        let parts: Vec<Report> = checks.iter().flat_map(|check| check()).collect();
        let has = |status| parts.iter().any(|part| part.status == status);
        let status = match () {
            () if has(Status::Dead) => Status::Dead,
            () if has(Status::NotReady) => Status::NotReady,
            () => Status::Ok,
        };
        Answer { status, parts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_part_decides() {
        let health = Health::default();
        assert_eq!(health.ask().status, Status::Ok);
        health.add(|| vec![Report::ok("log"), Report::moving("otlp", Some(STILL))]);
        assert_eq!(health.ask().status, Status::NotReady);
        health.add(|| vec![Report::dead("engine", "it ended")]);
        let answer = health.ask();
        assert_eq!((answer.status, answer.parts.len()), (Status::Dead, 3));
        assert_eq!(Report::moving("otlp", None).status, Status::Ok);
    }
}
