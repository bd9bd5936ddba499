//! Takes exports apart and puts them together, item by item under their origin.
//!
//! An origin is every byte of a `ResourceSpans` but its scopes and every byte of a `ScopeSpans`
//! but its spans (and the like of other signals). Promises: items keep their bytes and, within an
//! origin, their order; each origin is written once; sizes are computed before bytes are written.

use std::collections::BTreeMap;

use super::fields::{
    Fields, WireValue, bytes_field_len, close_message, open_message, put_bytes_field, put_header,
};
use super::scan::{ResourceView, ScopeView, resources};

/// Number of the resources in a request, and of scopes and items in what holds them.
const RESOURCES: u32 = 1;
const CHILDREN: u32 = 2;

/// An item and where it comes from.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// The resource's origin: [`ResourceView::origin`].
    pub resource: &'a [u8],
    /// The scope's origin: [`ScopeView::origin`].
    pub scope: &'a [u8],
    /// The body of the item: a `Span`, a `LogRecord`.
    pub item: &'a [u8],
}

/// One origin's children in the order in which they were first seen.
struct Group<'a, T> {
    origin: &'a [u8],
    children: Vec<T>,
}

/// Groups by origin, in order of first appearance.
fn group<'a, T>(pairs: impl Iterator<Item = (&'a [u8], T)>) -> Vec<Group<'a, T>> {
    let mut groups: Vec<Group<'a, T>> = Vec::new();
    let mut places: BTreeMap<&[u8], usize> = BTreeMap::new();
    let mut last = usize::MAX;
    for (origin, child) in pairs {
        // Neighbours usually share their origin, even its address: no search for them.
        let same = groups.get(last).is_some_and(|group| group.origin == origin);
        if !same {
            last = *places.entry(origin).or_insert(groups.len());
        }
        if last == groups.len() {
            groups.push(Group { origin, children: Vec::new() });
        }
        groups[last].children.push(child);
    }
    groups
}

fn scope_len(scope: &Group<'_, &[u8]>) -> usize {
    let items = scope.children.iter().map(|item| bytes_field_len(CHILDREN, item.len()));
    scope.origin.len() + items.sum::<usize>()
}

/// An export request from items of any origins; `prefix` is what stands beside its resources.
fn assemble(prefix: &[u8], parts: &[Part<'_>]) -> Vec<u8> {
    let by_resource = group(parts.iter().map(|part| (part.resource, (part.scope, part.item))));
    let mut total = prefix.len();
    let mut sized = Vec::with_capacity(by_resource.len());
    for resource in by_resource {
        let scopes = group(resource.children.into_iter());
        let lengths: Vec<usize> = scopes.iter().map(scope_len).collect();
        let fields = lengths.iter().map(|length| bytes_field_len(CHILDREN, *length));
        let length = resource.origin.len() + fields.sum::<usize>();
        total += bytes_field_len(RESOURCES, length);
        sized.push((resource.origin, length, scopes, lengths));
    }
    let mut out = Vec::with_capacity(total);
    out.extend_from_slice(prefix);
    for (origin, length, scopes, lengths) in sized {
        put_header(&mut out, RESOURCES, length);
        out.extend_from_slice(origin);
        for (scope, length) in scopes.into_iter().zip(lengths) {
            put_header(&mut out, CHILDREN, length);
            out.extend_from_slice(scope.origin);
            scope.children.iter().for_each(|item| put_bytes_field(&mut out, CHILDREN, item));
        }
    }
    out
}

/// An export request from items of any origins: each resource and scope once, sized exactly.
pub fn regroup(parts: &[Part<'_>]) -> Vec<u8> {
    assemble(&[], parts)
}

/// What remains of an export without the items that `held` names by their index in the export. A
/// scope or resource that loses its last item goes too; everything else keeps its bytes.
pub fn remove_items(export: &[u8], mut held: impl FnMut(usize) -> bool) -> Vec<u8> {
    let mut rest = Vec::with_capacity(export.len());
    let mut index = 0;
    filter(export, RESOURCES, &mut rest, &mut |resource, rest| {
        filter(resource, CHILDREN, rest, &mut |scope, rest| {
            filter(scope, CHILDREN, rest, &mut |_, _| {
                index += 1;
                if held(index - 1) { Child::Gone } else { Child::Whole }
            })
        })
    });
    rest.shrink_to_fit();
    rest
}

/// What happened to a child message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Child {
    Whole,
    /// Its new payload was appended.
    Edited,
    Gone,
}

/// Appends `bytes` with its children of one number filtered, and says what became of it. A child's
/// filter may append a payload only if it answers [`Child::Edited`].
fn filter(
    bytes: &[u8],
    number: u32,
    out: &mut Vec<u8>,
    child: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> Child,
) -> Child {
    let start = out.len();
    let (mut copied, mut kept, mut lost, mut edited) = (0, 0usize, 0usize, false);
    for field in Fields::new(bytes).flatten() {
        let WireValue::Bytes(body) = field.value else { continue };
        if field.number != number {
            continue;
        }
        out.extend_from_slice(&bytes[copied..field.range.start]);
        copied = field.range.start;
        let before = out.len();
        let mark = open_message(out, number);
        match child(body, out) {
            Child::Whole => {
                out.truncate(before);
                kept += 1;
                continue;
            }
            Child::Edited => {
                close_message(out, mark);
                kept += 1;
                edited = true;
            }
            Child::Gone => {
                out.truncate(before);
                lost += 1;
            }
        }
        copied = field.range.end;
    }
    if lost == 0 && !edited {
        // The outermost message is copied all the same; inner ones are copied by their parent.
        out.truncate(start);
        if start == 0 {
            out.extend_from_slice(bytes);
        }
        return Child::Whole;
    }
    if kept == 0 && start > 0 {
        out.truncate(start);
        return Child::Gone;
    }
    out.extend_from_slice(&bytes[copied..]);
    Child::Edited
}

/// An export in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Requests of at most the wanted size, in order.
    pub parts: Vec<Vec<u8>>,
    /// Indices in the export of items that are over the size all alone, and in no part.
    pub too_big: Vec<usize>,
}

