//! Stratum "records": sessions, drifts, incidents and the summary, from what stands above.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::listed::tool_names;
use super::scope_view::ScopeView;
use super::scopes::ScopeEntry;
use super::tables::{ChainEntry, Tables, pins};
use crate::catalog::reference::References;
use crate::correlate::scope::ScopeKey;
use crate::incident::{Entry, fold};
use crate::model::findings::{Code, Detail, Finding};
use crate::model::ids::{Digest16, Name, Nanos, SpanId, SpanRef};
use crate::model::record::*;
use crate::model::words::*;

impl Tables {
    /// The record of one scope; `None` for a scope without requests.
    pub(super) fn session(&self, key: &ScopeKey) -> Option<Session> {
        let scope = self.scopes.get(key)?;
        let (first, at) = scope.chains.first().copied()?;
        let view = &scope.view;
        let noted = view.notes.last().map_or(0, |fact| fact.start);
        let last = scope.chains.last().map_or(first, |(start, _)| *start);
        let last = last.max(scope.newest).max(noted);
        let timeline = &view.timeline;
        let listing = timeline.newest_listing(last).or(timeline.listing(last));
        let discovered = timeline
            .traversals
            .iter()
            .rev()
            .filter(|traversal| traversal.stop <= last)
            .find_map(|traversal| traversal.discovered());
        let session_id = match key {
            ScopeKey::Session(id) => Some(id.clone()),
            _ => None,
        };
        Some(Session {
            scope: key.name(),
            session_id,
            era: view.era.unwrap_or(Era::Unknown),
            protocol_version: view.version.clone(),
            state: session_rung(scope),
            convergence: self.convergence_now(scope, last),
            discovered_digest: discovered.map(|digest| digest.name()),
            installed_digest: timeline.installed(last).map(|digest| digest.name()),
            tool_count: listing
                .and_then(|traversal| traversal.tool_count())
                .or_else(|| timeline.traversals.iter().rev().find_map(|t| t.tool_count())),
            pages: timeline.pages(),
            requests: scope.chains.len() as u64,
            findings: self.session_findings(scope),
            first_start: first,
            span: at,
        })
    }

    /// At the scope's last activity; what the model was offered counts as of its last call.
    fn convergence_now(&self, scope: &ScopeEntry, last: Nanos) -> Convergence {
        let call = scope.calls.last().and_then(|(_, key)| self.chains.get(key));
        let offered = call.and_then(|entry| self.offered(&entry.chain, entry.chain.start()));
        scope.view.timeline.convergence(last, self.policy.catalog_max_age, offered.as_deref())
    }

    fn session_findings(&self, scope: &ScopeEntry) -> Vec<Finding> {
        let view = &scope.view;
        let activity = scope.chains.last().map_or(0, |(start, _)| *start);
        let called = |from, to| scope.called_between(from, to);
        let modern = view.era == Some(Era::Modern);
        let mut found = view.timeline.findings(activity, &called, modern);
        found.extend(unknown_tokens(scope, view));
        found.extend(ping_pong(scope, modern));
        found.extend(missing_server_spans(scope));
        found.extend(self.collision(scope));
        found.sort();
        found.dedup();
        found.truncate(self.limits.findings);
        found
    }

    fn collision(&self, scope: &ScopeEntry) -> Option<Finding> {
        let owner = scope.listed_as.as_ref()?;
        let listed = tool_names(&scope.view);
        let count = listed.iter().filter(|tool| self.listed.collides(owner, tool)).count() as u64;
        let spans = scope.view.timeline.traversals.iter().flat_map(|t| t.spans()).take(16);
        (count > 0).then(|| {
            Finding::new(Code::ToolNameCollision, spans.collect()).detail(Detail::Count(count))
        })
    }

    /// The servers whose references moved since this was last asked, and all their drifts.
    pub(super) fn moved_drifts(&mut self) -> (BTreeSet<Name>, Vec<Drift>) {
        let moved = std::mem::take(&mut self.drifting);
        let known = |server: &Name| self.references.get_key_value(server);
        let drifts = self.drifts_of(moved.iter().filter_map(known));
        (moved, drifts)
    }

    pub(super) fn drifts(&self) -> Vec<Drift> {
        self.drifts_of(self.references.iter())
    }

