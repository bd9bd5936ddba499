//! Policy (judgment.md §9, `processors.mcp_verdict.*`): what is configured about judging, resolved
//! to plain values. Reading the file is the config module's; defaults stand here, once.

use std::collections::BTreeMap;

use super::digest::Digest;
use super::ids::{Digest16, Name, Nanos, SECOND};
use super::words::{Effect, FailureLayer, Grade, Layer, OutcomeMethod, OutcomeStatus, Owner};

#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Wait after a request's last span before its first verdict. Nanoseconds, like all durations.
    pub settle: Nanos,
    /// How long late facts revise.
    pub retention: Nanos,
    pub deadline: Nanos,
    pub inactivity: Nanos,
    pub catalog_max_age: Nanos,
    pub clock_skew: Nanos,
    pub incident_quiet: Nanos,
    pub healthy_requires: Vec<Layer>,
    pub contracts: Contracts,
    pub evidence: Vec<Rule>,
    /// The number that facts carry of the first rule; the others follow.
    pub first_rule: u16,
    pub retry_budget: RetryBudget,
    /// By server identity.
    pub servers: BTreeMap<String, ServerPolicy>,
    /// Free text by owner, put on events; a server's or tool's own comes first.
    pub owners: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Contracts {
    pub mode: ContractMode,
    pub fail_on: Vec<Grade>,
    /// What the lockfile holds, by server. Only `pin` and `enforce` look at it.
    pub pins: BTreeMap<Name, Pins>,
}

/// Whose reading of a tool it is: the authorization context, else the client instance.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Context {
    Auth(Digest16),
    Client(Option<Digest16>),
}

/// Pinned digests of one server, by tool and context; `None` holds for any context.
pub type Pins = BTreeMap<(Name, Option<Context>), Digest>;

super::words::vocabulary!(ContractMode {
    Observe = "observe", Pin = "pin", Enforce = "enforce", Off = "off",
});

/// Failures of a layer that an operation may have before one more attempt is a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudget {
    pub transport: u32,
    pub protocol: u32,
    pub authority: u32,
    pub execution: u32,
    pub outcome: u32,
}

