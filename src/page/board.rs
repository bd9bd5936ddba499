//! What the page and the API read: values that others publish and nobody here changes.
//!
//! Promises: a reader holds one consistent value for as long as it wants and delays no writer; what
//! is remembered is bounded by count.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::catalog::lockfile::Lockfile;
use crate::catalog::reference::References;
use crate::model::ids::{Digest16, Name};
use crate::model::policy::ContractMode;
use crate::model::record::{Drift, Incident, Session, Verdict};
use crate::model::words::{Grade, Reason};

/// By which contracts a check answers.
#[derive(Clone, Debug)]
pub struct Rules {
    pub mode: ContractMode,
    pub fail_on: Vec<Grade>,
    /// Empty where the mode does not look at it.
    pub lockfile: Lockfile,
}

impl Default for Rules {
    fn default() -> Self {
        Rules { mode: ContractMode::Observe, fail_on: Vec::new(), lockfile: Lockfile::default() }
    }
}

/// What each server's tools were read to be.
pub type Catalogs = BTreeMap<Name, Arc<References>>;

/// The newest of everything that was said, each with the number under which it was said.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    /// Revisions of verdicts, oldest first.
    revisions: VecDeque<(u64, Arc<Verdict>)>,
    pub incidents: Latest<IncidentKey, Incident>,
    pub sessions: Latest<Name, Session>,
    pub drifts: Latest<DriftKey, Drift>,
}

/// What an incident is known by: server, layer, reason, discriminator.
pub type IncidentKey = (Name, Name, Reason, Option<Name>);
/// What a drift is known by: server, tool, old and new digest.
pub type DriftKey = (Name, Name, Name, Option<Name>);

/// The last word on each of some things, by when it was said.
#[derive(Clone, Debug)]
pub struct Latest<K, T> {
    said: BTreeMap<u64, (K, Arc<T>)>,
    when: BTreeMap<K, u64>,
}

impl<K, T> Default for Latest<K, T> {
    fn default() -> Self {
        Latest { said: BTreeMap::new(), when: BTreeMap::new() }
    }
}

impl<K: Ord + Clone, T> Latest<K, T> {
    /// Newest first, from before a number on.
    pub fn before(&self, number: u64) -> impl Iterator<Item = (u64, &Arc<T>)> {
        self.said.range(..number).rev().map(|(number, (_, item))| (*number, item))
    }

    fn say(&mut self, number: u64, key: K, item: T, most: usize) {
        if let Some(was) = self.when.insert(key.clone(), number) {
            self.said.remove(&was);
        }
        self.said.insert(number, (key, Arc::new(item)));
        while self.said.len() > most {
            let Some((_, (key, _))) = self.said.pop_first() else { return };
            self.when.remove(&key);
        }
    }
}

impl Recent {
    /// The latest revision of each chain, the newest first, of those said before a number: a chain
    /// that was said again since stands on an earlier page.
    pub fn chains_before(&self, number: u64) -> impl Iterator<Item = (u64, &Arc<Verdict>)> {
        let mut seen: BTreeSet<Digest16> = BTreeSet::new();
        let newest = self.revisions.iter().rev();
        let latest = newest.filter(move |(_, verdict)| seen.insert(verdict.id));
        latest.filter(move |(said, _)| *said < number).map(|(said, verdict)| (*said, verdict))
    }

    /// Every remembered revision of a chain, the newest first.
    pub fn chain(&self, id: &str) -> Vec<&Arc<Verdict>> {
        let newest = self.revisions.iter().rev().map(|(_, verdict)| verdict);
        newest.filter(|verdict| verdict.id.to_string() == id).collect()
    }
}

/// The published values.
#[derive(Debug, Default)]
pub struct Board {
    rules: ArcSwap<Rules>,
    catalogs: ArcSwap<Catalogs>,
    recent: ArcSwap<Recent>,
}

impl Board {
    pub fn rules(&self) -> Arc<Rules> {
        self.rules.load_full()
    }

    pub fn set_rules(&self, rules: Rules) {
        self.rules.store(Arc::new(rules));
    }

    pub fn catalogs(&self) -> Arc<Catalogs> {
        self.catalogs.load_full()
    }

    pub fn set_catalogs(&self, catalogs: Catalogs) {
        self.catalogs.store(Arc::new(catalogs));
    }

    pub fn recent(&self) -> Arc<Recent> {
        self.recent.load_full()
    }
}

/// Writes down what is said, and publishes it when asked to. One thread owns it.
pub struct Recorder {
    board: Arc<Board>,
    recent: Recent,
    /// Revisions kept; a tenth of it of everything else.
    most: usize,
    next: u64,
    moved: bool,
}

impl Recorder {
    /// `most`: revisions to remember.
    pub fn new(board: Arc<Board>, most: usize) -> Self {
        Recorder { board, recent: Recent::default(), most, next: 1, moved: false }
    }

    fn number(&mut self) -> u64 {
        self.moved = true;
        self.next += 1;
        self.next - 1
    }

    pub fn verdict(&mut self, verdict: Verdict) {
        let number = self.number();
        self.recent.revisions.push_back((number, Arc::new(verdict)));
        while self.recent.revisions.len() > self.most {
            self.recent.revisions.pop_front();
        }
    }

    pub fn incident(&mut self, incident: Incident) {
        let number = self.number();
        let key = (
            incident.server.clone(),
            incident.layer.clone(),
            incident.reason,
            incident.discriminator.clone(),
        );
        self.recent.incidents.say(number, key, incident, self.others());
    }

    pub fn session(&mut self, session: Session) {
        let number = self.number();
        self.recent.sessions.say(number, session.scope.clone(), session, self.others());
    }

    pub fn drift(&mut self, drift: Drift) {
        let number = self.number();
        let key = (
            drift.server.clone(),
            drift.tool.clone(),
            drift.old_digest.clone(),
            drift.new_digest.clone(),
        );
        self.recent.drifts.say(number, key, drift, self.others());
    }

    fn others(&self) -> usize {
        (self.most / 10).max(1)
    }

    /// Lets readers see what was written down.
    pub fn publish(&mut self) {
        if std::mem::take(&mut self.moved) {
            self.board.recent.store(Arc::new(self.recent.clone()));
        }
    }
}
