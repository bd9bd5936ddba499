//! Whether every value that one JSON Schema accepts is accepted by another, and where not.
//!
//! Promises: sound, not complete. A comparison without a `breaking` note proves inclusion (for
//! input schemas: of values that keep to the names the old schema declares); whatever the rules
//! cannot prove is `breaking`. Work is bounded by [`MOST_STEPS`] and [`MOST_DEPTH`].
//!
//! Arguments flow to the server: what the old schema accepts, the new one must accept. Results
//! flow to the client: what the new schema allows, the old one must allow, for the client was
//! written against the old one. So [`Walk::sub`] is the old input or the new output schema.

use super::diff_alternatives::{alternatives, by_branches};
use super::diff_containers::{arrays, names_gone, objects};
use super::diff_keywords::keywords;
use super::diff_values::{Types, disjoint};
use super::diff_view::{Document, Place, View, mentions};
use super::grade::{Grade, Kind};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

const MOST_STEPS: u32 = 20_000;
const MOST_DEPTH: u32 = 96;

/// A change before its digests are taken.
#[derive(Clone, Debug)]
pub(super) struct Note<'a> {
    pub pointer: String,
    pub kind: Kind,
    pub grade: Grade,
    pub old: Option<&'a Value>,
    pub new: Option<&'a Value>,
}

/// Which way values go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// `sub` is old, `sup` is new.
    Input,
    /// `sub` is new, `sup` is old.
    Output,
}

/// One comparison with its bounds.
pub(super) struct Walk<'w, 'a> {
    pub sub: &'w Document<'a>,
    pub sup: &'w Document<'a>,
    pub flow: Flow,
    /// Whether names that the old schema does not declare count as never sent. Not below `not`.
    pub declared_only: bool,
    steps: &'w Cell<u32>,
    depth: Cell<u32>,
    outer: Option<&'w Walk<'w, 'a>>,
    /// Pairs compared or being compared: a circle of references holds if nothing in it breaks.
    seen: RefCell<BTreeSet<(usize, usize, bool)>>,
}

/// Whether a schema describes a value of its own or a part of one that others describe too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    Whole,
    Part,
}

/// All notes of the change from `old` to `new`.
pub(super) fn compare<'a>(old: &Document<'a>, new: &Document<'a>, flow: Flow) -> Vec<Note<'a>> {
    let (sub, sup) = match flow {
        Flow::Input => (old, new),
        Flow::Output => (new, old),
    };
    let steps = Cell::new(MOST_STEPS);
    let walk = Walk {
        sub,
        sup,
        flow,
        declared_only: flow == Flow::Input,
        steps: &steps,
        depth: Cell::new(MOST_DEPTH),
        outer: None,
        seen: RefCell::default(),
    };
    walk.included(&sub.root, &sup.root, Stand::Whole)
}

