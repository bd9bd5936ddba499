//! What `lock check` and `lock diff` found, for people and for machines.
//!
//! Promises: every form says the same; definitions' texts appear only where a person asked for a
//! diff of two listings, and only in the form `text`.

use crate::catalog::grade::{Change, Located};
use crate::catalog::lockfile::{Holder, Pin, PinKey};
use crate::model::digest::Digest;
use crate::model::words::Grade;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How to print.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For a terminal.
    Text,
    /// One JSON document.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// JUnit XML, for test reports.
    Junit,
}

/// What became of one tool.
#[derive(Debug)]
pub enum Status {
    /// As pinned.
    Same,
    /// Another definition.
    Drifted(Located),
    /// Listed, never pinned.
    Unpinned,
    /// Pinned, listed no more.
    Removed,
}

/// One tool.
#[derive(Debug)]
pub struct Row {
    /// Its name.
    pub tool: String,
    /// What became of it.
    pub status: Status,
    /// The pinned digest.
    pub expected: Option<Digest>,
    /// The digest of what is listed.
    pub found: Option<Digest>,
    /// Old and new definition, where both are at hand.
    pub texts: Option<(Value, Value)>,
}

impl Row {
    fn word(&self) -> &'static str {
        match self.status {
            Status::Same => "same",
            Status::Drifted(_) => "drifted",
            Status::Unpinned => "unpinned",
            Status::Removed => "removed",
        }
    }

    fn grade(&self) -> Option<Grade> {
        match &self.status {
            Status::Drifted(located) => Some(located.grade),
            Status::Removed => Some(Grade::Breaking),
            Status::Same | Status::Unpinned => None,
        }
    }

    fn changes(&self) -> &[Change] {
        match &self.status {
            Status::Drifted(located) => &located.changes,
            _ => &[],
        }
    }

    /// One line for each thing that is wrong.
    fn problems(&self) -> Vec<String> {
        let change = |change: &Change| format!("{} {} {}", change.grade, change.kind, at(change));
        match &self.status {
            Status::Same => Vec::new(),
            Status::Unpinned => vec!["unpinned: nobody approved this tool".to_owned()],
            Status::Removed => vec!["breaking tool_removed: pinned, listed no more".to_owned()],
            Status::Drifted(located) => located.changes.iter().map(change).collect(),
        }
    }
}

fn at(change: &Change) -> String {
    let pointer = if change.pointer.is_empty() { "(the tool)" } else { &change.pointer };
    clean(pointer)
}

/// Names come from strangers: no control character reaches a terminal or a report.
fn clean(text: &str) -> String {
    let escape =
        |c: char| if c.is_control() { c.escape_default().collect() } else { c.to_string() };
    text.chars().map(escape).collect::<Vec<String>>().concat()
}

/// All tools of one server.
pub struct Report {
    lockfile: PathBuf,
    server: String,
    rows: Vec<Row>,
}

impl Report {
    /// A report on rows sorted by tool.
    pub fn new(lockfile: &Path, server: &str, rows: Vec<Row>) -> Report {
        Report { lockfile: lockfile.to_owned(), server: server.to_owned(), rows }
    }

    /// Whether every tool is what was pinned.
    pub fn is_same(&self) -> bool {
        self.rows.iter().all(|row| matches!(row.status, Status::Same))
    }

