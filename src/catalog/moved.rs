//! What of a server's references is another than it was, for those who must look again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::reference::{Lines, Reading, References};
use crate::model::digest::Digest;
use crate::model::ids::{Name, Nanos};
use crate::model::policy::Context;

/// How the readings of one tool differ from what they were.
#[derive(Default)]
pub struct Moved<'a> {
    /// The first time for which anything else was read.
    pub from: Nanos,
    /// Other digests have a definition.
    pub definitions: bool,
    /// Contexts of which the first reading is another.
    pub first_of: BTreeSet<&'a Context>,
}

impl References {
    /// What of each tool is another than it was. Contexts that share their lines are not looked at.
    pub fn moved_since<'a>(&'a self, old: &'a Self) -> BTreeMap<&'a Name, Moved<'a>> {
        static NONE: Lines = Lines::new();
        let contexts: BTreeSet<&Context> =
            self.contexts.keys().chain(old.contexts.keys()).collect();
        let mut all: BTreeMap<&Name, Moved<'a>> = BTreeMap::new();
        for context in contexts {
            let (was, is) = (old.contexts.get(context), self.contexts.get(context));
            if was.zip(is).is_some_and(|(was, is)| Arc::ptr_eq(was, is)) {
                continue;
            }
            let (was, is) = (was.map_or(&NONE, |was| was), is.map_or(&NONE, |is| is));
            for (tool, from, first) in differ(was, is) {
                let new = || Moved { from, ..Moved::default() };
                let moved = all.entry(tool).or_insert_with(new);
                moved.from = moved.from.min(from);
                if first {
                    moved.first_of.insert(context);
                }
                let unknown = |to: &Self, digest: &Digest| to.definition(tool, digest).is_none();
                moved.definitions |= defined(is, tool).any(|digest| unknown(old, digest))
                    || defined(was, tool).any(|digest| unknown(self, digest));
            }
        }
        all
    }
}

/// Tools whose readings differ, since when, and whether from the first on.
fn differ<'a>(was: &'a Lines, is: &'a Lines) -> impl Iterator<Item = (&'a Name, Nanos, bool)> {
    let tools: BTreeSet<&Name> = was.keys().chain(is.keys()).collect();
    tools.into_iter().filter_map(move |tool| {
        let of = |lines: &'a Lines| lines.get(tool).map_or(&[][..], Vec::as_slice);
        let (was, is): (&[Reading], &[Reading]) = (of(was), of(is));
        let same = was.iter().zip(is).take_while(|(was, is)| was == is).count();
        let times = was.get(same).into_iter().chain(is.get(same)).map(|reading| reading.at);
        Some((tool, times.min()?, same == 0))
    })
}

/// Digests of which a line shows the definition.
fn defined<'a>(lines: &'a Lines, tool: &str) -> impl Iterator<Item = &'a Digest> {
    let readings = lines.get(tool).map_or(&[][..], Vec::as_slice).iter();
    let shown = readings.filter(|reading| reading.definition.is_some());
    shown.filter_map(|reading| reading.digest.as_ref())
}
