//! Mistakes in a configuration: where, what is wrong, and what to write instead. They are
//! gathered, so that one run shows all of them.

use std::fmt;
use std::sync::Arc;

/// Where a value was written. Line 0 stands for places without lines: `--set`, the environment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    pub file: Arc<str>,
    pub line: usize,
}

impl Place {
    pub fn new(file: &str, line: usize) -> Self {
        Self { file: file.into(), line }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    pub place: Option<Place>,
    /// Dotted path of the key; empty where the file itself is at fault.
    pub key: String,
    /// One sentence: what is wrong and what to write instead.
    pub says: String,
    /// It can be run with, and is probably not meant.
    pub warning: bool,
}

impl Mistake {
    pub fn new(place: Option<&Place>, key: &str, says: impl Into<String>) -> Self {
        Self { place: place.cloned(), key: key.into(), says: says.into(), warning: false }
    }

    pub fn warning(place: &Place, key: &str, says: impl Into<String>) -> Self {
        Self { warning: true, ..Self::new(Some(place), key, says) }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        if self.warning {
            f.write_str("warning: ")?;
        }
        match self.key.is_empty() {
            true => f.write_str(&self.says),
            false => write!(f, "{}: {}", self.key, self.says),
        }
    }
}

/// The candidate most like `word`, where one is near enough to be meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(a.1)))
        .map(|(_, candidate)| candidate)
}

/// `; did you mean X?`, or what there is to choose from.
pub fn suggest(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {}", known.join(", ")),
    }
}
