//! `mcp-verdict lock`: contracts from the JSON answer of any `tools/list`, from recorded telemetry,
//! or from a running instance.
//!
//! Promises: `check` says 0 where every tool is what was pinned, 1 where one is not, 2 where it
//! could not tell; a listing with a page missing is "could not tell"; only `init` and `approve`
//! write, and only what they say.

use super::lock_input::{Found, Input, Listed, Shared, complete, listed};
use super::lock_report::{Report, Row, Status};
use super::{Exit, Failure, terminal};
use crate::app::lockfile::{self as lockfile_io, Trouble};
use crate::catalog::check::{located_by_members, unlocated};
use crate::catalog::diff;
use crate::catalog::lockfile::{Holder, Lockfile, Mark, Pin, PinKey};
use crate::catalog::projection::{full_name, registry_digest};
use crate::clock;
use crate::model::digest::{Definition, Digest};
use clap::{Args, Subcommand};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// `mcp-verdict lock …`
#[derive(Args, Debug)]
pub struct LockArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Pin every tool of a server that has no pins yet
    Init(Input),
    /// Compare a listing with the lockfile: 0 same, 1 drift, 2 could not check
    Check(Input),
    /// Show what changed since the pin, or between two listings
    Diff {
        #[command(flatten)]
        input: Input,
        /// The older listing; with it the diff shows text and grades schemas
        #[arg(long, value_name = "FILE")]
        against: Option<PathBuf>,
    },
    /// Make what is listed now the pin
    Approve {
        #[command(flatten)]
        input: Input,
        /// Only this tool; may be given more than once
        #[arg(long = "tool", value_name = "NAME")]
        tools: Vec<String>,
        /// Refuse unless the tool (or, without --tool, the registry) has this digest
        #[arg(long, value_name = "DIGEST")]
        expect: Option<String>,
    },
    /// Show the pins
    List(Shared),
}

/// What the commands read, write and take for now.
pub struct Surroundings<'a> {
    /// Standard input.
    pub input: &'a mut dyn Read,
    /// Results.
    pub output: &'a mut dyn Write,
    /// For the marks on pins.
    pub now: SystemTime,
}

