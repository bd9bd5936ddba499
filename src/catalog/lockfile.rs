//! `mcp-tools.lock` as text: which definition of each tool was approved.
//!
//! Promises: a missing or empty text is an empty lockfile; what cannot be understood wholly is
//! refused with its line and what to do about it, and nothing is guessed; printing keeps what
//! people wrote (comments, spacing of entries that did not change) and sorts entries, so that two
//! lockfiles with the same pins differ in comments only.
//!
//! Digests of members and of single parameters stand beside the tool digest: with them a drift is
//! located although the pinned definition is nowhere at hand.

use super::digest::value_digest;
pub use super::lockfile_text::Damage;
use super::lockfile_text::{damage_at, fill, refuse_markers, text_of};
use super::projection::{escape, full_name, member_digests};
use crate::model::digest::{Definition, Digest};
use crate::model::ids::{Digest16, Name};
use crate::model::policy::{Context, Pins};
use std::collections::{BTreeMap, BTreeSet};
use toml_edit::{ArrayOfTables, Document, DocumentMut, Item, Table};

/// The version that this program reads and writes.
pub const VERSION: i64 = 1;

/// Parameters of one tool that get a digest of their own.
const MOST_PARAMETERS: usize = 200;

const HEADER: &str = "\
# The MCP tools that were reviewed and what each of them was then.
# Written by `mcp-verdict lock`: commit this file, approve changes with `mcp-verdict lock approve`.
# Comments are kept.
";

/// For whom a pin holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// Every caller for whom there is no pin of its own.
    Anyone,
    /// The authorization context with this digest.
    Auth(String),
    /// The client instance, where its authorization is unknown.
    Client(String),
}

/// What a pin is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PinKey {
    /// The server's identity (judgment.md §4.7).
    pub server: String,
    /// For whom it holds.
    pub holder: Holder,
    /// The tool's name.
    pub tool: String,
}

/// When and by what something was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// RFC 3339, UTC.
    pub at: String,
    /// Where: a command and its input, or the program that saw it first.
    pub by: String,
}

/// One reviewed definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The tool digest.
    pub digest: Digest,
    /// Digests by place in the definition, without the leading slash of the pointer.
    pub members: BTreeMap<String, Digest>,
    /// When it was seen and kept.
    pub pinned: Mark,
    /// When a person said yes to it; pinning on first use does not.
    pub approved: Option<Mark>,
}

impl Pin {
    /// A pin of a definition; `None` where it has no digest.
    pub fn of(tool: &Definition, pinned: Mark, approved: Option<Mark>) -> Option<Pin> {
        let digest = tool.digest.clone()?;
        Some(Pin { digest, members: member_map(tool), pinned, approved })
    }
}

/// The digests of a definition's members and parameters, by their place.
pub fn member_map(tool: &Definition) -> BTreeMap<String, Digest> {
    let projected = tool.projected.value();
    let members = member_digests(&projected).into_iter();
    let mut map: BTreeMap<String, Digest> =
        members.map(|(member, digest)| (member.to_owned(), digest)).collect();
    let parameters = projected.pointer("/inputSchema/properties");
    let parameters = parameters.and_then(|parameters| parameters.as_object()).into_iter().flatten();
    for (name, schema) in parameters.take(MOST_PARAMETERS) {
        if let Some(digest) = value_digest(schema) {
            map.insert(format!("inputSchema/properties/{}", escape(name)), digest);
        }
    }
    map
}

/// All pins of a lockfile, with the text they came from.
#[derive(Clone, Debug, Default)]
pub struct Lockfile {
    document: DocumentMut,
    pins: BTreeMap<PinKey, Pin>,
}

impl Lockfile {
    /// Reads a lockfile.
    ///
    /// # Errors
    /// [`Damage`] with line and remedy: conflict markers, no TOML, another version, unknown or
    /// missing keys, malformed digests, one tool pinned twice.
    pub fn parse(text: &str) -> Result<Lockfile, Damage> {
        refuse_markers(text)?;
        let document = Document::parse(text).map_err(|error| {
            Damage::new(text, error.span(), error.message(), "restore the line, or the file")
        })?;
        check_version(text, document.as_table())?;
        let mut pins = BTreeMap::new();
        if let Some(item) = document.get("tool") {
            let tables = item.as_array_of_tables().ok_or_else(|| {
                damage_at(text, item, "`tool` is not a list of entries", "write `[[tool]]`")
            })?;
            for table in tables {
                let (key, pin) = entry(text, table)?;
                if pins.insert(key, pin).is_some() {
                    let what = "this tool is pinned twice";
                    let remedy = "keep the entry that was approved, remove the other";
                    return Err(Damage::new(text, table.span(), what, remedy));
                }
            }
        }
        Ok(Lockfile { document: document.into_mut(), pins })
    }

