//! Coverage for people: a table of layers by tool, then what to add for each tool, ready to paste.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use crate::coverage::Part;
use crate::coverage::{Advice, Advised, LayerSeen, Tool, Tried, attribute_lines, config};
use crate::model::policy::Rule;
use crate::model::words::Layer;
use crate::show::grid::{Cell, Column, Layout, column};
use crate::show::verdicts::state_style;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const RED: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));
const GREEN: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green)));
const YELLOW: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));

/// 80 columns hold all but the server.
const COLUMNS: [Column; 9] = [
    column("TOOL", 14, 24),
    column("CALLS", 5, 5),
    column("UNVERIFIED", 10, 10),
    column("SESSION", 7, 7),
    column("CATALOG", 7, 7),
    column("REQUEST", 7, 7),
    column("EFFECT", 6, 6),
    column("OUTCOME", 7, 7),
    column("SERVER", 12, 30),
];

pub fn report(
    out: &mut dyn Write,
    tools: &[Tool],
    advised: &[Advised],
    width: Option<usize>,
) -> io::Result<()> {
    if tools.is_empty() {
        return writeln!(out, "no tool call in the input");
    }
    let rows: Vec<Vec<Cell>> = tools.iter().map(row).collect();
    let layout = Layout::of_rows(&COLUMNS, &rows, width);
    layout.write_header(out)?;
    rows.iter().try_for_each(|row| layout.write_row(out, row))?;
    let calls: u64 = tools.iter().map(|tool| tool.calls).sum();
    let unverified: u64 = tools.iter().map(|tool| tool.unverified).sum();
    let most = if unverified > 0 { "; what lifts the most comes first" } else { "" };
    let calls = counted(calls, "call");
    writeln!(out, "\n{unverified} of {calls} unverified{most}")?;
    let mut wanting: Vec<_> = tools.iter().zip(advised).filter(|(t, _)| t.unverified > 0).collect();
    wanting.sort_by_key(|(_, advised)| {
        std::cmp::Reverse(advised.most.as_ref().map_or(0, |advice| advice.lifted.len()))
    });
    for (tool, advised) in wanting {
        detail(out, tool, advised)?;
    }
    Ok(())
}

fn name(tool: &Tool) -> &str {
    tool.tool.as_deref().unwrap_or("(not named)")
}

fn row(tool: &Tool) -> Vec<Cell> {
    let mut cells = vec![
        Cell::plain(name(tool)),
        Cell::plain(tool.calls.to_string()),
        Cell::styled(
            tool.unverified.to_string(),
            if tool.unverified > 0 { YELLOW } else { Style::new() },
        ),
    ];
    cells.extend(tool.layers.iter().map(|seen| share(tool, seen)));
    cells.push(Cell::plain(tool.server.as_str()));
    cells
}

/// Calls of which a layer was seen, of those that it applies to.
fn share(tool: &Tool, seen: &LayerSeen) -> Cell {
    let of = tool.calls - seen.not_applicable;
    match (seen.observed, of) {
        (_, 0) => Cell::styled("n/a", DIM),
        (0, _) => Cell::styled("never", RED),
        (observed, of) if observed == of => Cell::styled("all", GREEN),
        (observed, of) => Cell::styled(format!("{observed}/{of}"), YELLOW),
    }
}

fn detail(out: &mut dyn Write, tool: &Tool, advised: &Advised) -> io::Result<()> {
    let (name, server) = (name(tool), &tool.server);
    writeln!(out, "\n{BOLD}{name}{BOLD:#} at {server}")?;
    for seen in &tool.layers {
        let layer = seen.layer;
        if seen.observed == 0 && tool.calls > seen.not_applicable {
            writeln!(out, "  {:<8} {RED}never observed{RED:#}", layer.as_str())?;
        }
        for (what, calls) in &seen.evidence {
            writeln!(out, "  {:<8} {what} {DIM}({calls}){DIM:#}", layer.as_str())?;
        }
    }
    let Some(most) = &advised.most else {
        return writeln!(out, "  nothing that was tried lifts a call; they lack {}", missing(tool));
    };
    write!(out, "  ")?;
    paste(out, tool, most)?;
    if let Some(advice) = &advised.configured {
        write!(out, "\n  or, with no change of a program, ")?;
        paste(out, tool, advice)?;
    }
    Ok(())
}

fn missing(tool: &Tool) -> String {
    let lacked = |layer: &&Layer| tool.lacking.iter().any(|call| call.missing.contains(layer));
    let layers: Vec<&str> = Layer::ALL.iter().filter(lacked).map(|layer| layer.as_str()).collect();
    layers.join(", ")
}