/// Splits an export into requests of at most `max_bytes`, item by item under its origin. What
/// stands beside the resources (a profiles dictionary) is repeated in each part.
pub fn split(export: &[u8], max_bytes: usize) -> Split {
    if export.len() <= max_bytes {
        return Split { parts: vec![export.to_vec()], too_big: Vec::new() };
    }
    let prefix = beside_resources(export);
    let mut result = Split::default();
    let mut index = 0;
    let origins: Vec<_> = resources(export).map(|resource| (resource, resource.origin())).collect();
    let scopes: Vec<Vec<_>> = origins
        .iter()
        .map(|(resource, _)| resource.scopes().map(|scope| (scope, scope.origin())).collect())
        .collect();
    let mut filling = Filling::new(&prefix);
    for ((_, resource), scopes) in origins.iter().zip(&scopes) {
        for (view, scope) in scopes {
            for (item, _) in view.items() {
                let part = Part { resource, scope, item };
                if !filling.add(part, max_bytes) {
                    result.parts.extend(filling.take());
                    if !filling.add(part, max_bytes) {
                        result.too_big.push(index);
                    }
                }
                index += 1;
            }
        }
    }
    result.parts.extend(filling.take());
    result
}

/// The part of a split export that is being filled, and its size so far.
struct Filling<'a> {
    prefix: &'a [u8],
    parts: Vec<Part<'a>>,
    /// Bytes of finished resources; payload of the open resource without its open scope; payload
    /// of the open scope.
    finished: usize,
    resource: usize,
    scope: usize,
}

impl<'a> Filling<'a> {
    fn new(prefix: &'a [u8]) -> Self {
        Filling { prefix, parts: Vec::new(), finished: prefix.len(), resource: 0, scope: 0 }
    }

    /// Takes the item if the request stays within `max_bytes`.
    fn add(&mut self, part: Part<'a>, max_bytes: usize) -> bool {
        let (mut finished, mut resource, mut scope) = (self.finished, self.resource, self.scope);
        let last = self.parts.last();
        let same_resource = last.is_some_and(|last| std::ptr::eq(last.resource, part.resource));
        let same_scope = same_resource && last.is_some_and(|l| std::ptr::eq(l.scope, part.scope));
        if !same_resource {
            if last.is_some() {
                finished += bytes_field_len(RESOURCES, resource + bytes_field_len(CHILDREN, scope));
            }
            (resource, scope) = (part.resource.len(), part.scope.len());
        } else if !same_scope {
            resource += bytes_field_len(CHILDREN, scope);
            scope = part.scope.len();
        }
        scope += bytes_field_len(CHILDREN, part.item.len());
        let open = bytes_field_len(RESOURCES, resource + bytes_field_len(CHILDREN, scope));
        if finished + open > max_bytes {
            return false;
        }
        (self.finished, self.resource, self.scope) = (finished, resource, scope);
        self.parts.push(part);
        true
    }

    /// The finished part, if it holds anything.
    fn take(&mut self) -> Option<Vec<u8>> {
        let full = std::mem::replace(self, Filling::new(self.prefix));
        (!full.parts.is_empty()).then(|| assemble(full.prefix, &full.parts))
    }
}

/// The fields of a request that are not its resources.
fn beside_resources(export: &[u8]) -> Vec<u8> {
    Fields::new(export)
        .flatten()
        .filter(|field| field.number != RESOURCES)
        .flat_map(|field| export[field.range].iter().copied())
        .collect()
}

/// Several requests of one signal as one: legal for traces, logs and metrics, never for profiles.
pub fn concat<B: AsRef<[u8]>>(requests: &[B]) -> Vec<u8> {
    let total = requests.iter().map(|request| request.as_ref().len()).sum();
    let mut out = Vec::with_capacity(total);
    requests.iter().for_each(|request| out.extend_from_slice(request.as_ref()));
    out
}

/// One item of an export with where it stands.
#[derive(Clone, Copy)]
pub struct Item<'a> {
    /// Counted through the whole export, from 0.
    pub index: usize,
    pub resource: ResourceView<'a>,
    pub scope: ScopeView<'a>,
    /// The body of the item.
    pub bytes: &'a [u8],
    /// Where the body begins in the export.
    pub offset: usize,
}

/// Every item of an export in order: spans, log records, metrics or profiles.
pub fn items(export: &[u8]) -> impl Iterator<Item = Item<'_>> {
    resources(export)
        .flat_map(|resource| resource.scopes().map(move |scope| (resource, scope)))
        .flat_map(|(resource, scope)| scope.items().map(move |item| (resource, scope, item)))
        .enumerate()
        .map(|(index, (resource, scope, (bytes, offset)))| Item {
            index,
            resource,
            scope,
            bytes,
            offset,
        })
}
