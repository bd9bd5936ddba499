//! Trust on first use (`contracts.mode: pin`): the first definition of each tool goes into the
//! lockfile.
//!
//! Promises: what is pinned already stays as it is; other writers lose nothing; a lockfile that
//! cannot be written, or understood, is left alone, and pins live in `storage.directory` meanwhile;
//! no pin is approved, for nobody has looked at it.
//!
//! What is pinned here holds for checks at once, and for verdicts from the next start or reload on:
//! until then the engine itself knows what came first, as replay does.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::lockfile::{self, Trouble};
use crate::catalog::lockfile::{Holder, Lockfile, Mark, Pin, PinKey};
use crate::catalog::projection::full_name;
use crate::catalog::reference::{Reading, References};
use crate::clock;
use crate::config::Settings;
use crate::model::digest::Digest;
use crate::model::ids::Name;
use crate::model::policy::{Context, ContractMode};
use crate::page::Board;
use crate::page::board::{Catalogs, Rules};

/// The file in `storage.directory` that holds pins while the lockfile cannot.
const SPARE: &str = "pins.lock";
/// A lockfile does not grow beyond so many pins by itself.
const MOST_PINS: usize = 100_000;
const EVERY: Duration = Duration::from_secs(1);

/// Where pins are kept.
#[derive(Clone, Debug)]
pub struct Places {
    lockfile: PathBuf,
    spare: PathBuf,
}

impl Places {
    pub fn of(settings: &Settings) -> Self {
        let spare = settings.storage.directory.join(SPARE);
        Places { lockfile: settings.lockfile.clone(), spare }
    }

    /// What holds in a mode. The lockfile comes first; the spare only serves trust on first use.
    ///
    /// # Errors
    /// When the lockfile cannot be read or understood, or the spare not be read.
    pub fn read(&self, mode: ContractMode) -> Result<Lockfile, Trouble> {
        let mut pins = match mode {
            ContractMode::Pin | ContractMode::Enforce => lockfile::read(&self.lockfile)?,
            ContractMode::Observe | ContractMode::Off => Lockfile::default(),
        };
        if mode == ContractMode::Pin {
            add(&mut pins, self.read_spare()?.pins().clone());
        }
        Ok(pins)
    }

    /// What the spare holds. Nobody but this program writes it: where it cannot be understood it is
    /// set aside like all that is damaged in `storage.directory`, and its tools are pinned anew.
    ///
    /// # Errors
    /// When it cannot be read, or not be set aside.
    fn read_spare(&self) -> Result<Lockfile, Trouble> {
        // A link may lead anywhere.
        let special = std::fs::symlink_metadata(&self.spare).is_ok_and(|found| !found.is_file());
        let why = match lockfile::read(&self.spare) {
            _ if special => "it is no regular file".to_owned(),
            Err(Trouble::Damaged(_, damage)) => damage.to_string(),
            read => return read,
        };
        let aside = self.set_aside()?;
        let (file, aside) = (self.spare.display(), aside.display());
        tracing::error!(%file, why, %aside, "pins of the first use are lost: set aside, made anew");
        Ok(Lockfile::default())
    }

    fn set_aside(&self) -> Result<PathBuf, Trouble> {
        let folder = self.spare.with_file_name("set-aside");
        let failed = |error| Trouble::Io(self.spare.clone(), "set aside", error);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
        if !std::fs::symlink_metadata(&folder).is_ok_and(|found| found.is_dir()) {
            return Err(failed(ErrorKind::NotADirectory.into()));
        }
        let free = |name: &String| std::fs::symlink_metadata(folder.join(name)).is_err();
        let numbered = (1_u64..).map(|number| format!("{SPARE}.{number}"));
        let name = std::iter::once(SPARE.to_owned()).chain(numbered).find(free);
        let to = folder.join(name.unwrap_or_default());
        std::fs::rename(&self.spare, &to).map_err(failed)?;
        Ok(to)
    }
}

/// Pins what the board shows, one writer of this process at a time.
pub struct Pinning {
    board: Arc<Board>,
    state: Mutex<State>,
}

struct State {
    places: Places,
    /// What was looked at already, by server.
    seen: BTreeMap<Name, Arc<References>>,
    /// Whether it was told that the lockfile cannot be written.
    told: bool,
}

impl Pinning {
    pub fn new(board: Arc<Board>, places: Places) -> Arc<Self> {
        let state = Mutex::new(State { places, seen: BTreeMap::new(), told: false });
        Arc::new(Pinning { board, state })
    }

    /// Looks for new tools for ever.
    pub async fn run(self: Arc<Self>) {
        loop {
            tokio::time::sleep(EVERY).await;
            self.round().await;
        }
    }

    /// Pins what is new.
    pub async fn round(&self) {
        let mut state = self.state.lock().await;
        let (rules, catalogs) = (self.board.rules(), self.board.catalogs());
        if rules.mode != ContractMode::Pin || !state.moved(&catalogs) {
            return;
        }
        let fresh = state.fresh(&rules, &catalogs);
        state.seen.clone_from(&catalogs);
        if fresh.is_empty() {
            return;
        }
        let (places, told) = (state.places.clone(), state.told);
        let known = rules.lockfile.clone();
        let kept = tokio::task::spawn_blocking(move || keep(&places, known, fresh, told)).await;
        // The pool ends with the process.
        let Ok((lockfile, told)) = kept else { return };
        state.told = told;
        self.board.set_rules(Rules { lockfile, ..Rules::clone(&rules) });
    }

