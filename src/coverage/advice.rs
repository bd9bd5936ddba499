//! What to add so that the most calls of a tool leave `unverified`: one evidence rule or attribute
//! where one suffices, else the fewest that do together; and, where that needs a change of a
//! program, the rule that lifts the most without one. Each candidate is tried on the whole
//! recording; what is claimed is what moved.

use std::collections::BTreeMap;

use super::observed::{Lacking, Tool};
use super::recording::{Attributes, Judged, Recording, Trial, Value};
use super::shapes;
use crate::model::attributes as key;
use crate::model::ids::{Digest16, Name, SpanRef};
use crate::model::policy::Rule;
use crate::model::words::{Layer, OutcomeMethod, OutcomeStatus, State};

/// One thing to add.
#[derive(Clone, PartialEq, Debug)]
pub enum Part {
    /// To the configuration.
    Rule(Box<Rule>),
    /// To the span of each call.
    Attributes(Attributes),
    /// To the configuration: what a call of the tool needs, without what nobody records.
    Requires { server: Name, tool: Name, layers: Vec<Layer> },
}

/// What to add for one tool, and what that does.
#[derive(Clone, PartialEq, Debug)]
pub struct Advice {
    pub parts: Vec<Part>,
    /// Chains that leave `unverified`, of whichever tool.
    pub lifted: Vec<Digest16>,
    /// What becomes of them.
    pub to: BTreeMap<State, u64>,
    /// What was tried: the same again gives the same.
    pub trial: Trial,
}

/// What helps one tool.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Advised {
    /// What lifts the most calls; `None` where nothing that was tried helps.
    pub most: Option<Advice>,
    /// What lifts the most by the configuration alone, over spans that are there, where `most` asks
    /// for attributes.
    pub configured: Option<Advice>,
}

/// Advice for each tool, in the order of the tools.
pub fn advice(recording: &Recording, tools: &[Tool]) -> Vec<Advised> {
    let trials = Trials { recording, before: recording.judge(&Trial::default()), tools };
    let rules = shapes::candidates(recording);
    let rules_of = |tool: &Tool| {
        let called = tool.tool.clone().map(|name| (tool.server.clone(), name));
        called.and_then(|called| rules.get(&called)).map_or(&[][..], Vec::as_slice)
    };
    let alone: Vec<_> = tools.iter().map(|tool| singles(tool, rules_of(tool))).collect();
    let best = trials.pick(&alone);
    let together = |tool: &Tool| combinations(tool, rules_of(tool));
    let of_those_left = |(tool, best): (&Tool, &Picked)| match best {
        Some(_) => Vec::new(),
        None => together(tool),
    };
    let second = trials.pick(&tools.iter().zip(&best).map(of_those_left).collect::<Vec<_>>());
    let most: Vec<Picked> =
        best.into_iter().zip(second).map(|(alone, together)| alone.or(together)).collect();
    let without_a_program = |((tool, alone), most): ((&Tool, Vec<Vec<Part>>), &Picked)| match most {
        Some(parts) if parts.iter().any(changes_a_program) => {
            let all = alone.into_iter().chain(together(tool));
            all.filter(|parts| !parts.iter().any(changes_a_program)).collect()
        }
        _ => Vec::new(),
    };
    let configured: Vec<_> = tools.iter().zip(alone).zip(&most).map(without_a_program).collect();
    let configured = trials.least(trials.pick(&configured));
    let each = trials.least(most).into_iter().zip(configured).zip(tools);
    each.map(|((most, configured), tool)| Advised {
        most: most.and_then(|parts| trials.told(tool, parts)),
        configured: configured.and_then(|parts| trials.told(tool, parts)),
    })
    .collect()
}

fn changes_a_program(part: &Part) -> bool {
    matches!(part, Part::Attributes(_))
}

/// What was chosen for a tool.
type Picked = Option<Vec<Part>>;
/// Parts without one of their kinds.
type Without = fn(&[Part]) -> Vec<Part>;

/// Candidates of all tools, tried side by side on one recording.
struct Trials<'a> {
    recording: &'a Recording,
    before: Judged,
    tools: &'a [Tool],
}

