//! The tree of one trace: who is above whom, cycles and missing parents included.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::fact::Bone;
use crate::model::ids::SpanId;

/// The bones of one trace by span id: most traces have a handful, some have no end.
#[derive(Debug)]
pub enum Bones {
    /// Sorted.
    Few(Vec<Bone>),
    Many(BTreeMap<SpanId, Bone>),
}

impl Default for Bones {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Bones {
    /// How many a list takes before it becomes a tree.
    const LISTED: usize = 64;

    pub fn get(&self, span: SpanId) -> Option<&Bone> {
        match self {
            Self::Few(all) => {
                let at = all.binary_search_by_key(&span, |bone| bone.at.span).ok()?;
                all.get(at)
            }
            Self::Many(all) => all.get(&span),
        }
    }

    /// Puts it in the place of what its span had.
    pub fn put(&mut self, bone: Bone) {
        let Self::Few(all) = self else {
            let Self::Many(all) = self else { return };
            all.insert(bone.at.span, bone);
            return;
        };
        match all.binary_search_by_key(&bone.at.span, |bone| bone.at.span) {
            Ok(at) => all[at] = bone,
            Err(_) if all.len() >= Self::LISTED => {
                let listed = std::mem::take(all).into_iter().chain([bone]);
                *self = Self::Many(listed.map(|bone| (bone.at.span, bone)).collect());
            }
            Err(at) => {
                // A trace mostly comes whole: what is allocated is what it needs.
                all.reserve_exact(1);
                all.insert(at, bone);
            }
        }
    }

    /// In the order of their span ids.
    pub fn iter(&self) -> impl Iterator<Item = &Bone> {
        let (few, many) = match self {
            Self::Few(all) => (Some(all.iter()), None),
            Self::Many(all) => (None, Some(all.values())),
        };
        few.into_iter().flatten().chain(many.into_iter().flatten())
    }
}

/// Bones of one trace with their children. A parent that never arrived simply ends the climb.
pub struct Ancestry<'a> {
    bones: &'a Bones,
    /// (parent, child), sorted.
    children: Vec<(SpanId, SpanId)>,
}

/// No real trace is deeper; a hostile one is cut here instead of being walked in squares.
const DEEPEST: usize = 256;

impl<'a> Ancestry<'a> {
    pub fn new(bones: &'a Bones) -> Self {
        let child = |bone: &Bone| Some((bone.parent?, bone.at.span));
        let mut children: Vec<_> = bones.iter().filter_map(child).collect();
        children.sort_unstable();
        Self { bones, children }
    }

    fn children(&self, parent: SpanId) -> impl DoubleEndedIterator<Item = SpanId> + '_ {
        let first = self.children.partition_point(|(of, _)| *of < parent);
        let last = self.children.partition_point(|(of, _)| *of <= parent);
        self.children[first..last].iter().map(|(_, child)| *child)
    }

    pub fn bone(&self, span: SpanId) -> Option<&'a Bone> {
        self.bones.get(span)
    }

    /// The spans strictly above `span`, nearest first; the last may never have arrived.
    pub fn above(&self, span: SpanId) -> impl Iterator<Item = SpanId> + '_ {
        let mut seen = vec![span];
        let mut next = self.bones.get(span).and_then(|bone| bone.parent);
        std::iter::from_fn(move || {
            let here = next.filter(|id| seen.len() < DEEPEST && !seen.contains(id))?;
            seen.push(here);
            next = self.bones.get(here).and_then(|bone| bone.parent);
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
        let mut queue: Vec<SpanId> = self.children(span).collect();
        while let Some(id) = queue.pop() {
            let Some(bone) = self.bones.get(id).filter(|_| seen.insert(id)) else { continue };
            if stop(bone) {
                continue;
            }
            found.push(bone);
            queue.extend(self.children(id));
        }
        found.sort_unstable_by_key(|bone| (bone.start, bone.at.span));
        found
    }
}
