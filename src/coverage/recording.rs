//! Recorded exports, kept as they came, so that what was not recorded can be added and judged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::engine::{self, Explained, Revisions};
use crate::model::fact::Sighting;
use crate::model::ids::{Digest16, Name, SpanRef};
use crate::model::policy::{Policy, Rule};
use crate::model::record::{Record, Verdict};
use crate::model::words::{Layer, Lifecycle};
use crate::normalise;
use crate::wire::Signal;
use crate::wire::encode::{NewAttr, NewValue};
use crate::wire::regroup::{Part, items, regroup};
use crate::wire::scan::SpanView;
use crate::wire::splice::{Edit, enrich};

/// The value of an attribute that nobody recorded.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Value {
    Text(String),
    Bool(bool),
    Int(i64),
    Texts(Vec<String>),
}

impl Value {
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_string())
    }

    fn to_wire(&self) -> NewValue<'_> {
        match self {
            Self::Text(text) => NewValue::from(text.as_str()),
            Self::Bool(value) => NewValue::from(*value),
            Self::Int(value) => NewValue::from(*value),
            Self::Texts(texts) => texts.iter().map(String::as_str).collect(),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => s.serialize_str(text),
            Self::Bool(value) => s.serialize_bool(*value),
            Self::Int(value) => s.serialize_i64(*value),
            Self::Texts(texts) => texts.serialize(s),
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Texts(texts) => write!(f, "[{}]", texts.join(", ")),
        }
    }
}

/// Attributes of one span, by key.
pub type Attributes = Vec<(&'static str, Value)>;

/// What is tried: rules after the configured ones, layers that a tool's calls need, attributes on
/// recorded spans.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Trial {
    pub rules: Vec<Rule>,
    pub requires: Vec<(Name, Name, Vec<Layer>)>,
    pub attributes: BTreeMap<SpanRef, Attributes>,
}

impl Trial {
    pub fn add(&mut self, other: Trial) {
        self.rules.extend(other.rules);
        self.requires.extend(other.requires);
        for (at, attributes) in other.attributes {
            self.attributes.entry(at).or_default().extend(attributes);
        }
    }
}

/// The input, and how it is judged.
pub struct Recording {
    pub exports: Vec<(Signal, Vec<u8>)>,
    pub sightings: Vec<Sighting>,
    pub policy: Arc<Policy>,
    /// The export that holds each span.
    holders: BTreeMap<SpanRef, usize>,
}

/// The last word on each tool call that counts, by chain.
pub type Judged = BTreeMap<Digest16, Verdict>;

impl Recording {
    pub fn new(exports: Vec<(Signal, Vec<u8>)>, policy: Policy) -> Self {
        let sight = |(signal, bytes): &(Signal, Vec<u8>)| normalise::sight(*signal, bytes, &policy);
        let sightings: Vec<Sighting> = exports.iter().map(sight).collect();
        let mut holders = BTreeMap::new();
        for (number, sighting) in sightings.iter().enumerate() {
            for bone in &sighting.bones {
                holders.entry(bone.at).or_insert(number);
            }
        }
        Self { sightings, exports, policy: Arc::new(policy), holders }
    }

    pub fn explain(&self, wanted: &dyn Fn(&Verdict) -> bool) -> Vec<Explained> {
        engine::explain(self.sightings.clone(), &self.policy, wanted)
    }

    /// What the input would have said, and the policy it would have been judged by.
    pub fn sighted(&self, trial: &Trial) -> (Vec<Sighting>, Arc<Policy>) {
        let policy = Arc::new(self.policy_of(trial));
        let mut sightings = self.sightings.clone();
        let holders = trial.attributes.keys().filter_map(|at| self.holders.get(at));
        let changed: BTreeSet<usize> = match trial.rules.is_empty() {
            true => holders.copied().collect(),
            false => (0..self.exports.len()).collect(),
        };
        for number in changed {
            let (signal, bytes) = &self.exports[number];
            let with = match signal {
                Signal::Traces => with(bytes, &trial.attributes),
                _ => None,
            };
            let bytes = with.as_deref().unwrap_or(bytes);
            sightings[number] = normalise::sight(*signal, bytes, &policy);
        }
        (sightings, policy)
    }

    fn policy_of(&self, trial: &Trial) -> Policy {
        let mut policy = Policy::clone(&self.policy);
        policy.evidence.extend(trial.rules.iter().cloned());
        for (server, tool, layers) in &trial.requires {
            let server = policy.servers.entry(server.to_string()).or_default();
            let tool = server.tools.entry(tool.to_string()).or_default();
            tool.healthy_requires = Some(layers.clone());
        }
        policy
    }

    /// Every verdict, as it would have been.
    pub fn verdicts(&self, trial: &Trial) -> impl Iterator<Item = Verdict> {
        let (sightings, policy) = self.sighted(trial);
        let records = engine::replay(sightings, &policy, Revisions::Final);
        records.into_iter().filter_map(|record| match record {
            Record::Verdict(verdict) => Some(*verdict),
            _ => None,
        })
    }

    /// The verdicts on tool calls that count.
    pub fn judge(&self, trial: &Trial) -> Judged {
        let counted = self.verdicts(trial).filter(counts);
        counted.map(|verdict| (verdict.id, verdict)).collect()
    }
}

/// A call that no later attempt replaced.
pub fn counts(verdict: &Verdict) -> bool {
    verdict.method.as_str() == "tools/call" && verdict.lifecycle != Lifecycle::Superseded
}

/// The export with the attributes added to its spans; `None` where it holds none of them.
fn with(export: &[u8], attributes: &BTreeMap<SpanRef, Attributes>) -> Option<Vec<u8>> {
    let added = |item: &[u8]| {
        let span = SpanView::parse(item, 0);
        let at = SpanRef {
            trace: crate::model::ids::TraceId::read(span.trace_id())?,
            span: crate::model::ids::SpanId::read(span.span_id())?,
        };
        attributes.get(&at)
    };
    items(export).any(|item| added(item.bytes).is_some()).then_some(())?;
    let item = |item: &[u8]| {
        let Some(attributes) = added(item) else { return item.to_vec() };
        let add: Vec<NewAttr<'_>> =
            attributes.iter().map(|(key, value)| NewAttr { key, value: value.to_wire() }).collect();
        enrich(item, &Edit { add: &add, ..Edit::default() })
    };
    let parts: Vec<_> = items(export)
        .map(|found| (found.resource.origin(), found.scope.origin(), item(found.bytes)))
        .collect();
    let parts: Vec<Part<'_>> =
        parts.iter().map(|(resource, scope, item)| Part { resource, scope, item }).collect();
    Some(regroup(&parts))
}
