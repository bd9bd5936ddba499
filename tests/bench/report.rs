//! The report: report.json for programs, report.md with pictures for people, in target/bench.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::Failure;
use crate::chart;
use crate::figures::{Measured, Run};
use crate::markdown;
use crate::rows::Row;
use crate::targets::Outcome;

/// A row that was measured.
pub struct Done {
    pub row: &'static Row,
    /// What it was measured with, in words.
    pub conditions: String,
    pub measured: Vec<Measured>,
    /// Whether its figures mean anything: a smoke test's do not.
    pub counts: bool,
}

impl Done {
    pub fn outcomes(&self) -> Vec<Outcome> {
        let targets = self.row.targets.iter().filter(|_| self.counts);
        targets.filter_map(|target| target.outcome(&self.measured)).collect()
    }

    /// File name of the row's picture, where there is something to compare.
    pub fn picture(&self) -> Option<String> {
        let compared = self.measured.len() > 1 && !self.row.targets.is_empty();
        compared.then(|| format!("bench-{}.svg", self.row.id))
    }
}

/// Where and of what it was measured.
pub struct Machine {
    began: String,
    cores: usize,
    processor: String,
    kernel: String,
    commit: String,
    /// mcp-verdict as cargo built it with this run, or the file that was named.
    binary: String,
    load: String,
}

impl Machine {
    pub fn here(binary: &Path) -> Self {
        let first = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpu = first("/proc/cpuinfo");
        let model = cpu.lines().find(|line| line.starts_with("model name"));
        let git = Command::new("git").args(["describe", "--always", "--dirty"]).output();
        Self {
            began: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            processor: model.and_then(|line| line.split(": ").nth(1)).unwrap_or("?").to_owned(),
            kernel: first("/proc/sys/kernel/osrelease").trim().to_owned(),
            commit: git.map_or_else(
                |_| "?".into(),
                |out| String::from_utf8_lossy(&out.stdout).trim().to_owned(),
            ),
            binary: match std::env::var_os("MCP_VERDICT_BIN") {
                Some(_) => binary.display().to_string(),
                None => "built with this run".to_owned(),
            },
            load: first("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" "),
        }
    }

    pub fn says(&self) -> String {
        let Self { began, cores, processor, kernel, commit, binary, load } = self;
        format!(
            "{began}, {cores} cores of {processor}, Linux {kernel}, load average before {load}; \
             commit {commit}, binary {binary}. Load generator, program and sink share the cores."
        )
    }

    fn json(&self) -> Value {
        let Self { began, cores, processor, kernel, commit, binary, load } = self;
        json!({ "began": began, "cores": cores, "processor": processor, "kernel": kernel,
            "commit": commit, "binary": binary, "load_average_before": load })
    }
}

/// Writes it, and says where it is.
pub fn write(machine: &Machine, all: &[Done]) -> Result<PathBuf, Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    fs::create_dir_all(&folder)?;
    let rows: Vec<Value> = all.iter().map(row).collect();
    let valid = all.iter().filter_map(markdown::floor).all(|(.., valid)| valid);
    let whole = json!({ "machine": machine.json(), "valid": valid, "rows": rows });
    fs::write(folder.join("report.json"), serde_json::to_vec_pretty(&whole)?)?;
    pictures(all, &folder)?;
    let report = folder.join("report.md");
    fs::write(&report, format!("# Benchmark\n\n{}", markdown::report(machine, all, "")))?;
    Ok(report)
}

/// Puts it into docs/performance.md, between its markers.
pub fn publish(machine: &Machine, all: &[Done]) -> Result<(), Failure> {
    const MARKS: (&str, &str) = ("<!-- measured -->\n", "<!-- end -->");
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let page = fs::read_to_string(docs.join("performance.md"))?;
    let (before, rest) = page.split_once(MARKS.0).ok_or("performance.md has no place for it")?;
    let (_, after) = rest.split_once(MARKS.1).ok_or("performance.md has no end of its place")?;
    let report = markdown::report(machine, all, "images/");
    let whole = [before, MARKS.0, &report, MARKS.1, after].concat();
    fs::write(docs.join("performance.md"), whole)?;
    pictures(all, &docs.join("images"))
}

fn pictures(all: &[Done], folder: &Path) -> Result<(), Failure> {
    for done in all {
        if let (Some(name), Some(target)) = (done.picture(), done.row.targets.first()) {
            let bars = chart::bars(done.row.says, target.figure, &done.measured);
            fs::write(folder.join(name), bars)?;
        }
    }
    Ok(())
}

fn row(done: &Done) -> Value {
    let outcomes = done.outcomes().into_iter().map(|outcome| {
        let spread = outcome.measured.map(|s| json!([s.least, s.median, s.most]));
        json!({ "target": outcome.says, "least_median_most": spread, "met": outcome.met })
    });
    let programs = done.measured.iter().map(|measured| {
        let runs: Vec<Value> = measured.runs.iter().map(run).collect();
        json!({ "program": measured.subject, "rounds": runs })
    });
    json!({ "row": done.row.id, "says": done.row.says, "conditions": done.conditions,
        "targets": outcomes.collect::<Vec<_>>(), "programs": programs.collect::<Vec<_>>() })
}

fn run(run: &Run) -> Value {
    match run {
        Ok(figures) => figures.iter().map(|(figure, value)| (figure.says(), *value)).collect(),
        Err(error) => json!({ "error": error }),
    }
}