/// Why a command stopped.
#[derive(Debug)]
pub enum Stop {
    /// What could not be done, in a sentence.
    Told(Exit, String),
    /// The result could not be written.
    Output(std::io::Error),
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Stop {
        Stop::Told(Exit::Input, trouble.to_string())
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Stop {
        Stop::Output(error)
    }
}

pub(super) fn failed(text: impl Into<String>) -> Stop {
    Stop::Told(Exit::Input, text.into())
}

/// Runs a command with the process's own input and output.
pub fn run(args: &LockArgs) -> Result<Exit, Failure> {
    let mut around = Surroundings {
        input: &mut std::io::stdin().lock(),
        output: &mut std::io::stdout().lock(),
        now: clock::system(),
    };
    run_with(args, &mut around).map_err(|stop| match stop {
        Stop::Output(error) => Failure::Output(error),
        Stop::Told(exit, text) => {
            terminal::tell(&text);
            Failure::Exit(exit)
        }
    })
}

/// Runs a command.
///
/// # Errors
/// [`Stop`] where it could not do what was asked, `approve --expect` with [`Exit::No`].
pub fn run_with(args: &LockArgs, around: &mut Surroundings<'_>) -> Result<Exit, Stop> {
    match &args.command {
        Command::Init(input) => init(input, around),
        Command::Check(input) => check(input, around),
        Command::Diff { input, against } => difference(input, against.as_deref(), around),
        Command::Approve { input, tools, expect } => {
            approve(input, tools, expect.as_deref(), around)
        }
        Command::List(shared) => list(shared, around),
    }
}

fn init(input: &Input, around: &mut Surroundings<'_>) -> Result<Exit, Stop> {
    let Listed { tools, server, .. } = listed(input, around)?;
    let Some(server) = input.shared.server.clone().or(server) else {
        return Err(failed("whose tools are these? Say --server NAME, as in server.address"));
    };
    let mark = mark("init", input, around.now);
    let pinned = lockfile_io::update(&input.shared.lockfile, |lockfile| {
        let holder = input.shared.holder();
        if lockfile.pins().keys().any(|key| key.server == server && key.holder == holder) {
            return Err(failed(format!(
                "{server:?} has pins already; compare with `lock check`, then `lock approve`"
            )));
        }
        let pins = tools.iter().map(|tool| tool.pin(&mark));
        for (tool, pin) in tools.iter().zip(pins.collect::<Result<Vec<_>, _>>()?) {
            lockfile.set(input.shared.key(&server, &tool.name), pin);
        }
        Ok(tools.len())
    })??;
    let report = Report::new(&input.shared.lockfile, &server, Vec::new());
    report.told(&format!("{pinned} tools pinned"), input.shared.format, around.output)?;
    Ok(Exit::Done)
}

fn check(input: &Input, around: &mut Surroundings<'_>) -> Result<Exit, Stop> {
    let listed = listed(input, around)?;
    let lockfile = lockfile_io::read(&input.shared.lockfile)?;
    let server = server(&input.shared, &listed, &lockfile)?;
    let rows = rows(&lockfile, &server, &input.shared.holder(), &listed, &BTreeMap::new())?;
    told(input, &server, rows, around)
}

fn difference(
    input: &Input,
    against: Option<&Path>,
    around: &mut Surroundings<'_>,
) -> Result<Exit, Stop> {
    let Some(against) = against else { return check(input, around) };
    let listed = listed(input, around)?;
    let older: BTreeMap<String, Definition> = complete(&[against.to_owned()], around)?
        .into_iter()
        .map(|tool| (full_name(&tool).to_owned(), tool))
        .collect();
    let named = input.shared.server.clone().or(listed.server.clone());
    let server = named.unwrap_or_else(|| "unknown".to_owned());
    let nobody = Mark { at: String::new(), by: String::new() };
    let mut lockfile = Lockfile::default();
    for tool in older.values().map(Found::from) {
        let pin = tool.pin(&nobody)?;
        let holder = Holder::Anyone;
        lockfile.set(PinKey { server: server.clone(), holder, tool: tool.name }, pin);
    }
    let rows = rows(&lockfile, &server, &Holder::Anyone, &listed, &older)?;
    told(input, &server, rows, around)
}

fn told(
    input: &Input,
    server: &str,
    rows: Vec<Row>,
    around: &mut Surroundings<'_>,
) -> Result<Exit, Stop> {
    let report = Report::new(&input.shared.lockfile, server, rows);
    report.print(input.shared.format, around.output)?;
    Ok(if report.is_same() { Exit::Done } else { Exit::No })
}

fn approve(
    input: &Input,
    names: &[String],
    expect: Option<&str>,
    around: &mut Surroundings<'_>,
) -> Result<Exit, Stop> {
    let listed = listed(input, around)?;
    let mark = mark("approve", input, around.now);
    let done = lockfile_io::update(&input.shared.lockfile, |lockfile| {
        let server = server(&input.shared, &listed, lockfile)?;
        let (tools, gone) = chosen(&listed, names, lockfile, &input.shared.key(&server, ""))?;
        expected(&listed.tools, &tools, names, expect)?;
        for tool in &tools {
            let key = input.shared.key(&server, &tool.name);
            let pin = approved(lockfile, &key, tool, &mark)?;
            lockfile.set(key, pin);
        }
        gone.iter().for_each(|key| drop(lockfile.remove(key)));
        Ok::<_, Stop>((server, tools.len(), gone.len()))
    })?;
    let (server, approved, removed) = done?;
    let report = Report::new(&input.shared.lockfile, &server, Vec::new());
    let text = format!("{approved} tools approved, {removed} pins removed");
    report.told(&text, input.shared.format, around.output)?;
    Ok(Exit::Done)
}

/// The pin of an approved tool: one that was pinned already keeps when and where that was.
fn approved(lockfile: &Lockfile, key: &PinKey, tool: &Found, mark: &Mark) -> Result<Pin, Stop> {
    let fresh = tool.pin(mark)?;
    match lockfile.pins().get(key) {
        Some(own) if own.digest == fresh.digest => Ok(Pin {
            pinned: own.pinned.clone(),
            approved: own.approved.clone().or(fresh.approved),
            ..fresh
        }),
        _ => Ok(fresh),
    }
}

/// The tools to approve, and the pins of those that are listed no more. `of` names server and
/// holder.
fn chosen<'t>(
    all: &'t Listed,
    names: &[String],
    lockfile: &Lockfile,
    of: &PinKey,
) -> Result<(Vec<&'t Found>, Vec<PinKey>), Stop> {
    let wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let listed = all.tools.iter().filter(|tool| wanted(&tool.name)).collect();
    let have: BTreeSet<&str> = all.tools.iter().map(|tool| tool.name.as_str()).collect();
    let mine = |key: &PinKey| key.server == of.server && key.holder == of.holder;
    let gone =
        lockfile.pins().keys().filter(|key| mine(key) && wanted(&key.tool) && all.lacks(&key.tool));
    let gone: Vec<PinKey> = gone.cloned().collect();
    let known =
        |name: &String| have.contains(name.as_str()) || gone.iter().any(|k| k.tool == *name);
    match names.iter().find(|name| !known(name)) {
        Some(name) => Err(failed(format!("{name:?} is neither listed nor pinned"))),
        None => Ok((listed, gone)),
    }
}

