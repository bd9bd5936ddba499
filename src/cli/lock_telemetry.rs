//! Tool definitions out of recorded telemetry: what listings said, by server.
//!
//! Promises: the newest definition of each tool of each server; a recording never proves that a
//! tool is gone, for it may not hold every page.

use super::input::{self, InputError};
use crate::catalog::projection::full_name;
use crate::model::digest::Definition;
use crate::model::fact::{End, Fact, Says};
use crate::model::ids::{Nanos, SpanRef};
use crate::model::policy::Policy;
use crate::normalise::sight;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whether a file is a recording and not the answer of `tools/list`.
pub fn is_recording(path: &Path, text: Option<&str>) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("pb" | "bin" | "gz" | "gzip" | "zst" | "zstd"))
        || text.is_some_and(|text| {
            text.contains("\"resourceSpans\"") || text.contains("\"resourceLogs\"")
        })
}

/// The definitions that listings in recorded OTLP carry, by server identity, then tool.
///
/// # Errors
/// [`InputError`] where a file is not OTLP.
pub fn definitions_from_telemetry(
    files: &[PathBuf],
) -> Result<BTreeMap<String, Vec<Definition>>, InputError> {
    let policy = Policy::default();
    let mut facts: Vec<Arc<Fact>> = Vec::new();
    input::read(files, &mut |signal, export| {
        let seen = sight(signal, export, &policy);
        facts.extend(seen.facts.into_iter().filter(|fact| is_listing(fact)));
    })?;
    let by_span: BTreeMap<SpanRef, &Fact> = facts.iter().map(|f| (f.id.at, &**f)).collect();
    let by_parent: BTreeMap<SpanRef, &Fact> = facts
        .iter()
        .filter_map(|fact| Some((SpanRef { trace: fact.id.at.trace, span: fact.parent? }, &**fact)))
        .collect();
    let mut newest: BTreeMap<(String, String), (Nanos, &Definition)> = BTreeMap::new();
    for fact in &facts {
        let server = server(fact, &by_span, &by_parent);
        for tool in definitions(fact) {
            let key = (server.clone(), full_name(tool).to_owned());
            let known = newest.get(&key).is_some_and(|(at, _)| *at > fact.end);
            if !known {
                newest.insert(key, (fact.end, tool));
            }
        }
    }
    let mut servers: BTreeMap<String, Vec<Definition>> = BTreeMap::new();
    for ((server, _), (_, tool)) in newest {
        servers.entry(server).or_default().push(tool.clone());
    }
    Ok(servers)
}

fn is_listing(fact: &Fact) -> bool {
    matches!(&fact.says, Says::Half(half) if half.method.as_str() == "tools/list")
}

fn definitions(fact: &Fact) -> &[Definition] {
    let Says::Half(half) = &fact.says else { return &[] };
    let read = half.list.as_ref().and_then(|list| list.definitions.as_ref());
    read.map_or(&[], |read| read.tools.as_slice())
}

/// The identity of the server that answered (judgment.md §4.7): the address that the asking half
/// names, else the answering half's service, else the name the server gave itself.
fn server(
    fact: &Fact,
    by_span: &BTreeMap<SpanRef, &Fact>,
    by_parent: &BTreeMap<SpanRef, &Fact>,
) -> String {
    let above = fact.parent.map(|span| SpanRef { trace: fact.id.at.trace, span });
    let other = above.and_then(|at| by_span.get(&at)).or_else(|| by_parent.get(&fact.id.at));
    let halves = [Some(fact), other.copied()].into_iter().flatten();
    let halves: Vec<_> = halves
        .filter_map(|fact| match &fact.says {
            Says::Half(half) => Some((fact, half)),
            _ => None,
        })
        .collect();
    let address = halves.iter().find_map(|(_, half)| half.server_address.clone());
    let answering = halves.iter().find(|(_, half)| half.end == End::Answering);
    let service = answering.and_then(|(fact, _)| fact.process.service.clone());
    let told = halves.iter().find_map(|(_, half)| half.server_name.clone());
    let name = address.or(service).or(told);
    name.map_or_else(|| "unknown".to_owned(), |name| name.as_str().to_owned())
}