impl<'w, 'a> Walk<'w, 'a> {
    /// The notes on `sub` being included in `sup`.
    pub fn included(&self, sub: &Place<'a>, sup: &Place<'a>, stand: Stand) -> Vec<Note<'a>> {
        if sub.schema == sup.schema && self.is_plain(sub.schema) {
            return Vec::new();
        }
        if self.is_seen((sub.address(), sup.address(), stand == Stand::Whole)) {
            return Vec::new();
        }
        let (a, b) = (View::of(self.sub, sub), View::of(self.sup, sup));
        self.views((sub, &a), (sup, &b), stand)
    }

    /// The same for schemas that have been flattened already; the places say where they stand.
    pub fn views(
        &self,
        (sub, a): (&Place<'a>, &View<'a>),
        (sup, b): (&Place<'a>, &View<'a>),
        stand: Stand,
    ) -> Vec<Note<'a>> {
        if self.steps.get() == 0 || self.depth.get() == 0 {
            return vec![self.note(Kind::Undecided, Grade::Breaking, Some(sub), Some(sup))];
        }
        self.steps.set(self.steps.get() - 1);
        self.depth.set(self.depth.get() - 1);
        let notes = self.rules((sub, a), (sup, b), stand);
        self.depth.set(self.depth.get() + 1);
        notes
    }

    fn rules(
        &self,
        (sub, a): (&Place<'a>, &View<'a>),
        (sup, b): (&Place<'a>, &View<'a>),
        stand: Stand,
    ) -> Vec<Note<'a>> {
        if a.never || b.never {
            let grade = if a.never { Grade::Compatible } else { Grade::Breaking };
            let changed = a.never != b.never;
            let note = || self.note(Kind::TypeChanged, grade, Some(sub), Some(sup));
            return changed.then(note).into_iter().collect();
        }
        let branches = a.value("anyOf").or(a.value("oneOf")).is_some();
        let before = branches.then(|| self.seen.borrow().clone());
        let mut notes = self.opaque(a, b);
        notes.extend(objects(self, (sub, a), b, stand));
        notes.extend(arrays(self, a, b));
        notes.extend(alternatives(self, (sub, a), b));
        notes.extend(keywords(self, a, b));
        notes.extend(self.conjuncts((sub, a), b));
        if let Some(before) = before.filter(|_| !holds(&notes))
            && let Some(proof) = by_branches(self, a, (sup, b))
        {
            // What was noted is dropped, so what was seen on the way has not been judged.
            self.seen.replace(before);
            notes = proof;
        }
        if stand == Stand::Whole {
            notes.extend(names_gone(self, sub, sup));
        }
        notes
    }

    /// References that cannot be followed say the same only where they name the same document.
    fn opaque(&self, a: &View<'a>, b: &View<'a>) -> Vec<Note<'a>> {
        let remote = |place: &Place<'a>| {
            let text = place.schema.as_str();
            place.pointer.ends_with("/$ref") && text.is_some_and(|text| !text.starts_with('#'))
        };
        let known = |place: &&Place<'a>| {
            !(remote(place) && a.opaque.iter().any(|other| other.schema == place.schema))
        };
        let unknown = b.opaque.iter().filter(known);
        let mut notes: Vec<Note<'a>> = unknown
            .map(|place| self.note(Kind::Undecided, Grade::Breaking, None, Some(place)))
            .collect();
        let gone =
            a.opaque.iter().filter(|place| !b.opaque.iter().any(|b| b.schema == place.schema));
        notes.extend(
            gone.map(|place| self.note(Kind::Undecided, Grade::Breaking, Some(place), None)),
        );
        notes
    }

    /// What else must hold in `sup`: one of the conjuncts of `sub`, or `sub` as a whole, says so.
    fn conjuncts(&self, (sub, a): (&Place<'a>, &View<'a>), b: &View<'a>) -> Vec<Note<'a>> {
        let mut notes = Vec::new();
        for (at, part) in b.conjuncts.iter().enumerate() {
            let candidates = a.conjuncts.get(at).into_iter().chain(&a.conjuncts);
            let mut proofs = candidates.filter_map(|own| self.proof(own, part));
            let proof = proofs.next().or_else(|| {
                let mut whole = a.clone();
                whole.conjuncts.clear();
                let view = View::of(self.sup, part);
                self.trial(|walk| walk.views((sub, &whole), (part, &view), Stand::Part))
            });
            notes.extend(proof.unwrap_or_else(|| match a.conjuncts.get(at) {
                Some(own) => self.included(own, part, Stand::Part),
                None => {
                    vec![self.note(Kind::ConstraintAdded, Grade::Breaking, None, Some(part))]
                }
            }));
        }
        let gone = a.conjuncts.len() > b.conjuncts.len();
        let note = || {
            let last = a.conjuncts.last();
            self.note(Kind::ConstraintRemoved, Grade::Compatible, last, None)
        };
        notes.extend(gone.then(note));
        notes
    }

    /// Whether equal text means the same on both sides: no reference in it.
    pub fn is_plain(&self, schema: &Value) -> bool {
        let refs = ["$ref", "$dynamicRef", "$recursiveRef"];
        !self.sub.has_refs && !self.sup.has_refs || !refs.iter().any(|key| mentions(schema, key))
    }

    /// The notes of an inclusion that holds; `None` where it was not proved.
    pub fn proof(&self, sub: &Place<'a>, sup: &Place<'a>) -> Option<Vec<Note<'a>>> {
        self.trial(|walk| walk.included(sub, sup, Stand::Part))
    }

    /// Whether both schemas are known to accept the same values.
    pub fn same(&self, sub: &Place<'a>, sup: &Place<'a>) -> bool {
        self.proof(sub, sup).is_some() && self.reversed_proof(sub, sup)
    }

    /// Whether everything in `sup` is accepted by `sub`, whatever names it uses.
    pub fn reversed_proof(&self, sub: &Place<'a>, sup: &Place<'a>) -> bool {
        let walk = Walk {
            sub: self.sup,
            sup: self.sub,
            flow: self.flow,
            declared_only: false,
            steps: self.steps,
            depth: self.depth.clone(),
            outer: None,
            seen: RefCell::default(),
        };
        holds(&walk.included(sup, sub, Stand::Part))
    }

    /// Runs a comparison whose failure is no change. What the notes so far cover counts as seen,
    /// so a proof stands beside these notes and never in their stead.
    pub fn trial(
        &self,
        compare: impl FnOnce(&Walk<'_, 'a>) -> Vec<Note<'a>>,
    ) -> Option<Vec<Note<'a>>> {
        self.tried(Some(self), compare)
    }

    /// The same for a proof that takes the place of notes.
    pub fn trial_apart(
        &self,
        compare: impl FnOnce(&Walk<'_, 'a>) -> Vec<Note<'a>>,
    ) -> Option<Vec<Note<'a>>> {
        self.tried(None, compare)
    }

    fn tried(
        &self,
        outer: Option<&Walk<'_, 'a>>,
        compare: impl FnOnce(&Walk<'_, 'a>) -> Vec<Note<'a>>,
    ) -> Option<Vec<Note<'a>>> {
        let walk = Walk {
            sub: self.sub,
            sup: self.sup,
            flow: self.flow,
            declared_only: self.declared_only,
            steps: self.steps,
            depth: self.depth.clone(),
            outer,
            seen: RefCell::default(),
        };
        let notes = compare(&walk);
        holds(&notes).then_some(notes)
    }

    fn is_seen(&self, pair: (usize, usize, bool)) -> bool {
        let mut outer = self.outer;
        while let Some(walk) = outer {
            if walk.seen.borrow().contains(&pair) {
                return true;
            }
            outer = walk.outer;
        }
        !self.seen.borrow_mut().insert(pair)
    }

    /// Whether two of the schemas in a list may both accept one value.
    pub fn may_overlap(&self, document: &Document<'a>, list: &[Place<'a>]) -> bool {
        let views: Vec<View<'a>> = list.iter().map(|place| View::of(document, place)).collect();
        self.spend(list.len().saturating_mul(list.len()) / 8);
        if self.steps.get() == 0 {
            return true;
        }
        let apart = |(at, a): (usize, &View<'a>)| views[at + 1..].iter().all(|b| disjoint(a, b, 1));
        !views.iter().enumerate().all(apart)
    }

    /// Takes work that is not a comparison of its own off the bound.
    pub fn spend(&self, steps: usize) {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        self.steps.set(self.steps.get().saturating_sub(steps));
    }

    /// A note about what `sub` and `sup` have, told as what was and what is.
    pub fn note(
        &self,
        kind: Kind,
        grade: Grade,
        sub: Option<&Place<'a>>,
        sup: Option<&Place<'a>>,
    ) -> Note<'a> {
        let (old, new) = match self.flow {
            Flow::Input => (sub, sup),
            Flow::Output => (sup, sub),
        };
        Note {
            pointer: new.or(old).map(|place| place.pointer.clone()).unwrap_or_default(),
            kind,
            grade,
            old: old.map(|place| place.schema),
            new: new.map(|place| place.schema),
        }
    }

    /// A note about a keyword that came, went or changed.
    pub fn constraint(
        &self,
        holds: bool,
        sub: Option<&Place<'a>>,
        sup: Option<&Place<'a>>,
    ) -> Note<'a> {
        let kind = match (self.flow, sub.is_some(), sup.is_some()) {
            (Flow::Input, false, _) | (Flow::Output, _, false) => Kind::ConstraintAdded,
            (Flow::Input, _, false) | (Flow::Output, false, _) => Kind::ConstraintRemoved,
            _ => Kind::ConstraintChanged,
        };
        self.note(kind, grade(holds), sub, sup)
    }
}

pub(super) fn grade(holds: bool) -> Grade {
    if holds { Grade::Compatible } else { Grade::Breaking }
}

pub(super) fn holds(notes: &[Note<'_>]) -> bool {
    notes.iter().all(|note| note.grade != Grade::Breaking)
}

/// The type that a keyword speaks of; others it lets pass.
pub(super) fn speaks_of(keyword: &str) -> Types {
    match keyword {
        "minLength" | "maxLength" | "pattern" | "contentEncoding" | "contentMediaType"
        | "contentSchema" => Types::STRING,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            Types::NUMBER
        }
        "items" | "prefixItems" | "additionalItems" | "contains" | "minContains"
        | "maxContains" | "minItems" | "maxItems" | "uniqueItems" | "unevaluatedItems" => {
            Types::ARRAY
        }
        "properties"
        | "patternProperties"
        | "additionalProperties"
        | "required"
        | "minProperties"
        | "maxProperties"
        | "propertyNames"
        | "dependentRequired"
        | "dependentSchemas"
        | "dependencies"
        | "unevaluatedProperties" => Types::OBJECT,
        _ => Types::ANY,
    }
}
