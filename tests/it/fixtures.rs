//! Every case and capture of `tests/data`, ready to be judged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcp_verdict::cli::input;
use mcp_verdict::config::{Sources, load_with};
use mcp_verdict::model::fact::Sighting;
use mcp_verdict::model::policy::Policy;
use mcp_verdict::normalise::sight;
use mcp_verdict::wire::Signal;
use mcp_verdict::wire::json::{Limits, to_protobuf};
use serde_json::Value;

/// A recording as it lies on disk, and the policy to judge it by.
pub struct Recording {
    /// Path below `tests/data`.
    pub name: String,
    pub files: Vec<PathBuf>,
    pub policy: Arc<Policy>,
}

impl Recording {
    fn new(files: Vec<PathBuf>, config: Option<PathBuf>) -> Self {
        let named = files.first().expect("a file").strip_prefix(data("")).expect("below data");
        let sources = Sources { files: config.into_iter().collect(), ..Sources::default() };
        let settings = load_with(&sources, &|_| None).expect("a usable config");
        let name = named.display().to_string();
        Recording { name, files, policy: Arc::new(settings.policy) }
    }

    /// Its exports as protobuf, in the order of the files.
    pub fn exports(&self) -> Vec<(Signal, Vec<u8>)> {
        let mut exports = Vec::new();
        input::read(&self.files, &mut |signal, bytes| exports.push((signal, bytes.to_vec())))
            .expect("a readable fixture");
        exports
    }

    /// Its lines as they stand in the files.
    pub fn documents(&self) -> Vec<Value> {
        let texts = self.files.iter().map(|file| std::fs::read_to_string(file).expect("UTF-8"));
        let lines = texts.flat_map(|text| {
            let full = text.lines().filter(|line| !line.trim().is_empty());
            full.map(|line| serde_json::from_str(line).expect("JSON")).collect::<Vec<Value>>()
        });
        lines.collect()
    }

    /// What its exports say.
    pub fn sightings(&self) -> Vec<Sighting> {
        sightings(&self.exports(), &self.policy)
    }
}

pub fn sightings(exports: &[(Signal, Vec<u8>)], policy: &Policy) -> Vec<Sighting> {
    exports.iter().map(|(signal, bytes)| sight(*signal, bytes, policy)).collect()
}

/// Documents as [`Recording::documents`] gives them, as protobuf.
pub fn exports_of(documents: &[Value]) -> Vec<(Signal, Vec<u8>)> {
    let convert = |document: &Value| {
        let text = document.to_string();
        let signals = [(Signal::Traces, "resourceSpans"), (Signal::Logs, "resourceLogs")];
        let held = signals.into_iter().filter(|(_, key)| document.get(key).is_some());
        let convert = |(signal, _)| {
            let limits = Limits { max_bytes: 1 << 30 };
            let export = to_protobuf(signal, text.as_bytes(), limits).expect("OTLP/JSON");
            (signal, export.bytes)
        };
        held.map(convert).collect::<Vec<_>>()
    };
    documents.iter().flat_map(convert).collect()
}

pub fn data(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(folder).expect("a folder of fixtures");
    let mut entries: Vec<PathBuf> = read.map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    entries
}

pub fn cases() -> Vec<Recording> {
    let case = |folder: PathBuf| {
        let config = Some(folder.join("config.yaml")).filter(|path| path.exists());
        Recording::new(vec![folder.join("input.jsonl")], config)
    };
    entries(&data("cases")).into_iter().filter(|folder| folder.is_dir()).map(case).collect()
}

/// A folder with `traces.jsonl` is one capture, with its `logs.jsonl`; elsewhere each file is one.
pub fn captures() -> Vec<Recording> {
    let mut folders = vec![data("captures")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries = entries(&folder);
        let named = |name: &str| entries.iter().find(|path| path.ends_with(name)).cloned();
        let loose = |path: &&PathBuf| {
            let name = path.to_string_lossy();
            name.ends_with(".jsonl") && !name.contains("truth") && !name.contains("metrics")
        };
        match named("traces.jsonl") {
            Some(traces) => {
                let files = [Some(traces), named("logs.jsonl")].into_iter().flatten().collect();
                found.push(Recording::new(files, None));
            }
            None => found.extend(
                entries.iter().filter(loose).map(|file| Recording::new(vec![file.clone()], None)),
            ),
        }
        folders.extend(entries.into_iter().filter(|path| path.is_dir()));
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}
