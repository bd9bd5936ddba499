//! What `lock` is given to look at: pages of a `tools/list`, recordings of telemetry, or what a
//! running instance has seen.

use super::lock::{Stop, Surroundings, failed};
use super::lock_instance::Instance;
use super::lock_report::Format;
use super::lock_telemetry::{definitions_from_telemetry, is_recording};
use crate::catalog::listing::{Listing, read_listing};
use crate::catalog::lockfile::{Holder, Mark, Pin, PinKey, member_map};
use crate::catalog::projection::full_name;
use crate::model::digest::{Definition, Digest};
use crate::model::ids::Digest16;
use clap::Args;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub(super) struct Input {
    /// Answers of `tools/list`, one page after another; `-` or nothing is standard input
    #[arg(value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) instance: Instance,
    #[command(flatten)]
    pub(super) shared: Shared,
}

#[derive(Args, Debug)]
pub(super) struct Shared {
    /// The server's name in the lockfile; may be left out where it holds one server
    #[arg(long, value_name = "NAME")]
    pub(super) server: Option<String>,
    /// Pins of one authorization context: its 32 hex digits in a lockfile, or the text of
    /// mcp_evidence.session.auth_context
    #[arg(long, value_name = "CONTEXT", conflicts_with = "client")]
    pub(super) auth: Option<String>,
    /// Pins of one client instance: its 32 hex digits in a lockfile
    #[arg(long, value_name = "INSTANCE")]
    pub(super) client: Option<String>,
    /// The lockfile
    #[arg(long, value_name = "FILE", default_value = "mcp-tools.lock")]
    pub(super) lockfile: PathBuf,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
}

impl Shared {
    /// For whom pins are read and written.
    pub(super) fn holder(&self) -> Holder {
        match (&self.auth, &self.client) {
            (Some(auth), _) => {
                let of_text = || Digest16::of(&[auth.as_bytes()]);
                Holder::Auth(Digest16::parse(auth).unwrap_or_else(of_text).to_string())
            }
            (None, Some(client)) => Holder::Client(client.clone()),
            (None, None) => Holder::Anyone,
        }
    }

    pub(super) fn key(&self, server: &str, tool: &str) -> PinKey {
        PinKey { server: server.to_owned(), holder: self.holder(), tool: tool.to_owned() }
    }
}

/// One tool as it was found: whole, or by its digests alone.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub name: String,
    pub digest: Option<Digest>,
    /// Digests by place in the definition.
    pub members: BTreeMap<String, Digest>,
    pub definition: Option<Definition>,
}

impl From<&Definition> for Found {
    fn from(tool: &Definition) -> Found {
        Found {
            name: full_name(tool).to_owned(),
            digest: tool.digest.clone(),
            members: member_map(tool),
            definition: Some(tool.clone()),
        }
    }
}

impl Found {
    /// The digest of what it is now.
    pub(super) fn must_digest(&self) -> Result<Digest, Stop> {
        self.digest.clone().ok_or_else(|| {
            failed(format!("{:?} has no inputSchema, so it has no digest", self.name))
        })
    }

    /// A pin of it, approved by whoever ran the command.
    pub(super) fn pin(&self, mark: &Mark) -> Result<Pin, Stop> {
        let (pinned, approved) = (mark.clone(), Some(mark.clone()));
        Ok(Pin { digest: self.must_digest()?, members: self.members.clone(), pinned, approved })
    }
}

/// The tools that were found, and what is known about them as a whole.
pub(super) struct Listed {
    pub tools: Vec<Found>,
    /// The server that a recording names.
    pub server: Option<String>,
    /// Whether a tool that is missing here is gone.
    pub whole: bool,
    /// Tools that are known to be gone.
    pub gone: BTreeSet<String>,
}

impl Listed {
    /// Whether a pinned tool that is not among the found ones is gone.
    pub(super) fn lacks(&self, tool: &str) -> bool {
        let have = self.tools.iter().any(|found| found.name == tool);
        !have && (self.whole || self.gone.contains(tool))
    }
}

pub(super) fn listed(input: &Input, around: &mut Surroundings<'_>) -> Result<Listed, Stop> {
    if let Some(url) = &input.instance.from_instance {
        return input.instance.listed(url, input.shared.server.as_deref(), &input.shared.holder());
    }
    let is_text = |file: &PathBuf| std::fs::read_to_string(file).ok();
    let recording = |file: &PathBuf| is_recording(file, is_text(file).as_deref());
    if !input.files.is_empty() && input.files.iter().all(recording) {
        return recorded(input);
    }
    let tools = found(&complete(&input.files, around)?);
    Ok(Listed { tools, server: None, whole: true, gone: BTreeSet::new() })
}

fn found(tools: &[Definition]) -> Vec<Found> {
    tools.iter().map(Found::from).collect()
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
        return Ok(seen(&tools, server));
    }
    let names: Vec<String> = servers.keys().cloned().collect();
    match (servers.pop_first(), names.len()) {
        (Some((server, tools)), 1) => Ok(seen(&tools, &server)),
        (None, _) => Err(failed(
            "no tool definitions in the recording; clients record them in \
             mcp_evidence.list.definitions",
        )),
        _ => Err(failed(format!("the recording shows {names:?}; say --server NAME"))),
    }
}

/// What a recording shows: it may not hold every page.
fn seen(tools: &[Definition], server: &str) -> Listed {
    let server = Some(server.to_owned());
    Listed { tools: found(tools), server, whole: false, gone: BTreeSet::new() }
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