    fn drifts_of<'a>(
        &self,
        servers: impl Iterator<Item = (&'a Name, &'a Arc<References>)>,
    ) -> Vec<Drift> {
        let mode = self.policy.contracts.mode;
        let of_server = servers.flat_map(|(server, references)| {
            references.drifts(server, pins(&self.policy, server), mode)
        });
        let mut drifts: Vec<Drift> = of_server.collect();
        drifts.sort_by(|a, b| {
            (a.first_seen, &a.server, &a.tool, &a.new_digest).cmp(&(
                b.first_seen,
                &b.server,
                &b.tool,
                &b.new_digest,
            ))
        });
        drifts
    }

    pub(super) fn incident_entry(&self, entry: &ChainEntry) -> Option<Entry> {
        let verdict = entry.verdict.as_deref()?;
        let tool = verdict.tool.as_ref().map(|tool| tool.as_str());
        let requires = self.policy_of(&entry.chain).requires(&verdict.server, tool);
        let credential = entry.chain.sides().find_map(|side| side.half.call.credential.clone());
        Entry::of(credential, entry.ending?, verdict, &requires)
    }

    pub(super) fn incidents(&self, now: Nanos) -> Vec<Incident> {
        let mut by_server: BTreeMap<Name, Vec<Entry>> = BTreeMap::new();
        for entry in self.chains.values().filter_map(|entry| self.incident_entry(entry)) {
            by_server.entry(entry.server.clone()).or_default().push(entry);
        }
        let quiet = self.policy.incident_quiet;
        let all = by_server.values().flat_map(|entries| fold(entries, now, quiet));
        sort_incidents(all.collect())
    }

    pub(super) fn verdicts(&self) -> Vec<Arc<Verdict>> {
        let mut all: Vec<Arc<Verdict>> =
            self.chains.values().filter_map(|entry| entry.verdict.clone()).collect();
        all.sort_by_key(|verdict| order(verdict));
        all
    }
}

/// §8: verdicts by (start, trace, span).
pub(super) fn order(verdict: &Verdict) -> (Nanos, SpanRef) {
    (verdict.start_time, verdict.operator.span)
}

pub(super) fn sort_incidents(mut all: Vec<Incident>) -> Vec<Incident> {
    all.sort_by(|a, b| {
        let key = |i: &Incident| (i.first_seen, i.layer.clone(), i.server.clone());
        key(a)
            .cmp(&key(b))
            .then_with(|| (&a.discriminator, a.reason).cmp(&(&b.discriminator, b.reason)))
    });
    all
}

/// The scope's session layer: the best of its requests', a failure where nothing passed.
fn session_rung(scope: &ScopeEntry) -> Rung {
    let order = [Rung::Passed, Rung::Failed, Rung::Pending, Rung::Unobserved, Rung::NotApplicable];
    order.into_iter().find(|rung| scope.rungs.contains_key(rung)).unwrap_or(Rung::Unobserved)
}

/// Insufficient scope A, then B, then A again.
fn ping_pong(scope: &ScopeEntry, modern: bool) -> Option<Finding> {
    let mut asked: Vec<(&Name, SpanId)> = Vec::new();
    for ((_, at), required) in &scope.refused {
        if asked.last().is_none_or(|(last, _)| *last != required) {
            asked.push((required, at.span));
        }
    }
    let again = asked.windows(3).find(|some| some[0].0 == some[2].0)?;
    let spans = again.iter().map(|(_, span)| *span).collect();
    let blame = if modern { Blame::Client } else { Blame::None };
    Some(Finding::new(Code::ScopePingPong, spans).blame(blame))
}

/// Answered requests without a server half, said once a scope.
fn missing_server_spans(scope: &ScopeEntry) -> Option<Finding> {
    let count = scope.unserved.len() as u64;
    let some = scope.unserved.iter().take(16).map(|(_, at)| at.span).collect();
    (count > 0).then(|| Finding::new(Code::ServerSpansMissing, some).detail(Detail::Count(count)))
}

/// Tokens that no request of a scope gave, where its requests record tokens at all.
fn unknown_tokens(scope: &ScopeEntry, view: &ScopeView) -> Option<Finding> {
    if !view.records_tokens {
        return None;
    }
    let unknown = |token: &Name| !scope.knows_token(token);
    let found: Vec<_> =
        view.notes.tokens().into_iter().filter(|(token, _)| unknown(token)).collect();
    let (token, _) = found.first()?;
    let detail = Detail::Digest(Digest16::of(&[token.as_bytes()]));
    let spans = found.iter().map(|(_, fact)| fact.id.at.span).collect();
    Some(Finding::new(Code::ProgressUnknownToken, spans).detail(detail))
}
