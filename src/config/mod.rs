//! Configuration in three phases: what was typed (`tree`), what it means by the registry of keys
//! (`keys`, `section`), and the checked values everybody else reads (`settings`).
//!
//! Reading never stops at the first mistake: all of them come back at once, each with its file,
//! line, key and what to write instead. Nothing here opens a port.

mod environment;
mod files;
mod forms;
pub mod keys;
mod loops;
pub mod mistake;
mod policy;
mod section;
mod service;
pub mod settings;
mod tree;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use forms::is_loopback;
pub use mistake::Mistake;
pub use settings::Settings;

use crate::model::policy::Rule;
use section::{Notes, Section};
use tree::{Env, Node};

/// Where the configuration comes from: files or directories merged in order, then `key=value`s.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sources {
    pub files: Vec<PathBuf>,
    pub set: Vec<String>,
}

/// Loads with the process's environment. Warnings come with the settings, or with the mistakes.
/// Files that the configuration names (certificates, tokens)
/// are not looked at: that is [`check_files`], for those who will use them.
pub fn load(sources: &Sources) -> Result<Settings, Vec<Mistake>> {
    load_with(sources, &|name| std::env::var(name).ok())
}

/// As [`load`], with the environment as an argument.
pub fn load_with(sources: &Sources, env: Env<'_>) -> Result<Settings, Vec<Mistake>> {
    let mut mistakes = Vec::new();
    let (listed, empty_files) = merged_files(&sources.files, env, &mut mistakes);
    let mut tree = listed.clone();
    for set in &sources.set {
        if let Some(node) = tree::read_set(set, env, &mut mistakes) {
            tree.merge(node);
        }
    }
    let mut settings = check(&tree, &listed, env, &mut mistakes);
    settings.empty_files = empty_files;
    // In reading order: by file as first met, then by line.
    let files: Vec<_> = mistakes.iter().map(|m| m.place.clone().map(|p| p.file)).collect();
    mistakes.sort_by_key(|m| {
        let file = m.place.clone().map(|p| p.file);
        (files.iter().position(|f| *f == file), m.place.as_ref().map(|p| p.line))
    });
    if mistakes.iter().all(|mistake| mistake.warning) {
        settings.warnings = mistakes;
        return Ok(settings);
    }
    Err(mistakes)
}

/// As [`load_with`], from a text that stands for one file of that name.
pub fn read_text(name: &str, text: &str, env: Env<'_>) -> Result<Settings, Vec<Mistake>> {
    let mut mistakes = Vec::new();
    let place = mistake::Place::new(name, 1);
    let read = tree::parse(text, &place, &Path::new("").into(), env, &mut mistakes);
    let mut tree = Node::empty();
    read.into_iter().for_each(|node| tree.merge(node));
    let mut settings = check(&tree, &tree, env, &mut mistakes);
    match mistakes.iter().all(|mistake| mistake.warning) {
        true => {
            settings.warnings = mistakes;
            Ok(settings)
        }
        false => Err(mistakes),
    }
}

/// The evidence rules of a file: a configuration, or `evidence:` alone, or the bare list.
pub fn rules(path: &Path) -> Result<(Vec<Rule>, Vec<Mistake>), Vec<Mistake>> {
    let env = |name: &str| std::env::var(name).ok();
    let mut mistakes = Vec::new();
    let read = tree::read_file(path, &env, &mut mistakes);
    let tree = read.map_or_else(Node::empty, as_configuration);
    let root = tree.clone();
    let settings = check(&root, &tree, &env, &mut mistakes);
    match mistakes.iter().all(|mistake| mistake.warning) {
        true => Ok((settings.policy.evidence, mistakes)),
        false => Err(mistakes),
    }
}

/// Rules alone as they would stand in a configuration.
fn as_configuration(node: Node) -> Node {
    let bare = matches!(node.value, tree::Value::List(_));
    let path: &[&str] = match bare {
        true => &["processors", "mcp_verdict", "evidence"],
        false if node.get("evidence").is_some() => &["processors", "mcp_verdict"],
        false => &[],
    };
    path.iter().rev().fold(node, |inner, name| inner.under(name))
}

/// Mistakes that show only in the files a configuration names.
pub use files::check_files;

/// The files merged, and those that hold nothing.
fn merged_files(
    paths: &[PathBuf],
    env: Env<'_>,
    mistakes: &mut Vec<Mistake>,
) -> (Node, Vec<PathBuf>) {
    let (mut merged, mut empty) = (Node::empty(), Vec::new());
    for path in paths {
        let shown = mistake::Place::new(&path.display().to_string(), 0);
        let files = match tree::files_of(path) {
            Ok(files) => files,
            Err(error) => {
                let says = format!("cannot be read: {error}");
                mistakes.push(Mistake::new(Some(&shown), "", says));
                continue;
            }
        };
        if files.is_empty() {
            let says = "holds no file that ends in .yaml, .yml or .json";
            mistakes.push(Mistake::new(Some(&shown), "", says));
        }
        for file in files {
            let Some(node) = tree::read_file(&file, env, mistakes) else { continue };
            if node.value == tree::Value::Absent {
                let place = mistake::Place::new(&file.display().to_string(), 0);
                let says = "holds nothing, so that it changes nothing; {} says that it is meant";
                mistakes.push(Mistake::warning(&place, "", says));
                empty.push(file);
                continue;
            }
            merged.merge(node);
        }
    }
    (merged, empty)
}

fn refuse_loops(settings: &Settings, configured: &Section<'_>, mistakes: &mut Vec<Mistake>) {
    for exporter in &settings.exporters {
        let Some(own) = loops::own_receiver(&exporter.kind, &settings.receivers) else { continue };
        let says = format!(
            "sends to {own}, where this program itself receives, so that every span would go round \
             for ever; write the backend's address"
        );
        let kinds = configured.kinds();
        match kinds.iter().find(|(key, _)| key.name == exporter.name) {
            Some((_, at)) => at.child("endpoint").wrong(says),
            None => {
                let place = mistake::Place::new("environment", 0);
                mistakes.push(Mistake::new(Some(&place), "OTEL_EXPORTER_OTLP_ENDPOINT", says));
            }
        }
    }
}

fn check(tree: &Node, listed: &Node, env: Env<'_>, mistakes: &mut Vec<Mistake>) -> Settings {
    let notes = Notes::default();
    let root = Section::root(tree, &notes);
    let files_only = Section::root(listed, &notes);
    root.refuse_unknown();
    let judging = root.child("processors").child("mcp_verdict");
    let mut exporters = service::exporters(&root.child("exporters"));
    // A configured exporter with a mistake in it is still a configured one.
    if root.child("exporters").kinds().is_empty() {
        exporters.push(environment::exporter(env, mistakes));
    }
    let configured = root.child("exporters");
    let mut service = service::service(&root.child("service"), &exporters, &configured);
    environment::describe(&mut service, env, mistakes);
    let settings = Settings {
        receivers: service::receivers(
            &root.child("receivers").child("otlp"),
            &files_only.child("receivers").child("otlp"),
        ),
        policy: policy::read(&judging),
        emit: policy::emit(&judging),
        lockfile: judging.child("contracts").path("lockfile"),
        limits: policy::limits(&judging.child("limits")),
        storage: service::storage(&root.child("storage")),
        exporters,
        service,
        warnings: Vec::new(),
        empty_files: Vec::new(),
    };
    refuse_loops(&settings, &configured, mistakes);
    // Several readers may look at one wrong value: it is one mistake.
    for mistake in notes.mistakes.take() {
        if !mistakes.contains(&mistake) {
            mistakes.push(mistake);
        }
    }
    settings
}
