//! Results as tables, on the terminal and in the report.

use crate::figures::{Figure, Measured, Spread};
use crate::report::{Done, Machine};
use crate::rows::FLOOR_AT_MOST;
use crate::targets::Outcome;

/// The whole report. Pictures are looked for under `pictures`.
pub fn report(machine: &Machine, all: &[Done], pictures: &str) -> String {
    let mut out = format!("{}\n\n", machine.says());
    let mut rows = vec![vec!["row".to_owned(), "target".into(), "measured".into(), String::new()]];
    for done in all {
        rows.extend(done.outcomes().into_iter().map(|outcome| {
            vec![
                done.row.id.to_owned(),
                outcome.says.clone(),
                measured(&outcome),
                verdict(&outcome),
            ]
        }));
    }
    out += &lost(all);
    out += &format!(
        "Measured are the least, the median and the most of all rounds.\n\n{}\n",
        table(&rows)
    );
    for done in all {
        out += &row(done);
        if let Some(name) = done.picture() {
            out += &format!("![{}]({pictures}{name})\n\n", done.row.says);
        }
    }
    out
}

/// What is asked of every run: nothing that was acknowledged is lost, repeated, altered or not judged.
fn lost(all: &[Done]) -> String {
    let mut names: Vec<&str> = Vec::new();
    let (mut runs, mut wrong) = (0, 0);
    for measured in all.iter().flat_map(|done| &done.measured) {
        let errors = measured.errors().count();
        (runs, wrong) = (runs + measured.runs.len(), wrong + errors);
        names.extend((errors > 0).then_some(measured.subject));
    }
    let whose = if names.is_empty() { String::new() } else { format!(": {}", names.join("; ")) };
    format!(
        "Of {runs} runs, {wrong} lost, repeated or altered something or did not judge{whose}.\n\n"
    )
}

/// One row: its conditions, its programs, what it missed and what went wrong.
pub fn row(done: &Done) -> String {
    let mut out = format!("### {}: {}\n\n", done.row.id, done.row.says);
    if !done.conditions.is_empty() {
        out += &format!("{}\n\n", done.conditions);
    }
    out += &table(&figures(&done.measured));
    out.push('\n');
    let mut notes = Vec::new();
    for measured in &done.measured {
        notes.extend(measured.errors().map(|(round, error)| {
            format!("**Error** of {} in round {round}: {error}", measured.subject)
        }));
    }
    notes.extend(
        done.outcomes().iter().map(|outcome| {
            format!("{}: {}, {}", verdict(outcome), outcome.says, measured(outcome))
        }),
    );
    notes.extend(floor(done).map(|(now, before, valid)| {
        let says = if valid { "" } else { ": far above it, **this run is invalid**" };
        format!("the floor took {now:.0} ns a span, {before:.0} when measured beforehand{says}")
    }));
    for note in &notes {
        out += &format!("- {note}\n");
    }
    if !notes.is_empty() {
        out.push('\n');
    }
    out
}

/// The floor now, the floor beforehand, and whether they are alike enough to believe the run.
pub fn floor(done: &Done) -> Option<(f64, f64, bool)> {
    let before = done.row.floor_beforehand.filter(|_| done.counts)?;
    let now = done.measured.first()?.spread(Figure::Cpu)?.median;
    Some((now, before, now <= before * FLOOR_AT_MOST))
}

/// A line a program, a column a figure that anybody has; CPU time also beside the first program.
fn figures(all: &[Measured]) -> Vec<Vec<String>> {
    let mut columns: Vec<Figure> = Vec::new();
    for run in all.iter().flat_map(|measured| measured.runs.iter().flatten()) {
        columns.extend(run.iter().filter(|(_, value)| **value != 0.0).map(|(figure, _)| *figure));
    }
    columns.sort();
    columns.dedup();
    let compared = columns.contains(&Figure::Cpu) && all.len() > 1;
    let mut head = vec![String::new()];
    head.extend(columns.iter().map(|figure| figure.says().to_owned()));
    if compared {
        head.push(format!("CPU × {}", all[0].subject));
    }
    let mut rows = vec![head];
    for measured in all {
        let mut row = vec![measured.subject.to_owned()];
        row.extend(columns.iter().map(|figure| match (measured.spread(*figure), figure) {
            (None, _) => "-".to_owned(),
            (Some(spread), Figure::Cpu) => shown(spread),
            (Some(spread), _) => Figure::show(spread.median),
        }));
        if compared {
            let ratio = measured.beside(&all[0], Figure::Cpu, |own, first| own / first);
            row.push(ratio.map_or("-".to_owned(), shown));
        }
        rows.push(row);
    }
    rows
}

fn verdict(outcome: &Outcome) -> String {
    match (outcome.met, outcome.measured) {
        (_, None) => "no figure".to_owned(),
        (true, _) => "met".to_owned(),
        (false, _) => "**missed**".to_owned(),
    }
}

fn measured(outcome: &Outcome) -> String {
    outcome.measured.map_or("-".to_owned(), shown)
}

/// least…median…most, or the one there is
pub fn shown(spread: Spread) -> String {
    let [least, median, most] = [spread.least, spread.median, spread.most].map(Figure::show);
    if least == most { median } else { format!("{least}…{median}…{most}") }
}

/// The first line is the head; columns are as wide as they have to be.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut out = String::new();
    for (at, row) in rows.iter().enumerate() {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!(" {cell:width$} |")).collect();
        out += &format!("|{}\n", cells.concat());
        if at == 0 {
            let rules: Vec<String> =
                widths.iter().map(|width| format!(" {} |", "-".repeat((*width).max(3)))).collect();
            out += &format!("|{}\n", rules.concat());
        }
    }
    out
}