    /// Every pin, sorted.
    pub fn pins(&self) -> &BTreeMap<PinKey, Pin> {
        &self.pins
    }

    /// The pin that holds for a caller: its own, else anyone's.
    pub fn find(&self, server: &str, holder: &Holder, tool: &str) -> Option<&Pin> {
        let key = |holder: &Holder| PinKey {
            server: server.to_owned(),
            holder: holder.clone(),
            tool: tool.to_owned(),
        };
        self.pins.get(&key(holder)).or_else(|| self.pins.get(&key(&Holder::Anyone)))
    }

    /// All pins as the policy holds them.
    pub fn by_server(&self) -> BTreeMap<Name, Pins> {
        let servers: BTreeSet<&str> = self.pins.keys().map(|key| key.server.as_str()).collect();
        servers.into_iter().map(|name| (Name::new(name), self.of_server(name))).collect()
    }

    /// One server's pins as the engine looks them up. A pin of a context whose name is not that of
    /// any context that telemetry can have (32 hex digits) holds for nobody.
    pub fn of_server(&self, server: &str) -> Pins {
        let mine = self.pins.iter().filter(|(key, _)| key.server == server);
        let pin = |(key, pin): (&PinKey, &Pin)| {
            let context = match &key.holder {
                Holder::Anyone => None,
                Holder::Auth(auth) => Some(Context::Auth(Digest16::parse(auth)?)),
                Holder::Client(client) => Some(Context::Client(Some(Digest16::parse(client)?))),
            };
            Some(((Name::new(&key.tool), context), pin.digest.clone()))
        };
        mine.filter_map(pin).collect()
    }

    /// Adds or replaces a pin.
    pub fn set(&mut self, key: PinKey, pin: Pin) {
        self.pins.insert(key, pin);
    }

    /// Removes a pin and says what it was.
    pub fn remove(&mut self, key: &PinKey) -> Option<Pin> {
        self.pins.remove(key)
    }

    /// The whole text, entries sorted, comments kept.
    pub fn print(&self) -> String {
        let mut document = self.document.clone();
        if document.get("version").is_none() {
            start(&mut document);
        }
        let mut tables: BTreeMap<PinKey, Table> = BTreeMap::new();
        if let Some(Item::ArrayOfTables(list)) = document.remove("tool") {
            tables.extend(list.into_iter().filter_map(|table| Some((key_of(&table)?, table))));
        }
        let mut list = ArrayOfTables::new();
        for (at, (key, pin)) in (0isize..).zip(&self.pins) {
            let mut table = tables.remove(key).unwrap_or_default();
            fill(&mut table, key, pin);
            // An entry written as two tables keeps its second one behind it.
            table.set_position(Some(at * 2));
            if let Some(members) = table.get_mut("members").and_then(Item::as_table_mut) {
                members.set_position(Some(at * 2 + 1));
            }
            list.push(table);
        }
        if !list.is_empty() {
            document.insert("tool", Item::ArrayOfTables(list));
        }
        document.to_string()
    }
}

/// Puts header and version in front of what an empty file may say.
fn start(document: &mut DocumentMut) {
    let said = document.trailing().as_str().unwrap_or_default().to_owned();
    let mut header = if said.trim().is_empty() { HEADER.to_owned() } else { said };
    if !header.ends_with('\n') {
        // What follows must not become part of a comment.
        header.push('\n');
    }
    document.set_trailing("");
    document.insert("version", toml_edit::value(VERSION));
    if let Some(mut key) = document.key_mut("version") {
        key.leaf_decor_mut().set_prefix(header);
    }
}

