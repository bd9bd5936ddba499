//! Stratum "request": what each trace says by itself, and the indexes by which its requests, notes
//! and homeless evidence are found from elsewhere.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::notes::session_of;
use super::tables::{Anchor, IdKey, NoteEntry, Tables, ToolKey, insert};
use crate::correlate::side::Side;
use crate::correlate::trace::{TraceInput, TraceRequest, TraceView, view};
use crate::model::fact::*;
use crate::model::ids::{Name, SpanRef, TraceId};

impl Tables {
    pub(super) fn trace_stage(&mut self) {
        for trace in std::mem::take(&mut self.marks.traces) {
            let Some(entry) = self.traces.get(&trace) else { continue };
            let roles = |process: &_| self.roles.get(process).copied().unwrap_or_default();
            let input = TraceInput {
                bones: &entry.bones,
                facts: &entry.facts,
                roles: &roles,
                skew: self.policy.clock_skew,
            };
            let view = view(&input);
            self.take_view(trace, view);
        }
    }

    fn take_view(&mut self, trace: TraceId, view: TraceView) {
        let TraceView { requests, owner, notes, models, unplaced, .. } = view;
        let keys: Vec<SpanRef> = requests.iter().map(TraceRequest::key).collect();
        let near: Vec<(Arc<Fact>, Option<SpanRef>)> =
            notes.into_iter().map(|(fact, number)| (fact, number.map(|n| keys[n]))).collect();
        let owner: Vec<_> = owner.into_iter().map(|(span, number)| (span, keys[number])).collect();
        let new: Vec<Arc<TraceRequest>> = requests.into_iter().map(Arc::new).collect();
        let Some(entry) = self.traces.get_mut(&trace) else { return };
        let old = std::mem::replace(&mut entry.requests, new.clone());
        let moved = std::mem::replace(&mut entry.owner, owner);
        let relinked = moved != entry.owner;
        let was_offered = std::mem::replace(&mut entry.models, models);
        let offered = was_offered != entry.models;
        let (was_noted, was_homeless) =
            (std::mem::take(&mut entry.notes), std::mem::take(&mut entry.unplaced));
        self.requests_changed(old, &new);
        if offered {
            let leaders: Vec<SpanRef> = keys.iter().map(|key| self.leader(*key)).collect();
            self.marks.verdicts.extend(leaders);
        }
        self.notes_changed(trace, was_noted, near);
        self.homeless_changed(trace, was_homeless, unplaced);
        if relinked {
            let linked = self.linked.get(&trace).into_iter().flatten();
            self.marks.unplaced.extend(linked.copied());
        }
    }

    fn requests_changed(&mut self, old: Vec<Arc<TraceRequest>>, new: &[Arc<TraceRequest>]) {
        fn stands(request: &Arc<TraceRequest>, among: &[Arc<TraceRequest>]) -> bool {
            let found = among.binary_search_by_key(&request.key(), |other| other.key());
            found.is_ok_and(|at| among[at] == *request)
        }
        for request in old.iter().filter(|request| !stands(request, new)) {
            self.unindex(request.key(), request);
        }
        for request in new.iter().filter(|request| !stands(request, &old)) {
            self.index(request.key(), request);
        }
    }

    fn unindex(&mut self, key: SpanRef, request: &TraceRequest) {
        for id in id_keys(request) {
            self.file_id(&id, key, request, false);
            self.marks.ids.insert(id);
        }
        if let Some(tool) = tool_key(request) {
            self.file_tool(&tool, key, request, false);
            self.marks.tools.insert(tool);
        }
        self.marks.chains.extend([key, self.leader(key)]);
    }

    /// Takes a request out of the indexes without judging anything anew.
    pub(super) fn forget_indexes(&mut self, key: SpanRef, request: &TraceRequest) {
        for id in id_keys(request) {
            self.file_id(&id, key, request, false);
            if !self.ids.contains_key(&id) {
                self.id_joins.remove(&id);
            }
        }
        if let Some(tool) = tool_key(request) {
            self.file_tool(&tool, key, request, false);
            if !self.tools.contains_key(&tool) {
                self.tool_joins.remove(&tool);
            }
        }
    }

    fn index(&mut self, key: SpanRef, request: &TraceRequest) {
        for id in id_keys(request) {
            self.file_id(&id, key, request, true);
            self.marks.ids.insert(id);
        }
        if let Some(tool) = tool_key(request) {
            self.file_tool(&tool, key, request, true);
            self.marks.tools.insert(tool);
        }
        self.marks.chains.extend([key, self.leader(key)]);
    }

