//! Stratum "join": halves of different traces that are one request, and phantoms that only another
//! trace unmasks.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::few::Few;
use super::requests::{id_keys, tool_key};
use super::tables::{Anchor, IdKey, SameTool, Tables, ToolKey, insert, remove};
use crate::correlate::join::{Calls, Joined, Lone, by_elimination, by_id, by_process, is_phantom};
use crate::correlate::trace::TraceRequest;
use crate::model::fact::End;
use crate::model::ids::SpanRef;

impl Tables {
    pub(super) fn id_stage(&mut self) {
        // A phantom found under one key changes who joins under another, never who is a phantom.
        let marked = std::mem::take(&mut self.marks.ids);
        for key in &marked {
            self.unmask(key);
        }
        let again = std::mem::take(&mut self.marks.ids);
        for key in marked.into_iter().chain(again).collect::<BTreeSet<IdKey>>() {
            let joined = self.joined_by(&key);
            if joined.is_empty() && !self.id_joins.contains_key(&key) {
                continue;
            }
            let was = match joined.is_empty() {
                true => self.id_joins.remove(&key).unwrap_or_default(),
                false => self.id_joins.insert(key, joined.clone()).unwrap_or_default(),
            };
            self.rejoin(was, joined);
        }
    }

    pub(super) fn tool_stage(&mut self) {
        for key in std::mem::take(&mut self.marks.tools) {
            let joined = self.joined_by_elimination(&key);
            if joined.is_empty() && !self.tool_joins.contains_key(&key) {
                continue;
            }
            let was = match joined.is_empty() {
                true => self.tool_joins.remove(&key).unwrap_or_default(),
                false => self.tool_joins.insert(key, joined.clone()).unwrap_or_default(),
            };
            self.rejoin(was, joined);
        }
        // Joining by elimination marks the same keys again; they were all just computed.
        self.marks.tools.clear();
    }

    /// Who joins whom under one key. Whole requests matter only to start records that wait.
    fn joined_by(&self, key: &IdKey) -> Vec<Joined> {
        let Some(same) = self.ids.get(key).filter(|same| same.may_join()) else {
            return Vec::new();
        };
        let whole = same.whole.iter().filter(|_| same.begun > 0);
        let mut found: Vec<SpanRef> = whole.chain(same.loose.iter()).copied().collect();
        found.sort_unstable();
        let standing = found.iter().filter(|at| !self.phantoms.contains_key(at));
        let lones: Vec<Lone> = standing.filter_map(|at| lone(*at, self.request(at)?)).collect();
        let skew = self.policy.clock_skew;
        match key.0 {
            Anchor::Session(_) => by_id(&lones, skew),
            Anchor::Process(_) => by_process(&lones, skew),
        }
    }

    fn joined_by_elimination(&self, key: &ToolKey) -> Vec<Joined> {
        let both = |same: &&SameTool| !same.askers.is_empty() && !same.answerers.is_empty();
        let Some(same) = self.tools.get(key).filter(both) else { return Vec::new() };
        let standing = |at: &SpanRef| !self.phantoms.contains_key(at) && self.alone(*at);
        let found =
            |all: &Few<SpanRef>| -> Vec<SpanRef> { all.iter().copied().filter(standing).collect() };
        // One end is mostly joined by ids and gone: then nobody of the other is looked at.
        let answerers = found(&same.answerers);
        if answerers.is_empty() {
            return Vec::new();
        }
        let all = found(&same.askers).into_iter().chain(answerers);
        let lones: Vec<Lone> = all.filter_map(|at| lone(at, self.request(&at)?)).collect();
        by_elimination(&lones, self.policy.clock_skew)
    }

    /// Whether no id has joined the request to its other half.
    fn alone(&self, at: SpanRef) -> bool {
        let by_id = |joined: &Joined| joined.how != crate::correlate::join::How::OnlyCandidate;
        let is_member = self.leaders.get(&at).is_some_and(|joins| joins.iter().any(by_id));
        let answered = self.members.get(&at).into_iter().flatten().filter(|j| by_id(j)).any(|j| {
            let (mine, theirs) = (self.request(&at), self.request(&j.member));
            match (mine, theirs) {
                (Some(mine), Some(theirs)) => {
                    mine.pair.asking.is_some() != theirs.pair.asking.is_some()
                        || theirs.pair.answering.is_some() && mine.pair.answering.is_none()
                }
                _ => false,
            }
        });
        !is_member && !answered
    }

    /// The call that a phantom listing was a look-up for.
    pub(super) fn call_behind(&self, phantom: SpanRef) -> Option<SpanRef> {
        let key = self.phantoms.get(&phantom)?.first()?;
        let mut calls: Vec<&SpanRef> = self.ids.get(key)?.all().collect();
        calls.sort_unstable();
        let calls = calls.into_iter().filter(|at| **at != phantom);
        calls
            .map(|at| self.leader(*at))
            .find(|at| self.chains.get(at).is_some_and(|entry| entry.chain.is_call()))
    }

    /// Finds the phantoms under one key.
    fn unmask(&mut self, key: &IdKey) {
        let Some(same) = self.ids.get(key).filter(|same| same.listings > 0) else { return };
        let all: Vec<(SpanRef, Arc<TraceRequest>)> =
            same.all().filter_map(|at| Some((*at, self.request(at)?.clone()))).collect();
        let skew = self.policy.clock_skew;
        let sides =
            all.iter().flat_map(|(_, other)| other.pair.answering.iter().chain(&other.pair.asking));
        let sides = sides.map(|side| &**side);
        let calls = Calls::new(sides, skew);
        for (at, request) in all.iter().filter(|(_, request)| request.root) {
            let Some(listing) = &request.pair.answering else { continue };
            let masked =
                calls.running_at(listing.start).any(|call| is_phantom(listing, call, skew));
            let was = self.phantoms.get(at).is_some_and(|keys| keys.contains(key));
            if masked != was {
                match masked {
                    true => insert(&mut self.phantoms, *at, key.clone()),
                    false => remove(&mut self.phantoms, at, key),
                }
                self.marks.ids.extend(id_keys(request));
                self.marks.tools.extend(tool_key(request));
                self.marks.chains.insert(*at);
            }
        }
    }

    fn rejoin(&mut self, was: Vec<Joined>, now: Vec<Joined>) {
        let (was, now): (BTreeSet<Joined>, BTreeSet<Joined>) =
            (was.into_iter().collect(), now.into_iter().collect());
        for joined in was.symmetric_difference(&now) {
            let (leader, member) = (joined.leader, joined.member);
            self.marks.chains.extend([self.leader(leader), self.leader(member), leader, member]);
            match now.contains(joined) {
                true => {
                    insert(&mut self.leaders, member, *joined);
                    insert(&mut self.members, leader, *joined);
                }
                false => {
                    remove(&mut self.leaders, &member, joined);
                    remove(&mut self.members, &leader, joined);
                }
            }
            self.marks.chains.extend([self.leader(leader), self.leader(member)]);
            for at in [leader, member] {
                if let Some(request) = self.request(&at) {
                    self.marks.tools.extend(tool_key(request));
                }
            }
        }
    }
}

/// How a request stands for others to join: by its asking side, else by its answering one.
fn lone(key: SpanRef, request: &TraceRequest) -> Option<Lone<'_>> {
    let pair = &request.pair;
    let whole = pair.asking.is_some() && pair.answering.is_some();
    let side = pair.asking.as_ref().or(pair.answering.as_ref())?;
    debug_assert!(side.end != End::Answering || pair.asking.is_none());
    Some(Lone { key, side, whole })
}
