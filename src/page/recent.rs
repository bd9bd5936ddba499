//! What was said lately, each thing with the number under which it was said.
//!
//! Promises: a copy costs a pointer for each block of revisions, not for each revision; a reader
//! sees what had been said when its copy was made, however much is said meanwhile; what is
//! remembered is bounded by count.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::timeline::Timeline;
use crate::model::ids::{Digest16, Name};
use crate::model::record::{Drift, Incident, Session, Verdict};
use crate::model::words::{Reason, State};

/// The newest of everything that was said.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    /// Oldest first; only the last block still grows.
    blocks: VecDeque<Arc<Vec<Arc<Said>>>>,
    /// Revisions in all blocks.
    revisions: usize,
    /// Revisions that were remembered and are no more.
    shed: u64,
    /// The number of what was said last.
    pub newest: u64,
    pub incidents: Arc<Latest<IncidentKey, Incident>>,
    pub sessions: Arc<Latest<Name, Session>>,
    pub drifts: Arc<Latest<DriftKey, Drift>>,
    pub timeline: Arc<Timeline>,
    /// Remembered chains by the state of their latest revision.
    pub states: BTreeMap<State, u64>,
    pub names: Arc<Names>,
}

/// Revisions in a block.
const BLOCK: usize = 512;

/// One revision of a verdict.
#[derive(Debug)]
pub struct Said {
    pub number: u64,
    /// The number of the revision that replaced it; 0 while there is none.
    replaced: AtomicU64,
    verdict: Arc<Verdict>,
}

impl Deref for Said {
    type Target = Verdict;
    fn deref(&self) -> &Verdict {
        &self.verdict
    }
}

/// Printed as the verdict it is.
impl serde::Serialize for Said {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.verdict.serialize(s)
    }
}

impl Said {
    pub fn new(number: u64, verdict: Arc<Verdict>) -> Self {
        Said { number, replaced: AtomicU64::new(0), verdict }
    }

    /// Whether it was the last word on its chain when `newest` was the newest number.
    fn stands(&self, newest: u64) -> bool {
        let replaced = self.replaced.load(Ordering::Acquire);
        replaced == 0 || replaced > newest
    }

    pub fn replace(&self, by: u64) {
        self.replaced.store(by, Ordering::Release);
    }
}

/// Names that remembered chains bear, in order; the first of them where there are very many.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub servers: Vec<Name>,
    pub tools: Vec<Name>,
    pub agents: Vec<Name>,
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

    pub fn say(&mut self, number: u64, key: K, item: T, most: usize) {
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
    pub fn chains_before(&self, number: u64) -> impl Iterator<Item = (u64, &Arc<Said>)> {
        let upto = self.blocks.partition_point(|block| first_of(block) < number);
        let newest_first = self.blocks.range(..upto).rev().flat_map(|block| block.iter().rev());
        newest_first
            .filter(move |said| said.number < number && said.stands(self.newest))
            .map(|said| (said.number, said))
    }

    /// Every remembered revision of a chain, the newest first.
    pub fn chain(&self, id: &str) -> Vec<&Arc<Said>> {
        let Some(id) = Digest16::parse(id) else { return Vec::new() };
        let newest_first = self.blocks.iter().rev().flat_map(|block| block.iter().rev());
        newest_first.filter(|said| said.id == id).collect()
    }

    /// Chains that are remembered.
    pub fn chains(&self) -> u64 {
        self.states.values().sum()
    }

    pub fn revisions(&self) -> usize {
        self.revisions
    }

    /// How many revisions were before the first that is remembered.
    pub fn first(&self) -> u64 {
        self.shed
    }

    /// How many revisions there were, those that are forgotten too.
    pub fn ever(&self) -> u64 {
        self.shed + self.revisions as u64
    }

    /// The block of revisions that holds the one that so many were before, from that one on, oldest
    /// first; and how many before it were forgotten. Empty when nothing more was said.
    pub fn from(&self, before: u64) -> (u64, impl Iterator<Item = &Arc<Said>>) {
        let missed = self.shed.saturating_sub(before);
        // All blocks but the last are full.
        let at = usize::try_from(before.saturating_sub(self.shed)).unwrap_or(usize::MAX);
        let block = self.blocks.get(at / BLOCK).map(|block| block.iter().skip(at % BLOCK));
        (missed, block.into_iter().flatten())
    }

    pub fn push(&mut self, said: Arc<Said>) {
        self.revisions += 1;
        match self.blocks.back_mut().filter(|block| block.len() < BLOCK) {
            Some(block) => Arc::make_mut(block).push(said),
            None => {
                let mut block = Vec::with_capacity(BLOCK);
                block.push(said);
                self.blocks.push_back(Arc::new(block));
            }
        }
    }

    /// Forgets the oldest block once more than `most` revisions would remain without it.
    pub fn shed(&mut self, most: usize) -> Option<Arc<Vec<Arc<Said>>>> {
        let oldest = self.blocks.front()?.len();
        if self.blocks.len() < 2 || self.revisions - oldest < most {
            return None;
        }
        self.revisions -= oldest;
        self.shed += oldest as u64;
        self.blocks.pop_front()
    }
}

fn first_of(block: &[Arc<Said>]) -> u64 {
    block.first().map_or(u64::MAX, |said| said.number)
}

/// How many remembered chains bear each name.
#[derive(Debug, Default)]
pub struct Bearers {
    servers: BTreeMap<Name, u32>,
    tools: BTreeMap<Name, u32>,
    agents: BTreeMap<Name, u32>,
    moved: bool,
}

/// Names of a kind that are published.
const NAMES: usize = 500;

impl Bearers {
    pub fn add(&mut self, verdict: &Verdict) {
        let one = |names: &mut BTreeMap<Name, u32>, name: &Name| match names.get_mut(name) {
            Some(count) => {
                *count += 1;
                false
            }
            None => names.insert(name.clone(), 1).is_none(),
        };
        self.moved |= one(&mut self.servers, &verdict.server);
        self.moved |= verdict.tool.as_ref().is_some_and(|tool| one(&mut self.tools, tool));
        self.moved |= verdict.agent.as_ref().is_some_and(|agent| one(&mut self.agents, agent));
    }

    pub fn take(&mut self, verdict: &Verdict) {
        let one = |names: &mut BTreeMap<Name, u32>, name: &Name| {
            let Some(count) = names.get_mut(name) else { return false };
            *count -= 1;
            let gone = *count == 0;
            gone && names.remove(name).is_some()
        };
        self.moved |= one(&mut self.servers, &verdict.server);
        self.moved |= verdict.tool.as_ref().is_some_and(|tool| one(&mut self.tools, tool));
        self.moved |= verdict.agent.as_ref().is_some_and(|agent| one(&mut self.agents, agent));
    }

    /// What is published, if it is another than when last asked.
    pub fn moved(&mut self) -> Option<Names> {
        let first = |names: &BTreeMap<Name, u32>| names.keys().take(NAMES).cloned().collect();
        std::mem::take(&mut self.moved).then(|| Names {
            servers: first(&self.servers),
            tools: first(&self.tools),
            agents: first(&self.agents),
        })
    }
}
