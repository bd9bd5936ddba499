//! A cursor over the tree that reads typed values with the registry's defaults. A mistake is noted
//! and the default taken, so that reading goes on and finds the next one.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use super::forms;
use super::keys::{self, Form, Row};
use super::mistake::{Mistake, nearest, suggest};
use super::tree::{Key, Node, Value};
use crate::model::ids::Nanos;

/// Everything noted while reading.
#[derive(Default)]
pub struct Notes {
    pub mistakes: RefCell<Vec<Mistake>>,
}

#[derive(Clone)]
pub struct Section<'a> {
    notes: &'a Notes,
    node: Option<&'a Node>,
    /// Path in the registry's spelling: `servers.*`.
    pattern: String,
    /// Path as the user sees it.
    shown: String,
}

impl<'a> Section<'a> {
    pub fn root(node: &'a Node, notes: &'a Notes) -> Self {
        Self { notes, node: Some(node), pattern: String::new(), shown: String::new() }
    }

    pub fn child(&self, key: &str) -> Section<'a> {
        let node = self.node.and_then(|node| node.get(key));
        self.below(node, key, key)
    }

    fn below(&self, node: Option<&'a Node>, pattern: &str, shown: &str) -> Section<'a> {
        Self {
            notes: self.notes,
            node,
            pattern: join(&self.pattern, pattern),
            shown: join(&self.shown, shown),
        }
    }

    /// Entries whose names the user chose.
    pub fn named(&self) -> Vec<(&'a Key, Section<'a>)> {
        self.entries().map(|(key, node)| (key, self.below(Some(node), "*", &key.name))).collect()
    }

    /// Entries of `exporters`: `otlp/eu` reads as `otlp`.
    pub fn kinds(&self) -> Vec<(&'a Key, Section<'a>)> {
        let kind = |key: &'a Key| key.name.split('/').next().unwrap_or_default();
        self.entries()
            .map(|(key, node)| (key, self.below(Some(node), kind(key), &key.name)))
            .collect()
    }

    fn entries(&self) -> impl Iterator<Item = (&'a Key, &'a Node)> {
        let entries = match self.node.map(|node| &node.value) {
            Some(Value::Map(entries)) => entries.as_slice(),
            _ => &[],
        };
        entries.iter().map(|(key, node)| (key, node))
    }

    /// Items of a list.
    pub fn items(&self) -> Vec<Section<'a>> {
        match self.node.map(|node| &node.value) {
            Some(Value::List(items)) => items
                .iter()
                .enumerate()
                .map(|(at, node)| self.below(Some(node), "[]", &format!("[{at}]")))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Whether anything is written here, an empty value included.
    pub fn mentioned(&self) -> bool {
        self.node.is_some()
    }

    /// Whether something that is not empty is written here.
    pub fn written(&self) -> bool {
        self.node.is_some_and(|node| node.value != Value::Absent)
    }

    pub fn wrong(&self, says: impl Into<String>) {
        let place = self.node.map(|node| &node.place);
        self.notes.mistakes.borrow_mut().push(Mistake::new(place, &self.shown, says));
    }

    fn row(&self) -> &'static Row {
        keys::find(&self.pattern).expect("every key that is read stands in the registry")
    }

    /// The scalar here, where one is written.
    fn scalar(&self) -> Option<&'a str> {
        match &self.node?.value {
            Value::Text(text) => Some(text),
            Value::Absent => None,
            Value::List(_) | Value::Map(_) => {
                self.wrong(format!("expected {}", self.row().form.describe()));
                None
            }
        }
    }

    /// What is written, parsed; `None` where nothing is, or where it is a mistake.
    pub fn optional<T>(&self, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        match parse(self.scalar()?) {
            Ok(value) => Some(value),
            Err(says) => {
                self.wrong(says);
                None
            }
        }
    }

    /// What is written, else the registry's default.
    fn value<T>(&self, parse: impl Fn(&str) -> Result<T, String>) -> T {
        self.optional(&parse).unwrap_or_else(|| {
            parse(self.row().default).unwrap_or_else(|_| panic!("default of {}", self.pattern))
        })
    }

    pub fn duration(&self, key: &str) -> Nanos {
        self.child(key).value(forms::duration)
    }

    pub fn positive_duration(&self, key: &str) -> Nanos {
        let nonzero = |text: &str| match forms::duration(text)? {
            0 => Err("must be longer than 0".to_string()),
            nanos => Ok(nanos),
        };
        self.child(key).value(nonzero)
    }

    /// A size or count of at least one.
    pub fn positive_size(&self, key: &str) -> u64 {
        self.child(key).value(|text| at_least_one(forms::size(text)?))
    }

    pub fn positive_count(&self, key: &str) -> u64 {
        self.child(key).value(|text| at_least_one(forms::count(text)?))
    }

    pub fn count32(&self, key: &str) -> u32 {
        self.child(key).value(|text| {
            u32::try_from(forms::count(text)?).map_err(|_| format!("`{text}` is too large"))
        })
    }

    pub fn flag(&self, key: &str) -> bool {
        self.child(key).value(forms::flag)
    }

    pub fn endpoint(&self, key: &str) -> String {
        self.child(key).value(forms::endpoint)
    }

    /// One of the row's words.
    pub fn word<T>(&self, key: &str, parse: impl Fn(&str) -> Option<T>) -> T {
        let child = self.child(key);
        let known = child.known_words();
        child.value(|text| {
            parse(text).ok_or_else(|| format!("`{text}` is not known; {}", suggest(text, &known)))
        })
    }

    pub fn optional_word<T>(&self, key: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let child = self.child(key);
        let known = child.known_words();
        child.optional(|text| {
            parse(text).ok_or_else(|| format!("`{text}` is not known; {}", suggest(text, &known)))
        })
    }

    fn known_words(&self) -> Vec<&'static str> {
        match self.row().form {
            Form::OneOf(words) | Form::ListOf(words) => words(),
            _ => Vec::new(),
        }
    }

    /// A list of the row's words, each once, in the order written; `None` where nothing is.
    pub fn optional_words<T: PartialEq>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<Vec<T>> {
        let child = self.child(key);
        let known = child.known_words();
        let mut words = Vec::new();
        for (item, text) in child.list()? {
            match parse(text) {
                Some(word) if words.contains(&word) => {}
                Some(word) => words.push(word),
                None => item.wrong(format!("`{text}` is not known; {}", suggest(text, &known))),
            }
        }
        Some(words)
    }

    /// A list of texts; `None` where nothing is written.
    pub fn optional_texts(&self, key: &str) -> Option<Vec<(Section<'a>, &'a str)>> {
        self.child(key).list()
    }

    /// A single text counts as a list of one.
    fn list(&self) -> Option<Vec<(Section<'a>, &'a str)>> {
        match &self.node?.value {
            Value::Absent => None,
            Value::Text(text) => Some(vec![(self.clone(), text)]),
            Value::Map(_) => {
                self.wrong(format!("expected {}", self.row().form.describe()));
                None
            }
            Value::List(_) => {
                let text = |item: Section<'a>| match &item.node?.value {
                    Value::Text(text) => Some((item, text.as_str())),
                    _ => {
                        item.wrong("expected a text");
                        None
                    }
                };
                Some(self.items().into_iter().filter_map(text).collect())
            }
        }
    }

    /// Free keys with text values, in the order written. Absent values are left out.
    pub fn text_map(&self, key: &str) -> Vec<(String, &'a str, Section<'a>)> {
        let child = self.child(key);
        let mut out = Vec::new();
        for (key, node) in child.entries() {
            let at = child.below(Some(node), "*", &key.name);
            match &node.value {
                Value::Text(text) => out.push((key.name.clone(), text.as_str(), at)),
                Value::Absent => {}
                _ => at.wrong("expected a text"),
            }
        }
        out
    }

    pub fn texts_by_key(&self, key: &str) -> BTreeMap<String, String> {
        self.text_map(key).into_iter().map(|(key, text, _)| (key, text.to_string())).collect()
    }

    /// A path, relative to the directory of the file it is written in.
    pub fn optional_path(&self, key: &str) -> Option<PathBuf> {
        let child = self.child(key);
        let text = child.scalar()?;
        Some(child.node?.base.join(text))
    }

    /// As above, with the registry's default relative to the working directory.
    pub fn path(&self, key: &str) -> PathBuf {
        self.optional_path(key).unwrap_or_else(|| self.child(key).row().default.into())
    }

    /// Notes every key below that the registry does not know, and values where sections belong.
    pub fn refuse_unknown(&self) {
        let known = keys::children(&self.pattern);
        let Some(node) = self.node else { return };
        match &node.value {
            _ if known.is_empty() || matches!(node.value, Value::Absent) => {}
            Value::List(_) if known == ["[]"] => {
                self.items().iter().for_each(Section::refuse_unknown);
            }
            Value::Map(_) if known == ["*"] => {
                self.named().iter().for_each(|(_, below)| below.refuse_unknown());
            }
            Value::Map(_) => self.refuse_entries(&known),
            _ if known == ["[]"] => self.wrong("expected a list"),
            _ => self.wrong(format!("expected a section with {}", known.join(", "))),
        }
    }

    fn refuse_entries(&self, known: &[&'static str]) {
        let entries = if self.pattern == "exporters" { self.kinds() } else { Vec::new() };
        let plain = self.entries().map(|(key, _)| (key, self.child(&key.name)));
        let entries = if entries.is_empty() { plain.collect() } else { entries };
        for (key, below) in entries {
            let name = below.pattern.rsplit('.').next().unwrap_or_default();
            if known.contains(&name) && !key.name.ends_with('/') {
                below.refuse_unknown();
                continue;
            }
            let place = Some(&key.place);
            let says = format!("unknown key; {}", self.meant(&key.name, known));
            self.notes.mistakes.borrow_mut().push(Mistake::new(place, &below.shown, says));
        }
    }

    /// The nearest key here, else the place of a key of that very name elsewhere.
    fn meant(&self, name: &str, known: &[&'static str]) -> String {
        if let Some(near) = nearest(name, known.iter().copied()) {
            return format!("did you mean `{near}`?");
        }
        let elsewhere = keys::rows().find(|row| row.path.rsplit('.').next() == Some(name));
        match elsewhere {
            Some(row) => format!("did you mean `{}`?", row.path),
            None => format!("known here are {}", known.join(", ")),
        }
    }
}

fn at_least_one(number: u64) -> Result<u64, String> {
    (number > 0).then_some(number).ok_or_else(|| "must be at least 1".to_string())
}

fn join(path: &str, name: &str) -> String {
    match path.is_empty() {
        true => name.to_string(),
        false if name.starts_with('[') && name != "[]" => format!("{path}{name}"),
        false => format!("{path}.{name}"),
    }
}