fn paste(out: &mut dyn Write, tool: &Tool, advice: &Advice) -> io::Result<()> {
    let (lifts, of) = (advice.lifted.len(), tool.unverified);
    let to: Vec<String> = advice
        .to
        .iter()
        .map(|(state, count)| {
            let style = state_style(*state);
            format!("{style}{state}{style:#} {count}")
        })
        .collect();
    writeln!(out, "{BOLD}lifts {lifts} of {of}{BOLD:#} out of unverified: {}", to.join(", "))?;
    if let Some(attributes) = advice.attributes() {
        writeln!(out, "  record on the span of each call, where it is so:\n")?;
        for line in attribute_lines(attributes) {
            writeln!(out, "    {line}")?;
        }
    }
    let yaml = config(&advice.parts);
    if !yaml.is_empty() {
        let rule = advice.parts.iter().any(|part| matches!(part, Part::Rule(_)));
        let note = if rule { ", if that is what such a span proves" } else { "" };
        writeln!(out, "  write in the configuration{note}:\n")?;
        yaml.lines().try_for_each(|line| writeln!(out, "    {line}"))?;
    }
    let needed = advice.parts.iter().find_map(|part| match part {
        Part::Requires { layers, .. } => Some(layers),
        _ => None,
    });
    let Some(needed) = needed else { return Ok(()) };
    for (layer, why) in [
        (Layer::Session, "what was negotiated"),
        (Layer::Catalog, "which definitions the caller held"),
    ] {
        if !needed.contains(&layer) {
            writeln!(
                out,
                "\n  {DIM}nothing recorded shows {why}; until it does, do without{DIM:#}"
            )?;
        }
    }
    Ok(())
}

pub fn tried(
    out: &mut dyn Write,
    rules: &[Rule],
    tried: &[Tried],
    together: &Tried,
) -> io::Result<()> {
    for (number, (rule, tried)) in rules.iter().zip(tried).enumerate() {
        let yaml = config(&[Part::Rule(Box::new(rule.clone()))]);
        let number = number + 1;
        writeln!(out, "{BOLD}rule {number}{BOLD:#}")?;
        for line in yaml.lines().skip(3) {
            writeln!(out, "  {}", line.get(6..).unwrap_or(line))?;
        }
        does(out, tried)?;
        writeln!(out)?;
    }
    if rules.len() > 1 {
        writeln!(out, "{BOLD}all {} together{BOLD:#}", rules.len())?;
        does(out, together)?;
    }
    Ok(())
}

fn counted(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

fn does(out: &mut dyn Write, tried: &Tried) -> io::Result<()> {
    let Tried { matched, without_call, refused, calls, still_lacking, changes } = tried;
    write!(out, "  matched {}", counted(*matched, "span"))?;
    if *without_call > 0 {
        write!(out, ", {without_call} at no tool call")?;
    }
    if *refused > 0 {
        write!(out, ", {refused} at a call that `when` does not admit")?;
    }
    writeln!(out)?;
    for called in calls {
        let tool = called.tool.as_deref().unwrap_or("(not named)");
        let calls = counted(called.calls, "call");
        writeln!(out, "  speaks of {calls} of {tool} at {}", called.server)?;
    }
    if changes.is_empty() {
        writeln!(out, "  {YELLOW}changes no verdict{YELLOW:#}")?;
    }
    for moved in changes {
        let (from, to) = (state_style(moved.from), state_style(moved.to));
        let calls = counted(moved.chains.len() as u64, "call");
        writeln!(out, "  {calls}: {from}{}{from:#} → {to}{}{to:#}", moved.from, moved.to)?;
    }
    if !still_lacking.is_empty() {
        let told = still_lacking
            .iter()
            .map(|(layer, calls)| format!("{} ({})", layer.as_str(), counted(*calls, "call")));
        let told: Vec<String> = told.collect();
        writeln!(out, "  still unverified, since nobody observed {}", told.join(", "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::{Recording, advice, rules, tools};
    use crate::model::policy::Policy;

    fn recording() -> Recording {
        let path = "demo/21-evidence-healthy.jsonl";
        let other = "demo/13-openinference-agent-http-basic.jsonl";
        let mut exports = Vec::new();
        let paths = [path.into(), other.into()];
        crate::cli::input::read(&paths, &mut |signal, bytes| {
            exports.push((signal, bytes.to_vec()))
        })
        .unwrap();
        Recording::new(exports, Policy::default())
    }

    fn plain(out: &[u8]) -> String {
        String::from_utf8(anstream::adapter::strip_bytes(out).into_vec()).unwrap()
    }

    #[test]
    fn the_report_fits_eighty_columns_but_for_what_is_to_be_pasted() {
        let recording = recording();
        let tools = tools(&recording);
        let mut out = Vec::new();
        report(&mut out, &tools, &advice::advice(&recording, &tools), Some(80)).unwrap();
        let text = plain(&out);
        let pasted = |line: &&str| line.starts_with("    ");
        for line in text.lines().filter(|line| !pasted(line)) {
            assert!(line.chars().count() <= 100, "{line}");
        }
        let table = text.lines().take(tools.len() + 1);
        table.for_each(|line| assert!(line.chars().count() <= 80, "{line}"));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_trial_says_what_each_rule_does() {
        let text = "- span: { name: '*', kind: client }\n  says: { effect: confirmed }\n\
                    - when: { tool: none }\n  span: { name: nothing }\n  \
                      says: { outcome: missing }\n";
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rules.yaml");
        std::fs::write(&path, text).unwrap();
        let (file, _) = crate::config::rules(&path).unwrap();
        let recording = recording();
        let mut out = Vec::new();
        let each = rules::try_out(&recording, &file);
        tried(&mut out, &file, &each, &rules::together(&recording, &file)).unwrap();
        insta::assert_snapshot!(plain(&out));
    }
}