    fn file_id(&mut self, id: &IdKey, key: SpanRef, request: &TraceRequest, add: bool) {
        let pair = &request.pair;
        let Some(side) = pair.asking.as_ref().or(pair.answering.as_ref()) else { return };
        let lone = pair.asking.is_none() || pair.answering.is_none();
        let answers = side.end == End::Answering;
        let same = self.ids.entry(id.clone()).or_default();
        let loose = lone || !side.ended;
        let set = if loose { &mut same.loose } else { &mut same.whole };
        let changed = if add { set.insert(key) } else { set.remove(&key) };
        if changed {
            let counts = [
                (&mut same.begun, !side.ended),
                (&mut same.askers, lone && !answers),
                (&mut same.answerers, lone && answers),
                (&mut same.listings, lists(request)),
            ];
            for (count, _) in counts.into_iter().filter(|(_, counts)| *counts) {
                *count = if add { *count + 1 } else { count.saturating_sub(1) };
            }
        }
        if same.is_empty() {
            self.ids.remove(id);
        }
    }

    fn file_tool(&mut self, tool: &ToolKey, key: SpanRef, request: &TraceRequest, add: bool) {
        let side = request.pair.asking.as_ref().or(request.pair.answering.as_ref());
        let same = self.tools.entry(tool.clone()).or_default();
        let answers = side.is_some_and(|side| side.end == End::Answering);
        let set = if answers { &mut same.answerers } else { &mut same.askers };
        if add {
            set.insert(key)
        } else {
            set.remove(&key)
        };
        if same.askers.is_empty() && same.answerers.is_empty() {
            self.tools.remove(tool);
        }
    }

    fn notes_changed(
        &mut self,
        trace: TraceId,
        was: BTreeSet<FactId>,
        near: Vec<(Arc<Fact>, Option<SpanRef>)>,
    ) {
        let now: BTreeSet<FactId> = near.iter().map(|(fact, _)| fact.id).collect();
        for gone in was.difference(&now) {
            self.drop_note(gone);
        }
        for (fact, near) in near {
            let id = fact.id;
            let known = self.notes.get(&id).is_some_and(|entry| entry.near == near);
            if !known {
                if session_of(&fact).is_none() {
                    insert(&mut self.notes_by_trace, trace, id);
                    insert(&mut self.notes_by_process, fact.process.key, id);
                }
                let scopes = self.notes.remove(&id).map(|entry| entry.scopes).unwrap_or_default();
                self.notes.insert(id, NoteEntry { fact, near, scopes });
                self.marks.notes.insert(id);
            }
        }
        if let Some(entry) = self.traces.get_mut(&trace) {
            entry.notes = now;
        }
    }

    fn homeless_changed(
        &mut self,
        trace: TraceId,
        was: BTreeSet<FactId>,
        homeless: Vec<Arc<Fact>>,
    ) {
        let now: BTreeSet<FactId> = homeless.iter().map(|fact| fact.id).collect();
        for gone in was.difference(&now) {
            self.drop_unplaced(gone);
        }
        for fact in homeless.into_iter().filter(|fact| !was.contains(&fact.id)) {
            for link in &fact.links {
                insert(&mut self.linked, link.trace, fact.id);
            }
            if let Some(key) = fact.evidence.operation_key {
                insert(&mut self.keyed, key, fact.id);
            }
            if let Some(request) = &fact.evidence.request_id {
                insert(&mut self.waiting, request.clone(), fact.id);
            }
            self.marks.unplaced.insert(fact.id);
            self.unplaced.insert(fact.id, fact);
        }
        if let Some(entry) = self.traces.get_mut(&trace) {
            entry.unplaced = now;
        }
    }
}

fn sides(request: &TraceRequest) -> impl Iterator<Item = &Side> {
    request.pair.asking.iter().chain(&request.pair.answering).map(|side| &**side)
}

/// A listing without anything above it: it may be a phantom.
fn lists(request: &TraceRequest) -> bool {
    let answering = request.pair.answering.as_ref();
    request.root && answering.is_some_and(|side| side.half.method.as_str() == "tools/list")
}

/// Under which ids a request may be found from other traces.
pub(super) fn id_keys(request: &TraceRequest) -> BTreeSet<IdKey> {
    let keys = sides(request).flat_map(|side| {
        let id = side.half.request_id.clone();
        let session = side.wire_session().cloned().map(Anchor::Session);
        let anchors = [session, Some(Anchor::Process(side.process().key))];
        id.into_iter().flat_map(move |id| {
            anchors.clone().into_iter().flatten().map(move |anchor| (anchor, id.clone()))
        })
    });
    keys.collect()
}

/// Lone halves are also looked up by what they do.
pub(super) fn tool_key(request: &TraceRequest) -> Option<ToolKey> {
    let lone = request.pair.asking.is_some() != request.pair.answering.is_some();
    let side = sides(request).next().filter(|_| lone)?;
    let word = side.tool().map_or(String::new(), last_word);
    Some((side.half.method.clone(), word))
}

fn last_word(tool: &Name) -> String {
    let mut words = tool.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.next_back().unwrap_or_default().to_lowercase()
}
