//! The command line.

use crate::Failure;
use crate::rows::{Flow, ROWS, Row};

/// What is measured, and for how long.
pub struct Options {
    form: Form,
    ids: Vec<String>,
    rounds: Option<usize>,
    seconds: Option<u64>,
    /// Whether the result goes into docs/performance.md.
    pub publish: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Whether the harness works; measures nothing.
    Smoke,
    Quick,
    Full,
}

/// Spans of a smoke test.
const SMOKE: u64 = 10_000;

impl Options {
    pub fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut options = Self {
            form: Form::Quick,
            ids: Vec::new(),
            rounds: None,
            seconds: None,
            publish: false,
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--full" => options.form = Form::Full,
                "--smoke" => options.form = Form::Smoke,
                "--publish" => options.publish = true,
                "--row" => options.ids.push(rest.next().ok_or("--row ID")?.clone()),
                "--rounds" => options.rounds = Some(rest.next().ok_or("--rounds N")?.parse()?),
                "--seconds" => options.seconds = Some(rest.next().ok_or("--seconds N")?.parse()?),
                other => {
                    let error = format!("unknown argument '{other}'; see the top of main.rs");
                    return Err(error.into());
                }
            }
        }
        let known = |id: &String| ROWS.iter().any(|row| row.id == id);
        if let Some(unknown) = options.ids.iter().find(|id| !known(id)) {
            let ids: Vec<&str> = ROWS.iter().map(|row| row.id).collect();
            return Err(format!("no row '{unknown}'; there are {}", ids.join(", ")).into());
        }
        Ok(options)
    }

    pub fn smoke(&self) -> bool {
        self.form == Form::Smoke
    }

    pub fn rows(&self) -> impl Iterator<Item = &'static Row> {
        ROWS.iter().filter(|row| match self.ids.is_empty() {
            true => self.form == Form::Full || row.quick > 0,
            false => self.ids.iter().any(|id| id == row.id),
        })
    }

    /// How many of a row's programs take part.
    pub fn programs(&self, row: &Row) -> usize {
        if self.form == Form::Full || row.quick == 0 { usize::MAX } else { row.quick }
    }

    pub fn rounds(&self, row: &Row) -> usize {
        match (self.form, row.fixed) {
            (Form::Full, Some((rounds, _))) => rounds,
            (Form::Full, None) => self.rounds.unwrap_or(5),
            (Form::Quick, _) => self.rounds.unwrap_or(3),
            (Form::Smoke, _) => 1,
        }
    }

    pub fn seconds(&self, row: &Row) -> u64 {
        match (self.form, row.fixed) {
            (Form::Full, Some((_, seconds))) => seconds,
            (Form::Full, None) => self.seconds.unwrap_or(5),
            _ => self.seconds.unwrap_or(2),
        }
    }

    /// How many exports are timed.
    pub fn exports(&self, row: &Row, flow: &Flow) -> u64 {
        let spans = if self.smoke() { SMOKE } else { flow.pace.about() * self.seconds(row) };
        spans.div_ceil(flow.spans)
    }

    /// The most that a row which counts up to millions counts up to.
    pub fn most(&self) -> u64 {
        match self.form {
            Form::Smoke => 1_000,
            Form::Quick => 100_000,
            Form::Full => 1_000_000,
        }
    }
}