/// Refuses where what is listed is not what was reviewed.
fn expected(
    tools: &[Found],
    chosen: &[&Found],
    names: &[String],
    expect: Option<&str>,
) -> Result<(), Stop> {
    let Some(text) = expect else { return Ok(()) };
    let Some(wanted @ Digest::Tool(_)) = Digest::parse(text) else {
        return Err(failed("--expect takes all 64 hex digits: mcp-tool/1:sha256:<64 hex>"));
    };
    let whole: Option<Vec<Definition>> = tools.iter().map(|tool| tool.definition.clone()).collect();
    let registry = whole.and_then(|whole| registry_digest(&whole));
    let found = match (names, chosen) {
        ([_], [tool]) | ([], [tool]) if registry != Some(wanted.clone()) => tool.digest.clone(),
        ([], _) => registry,
        _ => return Err(failed("--expect goes with one --tool, or with none for the registry")),
    };
    if found.as_ref() == Some(&wanted) {
        return Ok(());
    }
    let found = found.map_or("without a digest".to_owned(), |found| found.to_string());
    Err(Stop::Told(
        Exit::No,
        format!("it has moved again: expected {wanted}, it is {found}; review it"),
    ))
}

fn list(shared: &Shared, around: &mut Surroundings<'_>) -> Result<Exit, Stop> {
    let file = shared.lockfile.display();
    if !shared.lockfile.exists() {
        let says = format!("{file} is not there: nothing is pinned; `lock init` pins a server");
        return Err(Stop::Told(Exit::No, says));
    }
    let lockfile = lockfile_io::read(&shared.lockfile)?;
    let wanted = |key: &PinKey| shared.server.as_ref().is_none_or(|server| *server == key.server);
    let pins: Vec<_> = lockfile.pins().iter().filter(|(key, _)| wanted(key)).collect();
    if let Some(server) = shared.server.as_ref().filter(|_| pins.is_empty()) {
        let known: BTreeSet<&str> = lockfile.pins().keys().map(|key| &*key.server).collect();
        let says = format!("{file} has no pins of {server:?}; it has pins of {known:?}");
        return Err(Stop::Told(Exit::No, says));
    }
    super::lock_report::list(pins, shared.format, around.output)?;
    Ok(Exit::Done)
}

/// Every tool against its pin, and every pin without a tool.
fn rows(
    lockfile: &Lockfile,
    server: &str,
    holder: &Holder,
    listed: &Listed,
    older: &BTreeMap<String, Definition>,
) -> Result<Vec<Row>, Stop> {
    let mut rows = Vec::new();
    for tool in &listed.tools {
        let found = tool.must_digest()?;
        let pin = lockfile.find(server, holder, &tool.name);
        let both = older.get(&tool.name).zip(tool.definition.as_ref());
        let status = match pin {
            None => Status::Unpinned,
            Some(pin) if pin.digest == found => Status::Same,
            Some(pin) => {
                let by_text = both.and_then(|(older, tool)| diff::diff(older, tool));
                let located = by_text.or_else(|| located_by_members(&pin.members, &tool.members));
                Status::Drifted(located.unwrap_or_else(|| unlocated(&pin.digest, &found)))
            }
        };
        rows.push(Row {
            tool: tool.name.clone(),
            status,
            expected: pin.map(|pin| pin.digest.clone()),
            found: Some(found),
            texts: both.map(|(old, new)| (old.projected.value(), new.projected.value())),
        });
    }
    let mine = |key: &PinKey| key.server == server && key.holder == *holder;
    let pins = lockfile.pins().iter().filter(|(key, _)| mine(key));
    rows.extend(pins.filter(|(key, _)| listed.lacks(&key.tool)).map(|(key, pin)| Row {
        tool: key.tool.clone(),
        status: Status::Removed,
        expected: Some(pin.digest.clone()),
        found: None,
        texts: None,
    }));
    rows.sort_by(|a, b| a.tool.cmp(&b.tool));
    Ok(rows)
}

fn mark(command: &str, input: &Input, now: SystemTime) -> Mark {
    let names = input.files.iter().map(|file| file.display().to_string());
    let names: Vec<String> = names.chain(input.instance.from_instance.clone()).collect();
    let from = if names.is_empty() { "-".to_owned() } else { names.join(" ") };
    let at = humantime::format_rfc3339_seconds(now).to_string();
    Mark { at, by: format!("lock {command} {from}") }
}

fn server(shared: &Shared, listed: &Listed, lockfile: &Lockfile) -> Result<String, Stop> {
    if let Some(server) = shared.server.as_ref().or(listed.server.as_ref()) {
        return Ok(server.clone());
    }
    let servers: BTreeSet<&String> = lockfile.pins().keys().map(|key| &key.server).collect();
    let mut servers = servers.into_iter();
    match (servers.next(), servers.next()) {
        (Some(only), None) => Ok(only.clone()),
        (None, _) => Err(failed(format!(
            "{} has no pins; say --server NAME, and pin with `lock init`",
            shared.lockfile.display()
        ))),
        _ => Err(failed("the lockfile holds more than one server; say --server NAME")),
    }
}
