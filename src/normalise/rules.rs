//! Evidence rules (judgment.md §3(d)): which spans of other people are effect or outcome facts. The
//! rule's `when` is not looked at: the call it belongs to is chosen first.

use super::item::{Bag, Item, number, text};
use crate::model::fact::{EffectFact, Origin, OutcomeFact};
use crate::model::policy::{Policy, Rule, SpanMatcher, ValueMatcher};
use crate::wire::scan::ValueRef;

/// What the configured rules make of a span.
#[derive(Default)]
pub struct Matches {
    pub effects: Vec<EffectFact>,
    pub outcomes: Vec<OutcomeFact>,
}

impl Matches {
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty() && self.outcomes.is_empty()
    }
}

pub fn matches(item: &Item<'_>, policy: &Policy) -> Matches {
    let mut found = Matches::default();
    for (number, rule) in policy.numbered_rules() {
        if fits(&rule.span, item) {
            add(&mut found, rule, number, item);
        }
    }
    found
}

fn add(found: &mut Matches, rule: &Rule, number: u16, item: &Item<'_>) {
    let from = Origin::Rule(number);
    if let Some(status) = rule.effect {
        found.effects.push(EffectFact { status, time: item.end, from });
    }
    if let Some(status) = rule.outcome {
        let method = Some(rule.method);
        found.outcomes.push(OutcomeFact { status, method, time: item.end, from });
    }
}

fn fits(matcher: &SpanMatcher, item: &Item<'_>) -> bool {
    let service = item.process.service.as_deref().unwrap_or_default();
    matcher.name.as_ref().is_none_or(|glob| glob.matches(&item.name))
        && matcher.kind.is_none_or(|kind| kind == i32::from(item.kind))
        && matcher.status.is_none_or(|status| status == i32::from(item.status))
        && matcher.scope.as_ref().is_none_or(|glob| glob.matches(item.scope))
        && matcher.service.as_ref().is_none_or(|glob| glob.matches(service))
        && matcher.attributes.iter().all(|(key, want)| holds(&item.attributes, key, want))
}

/// Whether any value under the key fits.
fn holds(bag: &Bag<'_>, key: &str, want: &ValueMatcher) -> bool {
    bag.0.iter().filter(|(name, _)| *name == key).any(|(_, value)| admits(want, value))
}

fn admits(want: &ValueMatcher, value: &ValueRef<'_>) -> bool {
    let number = || number(value);
    match want {
        ValueMatcher::Present => true,
        ValueMatcher::Class(hundreds) => {
            number().is_some_and(|n| (n / 100.0).floor() == f64::from(*hundreds))
        }
        ValueMatcher::AtLeast(bound) => number().is_some_and(|n| n >= *bound),
        ValueMatcher::AtMost(bound) => number().is_some_and(|n| n <= *bound),
        ValueMatcher::Above(bound) => number().is_some_and(|n| n > *bound),
        ValueMatcher::Below(bound) => number().is_some_and(|n| n < *bound),
        ValueMatcher::Text(glob) => match value {
            ValueRef::Array(values) => {
                values.clone().any(|v| text(&v).is_some_and(|text| glob.matches(&text)))
            }
            other => text(other).is_some_and(|text| glob.matches(&text)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::policy::Glob;

    #[test]
    fn values() {
        let glob = |text: &str| ValueMatcher::Text(Glob(text.into()));
        for (want, value, fits) in [
            (ValueMatcher::Class(2), ValueRef::Int(204), true),
            (ValueMatcher::Class(2), ValueRef::Str("201"), true),
            (ValueMatcher::Class(2), ValueRef::Int(304), false),
            (ValueMatcher::AtLeast(1.0), ValueRef::Int(1), true),
            (ValueMatcher::AtLeast(1.0), ValueRef::Double(0.5), false),
            (ValueMatcher::Above(1.0), ValueRef::Int(1), false),
            (ValueMatcher::AtMost(1.0), ValueRef::Str("x"), false),
            (ValueMatcher::Present, ValueRef::Str(""), true),
            (glob("INS*"), ValueRef::Str("INSERT"), true),
            (glob("true"), ValueRef::Bool(true), true),
            (glob("3"), ValueRef::Int(3), true),
            (glob("x"), ValueRef::Empty, false),
        ] {
            assert_eq!(admits(&want, &value), fits, "{want:?}");
        }
    }
}