impl Trials<'_> {
    /// How many of each tool's own calls leave `unverified` where each gets what is for it.
    fn lifts(&self, parts: &[Option<&Vec<Part>>]) -> Vec<usize> {
        let mut trial = Trial::default();
        for (tool, parts) in self.tools.iter().zip(parts) {
            if let Some(parts) = parts {
                trial.add(tried(tool, parts));
            }
        }
        let lifted = lifted(&self.before, &self.recording.judge(&trial));
        let own = |tool: &Tool| {
            tool.lacking.iter().filter(|call| lifted.contains_key(&call.chain)).count()
        };
        self.tools.iter().map(own).collect()
    }

    /// Tries each tool's next candidate in each round, and keeps the one that lifts most of its
    /// tool's calls; the earlier one where two lift as many.
    fn pick(&self, candidates: &[Vec<Vec<Part>>]) -> Vec<Picked> {
        let mut best: Vec<(usize, Picked)> = vec![(0, None); self.tools.len()];
        for round in 0..candidates.iter().map(Vec::len).max().unwrap_or(0) {
            let parts: Vec<_> = candidates.iter().map(|of_tool| of_tool.get(round)).collect();
            let counts = self.lifts(&parts);
            for ((parts, count), best) in parts.into_iter().zip(counts).zip(&mut best) {
                if let Some(parts) = parts.filter(|_| count > best.0) {
                    *best = (count, Some(parts.clone()));
                }
            }
        }
        best.into_iter().map(|(_, parts)| parts).collect()
    }

    /// The same without what lifts no call that is not lifted without it.
    fn least(&self, mut chosen: Vec<Picked>) -> Vec<Picked> {
        let without: [Without; 3] = [
            |parts| without_attribute(parts, key::CALL_IS_ERROR),
            |parts| without_attribute(parts, VERSION),
            |parts| {
                let needed = |part: &&Part| !matches!(part, Part::Requires { .. });
                parts.iter().filter(needed).cloned().collect()
            },
        ];
        for without in without {
            let smaller: Vec<Picked> = chosen
                .iter()
                .map(|parts| {
                    let parts = parts.as_ref()?;
                    Some(without(parts)).filter(|less| !less.is_empty() && less != parts)
                })
                .collect();
            if smaller.iter().all(Option::is_none) {
                continue;
            }
            let now = self.lifts(&chosen.iter().map(Option::as_ref).collect::<Vec<_>>());
            let then = self.lifts(&smaller.iter().map(Option::as_ref).collect::<Vec<_>>());
            for ((parts, less), (now, then)) in
                chosen.iter_mut().zip(smaller).zip(now.into_iter().zip(then))
            {
                if less.is_some() && then >= now {
                    *parts = less;
                }
            }
        }
        chosen
    }

    /// The advice as it does by itself, not beside that of other tools.
    fn told(&self, tool: &Tool, parts: Vec<Part>) -> Option<Advice> {
        let trial = tried(tool, &parts);
        let lifted = lifted(&self.before, &self.recording.judge(&trial));
        let mut to = BTreeMap::new();
        for state in lifted.values() {
            *to.entry(*state).or_default() += 1;
        }
        let lifted: Vec<Digest16> = lifted.into_keys().collect();
        (!lifted.is_empty()).then_some(Advice { parts, lifted, to, trial })
    }
}

fn without_attribute(parts: &[Part], unwanted: &str) -> Vec<Part> {
    let keep = |part: &Part| match part {
        Part::Attributes(attributes) => {
            let others = attributes.iter().filter(|(key, _)| *key != unwanted);
            let others: Attributes = others.cloned().collect();
            (!others.is_empty()).then_some(Part::Attributes(others))
        }
        other => Some(other.clone()),
    };
    parts.iter().filter_map(keep).collect()
}

/// Calls that were `unverified` and are no more.
pub fn lifted(before: &Judged, after: &Judged) -> BTreeMap<Digest16, State> {
    let was = before.values().filter(|verdict| verdict.state == State::Unverified);
    let now = was.filter_map(|verdict| Some((verdict.id, after.get(&verdict.id)?.state)));
    now.filter(|(_, state)| *state != State::Unverified).collect()
}

fn tried(tool: &Tool, parts: &[Part]) -> Trial {
    let mut trial = Trial::default();
    for part in parts {
        match part {
            Part::Rule(rule) => trial.rules.push(Rule::clone(rule)),
            Part::Attributes(attributes) => {
                for at in tool.lacking.iter().map(|call| call.at).filter(|at| at.recorded()) {
                    let here: &mut Attributes = trial.attributes.entry(at).or_default();
                    here.extend(attributes.iter().cloned());
                }
            }
            Part::Requires { server, tool, layers } => {
                trial.requires.push((server.clone(), tool.clone(), layers.clone()));
            }
        }
    }
    trial
}

/// A check of the outcome, which also shows the effect.
fn outcome() -> Attributes {
    vec![
        (key::OUTCOME_STATUS, Value::text(OutcomeStatus::Verified.as_str())),
        (key::OUTCOME_METHOD, Value::text(OutcomeMethod::Query.as_str())),
    ]
}

fn effect() -> Attributes {
    vec![(key::EFFECT_STATUS, Value::text("confirmed"))]
}

fn result() -> Attributes {
    vec![(key::CALL_IS_ERROR, Value::Bool(false))]
}

/// What an instrumentation that follows the semantic conventions records itself.
const VERSION: &str = "mcp.protocol.version";

