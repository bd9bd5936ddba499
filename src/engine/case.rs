//! From a chain and its tables to what judgement reads: the exchange, then the case.

use std::sync::Arc;

use super::scope_view::ScopeView;
use super::scopes::{NEAR, Namesakes, closes};
use super::tables::{ChainEntry, Tables};
use crate::catalog::hints::hints;
use crate::correlate::chain::Chain;
use crate::correlate::notes::Cancel;
use crate::correlate::operation::Kind;
use crate::correlate::scope::{ScopeKey, ServerName};
use crate::correlate::side::{Side, together};
use crate::model::case::*;
use crate::model::fact::*;
use crate::model::findings::{Code, Finding};
use crate::model::ids::{Name, Nanos, SpanRef};
use crate::model::words::Era;

impl Tables {
    /// A chain by itself: enough to say how it ended, before its scope is known.
    pub(super) fn bare_exchange(&self, chain: &Chain) -> Exchange {
        let server = ServerName::of(chain).map(|server| server.name().clone());
        let server = server.unwrap_or_else(|| Name::new("unknown"));
        self.exchange_with(chain, server, chain.era(), &[])
    }

    /// `elsewhere` are records of other traces that speak of it.
    fn exchange_with(
        &self,
        chain: &Chain,
        server: Name,
        era: Era,
        elsewhere: &[Arc<Fact>],
    ) -> Exchange {
        let tool = chain.tool().filter(|_| chain.is_call());
        let tool_text = tool.map(Name::as_str);
        let told = || elsewhere.iter().filter_map(|fact| fact.evidence.request.as_deref());
        let calls = || chain.sides().map(|side| &side.half.call).chain(told().map(|h| &h.call));
        let policy = self.policy_of(chain);
        let trusted = policy.trusts_annotations(&server);
        let known = calls().find_map(|call| call.read_only);
        let hinted = calls().find_map(|call| call.hinted_read_only).filter(|_| trusted);
        let safe = calls().find_map(|call| call.idempotent);
        let hinted_safe = calls().find_map(|call| call.hinted_idempotent).filter(|_| trusted);
        let deadline = policy.deadline_of(&server, tool_text);
        let run = chain.sides().find_map(Side::agent_run).cloned();
        Exchange {
            asking: chain.asking.as_deref().map(Side::to_half),
            answering: chain.answering_half(),
            method: chain.method().clone(),
            tool: tool.cloned(),
            request_id: chain.request_id().cloned(),
            direction: chain.direction(),
            era,
            version: chain.version().cloned(),
            transport: chain.transport(),
            session_id: chain.session_id().cloned().filter(|_| era != Era::Modern),
            agent: self.agent(chain),
            agent_run: run.or_else(|| calls().find_map(|call| call.agent_run.clone())),
            http: chain.carrier.seen,
            cancel: None,
            progress: Vec::new(),
            effects: Vec::new(),
            outcomes: Vec::new(),
            read_only: policy.read_only(&server, tool_text).or(known).or(hinted),
            idempotent: safe.or(hinted_safe),
            deadline: calls().find_map(|call| call.deadline).unwrap_or(deadline),
            inactivity: calls().find_map(|c| c.inactivity).unwrap_or(policy.inactivity),
            negotiation: negotiation(chain),
            operation_key: chain.operation_key(),
            findings: chain.findings.clone(),
            server,
        }
    }

    /// §4.7: the agent's name above the client's half, else the client's service name.
    fn agent(&self, chain: &Chain) -> Option<Name> {
        let service = chain.client().and_then(|side| side.process().service.clone());
        chain.agent.clone().or(service)
    }

    /// A chain with everything its scope and other traces say of it.
    pub(super) fn exchange(&self, key: SpanRef, entry: &ChainEntry) -> Exchange {
        let (chain, view) = (&entry.chain, self.scope_view(&entry.scope));
        let server = self.server_of(chain, &view);
        let era = match chain.era() {
            Era::Unknown => view.era.unwrap_or(Era::Unknown),
            known => known,
        };
        let elsewhere = self.placed_on(key);
        let mut exchange = self.exchange_with(chain, server, era, &elsewhere);
        exchange.version = exchange.version.or_else(|| view.version.clone());
        self.add_notes(key, entry, &view, &mut exchange);
        self.add_evidence(key, chain, &elsewhere, &mut exchange);
        exchange.findings.extend(self.id_findings(key, entry, era));
        exchange.findings.extend(self.token_findings(key, entry));
        exchange.findings.extend(self.misrouted(key, chain));
        exchange.findings.extend(self.sampled_out(chain));
        exchange.findings.sort();
        exchange.findings.dedup();
        exchange
    }