fn check_version(text: &str, root: &Table) -> Result<(), Damage> {
    if root.is_empty() {
        return Ok(());
    }
    let Some(item) = root.get("version") else {
        let remedy = "write `version = 1` above the first entry";
        return Err(Damage::new(text, Some(0..0), "no version", remedy));
    };
    match item.as_integer() {
        Some(VERSION) => {}
        Some(newer) if newer > VERSION => {
            let what = format!("version {newer} was written by a newer mcp-verdict");
            let remedy = "upgrade mcp-verdict; this one reads version 1";
            return Err(damage_at(text, item, &what, remedy));
        }
        _ => return Err(damage_at(text, item, "no such version", "write `version = 1`")),
    }
    match root.iter().find(|(key, _)| !matches!(*key, "version" | "tool")) {
        Some((key, item)) => Err(unknown(text, key, item)),
        None => Ok(()),
    }
}

fn unknown(text: &str, key: &str, item: &Item) -> Damage {
    let what = format!("unknown key `{}`", key.escape_debug());
    damage_at(text, item, &what, "remove it, or make it a comment")
}

fn entry(text: &str, table: &Table) -> Result<(PinKey, Pin), Damage> {
    const KEYS: [&str; 10] = [
        "server",
        "auth",
        "client",
        "tool",
        "digest",
        "members",
        "pinned_at",
        "pinned_by",
        "approved_at",
        "approved_by",
    ];
    if let Some((key, item)) = table.iter().find(|(key, _)| !KEYS.contains(key)) {
        return Err(unknown(text, key, item));
    }
    let missing = |key: &str| {
        let what = format!("an entry without `{key}`, or not a text");
        Damage::new(text, table.span(), &what, "restore the entry, or remove it and pin again")
    };
    let must = |key: &str| text_of(table, key).ok_or_else(|| missing(key));
    let (server, tool) = (must("server")?.to_owned(), must("tool")?.to_owned());
    must("digest")?;
    let mark = |at: &str, by: &str| {
        Ok::<_, Damage>(Mark { at: must(at)?.to_owned(), by: must(by)?.to_owned() })
    };
    let holder = holder_of(table).ok_or_else(|| {
        let remedy = "keep the one that names the caller";
        Damage::new(text, table.span(), "an entry with both `auth` and `client`", remedy)
    })?;
    let approved = table.contains_key("approved_at") || table.contains_key("approved_by");
    let pin = Pin {
        digest: digest(text, &table["digest"])?,
        members: members(text, table.get("members"))?,
        pinned: mark("pinned_at", "pinned_by")?,
        approved: approved.then(|| mark("approved_at", "approved_by")).transpose()?,
    };
    Ok((PinKey { server, holder, tool }, pin))
}

fn holder_of(table: &Table) -> Option<Holder> {
    match (text_of(table, "auth"), text_of(table, "client")) {
        (None, None) => Some(Holder::Anyone),
        (Some(auth), None) => Some(Holder::Auth(auth.to_owned())),
        (None, Some(client)) => Some(Holder::Client(client.to_owned())),
        (Some(_), Some(_)) => None,
    }
}

fn key_of(table: &Table) -> Option<PinKey> {
    Some(PinKey {
        server: text_of(table, "server")?.to_owned(),
        holder: holder_of(table)?,
        tool: text_of(table, "tool")?.to_owned(),
    })
}

fn members(text: &str, item: Option<&Item>) -> Result<BTreeMap<String, Digest>, Damage> {
    let Some(item) = item else { return Ok(BTreeMap::new()) };
    let table = item.as_table_like().ok_or_else(|| {
        let remedy = "write `members.description = \"sha256:...\"`, or pin the tool again";
        damage_at(text, item, "`members` is not a table", remedy)
    })?;
    table.iter().map(|(member, item)| Ok((member.to_owned(), digest(text, item)?))).collect()
}

fn digest(text: &str, item: &Item) -> Result<Digest, Damage> {
    match item.as_str().and_then(Digest::parse) {
        Some(Digest::Foreign(_)) => {
            let remedy = "pin the tool again; digests of two schemes are never compared";
            Err(damage_at(text, item, "a digest of another scheme than mcp-tool/1", remedy))
        }
        Some(ours) => Ok(ours),
        None => {
            let remedy = "restore the 64 hex digits, or remove the entry and pin the tool again";
            Err(damage_at(text, item, "no digest", remedy))
        }
    }
}

/// The key of a tool for anyone.
pub fn anyones(server: &str, tool: &Definition) -> PinKey {
    let (server, tool) = (server.to_owned(), full_name(tool).to_owned());
    PinKey { server, holder: Holder::Anyone, tool }
}
