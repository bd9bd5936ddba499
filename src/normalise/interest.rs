//! Which spans are worth reading: most spans of a pipeline are nobody's MCP, and one substring
//! search of their bytes shows it.
//!
//! Promises: a span that is passed over has no fact; only its bone is kept.

use memchr::memmem;

use crate::model::policy::Policy;
use crate::wire::scan::SpanView;

/// Every span that a dialect or the evidence attributes can recognise has one of these in its
/// bytes, or its instrumentation scope has.
const MARKS: &[&str] = &[
    "mcp",
    "MCP",
    "gen_ai.",
    "odelcontextprotocol",
    "odelContextProtocol",
    "ai.toolCall",
    "ai.prompt.tools",
    "openinference.",
    "serve_inner",
    "jsonrpc",
];

/// Decides by bytes alone, with searchers that are built once an export.
pub struct Interest {
    marks: Vec<memmem::Finder<'static>>,
    http: memmem::Finder<'static>,
    /// A configured rule may match any span.
    all: bool,
}

impl Interest {
    pub fn new(policy: &Policy) -> Self {
        Self {
            marks: MARKS.iter().map(|mark| memmem::Finder::new(*mark)).collect(),
            http: memmem::Finder::new("http"),
            all: !policy.evidence.is_empty(),
        }
    }

    fn marked(&self, bytes: &[u8]) -> bool {
        self.marks.iter().any(|mark| mark.find(bytes).is_some())
    }

    /// Whether every span of a scope is read.
    pub fn in_scope(&self, name: &[u8]) -> bool {
        self.all || self.marked(name)
    }

    pub fn in_span(&self, span: &SpanView<'_>) -> bool {
        self.marked(span.bytes)
    }

    /// Whether a span may have an HTTP side: its attributes need a walk.
    pub fn in_http(&self, span: &SpanView<'_>) -> bool {
        self.http.find(span.attributes_bytes()).is_some()
    }
}