    /// The scope's strongest name for the server: one scope has one server.
    fn server_of(&self, chain: &Chain, view: &ScopeView) -> Name {
        let own = ServerName::of(chain);
        let best = own.iter().chain(&view.server).min();
        best.map_or_else(|| Name::new("unknown"), |server| server.name().clone())
    }

    fn add_notes(
        &self,
        key: SpanRef,
        entry: &ChainEntry,
        view: &ScopeView,
        exchange: &mut Exchange,
    ) {
        let (chain, scope) = (&entry.chain, self.scopes.get(&entry.scope));
        let at = (chain.start(), key);
        let token = chain.sides().find_map(|side| side.half.call.progress_token.as_ref());
        if let Some(token) = token {
            let until = progress_until(scope.and_then(|scope| scope.same_token(token)), chain, at);
            let seen = view.notes.progress(token).iter();
            let mine = seen.filter(|seen| chain.start() <= seen.at && seen.at < until);
            exchange.progress = mine.copied().collect();
        }
        if let Some(id) = chain.request_id() {
            let from = chain.start();
            let ended = chain.sides().any(|side| side.ended);
            let last = chain.sides().map(|side| side.stop).max().unwrap_or(from);
            // A cancel may be recorded a little after the caller has given up.
            let to = if ended { last.saturating_add(self.policy.settle) } else { Nanos::MAX };
            let same = scope.and_then(|scope| scope.same_id(chain.direction(), id));
            let to = to.min(closes(same, at));
            exchange.cancel = view.notes.cancel(id, from, to, |cancel| means(cancel, chain));
        }
    }

    /// Records of other traces that speak of the chain: by a link, by its operation or by its id.
    fn placed_on(&self, key: SpanRef) -> Vec<Arc<Fact>> {
        let placed = self.placed.get(&key).into_iter().flatten();
        let placed = placed.filter_map(|id| self.unplaced.get(id)).cloned();
        placed.chain(self.keyed_evidence(key)).collect()
    }

    /// Effect and outcome facts placed on the chain, rules' `when` applied now that the call is
    /// known.
    fn add_evidence(
        &self,
        key: SpanRef,
        chain: &Chain,
        elsewhere: &[Arc<Fact>],
        exchange: &mut Exchange,
    ) {
        let half = exchange.asking.as_mut().or(exchange.answering.as_mut());
        if let Some(half) = half {
            let told = elsewhere.iter().filter_map(|fact| fact.evidence.request.as_deref());
            told.for_each(|told| half.answer = together(&half.answer, &told.answer));
        }
        let all = chain.evidence.iter().chain(elsewhere);
        let (server, tool) = (exchange.server.clone(), exchange.tool.clone());
        let admitted = |origin: &Origin| self.admits(origin, &server, tool.as_ref());
        for fact in all {
            let evidence = &fact.evidence;
            let effects = evidence.effects.iter().filter(|effect| admitted(&effect.from));
            exchange.effects.extend(effects.cloned());
            let outcomes = evidence.outcomes.iter().filter(|outcome| admitted(&outcome.from));
            exchange.outcomes.extend(outcomes.cloned());
        }
        exchange.effects.sort_by_key(|effect| (effect.time, effect.status, effect.from));
        exchange.outcomes.sort_by_key(|o| (o.time, o.status, o.method, o.from));
        exchange.effects.dedup();
        exchange.outcomes.dedup();
        if let Some(between) = self.ambiguous.get(&key) {
            let spans = between.iter().map(|id| id.at.span).collect();
            exchange.findings.push(Finding::new(Code::AmbiguousEvidence, spans));
        }
    }

    fn admits(&self, origin: &Origin, server: &Name, tool: Option<&Name>) -> bool {
        let Origin::Rule(number) = origin else { return true };
        let Some(rule) = self.rule(*number) else { return false };
        let of_server = rule.when_server.as_ref().is_none_or(|glob| glob.matches(server));
        let of_tool =
            rule.when_tool.as_ref().is_none_or(|glob| tool.is_some_and(|tool| glob.matches(tool)));
        of_server && of_tool
    }

