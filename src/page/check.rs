//! The check before a call, asked from outside: which reference holds for the caller, and what it
//! holds itself.
//!
//! Promises: pure; an answer says digests, pointers, kinds and grades of the tool that was asked
//! about, and nothing else of what telemetry showed.

use super::board::{Catalogs, Rules};
use crate::catalog::check::{self, Answer, Reference};
use crate::catalog::lockfile::Holder;
use crate::catalog::reference::{Reading, References};
use crate::model::digest::{Definition, Digest};
use crate::model::ids::{Digest16, Name};
use crate::model::policy::{Context, ContractMode};

/// One question.
#[derive(Clone, Debug)]
pub struct Question {
    pub server: String,
    pub tool: String,
    /// Whose contract: an authorization context or a client instance; `None` for anyone's.
    pub context: Option<Context>,
    pub held: Held,
}

/// What the caller holds.
#[derive(Clone, Debug)]
pub enum Held {
    Definition(Box<Definition>),
    Digest(Digest),
    Nothing,
}

impl Held {
    pub fn digest(&self) -> Option<&Digest> {
        match self {
            Held::Definition(definition) => definition.digest.as_ref(),
            Held::Digest(digest) => Some(digest),
            Held::Nothing => None,
        }
    }
}

/// The context that `mcp_evidence.session.auth_context` names, by the attribute's text.
pub fn auth_context(text: &str) -> Context {
    Context::Auth(Digest16::of(&[text.as_bytes()]))
}

/// Answers from what is published.
pub fn answer(rules: &Rules, catalogs: &Catalogs, question: &Question) -> Answer {
    let none = References::default();
    let known = catalogs.get(question.server.as_str()).map_or(&none, |known| known);
    let reference = reference(rules, known, question);
    let of_digest = |digest: &Digest| known.definition(&name(&question.tool), digest);
    let held = match &question.held {
        Held::Definition(definition) => check::Held::Definition(definition),
        // A digest that some listing showed is as good as the definition behind it.
        Held::Digest(digest) => {
            of_digest(digest).map_or(check::Held::Digest(digest), check::Held::Definition)
        }
        Held::Nothing => check::Held::Nothing,
    };
    check::check(rules.mode, &rules.fail_on, &reference, &held)
}

/// Names of telemetry are capped; those of a question are found by the same form.
fn name(tool: &str) -> Name {
    Name::new(tool)
}

fn reference<'a>(rules: &'a Rules, known: &'a References, question: &Question) -> Reference<'a> {
    let tool = name(&question.tool);
    if matches!(rules.mode, ContractMode::Pin | ContractMode::Enforce) {
        let holder = holder(question.context.as_ref());
        if let Some(pin) = rules.lockfile.find(&question.server, &holder, &question.tool) {
            let definition = known.definition(&tool, &pin.digest);
            return Reference { definition, ..Reference::of_pin(pin) };
        }
    }
    let read = match rules.mode {
        ContractMode::Observe => newest(known, &tool, question.context.as_ref()),
        ContractMode::Pin => first(known, &tool, question.context.as_ref()),
        ContractMode::Enforce | ContractMode::Off => None,
    };
    read.map_or_else(Reference::default, |reading| Reference {
        digest: reading.digest.as_ref(),
        members: None,
        definition: reading.definition.as_ref(),
    })
}

/// For whom the lockfile is asked.
pub fn holder(context: Option<&Context>) -> Holder {
    match context {
        Some(Context::Auth(auth)) => Holder::Auth(auth.to_string()),
        Some(Context::Client(Some(client))) => Holder::Client(client.to_string()),
        Some(Context::Client(None)) | None => Holder::Anyone,
    }
}

/// The newest reading of the context; of any, where the caller does not say whose it is.
fn newest<'a>(known: &'a References, tool: &str, context: Option<&Context>) -> Option<&'a Reading> {
    let of = |readings: &'a [Reading]| readings.last();
    let lines = known.lines_of(tool).filter(|(_, line, _)| context.is_none_or(|c| c == *line));
    lines.filter_map(|(_, _, r)| of(r)).max_by_key(|reading| (reading.at, reading.span))
}

/// The first reading, trusted on first use.
fn first<'a>(known: &'a References, tool: &str, context: Option<&Context>) -> Option<&'a Reading> {
    let of = |readings: &'a [Reading]| readings.first();
    let lines = known.lines_of(tool).filter(|(_, line, _)| context.is_none_or(|c| c == *line));
    lines.filter_map(|(_, _, r)| of(r)).min_by_key(|reading| (reading.at, reading.span))
}
