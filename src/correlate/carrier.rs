//! What carried a request over HTTP (judgment.md §4.3): the caller's own POSTs below the asking
//! half and above the first HTTP server span, the last one deciding; or the HTTP server span in
//! which an answering half starts. What a tool itself calls is never transport of its caller.

use std::collections::{BTreeMap, BTreeSet};

use super::ancestry::Ancestry;
use super::pairs::Pair;
use super::side::Side;
use crate::model::case::HttpSeen;
use crate::model::fact::{Bone, End, Http};
use crate::model::findings::{Code, Finding};
use crate::model::ids::{Nanos, SpanId};
use crate::model::words::Transport;

pub const SPAN_KIND_SERVER: u8 = 2;
pub const SPAN_KIND_CLIENT: u8 = 3;

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Carrier {
    pub seen: Option<HttpSeen>,
    /// HTTP spans stand above or below the request: it did not go over stdio.
    pub over_http: bool,
    pub findings: Vec<Finding>,
}

/// HTTP statuses in log records, by the span they speak of.
pub type HttpLogs = BTreeMap<SpanId, Vec<(Nanos, Http)>>;

struct Attempt {
    http: Http,
    start: Nanos,
    end: Nanos,
    span: SpanId,
}

/// `halves` are the spans that are some request's: the walk never passes into another request.
pub fn carrier(
    pair: &Pair,
    tree: &Ancestry<'_>,
    halves: &BTreeSet<SpanId>,
    logs: &HttpLogs,
    skew: Nanos,
) -> Carrier {
    let mut out = Carrier::default();
    let own: BTreeSet<SpanId> = pair.asking.iter().flat_map(|side| side.spans()).collect();
    if let Some(asking) = &pair.asking {
        let attempts = posts_below(asking, &own, tree, halves, logs);
        out.over_http = !attempts.is_empty();
        if let Some(last) = attempts.iter().filter(|a| a.tells()).max_by_key(|a| a.order()) {
            out.seen = Some(last.seen(End::Asking));
        }
        let outlived = |a: &&Attempt| {
            asking.ended && asking.stop >= asking.start && a.end > asking.stop.saturating_add(skew)
        };
        let late: Vec<SpanId> = attempts.iter().filter(outlived).map(|a| a.span).collect();
        if !late.is_empty() {
            out.findings.push(Finding::new(Code::StreamOutlivesRequest, late));
        }
    }
    if let Some(server) =
        pair.answering.as_ref().and_then(|side| server_above(side, tree, halves, skew))
    {
        out.over_http = true;
        let seen = server.http.filter(|http| http.status != 0).map(|http| HttpSeen {
            status: http.status,
            fault: http.fault,
            end: server.end,
            by: End::Answering,
        });
        out.seen = out.seen.or(seen);
    }
    out.findings.extend(label_contradicted(pair, out.over_http));
    out
}

impl Attempt {
    /// An exchange that shows how it went.
    fn tells(&self) -> bool {
        self.http.status != 0 || self.http.fault.is_some()
    }

    fn order(&self) -> (Nanos, Nanos, SpanId) {
        (self.start, self.end, self.span)
    }

    fn seen(&self, by: End) -> HttpSeen {
        HttpSeen { status: self.http.status, fault: self.http.fault, end: self.end, by }
    }
}

fn posts_below(
    asking: &Side,
    own: &BTreeSet<SpanId>,
    tree: &Ancestry<'_>,
    halves: &BTreeSet<SpanId>,
    logs: &HttpLogs,
) -> Vec<Attempt> {
    let other_request =
        |bone: &Bone| halves.contains(&bone.at.span) && !own.contains(&bone.at.span);
    let at_server = |bone: &Bone| bone.kind == SPAN_KIND_SERVER && bone.http.is_some();
    let mut found = BTreeMap::new();
    for span in own {
        let below = tree.below(*span, |bone| other_request(bone) || at_server(bone));
        for bone in &below {
            let http = bone.http.filter(|http| http.carries && bone.kind == SPAN_KIND_CLIENT);
            if let Some(http) = http.filter(|_| bone.process.key == asking.process().key) {
                let (start, end) = (bone.start, bone.end);
                found.insert(bone.at.span, Attempt { http, start, end, span: bone.at.span });
            }
        }
        let here = std::iter::once(*span).chain(below.iter().map(|bone| bone.at.span));
        for span in here.filter(|span| !found.contains_key(span)).collect::<Vec<_>>() {
            if let Some((time, http)) = logs.get(&span).and_then(|all| all.last()) {
                let (start, end) = (*time, *time);
                found.insert(span, Attempt { http: *http, start, end, span });
            }
        }
    }
    found.into_values().collect()
}

/// The HTTP server span that carries an answering half: the half starts inside it.
fn server_above<'a>(
    side: &Side,
    tree: &Ancestry<'a>,
    halves: &BTreeSet<SpanId>,
    skew: Nanos,
) -> Option<&'a Bone> {
    let own = side.spans();
    own.iter().find_map(|span| {
        tree.above(*span)
            .take_while(|id| !halves.contains(id) || own.contains(id))
            .filter_map(|id| tree.bone(id))
            .find(|bone| bone.kind == SPAN_KIND_SERVER && bone.http.is_some())
            .filter(|bone| {
                side.start.saturating_add(skew) >= bone.start
                    && side.start <= bone.end.saturating_add(skew)
            })
    })
}

/// Says stdio, goes over HTTP.
fn label_contradicted(pair: &Pair, over_http: bool) -> Option<Finding> {
    let liars: Vec<SpanId> = pair
        .asking
        .iter()
        .chain(&pair.answering)
        .filter(|side| over_http && side.half.transport == Some(Transport::Stdio))
        .map(|side| side.at().span)
        .collect();
    (!liars.is_empty()).then(|| Finding::new(Code::TransportLabelContradictsParent, liars))
}
