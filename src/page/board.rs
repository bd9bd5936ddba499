//! What the page and the API read: values that others publish and nobody here changes.
//!
//! Promises: a reader holds one consistent value for as long as it wants and delays no writer; what
//! is remembered is bounded by count.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::watch;

use super::evidence::Questions;
use super::recent::{Bearers, Recent, Said};
use super::timeline::Share;
use crate::catalog::lockfile::Lockfile;
use crate::catalog::reference::References;
use crate::model::ids::{Digest16, Name, Nanos};
use crate::model::policy::ContractMode;
use crate::model::record::{Drift, Incident, Session, Verdict};
use crate::model::words::Grade;

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

/// The published values.
#[derive(Debug, Default)]
pub struct Board {
    rules: ArcSwap<Rules>,
    catalogs: ArcSwap<Catalogs>,
    recent: ArcSwap<Recent>,
    /// Rings when there is more to read.
    more: watch::Sender<()>,
    /// Chains whose evidence somebody waits for.
    pub questions: Questions,
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

    /// Rings whenever [`Board::recent`] has become another.
    pub fn more(&self) -> watch::Receiver<()> {
        self.more.subscribe()
    }
}

/// Writes down what is said, and publishes it when asked to. One thread owns it.
pub struct Recorder {
    board: Arc<Board>,
    recent: Recent,
    /// The last word on each remembered chain, and what it added to the timeline.
    latest: HashMap<Digest16, (Arc<Said>, Option<Share>)>,
    bearers: Bearers,
    /// Revisions kept, and a block more at most; a tenth of it of everything else.
    most: usize,
    moved: bool,
}

impl Recorder {
    /// `most`: revisions to remember.
    pub fn new(board: Arc<Board>, most: usize) -> Self {
        let (latest, bearers) = (HashMap::new(), Bearers::default());
        Recorder { board, recent: Recent::default(), latest, bearers, most, moved: false }
    }

    fn number(&mut self) -> u64 {
        self.moved = true;
        self.recent.newest += 1;
        self.recent.newest
    }

    /// Writes down a revision. `now`: our own clock, in Unix nanoseconds.
    pub fn verdict(&mut self, verdict: Arc<Verdict>, now: Nanos) {
        // The first revision of a chain that is forgotten here was counted.
        let counts = verdict.revision == 1 || self.latest.contains_key(&verdict.id);
        self.write(verdict, now, counts);
    }

    /// Writes down what an earlier process said.
    pub fn recalled(&mut self, verdict: Arc<Verdict>, now: Nanos) {
        self.write(verdict, now, true);
    }

    fn write(&mut self, verdict: Arc<Verdict>, now: Nanos, counts: bool) {
        let number = self.number();
        let share = Share::of(&verdict, now).filter(|_| counts);
        let said = Arc::new(Said::new(number, verdict));
        let earlier = self.latest.remove(&said.id);
        let before = earlier.as_ref().and_then(|(_, share)| *share);
        let share = share.map(|share| share.at(before));
        let timeline = Arc::make_mut(&mut self.recent.timeline);
        if let Some(before) = before {
            timeline.take(before);
        }
        if let Some(share) = share {
            timeline.add(share);
        }
        if let Some((earlier, _)) = earlier {
            earlier.replace(number);
            self.uncount(&earlier);
        }
        *self.recent.states.entry(said.state).or_default() += 1;
        self.bearers.add(&said);
        self.latest.insert(said.id, (said.clone(), share));
        self.recent.push(said);
        self.shed();
    }

    /// A revision is no longer the last remembered word on its chain.
    fn uncount(&mut self, said: &Said) {
        self.bearers.take(said);
        if let Some(count) = self.recent.states.get_mut(&said.state) {
            *count -= 1;
            if *count == 0 {
                self.recent.states.remove(&said.state);
            }
        }
    }

    fn shed(&mut self) {
        while let Some(gone) = self.recent.shed(self.most) {
            for said in gone.iter() {
                let last = self.latest.get(&said.id).is_some_and(|(l, _)| l.number == said.number);
                if last {
                    self.latest.remove(&said.id);
                    self.uncount(said);
                }
            }
        }
    }

    pub fn incident(&mut self, incident: Incident) {
        let (number, most) = (self.number(), self.others());
        let key = (
            incident.server.clone(),
            incident.layer.clone(),
            incident.reason,
            incident.discriminator.clone(),
        );
        Arc::make_mut(&mut self.recent.incidents).say(number, key, incident, most);
    }

    pub fn session(&mut self, session: Session) {
        let (number, most) = (self.number(), self.others());
        let key = session.scope.clone();
        Arc::make_mut(&mut self.recent.sessions).say(number, key, session, most);
    }

    pub fn drift(&mut self, drift: Drift) {
        let (number, most) = (self.number(), self.others());
        let key = (
            drift.server.clone(),
            drift.tool.clone(),
            drift.old_digest.clone(),
            drift.new_digest.clone(),
        );
        Arc::make_mut(&mut self.recent.drifts).say(number, key, drift, most);
    }

    fn others(&self) -> usize {
        (self.most / 10).max(1)
    }

    /// Lets readers see what was written down.
    pub fn publish(&mut self) {
        if std::mem::take(&mut self.moved) {
            if let Some(names) = self.bearers.moved() {
                self.recent.names = Arc::new(names);
            }
            self.board.recent.store(Arc::new(self.recent.clone()));
            self.board.more.send_replace(());
        }
    }
}
