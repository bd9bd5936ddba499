//! Operations (judgment.md §4.8): the piece of work above requests. A stable key says it outright;
//! else the state of input rounds, the task, or a retry of the same arguments; and a failed probe
//! belongs to the `initialize` that follows it.

use std::collections::BTreeMap;

use super::chain::Chain;
use crate::model::case::Ending;
use crate::model::ids::{Digest16, Name, Nanos, SECOND, SpanRef};
use crate::model::words::Era;

/// By what requests may belong to one operation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OperationKey {
    Key(Digest16),
    /// A request state that was sent or came back.
    State(Digest16),
    /// A task id, within one server.
    Task(Name, Name),
    /// Same scope, tool and arguments.
    Retry(Name, Name, Digest16),
    /// A client's negotiation with whatever it connects to.
    Negotiation(Digest16),
}

impl OperationKey {
    fn digest(&self) -> Digest16 {
        match self {
            Self::Key(key) => Digest16::of(&[b"key", &key.0]),
            Self::State(state) => Digest16::of(&[b"state", &state.0]),
            Self::Task(server, id) => Digest16::of(&[b"task", server.as_bytes(), id.as_bytes()]),
            Self::Retry(scope, tool, arguments) => {
                Digest16::of(&[b"retry", scope.as_bytes(), tool.as_bytes(), &arguments.0])
            }
            Self::Negotiation(process) => Digest16::of(&[b"negotiation", &process.0]),
        }
    }
}

/// The keys by which a chain finds its operation: those of the strongest kind it has.
pub fn keys_of(chain: &Chain, scope: &Name, server: &Name) -> Vec<OperationKey> {
    if let Some(key) = chain.operation_key() {
        return vec![OperationKey::Key(key)];
    }
    let calls = || chain.sides().map(|side| &side.half.call);
    let mut states: Vec<OperationKey> = calls()
        .flat_map(|call| [call.request_state, call.next_request_state])
        .flatten()
        .map(OperationKey::State)
        .collect();
    if !states.is_empty() {
        states.sort();
        states.dedup();
        return states;
    }
    if let Some(task) = calls().find_map(|call| call.task_id.clone()) {
        return vec![OperationKey::Task(server.clone(), task)];
    }
    match chain.method().as_str() {
        "tools/call" => {
            let arguments = calls().find_map(|call| call.arguments.as_ref());
            let key = arguments.zip(chain.tool()).map(|(arguments, tool)| {
                OperationKey::Retry(scope.clone(), tool.clone(), arguments.digest)
            });
            key.into_iter().collect()
        }
        "server/discover" | "initialize" => {
            let client = chain.client().map(|side| side.process().key);
            client.map(OperationKey::Negotiation).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// One request of a group of requests that share keys.
#[derive(Clone, PartialEq, Debug)]
pub struct Member {
    pub chain: SpanRef,
    pub start: Nanos,
    pub stop: Nanos,
    pub method: Name,
    pub era: Era,
    pub ending: Ending,
    /// As the client numbered it.
    pub attempt: Option<u32>,
    pub keys: Vec<OperationKey>,
}

/// What kind of togetherness an operation has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    Keyed,
    InputRounds,
    Task,
    Retry,
    Probe,
}

/// Requests of one operation, oldest first, with their attempt numbers from 1.
#[derive(Clone, PartialEq, Debug)]
pub struct Operation {
    /// Opaque and stable; `None` where a probe merely was.
    pub id: Option<Name>,
    pub kind: Kind,
    pub members: Vec<(SpanRef, u32)>,
}

/// An `initialize` later than this after a failed probe is another connection.
const PROBE_WINDOW: Nanos = 60 * SECOND;

/// Sorts requests that share keys into operations.
pub fn operations(mut members: Vec<Member>) -> Vec<Operation> {
    members.sort_by_key(|member| (member.start, member.chain));
    let Some(first) = members.iter().find_map(|member| member.keys.first()) else {
        return Vec::new();
    };
    match first {
        OperationKey::Key(_) => vec![numbered(Kind::Keyed, &members)],
        OperationKey::State(_) => vec![numbered(Kind::InputRounds, &members)],
        OperationKey::Task(..) => {
            let tool = |m: &&Member| m.method.as_str() == "tools/call";
            let calls: Vec<Member> = members.iter().filter(tool).cloned().collect();
            vec![numbered(Kind::Task, &calls)]
        }
        OperationKey::Retry(..) => retries(&members),
        OperationKey::Negotiation(_) => probes(&members),
    }
}

/// One operation of all members. An input round is no attempt: the next one has its number.
fn numbered(kind: Kind, members: &[Member]) -> Operation {
    let id = members.iter().flat_map(|member| &member.keys).min().map(|key| key.digest());
    let (mut attempt, mut numbers) = (1, Vec::new());
    for member in members {
        attempt = member.attempt.unwrap_or(attempt).max(1);
        numbers.push((member.chain, attempt));
        if member.ending != Ending::InputRequired && kind != Kind::InputRounds {
            attempt = attempt.saturating_add(1);
        }
    }
    Operation { id: id.map(|id| Name::new(&id.to_string())), kind, members: numbers }
}

/// A request is a retry of the one before it if that one had no response at all.
fn retries(members: &[Member]) -> Vec<Operation> {
    let mut runs: Vec<Vec<Member>> = Vec::new();
    for member in members {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|last| unanswered(last.ending)) => {
                run.push(member.clone());
            }
            _ => runs.push(vec![member.clone()]),
        }
    }
    let run = |run: Vec<Member>| {
        let mut operation = numbered(Kind::Retry, &run);
        let key = run[0].keys.first().map(|key| key.digest());
        let name = |key: Digest16| {
            let first = run[0].chain;
            Name::new(&Digest16::of(&[&key.0, &first.trace.0, &first.span.0]).to_string())
        };
        operation.id = key.map(name);
        operation
    };
    runs.into_iter().map(run).collect()
}

/// Timed out, lost, cancelled or failed in transport. A refusal is a response.
pub fn unanswered(ending: Ending) -> bool {
    matches!(
        ending,
        Ending::TimedOut | Ending::Cancelled | Ending::Lost { .. } | Ending::NotSent { .. }
    )
}

/// A failed `server/discover` and the `initialize` that follows it.
fn probes(members: &[Member]) -> Vec<Operation> {
    let is = |member: &Member, method: &str| member.method.as_str() == method;
    let mut found: BTreeMap<SpanRef, Vec<(SpanRef, u32)>> = BTreeMap::new();
    for probe in members.iter().filter(|m| is(m, "server/discover") && failed(m.ending)) {
        let follows = |member: &&Member| {
            is(member, "initialize")
                && member.start >= probe.start
                && member.start <= probe.stop.max(probe.start).saturating_add(PROBE_WINDOW)
        };
        if let Some(initialize) = members.iter().find(follows) {
            found.entry(initialize.chain).or_default().push((probe.chain, 1));
        }
    }
    let operation = |(initialize, mut members): (SpanRef, Vec<(SpanRef, u32)>)| {
        members.push((initialize, 1));
        Operation { id: None, kind: Kind::Probe, members }
    };
    found.into_iter().map(operation).collect()
}

/// A refused or unanswered probe. One that met a closed port or a closed door says so itself.
fn failed(ending: Ending) -> bool {
    matches!(
        ending,
        Ending::Error { .. }
            | Ending::Incompatible { .. }
            | Ending::TimedOut
            | Ending::Unnamed
            | Ending::Unobserved
    )
}
