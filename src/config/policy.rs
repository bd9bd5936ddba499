//! `processors.mcp_verdict`: what is configured about judging and about what leaves.

use std::collections::BTreeMap;

use super::forms;
use super::section::Section;
use super::settings::{Emit, Enrich, Limits, Plan, Redact, Which};
use crate::model::policy::*;
use crate::model::words::{Effect, Grade, Layer, OutcomeMethod, OutcomeStatus};

pub fn read(at: &Section<'_>) -> Policy {
    let default = Policy::default();
    let contracts = at.child("contracts");
    Policy {
        settle: at.duration("settle"),
        retention: at.positive_duration("retention"),
        deadline: at.positive_duration("deadline"),
        inactivity: at.positive_duration("inactivity"),
        catalog_max_age: at.positive_duration("catalog_max_age"),
        clock_skew: at.duration("clock_skew"),
        incident_quiet: at.positive_duration("incident_quiet"),
        healthy_requires: at
            .optional_words("healthy_requires", Layer::parse)
            .unwrap_or(default.healthy_requires),
        contracts: Contracts {
            mode: contracts.word("mode", ContractMode::parse),
            fail_on: contracts
                .optional_words("fail_on", Grade::parse)
                .unwrap_or(default.contracts.fail_on),
            pins: default.contracts.pins,
        },
        evidence: rules(&at.child("evidence")),
        first_rule: default.first_rule,
        retry_budget: retry_budget(&at.child("retry_budget")),
        servers: servers(&at.child("servers")),
        owners: at.texts_by_key("owners"),
    }
}

fn retry_budget(at: &Section<'_>) -> RetryBudget {
    RetryBudget {
        transport: at.count32("transport"),
        protocol: at.count32("protocol"),
        authority: at.count32("authority"),
        execution: at.count32("execution"),
        outcome: at.count32("outcome"),
    }
}

fn servers(at: &Section<'_>) -> BTreeMap<String, ServerPolicy> {
    let server = |at: &Section<'_>| ServerPolicy {
        own: overrides(at),
        trust_annotations: at.flag("trust_annotations"),
        tools: at
            .child("tools")
            .named()
            .into_iter()
            .map(|(key, at)| (key.name.clone(), overrides(&at)))
            .collect(),
    };
    at.named().into_iter().map(|(key, at)| (key.name.clone(), server(&at))).collect()
}

fn overrides(at: &Section<'_>) -> Overrides {
    Overrides {
        read_only: at.child("read_only").optional(forms::flag),
        deadline: at.child("deadline").optional(forms::duration),
        healthy_requires: at.optional_words("healthy_requires", Layer::parse),
        owners: at.texts_by_key("owners"),
    }
}

fn rules(at: &Section<'_>) -> Vec<Rule> {
    let items = at.items();
    if items.len() > usize::from(u16::MAX) {
        at.wrong("holds more than 65535 rules");
    }
    items.iter().map(rule).collect()
}

fn rule(at: &Section<'_>) -> Rule {
    let (when, says) = (at.child("when"), at.child("says"));
    let glob = |at: &Section<'_>, key| at.child(key).optional(forms::text).map(Glob);
    let rule = Rule {
        when_server: glob(&when, "server"),
        when_tool: glob(&when, "tool"),
        span: matcher(&at.child("span")),
        effect: says.optional_word("effect", Effect::parse),
        outcome: says.optional_word("outcome", OutcomeStatus::parse),
        method: says.word("method", OutcomeMethod::parse),
    };
    // A word that could not be read is a mistake of its own: only what is not there counts here.
    let said = ["effect", "outcome"].map(|key| says.child(key).written());
    if said == [false, false] {
        at.wrong("says nothing; write `says: { effect: … }` or `says: { outcome: … }`");
    } else if says.child("method").written() && !said[1] {
        says.wrong("`method` tells how an outcome was checked, and there is no `outcome`");
    }
    let span = at.child("span");
    let keys = ["name", "kind", "status", "scope", "service", "attributes"];
    if !keys.iter().any(|key| span.child(key).written()) {
        at.wrong("matches every span; write what the span looks like under `span:`");
    }
    rule
}

fn matcher(at: &Section<'_>) -> SpanMatcher {
    let glob = |key| at.child(key).optional(forms::text).map(Glob);
    SpanMatcher {
        name: glob("name"),
        kind: at.optional_word("kind", span_kind),
        status: at.optional_word("status", span_status),
        scope: glob("scope"),
        service: glob("service"),
        attributes: at
            .text_map("attributes")
            .into_iter()
            .filter_map(|(key, text, at)| match value(text) {
                Ok(value) => Some((key, value)),
                Err(says) => {
                    at.wrong(says);
                    None
                }
            })
            .collect(),
    }
}

fn span_kind(word: &str) -> Option<i32> {
    let kinds = ["unspecified", "internal", "server", "client", "producer", "consumer"];
    kinds.iter().position(|kind| *kind == word).and_then(|at| i32::try_from(at).ok())
}

fn span_status(word: &str) -> Option<i32> {
    ["unset", "ok", "error"].iter().position(|s| *s == word).and_then(|at| i32::try_from(at).ok())
}

fn value(text: &str) -> Result<ValueMatcher, String> {
    if text == "present" {
        return Ok(ValueMatcher::Present);
    }
    if let [digit @ b'1'..=b'9', b'x', b'x'] = text.as_bytes() {
        return Ok(ValueMatcher::Class(u16::from(digit - b'0')));
    }
    type Make = fn(f64) -> ValueMatcher;
    let ranges: [(&str, Make); 4] = [
        (">=", ValueMatcher::AtLeast),
        ("<=", ValueMatcher::AtMost),
        (">", ValueMatcher::Above),
        ("<", ValueMatcher::Below),
    ];
    for (sign, make) in ranges {
        if let Some(number) = text.strip_prefix(sign) {
            let number = number.trim().parse::<f64>().ok().filter(|n| n.is_finite());
            let says = || format!("`{text}` is not a range; write one such as `>=1`");
            return number.map(make).ok_or_else(says);
        }
    }
    Ok(ValueMatcher::Text(Glob(text.to_string())))
}

pub fn emit(at: &Section<'_>) -> Emit {
    let redaction = at.child("redaction");
    Emit {
        events: at.word("verdict_events", Which::parse),
        spans: at.word("verdict_spans", Which::parse),
        enrich: at.word("enrich", Enrich::parse),
        redaction: Plan {
            content: redaction.word("content", Redact::parse),
            definitions: redaction.word("definitions", Redact::parse),
        },
    }
}

pub fn limits(at: &Section<'_>) -> Limits {
    let memory = at.positive_size("memory");
    if memory < 16 << 20 {
        at.child("memory").wrong("must be at least 16MiB");
    }
    let share = |key: &str, parse: fn(&str) -> Result<u64, String>, divisor: u64| {
        at.child(key).optional(parse).unwrap_or(memory / divisor).max(1)
    };
    Limits {
        memory,
        label_values: at.positive_count("label_values"),
        in_flight: share("in_flight", forms::size, 8),
        held_spans: share("held_spans", forms::size, 4),
        chains: share("chains", forms::count, 4 << 10),
        scopes: share("scopes", forms::count, 32 << 10),
        remembered: share("remembered", forms::count, 16 << 10),
        findings_per_chain: at.positive_count("findings_per_chain"),
        evidence_per_chain: at.positive_count("evidence_per_chain"),
        connections: at.positive_count("connections"),
        header_size: at.positive_size("header_size"),
        inflate_ratio: at.positive_count("inflate_ratio"),
    }
}
