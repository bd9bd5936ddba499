//! The command line.

use crate::Failure;
use crate::rows::{ROWS, Row};

/// What is measured, and for how long.
pub struct Options {
    pub smoke: bool,
    full: bool,
    ids: Vec<String>,
    pub rounds: usize,
    pub seconds: u64,
}

/// Spans a second of a load that goes as fast as it is taken, to reckon how many make up a time.
const FAST: u64 = 400_000;

impl Options {
    pub fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut options =
            Self { smoke: false, full: false, ids: Vec::new(), rounds: 0, seconds: 0 };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--full" => options.full = true,
                "--smoke" => options.smoke = true,
                "--row" => options.ids.push(rest.next().ok_or("--row ID")?.clone()),
                "--rounds" => options.rounds = rest.next().ok_or("--rounds N")?.parse()?,
                "--seconds" => options.seconds = rest.next().ok_or("--seconds N")?.parse()?,
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
        let (rounds, seconds) = match (options.full, options.smoke) {
            (true, _) => (5, 5),
            (_, true) => (1, 1),
            _ => (3, 3),
        };
        options.rounds = Some(options.rounds).filter(|n| *n > 0).unwrap_or(rounds);
        options.seconds = Some(options.seconds).filter(|n| *n > 0).unwrap_or(seconds);
        Ok(options)
    }

    pub fn rows(&self) -> impl Iterator<Item = &'static Row> {
        ROWS.iter().filter(|row| match self.ids.is_empty() {
            true => self.full || row.quick,
            false => self.ids.iter().any(|id| id == row.id),
        })
    }

    /// How many exports are timed.
    pub fn exports(&self, row: &Row) -> u64 {
        let spans = match self.smoke {
            true => 20_000,
            false => row.flow.pace.unwrap_or(FAST) * self.seconds,
        };
        spans.div_ceil(row.flow.spans)
    }
}
