//! Verdicts as lines of one table, in `replay`, in the demo and on the console: the same columns
//! and colours wherever a person looks.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::grid::{Cell, Column, Layout, column};
use crate::emit::severity::{Severity, severity};
use crate::model::record::Verdict;
use crate::model::words::{Owner, State};

const DIM: Style = Style::new().dimmed();

/// 80 columns hold the first five.
pub const COLUMNS: [Column; 9] = [
    column("CHAIN", 8, 8),
    column("STATE", 20, 20),
    column("CALL", 16, 24),
    column("REASON", 16, 24),
    column("SERVER", 12, 22),
    column("NEXT STEP", 20, 26),
    column("OWNER", 12, 19),
    column("FINDINGS", 12, 40),
    column("TRACE", 32, 32),
];

/// Verdicts one by one, as they come.
pub struct Stream {
    layout: Layout,
}

impl Stream {
    /// For a terminal so wide; `None` where there is none, so that nothing is cut.
    pub fn new(terminal: Option<usize>) -> Self {
        Self { layout: Layout::streaming(&COLUMNS, terminal) }
    }

    pub fn header(&self, out: &mut dyn Write) -> io::Result<()> {
        self.layout.write_header(out)
    }

    pub fn line(&self, out: &mut dyn Write, line: &Line) -> io::Result<()> {
        self.layout.write_row(out, &line.cells())
    }
}

/// What a line says of a verdict.
pub struct Line {
    /// The chain's id in hex.
    pub chain: String,
    pub revision: u32,
    pub state: State,
    /// The tool of a call, else the method.
    pub call: String,
    pub reason: String,
    pub server: String,
    pub next_step: String,
    pub owner: String,
    /// Codes, separated by blanks.
    pub findings: String,
    /// In hex; empty where it is not known.
    pub trace: String,
}

impl Line {
    pub fn of(verdict: &Verdict) -> Self {
        let mut codes: Vec<&str> = verdict.findings.iter().map(|f| f.code.as_str()).collect();
        codes.dedup();
        Self {
            chain: verdict.id.to_string(),
            revision: verdict.revision,
            state: verdict.state,
            call: call_name(verdict).to_string(),
            reason: verdict.reason.map(|reason| reason.to_string()).unwrap_or_default(),
            server: verdict.server.to_string(),
            next_step: verdict.next_step.to_string(),
            owner: owner(verdict.owner).to_string(),
            findings: codes.join(" "),
            trace: verdict.trace_id.map(|trace| trace.to_string()).unwrap_or_default(),
        }
    }

    /// From an event, by the names of its attributes without their prefix; a missing one is empty.
    pub fn of_event(get: impl Fn(&str) -> String) -> Self {
        let tool = get("tool");
        let owner = Some(get("owner")).filter(|owner| owner != Owner::None.as_str());
        Self {
            chain: get("chain.id"),
            revision: get("revision").parse().unwrap_or(1),
            state: State::parse(&get("state")).unwrap_or(State::Unverified),
            call: if tool.is_empty() { get("method") } else { tool },
            reason: get("reason"),
            server: get("server"),
            next_step: get("next_step"),
            owner: owner.unwrap_or_default(),
            findings: get("findings"),
            trace: String::new(),
        }
    }

    pub fn cells(&self) -> Vec<Cell> {
        let short: String = self.chain.chars().take(8).collect();
        let chain = match self.revision {
            0 | 1 => short,
            n => format!("{short}#{n}"),
        };
        vec![
            Cell::styled(chain, DIM),
            Cell::styled(self.state.as_str(), state_style(self.state)),
            Cell::plain(&*self.call),
            Cell::plain(&*self.reason),
            Cell::plain(&*self.server),
            Cell::plain(&*self.next_step),
            Cell::plain(&*self.owner),
            Cell::plain(&*self.findings),
            Cell::styled(&*self.trace, DIM),
        ]
    }
}

/// Red where somebody must act, yellow where nobody checked, green where all is well.
pub fn state_style(state: State) -> Style {
    let colour = match (severity(state), state) {
        (Severity::Error, _) => AnsiColor::Red,
        (Severity::Warn, _) => AnsiColor::Yellow,
        (Severity::Info, State::Healthy) => AnsiColor::Green,
        (Severity::Info, _) => AnsiColor::Cyan,
    };
    Style::new().fg_color(Some(colour.into()))
}

/// The tool of a call, else the method.
pub fn call_name(verdict: &Verdict) -> &str {
    verdict.tool.as_deref().unwrap_or(&verdict.method)
}

fn owner(owner: Owner) -> &'static str {
    if owner == Owner::None { "" } else { owner.as_str() }
}
