//! What `lock` is given to look at: pages of a `tools/list`, or recordings of telemetry.

use super::lock::{Input, Stop, Surroundings, failed};
use super::lock_telemetry::{definitions_from_telemetry, is_recording};
use crate::catalog::listing::{Listing, read_listing};
use crate::catalog::projection::full_name;
use crate::model::digest::Definition;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The tools that the files show, and what is known about them as a whole.
pub(super) struct Listed {
    pub tools: Vec<Definition>,
    /// The server that a recording names.
    pub server: Option<String>,
    /// Whether a tool that is missing here is gone.
    pub whole: bool,
}

pub(super) fn listed(input: &Input, around: &mut Surroundings<'_>) -> Result<Listed, Stop> {
    let is_text = |file: &PathBuf| std::fs::read_to_string(file).ok();
    let recording = |file: &PathBuf| is_recording(file, is_text(file).as_deref());
    if !input.files.is_empty() && input.files.iter().all(recording) {
        return recorded(input);
    }
    Ok(Listed { tools: complete(&input.files, around)?, server: None, whole: true })
}

fn recorded(input: &Input) -> Result<Listed, Stop> {
    let mut servers =
        definitions_from_telemetry(&input.files).map_err(|error| failed(error.to_string()))?;
    if let Some(server) = &input.shared.server {
        let tools = servers.remove(server).ok_or_else(|| {
            failed(format!(
                "no definitions of {server:?} in the recording; it may name it otherwise"
            ))
        })?;
        return Ok(Listed { tools, server: Some(server.clone()), whole: false });
    }
    let names: Vec<String> = servers.keys().cloned().collect();
    match (servers.pop_first(), names.len()) {
        (Some((server, tools)), 1) => Ok(Listed { tools, server: Some(server), whole: false }),
        (None, _) => Err(failed(
            "no tool definitions in the recording; clients record them in \
             mcp_evidence.list.definitions",
        )),
        _ => Err(failed(format!("the recording shows {names:?}; say --server NAME"))),
    }
}

/// All pages of a listing, with nothing missing and nothing twice.
pub(super) fn complete(
    files: &[PathBuf],
    around: &mut Surroundings<'_>,
) -> Result<Vec<Definition>, Stop> {
    let mut all = Listing::default();
    let standard = [PathBuf::from("-")];
    let files = if files.is_empty() { &standard[..] } else { files };
    for file in files {
        let text = text_of(file, around)?;
        if is_recording(file, Some(&text)) {
            return Err(failed(
                "a recording of telemetry is read from files alone, not beside pages",
            ));
        }
        let page =
            read_listing(&text).map_err(|error| failed(format!("{}: {error}", file.display())))?;
        all.tools.extend(page.tools);
        all.next_cursor = page.next_cursor;
        all.unreadable += page.unreadable;
    }
    if all.unreadable > 0 {
        return Err(failed(format!("{} entries are not tool definitions", all.unreadable)));
    }
    if all.next_cursor.is_some() {
        return Err(failed(
            "the listing goes on (nextCursor); ask for the next page and add its file",
        ));
    }
    let mut seen: BTreeMap<&str, &Definition> = BTreeMap::new();
    for tool in &all.tools {
        if seen.insert(full_name(tool), tool).is_some_and(|twin| twin.digest != tool.digest) {
            let name = tool.name.as_str();
            return Err(failed(format!("{name:?} is listed twice, with two definitions")));
        }
    }
    let mut kept = BTreeSet::new();
    Ok(all.tools.iter().filter(|tool| kept.insert(full_name(tool))).cloned().collect())
}

fn text_of(file: &Path, around: &mut Surroundings<'_>) -> Result<String, Stop> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        around.input.read_to_string(&mut text).map(drop)
    } else {
        std::fs::read_to_string(file).map(|read| text = read)
    };
    read.map_err(|error| failed(format!("{}: cannot read: {error}", file.display())))?;
    Ok(text)
}
