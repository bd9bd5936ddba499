//! Coverage for people: a table of layers by tool, then what to add for each tool, ready to paste.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use crate::coverage::Part;
use crate::coverage::{Advice, LayerSeen, Tool, Tried, attribute_lines, config};
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
    advice: &[Option<Advice>],
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
    writeln!(out, "\n{unverified} of {calls} calls are unverified{most}")?;
    let mut advised: Vec<_> = tools.iter().zip(advice).filter(|(t, _)| t.unverified > 0).collect();
    let most = |(_, advice): &(&Tool, &Option<Advice>)| {
        std::cmp::Reverse(advice.as_ref().map_or(0, |advice| advice.lifted.len()))
    };
    advised.sort_by_key(most);
    for (tool, advice) in advised {
        detail(out, tool, advice.as_ref())?;
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

fn detail(out: &mut dyn Write, tool: &Tool, advice: Option<&Advice>) -> io::Result<()> {
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
    match advice {
        Some(advice) => paste(out, tool, advice),
        None => {
            let missing = missing(tool);
            writeln!(out, "  no single addition lifts a call; they lack {missing}")
        }
    }
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
    writeln!(out, "  {BOLD}lifts {lifts} of {of}{BOLD:#} out of unverified: {}", to.join(", "))?;
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
    if advice.parts.iter().any(|part| matches!(part, Part::Requires { .. })) {
        writeln!(
            out,
            "\n  {DIM}nothing shows which definitions the caller held; until its listings are \
             recorded, do without{DIM:#}"
        )?;
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

fn does(out: &mut dyn Write, tried: &Tried) -> io::Result<()> {
    let Tried { matched, without_call, refused, calls, changes } = tried;
    write!(out, "  matched {matched} spans")?;
    if *without_call > 0 {
        write!(out, ", {without_call} at no tool call")?;
    }
    if *refused > 0 {
        write!(out, ", {refused} at calls that `when` does not admit")?;
    }
    writeln!(out)?;
    for called in calls {
        let tool = called.tool.as_deref().unwrap_or("(not named)");
        writeln!(out, "  speaks of {} calls of {tool} at {}", called.calls, called.server)?;
    }
    if changes.is_empty() {
        return writeln!(out, "  {YELLOW}changes no verdict{YELLOW:#}");
    }
    for moved in changes {
        let (from, to) = (state_style(moved.from), state_style(moved.to));
        let count = moved.chains.len();
        writeln!(out, "  {count} calls: {from}{}{from:#} → {to}{}{to:#}", moved.from, moved.to)?;
    }
    Ok(())
}