    /// Prints the report.
    ///
    /// # Errors
    /// Where `out` cannot be written.
    pub fn print(&self, format: Format, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Text => self.text(out),
            Format::Json => writeln!(out, "{:#}", self.json()),
            Format::Sarif => writeln!(out, "{:#}", self.sarif()),
            Format::Junit => out.write_all(self.junit().as_bytes()),
        }
    }

    /// Prints what a writing command did.
    ///
    /// # Errors
    /// Where `out` cannot be written.
    pub fn told(&self, done: &str, format: Format, out: &mut dyn Write) -> io::Result<()> {
        let file = self.lockfile.display();
        if format == Format::Json {
            let file = file.to_string();
            let done = json!({"lockfile": file, "server": self.server, "done": done});
            return writeln!(out, "{done:#}");
        }
        writeln!(out, "{}: {done} for {}", file, clean(&self.server))
    }

    fn count(&self, word: &str) -> usize {
        self.rows.iter().filter(|row| row.word() == word).count()
    }

    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", clean(&self.server))?;
        let name = |row: &Row| clean(&row.tool);
        let width = self.rows.iter().map(|row| name(row).chars().count()).max().unwrap_or(0);
        for row in &self.rows {
            let short = |digest: &Option<Digest>| digest.as_ref().map_or("-".into(), Digest::short);
            let (old, new) = (short(&row.expected), short(&row.found));
            let digests = if old == new { new } else { format!("{old} -> {new}") };
            writeln!(out, "  {:width$}  {:8}  {digests}", name(row), row.word())?;
            for (at, problem) in row.problems().iter().enumerate() {
                writeln!(out, "      {problem}")?;
                if let (Some(texts), Some(change)) = (&row.texts, row.changes().get(at)) {
                    show(texts, change, out)?;
                }
            }
        }
        let words = ["same", "drifted", "unpinned", "removed"];
        let counts = words.map(|word| format!("{} {word}", self.count(word)));
        writeln!(out, "{}", counts.join(", "))
    }

    fn json(&self) -> Value {
        let digest = |digest: &Option<Digest>| digest.as_ref().map(Digest::to_string);
        let change = |change: &Change| {
            json!({"pointer": change.pointer, "kind": change.kind, "grade": change.grade,
                "old": digest(&change.old), "new": digest(&change.new)})
        };
        let row = |row: &Row| {
            let changes: Vec<Value> = row.changes().iter().map(change).collect();
            json!({"tool": row.tool, "status": row.word(), "grade": row.grade(),
                "expected": digest(&row.expected), "found": digest(&row.found),
                "changes": changes})
        };
        let tools: Vec<Value> = self.rows.iter().map(row).collect();
        json!({"lockfile": self.lockfile.display().to_string(), "server": self.server,
            "same": self.is_same(), "tools": tools})
    }

    fn sarif(&self) -> Value {
        let rules = ["breaking", "semantic", "unlocated", "compatible", "unpinned"];
        let rules = rules.map(|rule| json!({"id": format!("contract/{rule}")}));
        let mut results = Vec::new();
        for row in &self.rows {
            let grades = match &row.status {
                Status::Drifted(located) => located.changes.iter().map(|c| c.grade).collect(),
                _ => vec![row.grade().unwrap_or(Grade::Unlocated)],
            };
            let rule = |grade: Grade| match row.status {
                Status::Unpinned => "unpinned",
                _ => grade.as_str(),
            };
            for (problem, grade) in row.problems().iter().zip(grades) {
                results.push(self.sarif_result(row, rule(grade), problem));
            }
        }
        json!({"version": "2.1.0",
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "runs": [{"tool": {"driver": {"name": "mcp-verdict",
                "version": env!("CARGO_PKG_VERSION"), "rules": rules}}, "results": results}]})
    }

    fn sarif_result(&self, row: &Row, rule: &str, problem: &str) -> Value {
        let level = match rule {
            "compatible" => "note",
            "semantic" => "warning",
            _ => "error",
        };
        let name = format!("{}/{}", clean(&self.server), clean(&row.tool));
        json!({"ruleId": format!("contract/{rule}"), "level": level,
            "message": {"text": format!("{name}: {problem}")},
            "locations": [{
                "physicalLocation": {"artifactLocation":
                    {"uri": uri(&self.lockfile)}},
                "logicalLocations": [{"fullyQualifiedName": name}]}]})
    }

    fn junit(&self) -> String {
        let bad = self.rows.iter().filter(|row| !matches!(row.status, Status::Same)).count();
        let (suite, total) = (xml(&self.server), self.rows.len());
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  \
             <testsuite name=\"{suite}\" tests=\"{total}\" failures=\"{bad}\" errors=\"0\">\n"
        );
        for row in &self.rows {
            let case = format!("<testcase classname=\"{suite}\" name=\"{}\"", xml(&row.tool));
            let problems = row.problems();
            match problems.is_empty() {
                true => text.push_str(&format!("    {case}/>\n")),
                false => text.push_str(&format!(
                    "    {case}>\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n    \
                     </testcase>\n",
                    row.grade().map_or(row.word(), Grade::as_str),
                    xml(&problems[0]),
                    xml(&problems.join("\n")),
                )),
            }
        }
        text.push_str("  </testsuite>\n</testsuites>\n");
        text
    }
}

/// Old and new text of one change, for a person.
fn show(texts: &(Value, Value), change: &Change, out: &mut dyn Write) -> io::Result<()> {
    for (sign, definition) in [("-", &texts.0), ("+", &texts.1)] {
        if let Some(value) = definition.pointer(&change.pointer) {
            writeln!(out, "        {sign} {}", clean(&value.to_string()))?;
        }
    }
    Ok(())
}

/// A path as a reference: what has a meaning of its own in a URI is escaped.
fn uri(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let text = path.display().to_string();
    text.bytes().fold(String::new(), |mut out, byte| {
        match plain(byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
        out
    })
}

/// Text in XML: five characters escaped, others that XML forbids spelled out.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// Prints pins.
///
/// # Errors
/// Where `out` cannot be written.
pub fn list(pins: Vec<(&PinKey, &Pin)>, format: Format, out: &mut dyn Write) -> io::Result<()> {
    if format != Format::Text {
        let pin = |(key, pin): &(&PinKey, &Pin)| {
            let (auth, client) = match &key.holder {
                Holder::Anyone => (None, None),
                Holder::Auth(auth) => (Some(auth), None),
                Holder::Client(client) => (None, Some(client)),
            };
            let approved = pin.approved.as_ref();
            json!({"server": key.server, "auth": auth, "client": client, "tool": key.tool,
                "digest": pin.digest.to_string(), "pinned_at": pin.pinned.at,
                "pinned_by": pin.pinned.by, "approved_at": approved.map(|mark| &mark.at),
                "approved_by": approved.map(|mark| &mark.by)})
        };
        return writeln!(out, "{:#}", Value::from(pins.iter().map(pin).collect::<Vec<_>>()));
    }
    for (key, pin) in pins {
        let holder = match &key.holder {
            Holder::Anyone => String::new(),
            Holder::Auth(auth) => format!(" auth={}", clean(auth)),
            Holder::Client(client) => format!(" client={}", clean(client)),
        };
        let state = pin.approved.as_ref().map_or_else(
            || format!("pinned {}", clean(&pin.pinned.at)),
            |mark| format!("approved {}", clean(&mark.at)),
        );
        let (server, tool) = (clean(&key.server), clean(&key.tool));
        writeln!(out, "{server}{holder}  {tool}  {}  {state}", pin.digest.short())?;
    }
    Ok(())
}
