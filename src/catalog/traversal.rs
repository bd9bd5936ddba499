//! Traversals of a catalog (judgment.md §6): chains of `tools/list` requests, each cursor equal to
//! the one handed out before it, starting without a cursor.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::projection::{offer_digest, registry_digest};
use crate::model::digest::{Definition, Digest};
use crate::model::fact::{Definitions, ListFacts};
use crate::model::ids::{Digest16, Name, Nanos, SpanId};

/// One `tools/list` request.
#[derive(Clone, PartialEq, Debug)]
pub struct Page {
    pub span: SpanId,
    pub start: Nanos,
    pub stop: Nanos,
    /// A result came, or at least nothing says that it failed. `None` while it runs.
    pub answered: Option<bool>,
    pub auth: Option<Digest16>,
    pub facts: ListFacts,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reached {
    /// The last page had no next cursor.
    End,
    /// A cursor was left, or a page behind it failed or runs.
    Open,
    /// Its first page runs.
    Begun,
    /// Its first page failed.
    Failed,
    /// A cursor came that had been seen before.
    Loop,
    /// Nothing is said of pages, or a page in the middle was seen by nobody.
    Unknown,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Traversal {
    pub start: Nanos,
    /// Of its last page.
    pub stop: Nanos,
    pub reached: Reached,
    pub auth: Option<Digest16>,
    pub pages: Vec<Page>,
}

/// Sorts the pages into traversals, oldest first.
pub fn traversals(mut pages: Vec<Page>) -> Vec<Traversal> {
    pages.sort_by_key(|page| (page.start, page.span));
    let mut all: Vec<Traversal> = Vec::new();
    for page in pages {
        match all.iter_mut().rev().find(|traversal| continues(traversal, &page)) {
            Some(traversal) => traversal.push(page),
            None => all.push(Traversal::begin(page)),
        }
    }
    all
}

/// Whether a page is the next one of a traversal: its cursor is the one handed out last, be it that
/// a page asked for by it failed.
fn continues(traversal: &Traversal, page: &Page) -> bool {
    let handed_out = traversal.answered().last().and_then(|last| last.facts.next_cursor.flatten());
    page.facts.cursor.is_some()
        && page.facts.cursor == handed_out
        && traversal.auth == page.auth
        && traversal.reached == Reached::Open
}

impl Traversal {
    fn begin(page: Page) -> Self {
        // A first page that was itself asked for with a cursor has a predecessor nobody saw; so may
        // one of which only the answer is shown.
        let headless = page.facts.cursor.is_some() || page.facts.headless;
        let mut traversal = Self {
            start: page.start,
            stop: page.stop,
            reached: Reached::Open,
            auth: page.auth,
            // Most have one.
            pages: Vec::with_capacity(1),
        };
        traversal.push(page);
        if headless {
            traversal.reached = Reached::Unknown;
        }
        traversal
    }

    fn push(&mut self, page: Page) {
        let seen: BTreeSet<Digest16> =
            self.pages.iter().filter_map(|page| page.facts.next_cursor.flatten()).collect();
        self.stop = page.stop;
        self.reached = match (page.answered, page.facts.next_cursor) {
            (None, _) if self.pages.is_empty() => Reached::Begun,
            (Some(false), _) if self.pages.is_empty() => Reached::Failed,
            (None | Some(false), _) => Reached::Open,
            (Some(true), None) => Reached::Unknown,
            (Some(true), Some(None)) => Reached::End,
            (Some(true), Some(Some(cursor)))
                if seen.contains(&cursor) || page.facts.cursor == Some(cursor) =>
            {
                Reached::Loop
            }
            (Some(true), Some(Some(_))) => Reached::Open,
        };
        self.pages.push(page);
    }

    /// The pages that came.
    fn answered(&self) -> impl DoubleEndedIterator<Item = &Page> {
        self.pages.iter().filter(|page| page.answered == Some(true))
    }

    /// Whether a cursor was left that nobody used.
    pub fn left(&self) -> bool {
        let last = self.pages.last();
        self.reached == Reached::Open && last.is_some_and(|page| page.answered == Some(true))
    }

    pub fn complete(&self) -> bool {
        self.reached == Reached::End
    }

    /// How far it had come by a time after its start: what came later had not been seen.
    pub fn reached_by(&self, at: Nanos) -> Reached {
        match self.pages.first() {
            Some(first) if first.stop > at => Reached::Begun,
            _ if self.stop > at => Reached::Open,
            _ => self.reached,
        }
    }

    /// Whether anything is said of its pages.
    pub fn paged(&self) -> bool {
        self.pages.iter().any(|page| page.facts.paged())
    }

    /// The registry digest: as stated on the newest page, else computed from the definitions of
    /// all pages.
    pub fn discovered(&self) -> Option<Digest> {
        let stated = self.pages.iter().rev().find_map(|page| page.facts.discovered.clone());
        stated.or_else(|| {
            if self.reached != Reached::End {
                return None;
            }
            let pages = self.answered().map(|page| page.facts.definitions.as_ref());
            let pages: Vec<&Arc<Definitions>> = pages.collect::<Option<_>>()?;
            match pages[..] {
                [page] => page.registry(registry_digest),
                _ => {
                    let tools = pages.iter().flat_map(|page| &page.tools).cloned();
                    registry_digest(&tools.collect::<Vec<Definition>>())
                }
            }
        })
    }

    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.pages.iter().filter_map(|page| page.facts.definitions.as_ref()).flat_map(|d| &d.tools)
    }

    /// Names of the listed tools in the order of the listing, with the digest where one is known.
    pub fn tools(&self) -> Vec<(Name, Option<Digest>)> {
        let mut all = Vec::new();
        for page in &self.pages {
            match &page.facts.definitions {
                Some(read) => {
                    all.extend(
                        read.tools.iter().map(|tool| (tool.name.clone(), tool.digest.clone())),
                    );
                }
                None => all.extend(
                    page.facts
                        .tools
                        .iter()
                        .map(|(name, digest)| (name.clone(), Some(digest.clone()))),
                ),
            }
        }
        all
    }

    /// Whether it lists the same by the same pages, as far as that is told without a look at each
    /// tool: what many list alike is kept once.
    pub fn lists_as(&self, other: &Self) -> bool {
        let alike =
            |(one, other): (&Page, &Page)| match (&one.facts.definitions, &other.facts.definitions)
            {
                (Some(one), Some(other)) => Arc::ptr_eq(one, other),
                (None, None) => one.facts.tools == other.facts.tools,
                _ => false,
            };
        self.pages.len() == other.pages.len() && self.pages.iter().zip(&other.pages).all(alike)
    }

    /// Whether any tool is listed.
    pub fn lists_any(&self) -> bool {
        self.pages.iter().any(|page| match &page.facts.definitions {
            Some(read) => !read.tools.is_empty(),
            None => !page.facts.tools.is_empty(),
        })
    }

    /// Size of the registry: as stated, else as listed.
    pub fn tool_count(&self) -> Option<u64> {
        let stated = self.pages.iter().rev().find_map(|page| page.facts.tool_count);
        let listed = self.tools().len() as u64;
        stated.or((listed > 0).then_some(listed))
    }

    /// When the shortest hint of its pages runs out. A hint of zero means "never fresh" and is no
    /// promise that could be broken.
    pub fn fresh_until(&self) -> Option<Nanos> {
        let hints = self.pages.iter().filter_map(|page| {
            page.facts.ttl.filter(|ttl| *ttl > 0).map(|ttl| page.stop.saturating_add(ttl))
        });
        hints.min()
    }

    pub fn spans(&self) -> Vec<SpanId> {
        self.pages.iter().map(|page| page.span).collect()
    }

    /// Whether what a model was offered is what this listing said, tool by tool on name,
    /// description and input schema. `None` where the two share no name, or nothing is known.
    pub fn offered_alike(&self, offered: &Definitions) -> Option<bool> {
        let pages = self.pages.iter().filter_map(|page| page.facts.definitions.as_ref());
        let mut listed: BTreeMap<&Name, &Option<Digest>> = BTreeMap::new();
        for (tool, offer) in pages.flat_map(|page| offers(page)) {
            listed.entry(&tool.name).or_insert(offer);
        }
        let mut shared =
            offers(offered).filter_map(|(tool, offer)| Some(*listed.get(&tool.name)? == offer));
        let first = shared.next()?;
        Some(first && shared.all(|alike| alike))
    }
}

/// Tools, and what a model is shown of each.
fn offers(page: &Definitions) -> impl Iterator<Item = (&Definition, &Option<Digest>)> {
    page.tools.iter().zip(page.offers(offer_digest))
}

/// Shared, because scopes hand their timeline to every call.
pub type Traversals = Arc<Vec<Traversal>>;
