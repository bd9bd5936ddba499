//! Definitions kept once: what many clients list alike is one value, however often it was read.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::digest::{Definition, Digest};
use crate::model::fact::{Definitions, Fact, Says};
use crate::model::ids::Digest16;

/// Pages by the digests of their tools, and tools by their digest.
#[derive(Default)]
pub struct Interned {
    pages: BTreeMap<Digest16, Arc<Definitions>>,
    tools: BTreeMap<[u8; 32], Definition>,
    bytes: usize,
}

/// What a page takes beside its tools, and each tool beside its text, in bytes, by estimate.
const PAGE: usize = 128;
const TOOL: usize = 256;

fn page_size(page: &Definitions) -> usize {
    PAGE + page.tools.len() * size_of::<Definition>()
}

fn tool_size(tool: &Definition) -> usize {
    TOOL + tool.projected.size()
}

impl Interned {
    /// The same fact, its definitions shared with all that were read before.
    pub fn share(&mut self, mut fact: Arc<Fact>) -> Arc<Fact> {
        if fact.definitions().is_none() {
            return fact;
        }
        if let Some(page) = definitions_mut(Arc::make_mut(&mut fact)) {
            *page = self.page(page.clone());
        }
        fact
    }

    fn page(&mut self, page: Arc<Definitions>) -> Arc<Definitions> {
        let Some(key) = key_of(&page) else { return page };
        if let Some(known) = self.pages.get(&key) {
            return known.clone();
        }
        let tools = page.tools.iter().map(|tool| self.tool(tool)).collect();
        let page = Arc::new(Definitions::new(tools));
        self.bytes += page_size(&page);
        self.pages.insert(key, page.clone());
        page
    }

    fn tool(&mut self, tool: &Definition) -> Definition {
        let Some(Digest::Tool(digest)) = &tool.digest else { return tool.clone() };
        let bytes = &mut self.bytes;
        let known = self.tools.entry(*digest).or_insert_with(|| {
            *bytes += tool_size(tool);
            tool.clone()
        });
        known.clone()
    }

    /// What all of them take, in bytes, by estimate; what nobody holds leaves with the next sweep.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Drops what nobody holds any more.
    pub fn sweep(&mut self) {
        self.pages.retain(|_, page| Arc::strong_count(page) > 1);
        self.tools.retain(|_, tool| Arc::strong_count(&tool.projected) > 1);
        let tools: usize = self.tools.values().map(tool_size).sum();
        self.bytes = tools + self.pages.values().map(|page| page_size(page)).sum::<usize>();
    }
}

/// A name for a page by what its tools are; `None` where a tool has no digest of ours.
fn key_of(page: &Definitions) -> Option<Digest16> {
    let digest = |tool: &Definition| match &tool.digest {
        Some(Digest::Tool(digest)) => Some(*digest),
        _ => None,
    };
    let digests: Option<Vec<[u8; 32]>> = page.tools.iter().map(digest).collect();
    let digests = digests?;
    let parts: Vec<&[u8]> = digests.iter().map(|digest| &digest[..]).collect();
    Some(Digest16::of(&parts))
}

fn definitions_mut(fact: &mut Fact) -> Option<&mut Arc<Definitions>> {
    match &mut fact.says {
        Says::Half(half) | Says::Started(half) => {
            Arc::make_mut(half).list.as_mut()?.definitions.as_mut()
        }
        Says::Model { tools } => Some(tools),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::listing::tools_from_json;

    fn page(tools: &str) -> Arc<Definitions> {
        Arc::new(Definitions::new(tools_from_json(tools).unwrap()))
    }

    #[test]
    fn what_is_listed_alike_is_kept_once_and_dropped_with_its_last_holder() {
        let mut interned = Interned::default();
        let one =
            interned.page(page(r#"[{"name":"a","inputSchema":{}},{"name":"b","inputSchema":{}}]"#));
        let same =
            interned.page(page(r#"[{"name":"a","inputSchema":{}},{"name":"b","inputSchema":{}}]"#));
        assert!(Arc::ptr_eq(&one, &same));
        let other =
            interned.page(page(r#"[{"name":"a","inputSchema":{}},{"name":"c","inputSchema":{}}]"#));
        assert!(!Arc::ptr_eq(&one, &other));
        assert!(Arc::ptr_eq(&one.tools[0].projected, &other.tools[0].projected));
        drop((one, same));
        interned.sweep();
        assert_eq!((interned.pages.len(), interned.tools.len()), (1, 2));
        let whole = interned.bytes();
        drop(other);
        interned.sweep();
        assert!(whole > 0 && interned.bytes() == 0, "{whole}");
        // A tool without a digest names no page.
        assert!(key_of(&page(r#"[{"name":"a"}]"#)).is_none());
    }
}
