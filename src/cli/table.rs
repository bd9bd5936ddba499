//! Records as people read them: one line a verdict, coloured by severity, then what else there is
//! to say, the summary last.

use std::io::{self, Write};

use anstyle::Style;

use crate::model::record::{Drift, Incident, Record, Session, Summary};
use crate::model::words::{Convergence, Rung};
use crate::show::grid::{Cell, Column, Layout, column};
use crate::show::verdicts::{COLUMNS, Line, state_style};

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

/// Everything a replay yields, in its order.
pub fn write(out: &mut dyn Write, records: &[Record], terminal: Option<usize>) -> io::Result<()> {
    let pick = |f: fn(&Record) -> Option<Vec<Cell>>| records.iter().filter_map(f).collect();
    let verdicts: Vec<_> = pick(|record| match record {
        Record::Verdict(verdict) => Some(Line::of(verdict).cells()),
        _ => None,
    });
    let sessions: Vec<_> = pick(|record| match record {
        Record::Session(session) => session_cells(session),
        _ => None,
    });
    let drifts: Vec<_> = pick(|record| match record {
        Record::ContractDrift(drift) => Some(drift_cells(drift)),
        _ => None,
    });
    let incidents: Vec<_> = pick(|record| match record {
        Record::Incident(incident) => Some(incident_cells(incident)),
        _ => None,
    });
    section(out, "", &COLUMNS, &verdicts, terminal)?;
    section(out, "SESSIONS WITH FINDINGS OR A FAILED LAYER", &SESSION, &sessions, terminal)?;
    section(out, "CONTRACT DRIFT", &DRIFT, &drifts, terminal)?;
    section(out, "INCIDENTS", &INCIDENT, &incidents, terminal)?;
    for record in records {
        if let Record::Summary(total) = record {
            summary(out, total)?;
        }
    }
    Ok(())
}

fn section(
    out: &mut dyn Write,
    heading: &str,
    columns: &[Column],
    rows: &[Vec<Cell>],
    terminal: Option<usize>,
) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    if !heading.is_empty() {
        writeln!(out, "\n{BOLD}{heading}{BOLD:#}")?;
    }
    let layout = Layout::of_rows(columns, rows, terminal);
    layout.write_header(out)?;
    rows.iter().try_for_each(|row| layout.write_row(out, row))
}

const SESSION: [Column; 5] = [
    column("SCOPE", 16, 16),
    column("SESSION", 10, 14),
    column("CATALOG", 12, 12),
    column("FINDINGS", 20, 40),
    column("REQUESTS", 8, 8),
];

/// Sessions that have something to say.
fn session_cells(session: &Session) -> Option<Vec<Cell>> {
    let red = matches!(session.convergence, Convergence::Stale | Convergence::Incomplete);
    if session.findings.is_empty() && session.state != Rung::Failed && !red {
        return None;
    }
    let mut codes: Vec<&str> = session.findings.iter().map(|f| f.code.as_str()).collect();
    codes.dedup();
    Some(vec![
        Cell::styled(session.scope.as_str(), DIM),
        Cell::plain(session.state.as_str()),
        Cell::plain(session.convergence.as_str()),
        Cell::plain(codes.join(" ")),
        Cell::plain(session.requests.to_string()),
    ])
}

const DRIFT: [Column; 5] = [
    column("TOOL", 20, 24),
    column("GRADE", 10, 10),
    column("CHANGES", 30, 50),
    column("SERVER", 12, 22),
    column("CONFIDENCE", 10, 10),
];

fn drift_cells(drift: &Drift) -> Vec<Cell> {
    let changes: Vec<String> =
        drift.changes.iter().map(|change| format!("{} {}", change.kind, change.pointer)).collect();
    vec![
        Cell::plain(drift.tool.as_str()),
        Cell::plain(drift.grade.as_str()),
        Cell::plain(changes.join(", ")),
        Cell::plain(drift.server.as_str()),
        Cell::plain(drift.confidence.as_str()),
    ]
}

const INCIDENT: [Column; 6] = [
    column("STATUS", 10, 10),
    column("LAYER", 9, 9),
    column("REASON", 18, 24),
    column("COUNT", 5, 5),
    column("SERVER", 12, 22),
    column("NEXT STEP", 20, 26),
];

fn incident_cells(incident: &Incident) -> Vec<Cell> {
    vec![
        Cell::plain(incident.status.as_str()),
        Cell::plain(incident.layer.as_str()),
        Cell::plain(incident.reason.to_string()),
        Cell::plain(incident.count.to_string()),
        Cell::plain(incident.server.as_str()),
        Cell::plain(incident.next_step.as_str()),
    ]
}

/// Protocol success beside verified success: the gap is the point.
pub fn summary(out: &mut dyn Write, total: &Summary) -> io::Result<()> {
    let rate = |rate: Option<f64>| match rate {
        Some(rate) => format!("{:5.1} %", rate * 100.0),
        None => "    –".to_string(),
    };
    writeln!(out, "\n{BOLD}SUMMARY{BOLD:#} of tools/call")?;
    writeln!(out, "attempts            {:>6}", total.attempts)?;
    let protocol = (total.protocol_success, rate(total.protocol_success_rate));
    writeln!(out, "protocol success    {:>6}  {}", protocol.0, protocol.1)?;
    let verified = (total.verified_success, rate(total.verified_success_rate));
    writeln!(out, "verified success    {:>6}  {}", verified.0, verified.1)?;
    for (state, count) in &total.states {
        let style = state_style(*state);
        writeln!(out, "  {style}{:<20}{style:#}{count:>4}", state.as_str())?;
    }
    if !total.first_failed_layers.is_empty() {
        writeln!(out, "first failed layer")?;
    }
    for (layer, count) in &total.first_failed_layers {
        writeln!(out, "  {:<20}{count:>4}", layer.as_str())?;
    }
    writeln!(out, "incidents           {:>6}", total.incidents)
}
