//! Which tool names a client instance reads from which servers: what `tool_name_collision` asks.
//! Counted as listings come and go, for every session record asks.

use std::collections::{BTreeMap, BTreeSet};

use super::scope_view::ScopeView;
use super::scopes::ScopeEntry;
use super::tables::Tables;
use crate::correlate::chain::Chain;
use crate::correlate::scope::{ScopeKey, ServerName};
use crate::model::ids::{Digest16, Name};

/// By client instance, tool and server: how many scopes show it.
#[derive(Default)]
pub struct Listed(BTreeMap<Digest16, BTreeMap<(Name, Name), usize>>);

/// Whose listing it is: a client instance and a server.
pub type Owner = (Digest16, Name);

impl Listed {
    fn count(&mut self, (client, server): &Owner, tools: &BTreeSet<Name>, add: bool) {
        let of_client = self.0.entry(*client).or_default();
        for tool in tools {
            let of_server = (tool.clone(), server.clone());
            let scopes = of_client.get(&of_server).copied().unwrap_or_default();
            match if add { scopes + 1 } else { scopes.saturating_sub(1) } {
                0 => drop(of_client.remove(&of_server)),
                scopes => drop(of_client.insert(of_server, scopes)),
            }
        }
        if of_client.is_empty() {
            self.0.remove(client);
        }
    }

    /// Whether the client reads a tool of this name from the server and from another one.
    pub fn collides(&self, (client, server): &Owner, tool: &Name) -> bool {
        let Some(tools) = self.0.get(client) else { return false };
        let of_tool = tools.range((tool.clone(), Name::new(""))..);
        let servers = of_tool.take_while(|((name, _), _)| name == tool).take(2).count();
        servers > 1 && tools.contains_key(&(tool.clone(), server.clone()))
    }
}

/// Names that any traversal of a scope listed.
pub fn tool_names(view: &ScopeView) -> BTreeSet<Name> {
    let traversals = view.timeline.traversals.iter();
    traversals.flat_map(|traversal| traversal.tools()).map(|(name, _)| name).collect()
}

/// Whether two views list the same by the same pages.
fn lists_alike(old: &ScopeView, new: &ScopeView) -> bool {
    let (old, new) = (&old.timeline.traversals, &new.timeline.traversals);
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old.lists_as(new))
}

fn owner(scope: &ScopeEntry, view: &ScopeView) -> Option<Owner> {
    let client = |chain: &std::sync::Arc<Chain>| chain.client().map(|side| side.process().key);
    let client = scope.controls().filter_map(client).min()?;
    Some((client, view.server.as_ref().map(ServerName::name)?.clone()))
}

impl Tables {
    /// Counts what a scope lists by a view that is about to become its own.
    pub(super) fn relist(&mut self, key: &ScopeKey, new: &ScopeView) {
        let Some(scope) = self.scopes.get_mut(key) else { return };
        let is = owner(scope, new);
        if scope.listed_as == is && lists_alike(&scope.view, new) {
            return;
        }
        let was = std::mem::replace(&mut scope.listed_as, is.clone());
        if let Some(owner) = was {
            self.listed.count(&owner, &tool_names(&scope.view), false);
        }
        if let Some(owner) = is {
            self.listed.count(&owner, &tool_names(new), true);
        }
    }

    /// Takes back what a scope that is forgotten listed.
    pub(super) fn unlist(&mut self, scope: &ScopeEntry) {
        if let Some(owner) = &scope.listed_as {
            self.listed.count(owner, &tool_names(&scope.view), false);
        }
    }
}