    /// A half alone, of a trace that its SDK says was not sampled (§7).
    pub(super) fn sampled_out(&self, chain: &Chain) -> Option<Finding> {
        let side = match (&chain.asking, &chain.answering) {
            (Some(side), None) | (None, Some(side)) => side,
            _ => return None,
        };
        let best = side.best();
        let records_flag = self.samplers.contains(&(best.process.key, best.scope.clone()));
        let by_flag = best.sampling.has_flags && !best.sampling.sampled_bit && records_flag;
        let out = by_flag || best.sampling.below_threshold;
        out.then(|| Finding::new(Code::SampledOut, vec![best.id.at.span]))
    }

    pub(super) fn scope_seen(&self, key: &ScopeKey, view: &ScopeView, chain: &Chain) -> ScopeSeen {
        ScopeSeen {
            keyed_by_session: key.keyed_by_session(),
            answered_before: view.first_answer.is_some_and(|time| time < chain.start()),
            negotiated: view.negotiated,
            negotiation_failed: view.negotiation_failed,
            version: view.version.clone(),
            answered_ever: view.first_answer.is_some(),
            client_capabilities: view.client_capabilities.clone(),
            server_capabilities: view.server_capabilities.clone(),
            records_tokens: view.records_tokens,
            probe_superseded: false,
        }
    }

    pub(super) fn operation_seen(&self, key: SpanRef, entry: &ChainEntry) -> OperationSeen {
        let mut seen = OperationSeen { run_ended: entry.chain.run_ended, ..Default::default() };
        seen.attempt = entry
            .chain
            .sides()
            .find_map(|side| side.half.call.operation_attempt)
            .unwrap_or(1)
            .max(1);
        for operation in entry.operation_keys.iter().filter_map(|k| self.operations.get(k)) {
            for operation in &operation.operations {
                let Some(at) = operation.members.iter().position(|(member, _)| *member == key)
                else {
                    continue;
                };
                seen.id = operation.id.clone();
                if operation.kind != Kind::Probe {
                    seen.attempt = operation.members[at].1;
                    seen.resumed = at + 1 < operation.members.len();
                }
            }
        }
        seen.task = self.task_seen(entry);
        seen
    }

    /// The newest that is known of the call's task: its status from whoever told it last, a
    /// terminal one being final; its inner result from whichever request showed it.
    fn task_seen(&self, entry: &ChainEntry) -> Option<TaskSeen> {
        let id = entry.chain.sides().find_map(|side| side.half.call.task_id.as_ref())?;
        let members = entry.operation_keys.iter().filter_map(|key| self.operations.get(key));
        let chains = members.flat_map(|operation| &operation.members);
        let others: Vec<&Chain> =
            chains.filter_map(|key| self.chains.get(key)).map(|other| &*other.chain).collect();
        let told = others.iter().filter_map(|chain| {
            let mut calls = chain.sides().map(|side| &side.half.call);
            Some((calls.find_map(|call| call.task_status)?, chain.primary().stop))
        });
        let view = self.scope_view(&entry.scope);
        let notes = view.notes.tasks().filter(|(task, ..)| *task == id);
        let notes = notes.map(|(_, status, at)| (status, at));
        let newest = told.chain(notes).max_by_key(|(status, at)| (status.terminal(), *at, *status));
        let (status, at) = newest?;
        // What the call itself was answered with is the task, not its result.
        let results = others.iter().filter(|chain| !chain.is_call());
        let answers: Vec<&Answer> =
            results.flat_map(|chain| chain.sides().map(|side| &side.half.answer)).collect();
        Some(TaskSeen {
            status,
            at,
            is_error: answers.iter().filter_map(|answer| answer.is_error).max(),
            code: answers.iter().filter_map(|answer| answer.code).min(),
            result_seen: answers.iter().any(|answer| answer.result_seen),
        })
    }

    pub(super) fn catalog_seen(
        &self,
        entry: &ChainEntry,
        exchange: &Exchange,
        view: &ScopeView,
    ) -> CatalogSeen {
        let chain = &entry.chain;
        if !chain.is_call() {
            return CatalogSeen::default();
        }
        let at = chain.start();
        let offered = self.offered(chain, at);
        let timeline = &view.timeline;
        let listing = timeline.listing(at).filter(|listing| !listing.tools().is_empty());
        let tool = chain.tool();
        let listed = listing
            .zip(tool)
            .map(|(listing, tool)| listing.tools().iter().any(|(name, _)| same_name(name, tool)));
        let contract = match self.contracts_off(chain) {
            true => ContractSeen {
                status: Some(crate::model::words::ContractStatus::Unknown),
                ..ContractSeen::default()
            },
            false => self.contract_of(chain, &entry.scope, &exchange.server),
        };
        let definition = tool.and_then(|tool| self.definition_at(entry, tool, &exchange.server));
        let structured = chain.sides().find_map(|side| side.half.call.structured.clone());
        let arguments = chain.sides().find_map(|side| side.half.call.arguments.clone());
        CatalogSeen {
            convergence: Some(timeline.convergence(
                at,
                self.policy_of(chain).catalog_max_age,
                offered.as_deref(),
            )),
            contract,
            tool_listed: listed,
            output_mismatch: definition.as_ref().zip(structured).is_some_and(|(tool, content)| {
                crate::catalog::conformance::refuses(tool, &content.0)
            }),
            unknown_arguments: definition.as_ref().zip(arguments).map_or(0, |(tool, given)| {
                crate::catalog::conformance::unknown_arguments(tool, &given.names)
            }),
        }
    }

