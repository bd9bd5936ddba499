//! Digests of tools and registries as values: parse, print, compare (judgment.md §6). How they are
//! computed is the catalog's.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::ids::Name;

/// The one projection we compute and compare.
pub const SCHEME: &str = "mcp-tool/1";

/// A tool or registry digest. Digests of another scheme are never compared with ours, nor with
/// each other: they are `Foreign`, and that is a finding, not drift.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize,
)]
pub enum Digest {
    /// SHA-256 under `mcp-tool/1`.
    Tool([u8; 32]),
    /// The text's scheme prefix as received.
    Foreign(Name),
}

impl Digest {
    /// Reads `mcp-tool/1:sha256:<64 hex>`, `sha256:<64 hex>` or bare hex. Text of any other shape
    /// that has a prefix is of a foreign scheme; anything else is no digest.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (scheme, hex) = match text.rsplit_once(':') {
            Some((prefix, hex)) => (prefix, hex),
            None => ("", text),
        };
        match scheme {
            "" | "sha256" | "mcp-tool/1:sha256" => read_hex(hex).map(Self::Tool),
            other => Some(Self::Foreign(Name::new(other))),
        }
    }

    /// Whether the two were made by one scheme, so that a difference means something.
    pub fn comparable(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Tool(_), Self::Tool(_)))
    }

    /// The first 16 hex digits, for people.
    pub fn short(&self) -> String {
        match self {
            Self::Tool(bytes) => bytes[..8].iter().map(|b| format!("{b:02x}")).collect(),
            Self::Foreign(scheme) => scheme.to_string(),
        }
    }

    pub fn name(&self) -> Name {
        Name::new(&self.to_string())
    }
}

fn read_hex(hex: &str) -> Option<[u8; 32]> {
    let digits = hex.as_bytes();
    if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut out = [0; 32];
    for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        let nibble = |c: u8| (c as char).to_digit(16).map(|d| d as u8);
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(out)
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(bytes) => {
                write!(f, "{SCHEME}:sha256:")?;
                bytes.iter().try_for_each(|b| write!(f, "{b:02x}"))
            }
            Self::Foreign(scheme) => f.write_str(scheme),
        }
    }
}

/// One tool's definition, projected by `mcp-tool/1` and kept once. Its text is never printed in
/// telemetry; only its name, digests and pointers are.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
pub struct Definition {
    pub name: Name,
    pub projected: Arc<Projection>,
    /// `None` without an `inputSchema`.
    pub digest: Option<Digest>,
    /// An integer beyond 2^53 somewhere in it.
    pub unsafe_number: bool,
}

/// A definition's projected members. Kept as text, a tenth of what the tree takes, and read where
/// somebody looks into it.
#[derive(PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Projection {
    name: Box<str>,
    text: Box<str>,
}

impl Projection {
    /// `name`: the tool's, as the server gave it. `text`: the members' RFC 8785 text.
    pub fn new(name: &str, text: String) -> Self {
        Self { name: name.into(), text: text.into() }
    }

    /// The tool's name as the server gave it, neither capped nor escaped.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its RFC 8785 text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The members as a JSON object.
    pub fn value(&self) -> serde_json::Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// What it takes in memory, in bytes.
    pub fn size(&self) -> usize {
        size_of::<Self>() + self.name.len() + self.text.len()
    }
}

/// Equal digests of ours are equal texts.
impl PartialEq for Definition {
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.digest, &other.digest) {
            (Some(Digest::Tool(a)), Some(Digest::Tool(b))) => a == b,
            (a, b) => a == b && self.projected == other.projected,
        };
        same && self.name == other.name && self.unsafe_number == other.unsafe_number
    }
}

/// Name and digest: the text is nobody's to print.
impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Definition");
        shown.field("name", &self.name).field("digest", &self.digest).finish_non_exhaustive()
    }
}

/// Tool definitions read from one record, with their digest.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Definitions {
    pub tools: Vec<Definition>,
    /// Digests over them, computed when first asked for: every call asks, and few pages differ.
    #[serde(skip)]
    registry: OnceLock<Option<Digest>>,
    #[serde(skip)]
    offers: OnceLock<Vec<Option<Digest>>>,
}

impl PartialEq for Definitions {
    fn eq(&self, other: &Self) -> bool {
        self.tools == other.tools
    }
}

impl Definitions {
    pub fn new(tools: Vec<Definition>) -> Self {
        Self { tools, registry: OnceLock::new(), offers: OnceLock::new() }
    }

    /// What they take in memory, in bytes.
    pub fn size(&self) -> usize {
        let tool = |tool: &Definition| size_of::<Definition>() + tool.projected.size();
        self.tools.iter().map(tool).sum()
    }

    /// The digest of these tools as a registry, by `compute` the first time.
    pub fn registry(
        &self,
        compute: impl FnOnce(&[Definition]) -> Option<Digest>,
    ) -> Option<Digest> {
        self.registry.get_or_init(|| compute(&self.tools)).clone()
    }

    /// The digest of each tool as a model is offered it, by `compute` the first time.
    pub fn offers(&self, compute: impl Fn(&Definition) -> Option<Digest>) -> &[Option<Digest>] {
        self.offers.get_or_init(|| self.tools.iter().map(compute).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_round_trip_and_foreign_ones_do_not_compare() {
        let hex = "ab".repeat(32);
        let ours = Digest::parse(&format!("mcp-tool/1:sha256:{hex}"));
        assert_eq!(Digest::parse(&hex), ours);
        assert_eq!(ours.as_ref().map(Digest::to_string), Some(format!("mcp-tool/1:sha256:{hex}")));
        let foreign = Digest::parse(&format!("sep-2636:sha256:{hex}"));
        assert!(matches!(foreign, Some(Digest::Foreign(_))));
        assert_eq!(Digest::parse("nonsense"), None);
    }

    #[test]
    fn a_definition_prints_no_text() {
        let text = r#"{"description":"hush","name":"find"}"#.to_owned();
        let projected = Arc::new(Projection::new("find", text));
        let (name, digest) = (Name::new("find"), Some(Digest::Tool([7; 32])));
        let tool = Definition { name, projected, digest, unsafe_number: false };
        let page = Definitions::new(vec![tool.clone()]);
        let printed = format!("{tool:?} {page:?}");
        assert!(printed.contains("find") && !printed.contains("hush"), "{printed}");
    }
}