fn version(tool: &Tool) -> Attributes {
    let known = tool.lacking.iter().find_map(|call| call.version.as_ref());
    vec![(VERSION, Value::text(known.map_or("2025-11-25", |version| version.as_str())))]
}

/// One rule or one piece of evidence each, rules first: they need no change of a program.
fn singles(tool: &Tool, rules: &[Rule]) -> Vec<Vec<Part>> {
    // What a candidate can speak of; one that leaves a layer open for every call is not tried.
    let helps = |layers: &[Layer]| {
        tool.lacking.iter().any(|call| call.missing.iter().all(|layer| layers.contains(layer)))
    };
    let mut found = Vec::new();
    for rule in rules {
        let layers: &[Layer] = match rule.outcome {
            Some(_) => &[Layer::Outcome, Layer::Effect],
            None => &[Layer::Effect],
        };
        if helps(layers) {
            found.push(vec![Part::Rule(Box::new(rule.clone()))]);
        }
    }
    for (attributes, layers) in [
        (effect(), &[Layer::Effect][..]),
        (outcome(), &[Layer::Outcome, Layer::Effect]),
        // An answer that is known also shows that its version was accepted.
        (result(), &[Layer::Request, Layer::Session]),
        (version(tool), &[Layer::Session]),
    ] {
        if helps(layers) {
            found.push(vec![Part::Attributes(attributes)]);
        }
    }
    found
}

/// Most sets of missing layers that are looked at, beside the one of all that any call lacks.
const SETS: usize = 2;

/// Evidence for everything that the calls lack: for the sets of missing layers met most often, and
/// for all of them at once.
fn combinations(tool: &Tool, rules: &[Rule]) -> Vec<Vec<Part>> {
    let Some(call) = tool.lacking.first() else { return Vec::new() };
    let mut sets: BTreeMap<Vec<Layer>, u64> = BTreeMap::new();
    for call in &tool.lacking {
        *sets.entry(call.missing.clone()).or_default() += 1;
    }
    let lacked = |layer: &Layer| sets.keys().any(|missing| missing.contains(layer));
    let all: Vec<Layer> = Layer::ALL.iter().copied().filter(lacked).collect();
    let mut sets: Vec<_> = sets.into_iter().collect();
    sets.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut found = Vec::new();
    let mut tried: Vec<Vec<Layer>> = sets.into_iter().take(SETS).map(|(set, _)| set).collect();
    if !tried.contains(&all) {
        tried.push(all);
    }
    for missing in tried {
        let lacks = |layer| missing.contains(&layer);
        let mut around = Attributes::new();
        if lacks(Layer::Request) {
            around.extend(result());
        }
        if lacks(Layer::Session) {
            around.extend(version(tool));
        }
        let requires = requires(tool, call, &[Layer::Catalog]).filter(|_| lacks(Layer::Catalog));
        let fits = |rule: &&Rule| rule.outcome.is_some() == lacks(Layer::Outcome);
        for rule in rules.iter().filter(|_| lacks(Layer::Outcome) || lacks(Layer::Effect)) {
            if fits(&rule) {
                let rule = Part::Rule(Box::new(rule.clone()));
                found.push(combined(Some(rule), around.clone(), requires.clone()));
            }
        }
        let mut attributes = match (lacks(Layer::Outcome), lacks(Layer::Effect)) {
            (true, _) => outcome(),
            (false, true) => effect(),
            (false, false) => Attributes::new(),
        };
        attributes.extend(around);
        found.push(combined(None, attributes.clone(), requires));
        if lacks(Layer::Session) {
            // An instrumentation that makes up versions is not believed another one.
            attributes.retain(|(key, _)| *key != VERSION);
            let requires = self::requires(tool, call, &[Layer::Session, Layer::Catalog]);
            found.push(combined(None, attributes, requires));
        }
    }
    found
}

/// Nobody records what these layers need by a single attribute: what remains is not to need them.
fn requires(tool: &Tool, call: &Lacking, without: &[Layer]) -> Option<Part> {
    let name = tool.tool.clone()?;
    let layers = call.requires.iter().copied().filter(|layer| !without.contains(layer)).collect();
    Some(Part::Requires { server: tool.server.clone(), tool: name, layers })
}

fn combined(rule: Option<Part>, attributes: Attributes, requires: Option<Part>) -> Vec<Part> {
    let attributes = (!attributes.is_empty()).then_some(Part::Attributes(attributes));
    rule.into_iter().chain(attributes).chain(requires).collect()
}

impl Advice {
    /// The attributes it adds, each once, and on how many spans.
    pub fn attributes(&self) -> Option<&Attributes> {
        self.parts.iter().find_map(|part| match part {
            Part::Attributes(attributes) => Some(attributes),
            _ => None,
        })
    }

    /// Spans that the attributes would stand on.
    pub fn spans(&self) -> impl Iterator<Item = &SpanRef> {
        self.trial.attributes.keys()
    }
}