    /// Other rules, and other places, from now on.
    pub async fn reload(&self, rules: Rules, places: Places) {
        let mut state = self.state.lock().await;
        *state = State { places, seen: BTreeMap::new(), told: false };
        self.board.set_rules(rules);
    }
}

impl State {
    fn moved(&self, catalogs: &Catalogs) -> bool {
        let same = |(name, known): (&Name, &Arc<References>)| {
            self.seen.get(name).is_some_and(|seen| Arc::ptr_eq(seen, known))
        };
        !catalogs.iter().all(same)
    }

    /// The first definitions that nothing is pinned for.
    fn fresh(&self, rules: &Rules, catalogs: &Catalogs) -> BTreeMap<PinKey, Pin> {
        let mut first: BTreeMap<PinKey, &Reading> = BTreeMap::new();
        let moved = catalogs.iter().filter(|(name, known)| {
            !self.seen.get(*name).is_some_and(|seen| Arc::ptr_eq(seen, known))
        });
        // Tools of servers that nobody can tell apart are no contract.
        for (server, references) in moved.filter(|(server, _)| server.as_str() != "unknown") {
            for (tool, context, readings) in references.lines() {
                let Some(reading) = readings.first() else { continue };
                let name = reading.definition.as_ref().map_or(tool.as_str(), full_name);
                let key = PinKey {
                    server: server.to_string(),
                    holder: holder(context),
                    tool: name.into(),
                };
                if rules.lockfile.find(&key.server, &key.holder, &key.tool).is_some() {
                    continue;
                }
                let earlier =
                    |known: &&Reading| (known.at, known.span) <= (reading.at, reading.span);
                if !first.get(&key).is_some_and(earlier) {
                    first.insert(key, reading);
                }
            }
        }
        let at = humantime::format_rfc3339_seconds(clock::system()).to_string();
        let mark = Mark { at, by: "mcp-verdict run, first use".into() };
        let pins = first.into_iter();
        pins.filter_map(|(key, reading)| Some((key, pin(reading, mark.clone())?))).collect()
    }
}

/// A pin holds for an authorization context; where that is unknown, for anyone: client instances
/// come and go.
fn holder(context: &Context) -> Holder {
    match context {
        Context::Auth(auth) => Holder::Auth(auth.to_string()),
        Context::Client(_) => Holder::Anyone,
    }
}

fn pin(reading: &Reading, mark: Mark) -> Option<Pin> {
    match (&reading.definition, &reading.digest) {
        (Some(definition), _) => Pin::of(definition, mark, None),
        (None, Some(digest @ Digest::Tool(_))) => {
            let (digest, members) = (digest.clone(), BTreeMap::new());
            Some(Pin { digest, members, pinned: mark, approved: None })
        }
        (None, _) => None,
    }
}

/// Adds what is missing; how many pins that were.
fn add(to: &mut Lockfile, pins: BTreeMap<PinKey, Pin>) -> usize {
    let mut added = 0;
    for (key, pin) in pins {
        let known = to.find(&key.server, &key.holder, &key.tool).is_some();
        if !known && to.pins().len() < MOST_PINS {
            to.set(key, pin);
            added += 1;
        }
    }
    added
}

/// Writes new pins where they can be written. All pins that hold now, and whether it was told that
/// the lockfile cannot be written.
fn keep(
    places: &Places,
    mut known: Lockfile,
    fresh: BTreeMap<PinKey, Pin>,
    told: bool,
) -> (Lockfile, bool) {
    let waiting = places.read_spare().map(|spare| spare.pins().clone());
    let waiting = waiting.unwrap_or_default();
    let emptied = !waiting.is_empty();
    let all: BTreeMap<PinKey, Pin> = waiting.into_iter().chain(fresh.clone()).collect();
    match write(&places.lockfile, all) {
        Ok(pins) => {
            let count = fresh.len();
            tracing::info!(count, lockfile = %places.lockfile.display(), "tools pinned");
            if emptied {
                // Left behind, it says what the lockfile says.
                let _ = std::fs::remove_file(&places.spare);
            }
            (pins, false)
        }
        Err(trouble) => {
            if !told {
                let spare = places.spare.display();
                tracing::warn!(%trouble, %spare, "pins are kept in storage.directory");
            }
            if let Err(trouble) = write_spare(&places.spare, fresh.clone()) {
                tracing::error!(%trouble, "pins are kept in memory alone");
            }
            add(&mut known, fresh);
            (known, true)
        }
    }
}

fn write(path: &Path, pins: BTreeMap<PinKey, Pin>) -> Result<Lockfile, Trouble> {
    let written = lockfile::update(path, |lockfile| {
        add(lockfile, pins);
        Ok::<_, std::convert::Infallible>(lockfile.clone())
    })?;
    let Ok(lockfile) = written;
    Ok(lockfile)
}

fn write_spare(path: &Path, pins: BTreeMap<PinKey, Pin>) -> Result<Lockfile, Trouble> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)
            .map_err(|error| Trouble::Io(directory.to_owned(), "create", error))?;
    }
    write(path, pins)
}
