//! The tree of one trace: who is above whom, cycles and missing parents included.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::fact::Bone;
use crate::model::ids::SpanId;

/// Bones of one trace with their children. A parent that never arrived simply ends the climb.
pub struct Ancestry<'a> {
    bones: &'a BTreeMap<SpanId, Bone>,
    children: BTreeMap<SpanId, Vec<SpanId>>,
}

/// No real trace is deeper; a hostile one is cut here instead of being walked in squares.
const DEEPEST: usize = 256;

impl<'a> Ancestry<'a> {
    pub fn new(bones: &'a BTreeMap<SpanId, Bone>) -> Self {
        let mut children: BTreeMap<SpanId, Vec<SpanId>> = BTreeMap::new();
        for bone in bones.values() {
            if let Some(parent) = bone.parent {
                children.entry(parent).or_default().push(bone.at.span);
            }
        }
        Self { bones, children }
    }

    pub fn bone(&self, span: SpanId) -> Option<&'a Bone> {
        self.bones.get(&span)
    }

    /// The spans strictly above `span`, nearest first; the last may never have arrived.
    pub fn above(&self, span: SpanId) -> impl Iterator<Item = SpanId> + '_ {
        let mut seen = BTreeSet::from([span]);
        let mut next = self.bones.get(&span).and_then(|bone| bone.parent);
        std::iter::from_fn(move || {
            let here = next.filter(|id| seen.len() < DEEPEST && seen.insert(*id))?;
            next = self.bones.get(&here).and_then(|bone| bone.parent);
            Some(here)
        })
    }

    /// `span` itself, then the spans above it.
    pub fn at_or_above(&self, span: SpanId) -> impl Iterator<Item = SpanId> + '_ {
        std::iter::once(span).chain(self.above(span))
    }

    /// All spans below `span` that are reached without passing a span for which `stop` holds.
    pub fn below(&self, span: SpanId, stop: impl Fn(&Bone) -> bool) -> Vec<&'a Bone> {
        let (mut found, mut seen) = (Vec::new(), BTreeSet::from([span]));
        let mut queue: Vec<SpanId> = self.children.get(&span).cloned().unwrap_or_default();
        while let Some(id) = queue.pop() {
            let Some(bone) = self.bones.get(&id).filter(|_| seen.insert(id)) else { continue };
            if stop(bone) {
                continue;
            }
            found.push(bone);
            queue.extend(self.children.get(&id).into_iter().flatten());
        }
        found.sort_unstable_by_key(|bone| (bone.start, bone.at.span));
        found
    }
}
