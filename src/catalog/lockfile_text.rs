//! The lockfile's text, line by line: where it is damaged and how an entry is written.
//!
//! Promises: a value that did not change keeps its spelling and the comments around it.

use super::lockfile::{Holder, Mark, Pin, PinKey};
use crate::model::digest::Digest;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use toml_edit::{Item, Table, Value};

/// Why a lockfile was refused. Its text is for the person at the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// From 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}: {}; {}", self.line, self.what, self.remedy)
    }
}

impl Damage {
    pub(super) fn new(text: &str, span: Option<Range<usize>>, what: &str, remedy: &str) -> Damage {
        let start = span.map_or(0, |span| span.start).min(text.len());
        let line = 1 + text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count();
        let what = what.replace('\n', ", ");
        Damage { line, what, remedy: remedy.to_owned() }
    }
}

pub(super) fn damage_at(text: &str, item: &Item, what: &str, remedy: &str) -> Damage {
    Damage::new(text, item.span(), what, remedy)
}

/// A merge that was not finished is told as what it is and not as a syntax error.
pub(super) fn refuse_markers(text: &str) -> Result<(), Damage> {
    let is_marker = |line: &str| {
        let sides = ["<<<<<<<", "|||||||", ">>>>>>>"].iter().any(|mark| line.starts_with(mark));
        sides || line.trim_end() == "======="
    };
    match text.lines().position(is_marker) {
        Some(at) => Err(Damage {
            line: at + 1,
            what: "a conflict marker of an unfinished merge".to_owned(),
            remedy: "keep one entry of each tool, remove the markers, then run \
                     `mcp-verdict lock check`"
                .to_owned(),
        }),
        None => Ok(()),
    }
}

pub(super) fn text_of<'t>(table: &'t Table, key: &str) -> Option<&'t str> {
    table.get(key).and_then(Item::as_str)
}

/// Writes a pin into its entry.
pub(super) fn fill(table: &mut Table, key: &PinKey, pin: &Pin) {
    put(table, "server", Some(&key.server));
    let (auth, client) = match &key.holder {
        Holder::Anyone => (None, None),
        Holder::Auth(auth) => (Some(auth), None),
        Holder::Client(client) => (None, Some(client)),
    };
    put(table, "auth", auth);
    put(table, "client", client);
    put(table, "tool", Some(&key.tool));
    put(table, "digest", Some(&pin.digest.to_string()));
    let mark = |mark: Option<&Mark>| mark.map(|mark| (mark.at.clone(), mark.by.clone())).unzip();
    for (mark, at, by) in [
        (mark(Some(&pin.pinned)), "pinned_at", "pinned_by"),
        (mark(pin.approved.as_ref()), "approved_at", "approved_by"),
    ] {
        put(table, at, mark.0.as_ref());
        put(table, by, mark.1.as_ref());
    }
    fill_members(table, &pin.members);
}

fn fill_members(table: &mut Table, members: &BTreeMap<String, Digest>) {
    if !table.get("members").is_some_and(Item::is_table) {
        let mut fresh = Table::new();
        fresh.set_dotted(true);
        table.insert("members", Item::Table(fresh));
    }
    let Some(own) = table.get_mut("members").and_then(Item::as_table_mut) else { return };
    own.retain(|member, _| members.contains_key(member));
    for (member, digest) in members {
        let same = text_of(own, member).and_then(Digest::parse).as_ref() == Some(digest);
        if !same {
            let hash = digest.to_string();
            let hash = hash.split_once(':').map_or(hash.as_str(), |(_, hash)| hash);
            put(own, member, Some(&hash.to_owned()));
        }
    }
    own.sort_values();
}

fn put(table: &mut Table, key: &str, text: Option<&String>) {
    let Some(text) = text else {
        table.remove(key);
        return;
    };
    match table.get_mut(key) {
        Some(item) if item.as_str() == Some(text.as_str()) => {}
        Some(Item::Value(value)) => {
            let decor = value.decor().clone();
            *value = Value::from(text.as_str());
            *value.decor_mut() = decor;
        }
        _ => {
            table.insert(key, toml_edit::value(text.as_str()));
        }
    }
}
