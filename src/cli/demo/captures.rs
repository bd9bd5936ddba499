//! What is played: recordings packed into the program, or a directory of them, as JSON whose times
//! are moved so that a recording ends when it is played.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::model::ids::Nanos;
use crate::wire::Signal;

/// One recording, in the order of its exports.
pub struct Capture {
    pub name: String,
    pub exports: Vec<(Signal, Json)>,
}

macro_rules! packed {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../demo/", $name, ".jsonl")))),*]
    };
}

const PACKED: &[(&str, &str)] = packed![
    "11-mcp-python-http-basic",
    "12-adot-stdio-basic",
    "13-openinference-agent-http-basic",
    "14-mcp-python-httpx-401",
    "15-mcp-python-httpx-503",
    "16-fastmcp-session-expired",
    "17-traceloop-timeout",
    "21-evidence-healthy",
    "22-evidence-false-success",
    "23-evidence-stale-catalog",
    "24-evidence-working",
    "25-evidence-cancelled",
    "26-evidence-eight-calls",
];

/// The recordings of the program.
pub fn packed() -> Result<Vec<Capture>, String> {
    PACKED.iter().map(|(name, text)| read(name, text)).collect()
}

/// Every `.jsonl` below a directory, by path.
pub fn of_directory(directory: &Path) -> Result<Vec<Capture>, String> {
    let mut files = Vec::new();
    find(directory, &mut files).map_err(|error| format!("{}: {error}", directory.display()))?;
    files.sort();
    if files.is_empty() {
        return Err(format!("{}: holds no .jsonl file", directory.display()));
    }
    let capture = |path: &PathBuf| {
        let shown = path.strip_prefix(directory).unwrap_or(path).display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
        read(&shown, &text)
    };
    files.iter().map(capture).collect()
}

fn find(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "jsonl") {
            files.push(path);
        }
    }
    Ok(())
}

fn read(name: &str, text: &str) -> Result<Capture, String> {
    let mut exports = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let document: Json = serde_json::from_str(line).map_err(|error| {
            format!("{name}:{}: is not JSON at column {}", at + 1, error.column())
        })?;
        for (key, signal) in [("resourceSpans", Signal::Traces), ("resourceLogs", Signal::Logs)] {
            if document.get(key).is_some() {
                exports.push((signal, document.clone()));
            }
        }
    }
    Ok(Capture { name: name.trim_end_matches(".jsonl").to_string(), exports })
}

impl Capture {
    /// Moves all times so that the newest one is `now`.
    pub fn end_at(&mut self, now: Nanos) {
        let mut newest = 0;
        for (_, document) in &mut self.exports {
            each_time(document, &mut |time| {
                newest = newest.max(time);
                time
            });
        }
        for (_, document) in &mut self.exports {
            each_time(document, &mut |time| match time {
                0 => 0,
                time => now.saturating_sub(newest - time),
            });
        }
    }
}

/// Maps every OTLP time, and times in evidence attributes that are written in nanoseconds.
fn each_time(node: &mut Json, map: &mut dyn FnMut(Nanos) -> Nanos) {
    match node {
        Json::Array(items) => items.iter_mut().for_each(|item| each_time(item, map)),
        Json::Object(members) => {
            let observed = members.get("key").and_then(Json::as_str).is_some_and(|key| {
                key.starts_with("mcp_evidence.") && key.ends_with("observed_at")
            });
            for (key, member) in members.iter_mut() {
                if key.ends_with("UnixNano") {
                    map_time(member, map);
                } else if observed && key == "value" {
                    let forms =
                        member.as_object_mut().into_iter().flat_map(|value| value.values_mut());
                    forms.for_each(|value| map_time(value, map));
                } else {
                    each_time(member, map);
                }
            }
        }
        _ => {}
    }
}

/// Times stand as numbers or as decimal strings; other text stays.
fn map_time(value: &mut Json, map: &mut dyn FnMut(Nanos) -> Nanos) {
    let time = value.as_u64().or_else(|| value.as_str().and_then(|text| text.parse().ok()));
    if let Some(time) = time {
        *value = Json::String(map(time).to_string());
    }
}