    /// What the newest model span of the call's traces before it was offered.
    pub(super) fn offered(&self, chain: &Chain, at: Nanos) -> Option<std::sync::Arc<Definitions>> {
        let traces = chain.traces.iter().filter_map(|trace| self.traces.get(trace));
        let offers = traces.flat_map(|trace| trace.models.iter());
        let before = offers.filter(|(end, _)| *end <= at);
        before.max_by_key(|(end, _)| *end).map(|(_, tools)| tools.clone())
    }

    /// An exchange with what a trusted server's listing hints of the tool, where nobody else says.
    pub(super) fn hinted(&self, entry: &ChainEntry, mut exchange: Exchange) -> Exchange {
        let known = exchange.read_only.is_some() && exchange.idempotent.is_some();
        if known || !self.policy_of(&entry.chain).trusts_annotations(&exchange.server) {
            return exchange;
        }
        let tool = exchange.tool.as_ref();
        let listed = tool.and_then(|tool| self.definition_at(entry, tool, &exchange.server));
        let hinted = listed.as_ref().map(hints).unwrap_or_default();
        exchange.read_only = exchange.read_only.or(hinted.read_only);
        exchange.idempotent = exchange.idempotent.or(hinted.idempotent);
        exchange
    }

    /// The definition in force for a call: the newest one any client of the context has read, since
    /// that is what the server means now; else what the scope's own listing says.
    fn definition_at(
        &self,
        entry: &ChainEntry,
        tool: &Name,
        server: &Name,
    ) -> Option<crate::model::digest::Definition> {
        let view = self.scope_view(&entry.scope);
        let own = view.timeline.newest_listing(entry.chain.start());
        let own = own.and_then(|l| l.definitions().find(|t| same_name(&t.name, tool)).cloned());
        own.or_else(|| {
            let references = self.references.get(server)?;
            references.any(tool, entry.chain.start()).cloned()
        })
    }
}

fn same_name(listed: &Name, called: &Name) -> bool {
    listed == called
}

/// When progress of a token is that of a later request: once this one has ended, the next one that
/// carries the token has taken it over.
fn progress_until(same: Option<&Namesakes>, chain: &Chain, at: (Nanos, SpanRef)) -> Nanos {
    let primary = chain.primary();
    let taken_over = |(start, _): &&(Nanos, SpanRef)| primary.ended && *start >= primary.stop;
    let next = same.and_then(|same| same.after(at, NEAR).find(taken_over));
    next.map_or_else(|| closes(same, at), |(start, _)| *start)
}

/// Whether a cancel is of this request, and not of the other end's request of the same id: who asks
/// sends it, and never receives it.
fn means(cancel: &Cancel, chain: &Chain) -> bool {
    let process = |side: &Option<Arc<Side>>| side.as_ref().map(|side| side.process().key);
    let (asks, answers) = (process(&chain.asking), process(&chain.answering));
    if asks == answers {
        return true;
    }
    match (cancel.seen.by, asks) {
        (End::Asking, Some(asks)) => cancel.process == asks,
        (End::Asking, None) => Some(cancel.process) != answers,
        (End::Answering, asks) => Some(cancel.process) != asks,
        (End::Unknown, _) => true,
    }
}

fn negotiation(chain: &Chain) -> Negotiation {
    let all = || chain.sides().filter_map(|side| side.half.negotiation.as_deref());
    Negotiation {
        requested_version: all().find_map(|n| n.requested_version.clone()),
        client_capabilities: all().find_map(|n| n.client_capabilities.clone()),
        server_capabilities: all().find_map(|n| n.server_capabilities.clone()),
        subscribed: all().find_map(|n| n.subscribed.clone()),
    }
}