impl RetryBudget {
    pub fn of(&self, layer: FailureLayer) -> u32 {
        match layer {
            FailureLayer::Transport => self.transport,
            FailureLayer::Protocol => self.protocol,
            FailureLayer::Authority => self.authority,
            FailureLayer::Execution => self.execution,
            FailureLayer::Outcome => self.outcome,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerPolicy {
    pub own: Overrides,
    pub trust_annotations: bool,
    pub tools: BTreeMap<String, Overrides>,
}

/// What one server or one tool may override; `None` falls through to the next wider level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    pub read_only: Option<bool>,
    pub deadline: Option<Nanos>,
    pub healthy_requires: Option<Vec<Layer>>,
    /// Free text by owner, put on events.
    pub owners: BTreeMap<String, String>,
}

/// An evidence rule (judgment.md §3(d)). `None` matches everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    pub when_server: Option<Glob>,
    pub when_tool: Option<Glob>,
    pub span: SpanMatcher,
    pub effect: Option<Effect>,
    pub outcome: Option<OutcomeStatus>,
    /// Default `query` where the rule speaks of an outcome.
    pub method: OutcomeMethod,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpanMatcher {
    pub name: Option<Glob>,
    /// OTLP SpanKind number.
    pub kind: Option<i32>,
    /// OTLP status code number.
    pub status: Option<i32>,
    pub scope: Option<Glob>,
    pub service: Option<Glob>,
    pub attributes: Vec<(String, ValueMatcher)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ValueMatcher {
    Present,
    /// `2xx` and its like: hundreds digit of a number.
    Class(u16),
    AtLeast(f64),
    AtMost(f64),
    Above(f64),
    Below(f64),
    /// Text equality or glob; numbers and booleans compare by their text.
    Text(Glob),
}

/// A glob with `*` (any text) and `?` (any one character); everything else is itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob(pub String);

impl Glob {
    /// Linear-time matching with one backtrack point: no pattern can make it slow.
    pub fn matches(&self, text: &str) -> bool {
        let (pattern, text): (Vec<char>, Vec<char>) =
            (self.0.chars().collect(), text.chars().collect());
        let (mut p, mut t, mut star, mut mark) = (0, 0, None, 0);
        while t < text.len() {
            if p < pattern.len() && pattern[p] == '*' {
                (star, mark) = (Some(p), t);
                p += 1;
            } else if p < pattern.len() && (pattern[p] == '?' || pattern[p] == text[t]) {
                (p, t) = (p + 1, t + 1);
            } else if let Some(at) = star {
                mark += 1;
                (p, t) = (at + 1, mark);
            } else {
                return false;
            }
        }
        pattern[p..].iter().all(|c| *c == '*')
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            settle: 6 * SECOND,
            retention: 15 * 60 * SECOND,
            deadline: 5 * 60 * SECOND,
            inactivity: 60 * SECOND,
            catalog_max_age: 60 * 60 * SECOND,
            clock_skew: SECOND / 4,
            incident_quiet: 24 * 60 * 60 * SECOND,
            healthy_requires: Layer::ALL.to_vec(),
            contracts: Contracts {
                mode: ContractMode::Observe,
                fail_on: vec![Grade::Breaking, Grade::Semantic, Grade::Unlocated],
                pins: BTreeMap::new(),
            },
            evidence: Vec::new(),
            first_rule: 0,
            retry_budget: RetryBudget {
                transport: 3,
                protocol: 0,
                authority: 1,
                execution: 1,
                outcome: 0,
            },
            servers: BTreeMap::new(),
            owners: BTreeMap::new(),
        }
    }
}

impl Policy {
    /// The narrowest override there is: the tool's, else its server's.
    fn overridden<T>(
        &self,
        server: &str,
        tool: Option<&str>,
        pick: impl Fn(&Overrides) -> Option<T>,
    ) -> Option<T> {
        let server = self.servers.get(server)?;
        let tool = tool.and_then(|name| server.tools.get(name));
        tool.and_then(&pick).or_else(|| pick(&server.own))
    }

    /// The evidence rules with the numbers that facts carry.
    pub fn numbered_rules(&self) -> impl Iterator<Item = (u16, &Rule)> {
        (self.first_rule..=u16::MAX).zip(&self.evidence)
    }

    /// Numbers the rules so that those of the policy before keep theirs: facts of both may meet.
    pub fn follow(&mut self, before: &Policy) {
        if self.evidence == before.evidence {
            self.first_rule = before.first_rule;
            return;
        }
        let first = usize::from(before.first_rule) + before.evidence.len();
        let fits = first + self.evidence.len() <= usize::from(u16::MAX);
        // After tens of thousands of rules the oldest numbers are used again.
        self.first_rule = u16::try_from(first).ok().filter(|_| fits).unwrap_or(0);
    }

    pub fn read_only(&self, server: &str, tool: Option<&str>) -> Option<bool> {
        self.overridden(server, tool, |o| o.read_only)
    }

    pub fn deadline_of(&self, server: &str, tool: Option<&str>) -> Nanos {
        self.overridden(server, tool, |o| o.deadline).unwrap_or(self.deadline)
    }

    pub fn requires(&self, server: &str, tool: Option<&str>) -> Vec<Layer> {
        self.overridden(server, tool, |o| o.healthy_requires.clone())
            .unwrap_or_else(|| self.healthy_requires.clone())
    }

    /// Configured text for an owner: the tool's, else its server's, else everybody's.
    pub fn owner_contact(&self, server: &str, tool: Option<&str>, owner: Owner) -> Option<String> {
        self.overridden(server, tool, |o| o.owners.get(owner.as_str()).cloned())
            .or_else(|| self.owners.get(owner.as_str()).cloned())
    }

    pub fn trusts_annotations(&self, server: &str) -> bool {
        self.servers.get(server).is_some_and(|s| s.trust_annotations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (pattern, text, want) in [
            ("create_*", "create_ticket", true),
            ("create_*", "close_ticket", false),
            ("*", "", true),
            ("tickets.*", "tickets.example.com", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b*", "xxaxxbxx", true),
            ("pass*", "pass with notes", true),
            ("", "x", false),
        ] {
            assert_eq!(Glob(pattern.into()).matches(text), want, "{pattern} on {text}");
        }
    }
}
