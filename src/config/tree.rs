//! What the user typed, as a tree that remembers where each value stands: YAML (JSON is YAML),
//! `${env:NAME}` resolved, several files and `--set` merged in order. No meaning yet.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use saphyr::{MarkedYaml, ScalarStyle, YamlData, YamlLoader};
use saphyr_parser::Parser;

use super::mistake::{Mistake, Place};

/// Reads an environment variable; a seam so that tests bring their own.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    pub place: Place,
    /// Directory that relative paths in this value are relative to.
    pub base: Arc<Path>,
    pub value: Value,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Absent,
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Clone, PartialEq, Debug)]
pub struct Key {
    pub name: String,
    pub place: Place,
}

impl Node {
    pub fn empty() -> Self {
        Self { place: Place::new("", 0), base: Path::new("").into(), value: Value::Map(Vec::new()) }
    }

    pub fn get(&self, key: &str) -> Option<&Node> {
        let Value::Map(entries) = &self.value else { return None };
        entries.iter().find(|(k, _)| k.name == key).map(|(_, node)| node)
    }

    /// A map that holds this node under one key.
    pub fn under(self, name: &str) -> Node {
        let (place, base) = (self.place.clone(), self.base.clone());
        let key = Key { name: name.to_string(), place: place.clone() };
        Node { place, base, value: Value::Map(vec![(key, self)]) }
    }

    /// Maps merge key by key; anything else that is newer replaces what is older. An absent value
    /// over a map leaves the map.
    pub fn merge(&mut self, newer: Node) {
        match (&mut self.value, newer.value) {
            (Value::Map(ours), Value::Map(theirs)) => {
                for (key, node) in theirs {
                    match ours.iter_mut().find(|(k, _)| k.name == key.name) {
                        Some((_, old)) => old.merge(node),
                        None => ours.push((key, node)),
                    }
                }
            }
            (Value::Map(_), Value::Absent) => {}
            (_, value) => *self = Node { value, ..newer },
        }
    }
}

/// Reads one file. Mistakes are its syntax and its variables.
pub fn read_file(path: &Path, env: Env<'_>, mistakes: &mut Vec<Mistake>) -> Option<Node> {
    let shown = path.display().to_string();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            let place = Place::new(&shown, 0);
            mistakes.push(Mistake::new(Some(&place), "", format!("cannot be read: {error}")));
            return None;
        }
    };
    let base = path.parent().unwrap_or(Path::new("")).to_path_buf();
    parse(&text, &Place::new(&shown, 1), &base.into(), env, mistakes)
}

/// Files of a directory in the order of their names; a file stands for itself.
pub fn files_of(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let yaml = |p: &PathBuf| {
        p.extension().is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|e| ending == *e))
    };
    let entries: std::io::Result<Vec<_>> =
        std::fs::read_dir(path)?.map(|entry| entry.map(|e| e.path())).collect();
    let mut files: Vec<_> = entries?.into_iter().filter(|p| yaml(p) && p.is_file()).collect();
    files.sort();
    Ok(files)
}

/// Parses a text whose first line stands at `place`.
pub fn parse(
    text: &str,
    place: &Place,
    base: &Arc<Path>,
    env: Env<'_>,
    mistakes: &mut Vec<Mistake>,
) -> Option<Node> {
    let mut loader = YamlLoader::<MarkedYaml>::default();
    loader.early_parse(false);
    let scanned = Parser::new_from_str(text).load(&mut loader, true);
    if let Some(error) = scanned.err().or_else(|| loader.error().cloned()) {
        let at = line(place, error.marker().line());
        mistakes.push(Mistake::new(Some(&at), "", format!("not YAML: {}", error.info())));
        return None;
    }
    let mut documents = loader.into_documents();
    if documents.len() > 1 {
        let says = "holds more than one YAML document; keep one, or write several files";
        mistakes.push(Mistake::new(Some(place), "", says));
        return None;
    }
    let empty = Node { place: place.clone(), base: base.clone(), value: Value::Absent };
    let mut walk = Walk { place, base, env, mistakes };
    Some(documents.pop().map_or(empty, |document| walk.node(&document, "", 0)))
}

/// Lines count from 1; in a value of `--set` or of a variable every line is the value's own.
fn line(first: &Place, number: usize) -> Place {
    match first.line {
        1 => Place { file: first.file.clone(), line: number.max(1) },
        _ => first.clone(),
    }
}

struct Walk<'a> {
    place: &'a Place,
    base: &'a Arc<Path>,
    env: Env<'a>,
    mistakes: &'a mut Vec<Mistake>,
}

/// Variables may hold YAML that names variables; beyond this depth they go in circles.
const MAX_DEPTH: usize = 64;

impl Walk<'_> {
    /// `at` is the dotted path of the key that holds the value.
    fn node(&mut self, yaml: &MarkedYaml<'_>, at: &str, depth: usize) -> Node {
        let place = line(self.place, yaml.span.start.line());
        let value = match &yaml.data {
            _ if depth > MAX_DEPTH => {
                self.mistakes.push(Mistake::new(Some(&place), "", "is nested too deep"));
                Value::Absent
            }
            YamlData::Representation(text, style, _) => {
                return self.scalar(text, *style, at, place);
            }
            YamlData::Sequence(items) => Value::List(self.items(items, at, depth + 1)),
            YamlData::Mapping(entries) => Value::Map(
                entries.iter().map(|(key, value)| self.entry(key, value, at, depth + 1)).collect(),
            ),
            YamlData::Tagged(_, inner) => return self.node(inner, at, depth + 1),
            YamlData::Value(_) | YamlData::Alias(_) | YamlData::BadValue => Value::Absent,
        };
        Node { place, base: self.base.clone(), value }
    }

    fn items(&mut self, items: &[MarkedYaml<'_>], at: &str, depth: usize) -> Vec<Node> {
        let numbered = items.iter().enumerate();
        numbered.map(|(number, item)| self.node(item, &format!("{at}[{number}]"), depth)).collect()
    }

    fn entry(
        &mut self,
        key: &MarkedYaml<'_>,
        value: &MarkedYaml<'_>,
        at: &str,
        depth: usize,
    ) -> (Key, Node) {
        let key = self.key(key);
        let below = match at.is_empty() {
            true => key.name.clone(),
            false => format!("{at}.{}", key.name),
        };
        let node = self.node(value, &below, depth);
        (key, node)
    }

    fn key(&mut self, yaml: &MarkedYaml<'_>) -> Key {
        let place = line(self.place, yaml.span.start.line());
        let name = match &yaml.data {
            YamlData::Representation(text, ..) => text.to_string(),
            _ => {
                self.mistakes.push(Mistake::new(Some(&place), "", "a key must be a text"));
                String::new()
            }
        };
        Key { name, place }
    }

    /// A plain scalar that is one variable and nothing else may hold any YAML, as in the Collector.
    fn scalar(&mut self, text: &str, style: ScalarStyle, at: &str, place: Place) -> Node {
        let plain = style == ScalarStyle::Plain;
        let whole = text.starts_with("${") && text.find('}') == Some(text.len() - 1);
        let mut unset = Vec::new();
        let expanded = expand(text, self.env, &mut unset).unwrap_or_else(|says| {
            self.mistakes.push(Mistake::new(Some(&place), at, says));
            String::new()
        });
        for name in unset {
            let says = format!(
                "the environment variable {name} is not set, which reads as empty; set it, or \
                 write `${{env:{name}:-default}}`"
            );
            self.mistakes.push(Mistake::warning(&place, at, says));
        }
        if plain && whole && expanded.trim_start().starts_with(['[', '{']) {
            let fixed = Place { file: format!("{place}").as_str().into(), line: 0 };
            let no_env = |_: &str| None;
            if let Some(node) = parse(&expanded, &fixed, self.base, &no_env, self.mistakes) {
                return node;
            }
        }
        let absent = expanded.is_empty() || plain && matches!(&*expanded, "null" | "~" | "Null");
        let value = if absent { Value::Absent } else { Value::Text(expanded) };
        Node { place, base: self.base.clone(), value }
    }
}

/// `${env:NAME}`, `${env:NAME:-default}`; `$$` is one `$`. A variable that is not set is empty, and
/// named in `unset` where it has no default, as the Collector warns of it.
fn expand(text: &str, env: Env<'_>, unset: &mut Vec<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some(after) = rest.strip_prefix('{') {
            let end = after.find('}').ok_or("`${` is not closed; write `${env:NAME}`")?;
            out.push_str(&variable(&after[..end], env, unset)?);
            rest = &after[end + 1..];
        } else {
            out.push('$');
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn variable(inside: &str, env: Env<'_>, unset: &mut Vec<String>) -> Result<String, String> {
    let Some(named) = inside.strip_prefix("env:") else {
        return Err(format!("`${{{inside}}}` is not known here; write `${{env:NAME}}`"));
    };
    let (name, default) = match named.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (named, None),
    };
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(valid) {
        return Err(format!("`{name}` is no name of an environment variable"));
    }
    if let Some(value) = env(name) {
        return Ok(value);
    }
    if default.is_none() && !unset.iter().any(|known| known == name) {
        unset.push(name.to_string());
    }
    Ok(default.unwrap_or_default().to_string())
}

/// `--set a.b."c.d"=value`: the value is YAML, as it would stand in a file.
pub fn read_set(text: &str, env: Env<'_>, mistakes: &mut Vec<Mistake>) -> Option<Node> {
    let place = Place::new("--set", 0);
    let Some((path, value)) = split_set(text) else {
        let says = format!("`{text}` is not of the form key=value");
        mistakes.push(Mistake::new(Some(&place), "", says));
        return None;
    };
    let base: Arc<Path> = Path::new("").into();
    let node = parse(value, &place, &base, env, mistakes)?;
    Some(path.into_iter().rev().fold(node, |inner, name| Node {
        place: place.clone(),
        base: base.clone(),
        value: Value::Map(vec![(Key { name, place: place.clone() }, inner)]),
    }))
}

/// Splits at the first `=` outside quotes, and the key at dots outside quotes.
fn split_set(text: &str) -> Option<(Vec<String>, &str)> {
    let (mut path, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '.' if !quoted => path.push(std::mem::take(&mut word)),
            '=' if !quoted => {
                path.push(word);
                let whole = path.iter().all(|name| !name.is_empty());
                return whole.then_some((path, &text[at + 1..]));
            }
            c => word.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<String> {
        match name {
            "PORT" => Some("5317".into()),
            "LIST" => Some("[a, b]".into()),
            _ => None,
        }
    }

    fn read(text: &str) -> (Option<Node>, Vec<Mistake>) {
        let mut mistakes = Vec::new();
        let base: Arc<Path> = Path::new("").into();
        let node = parse(text, &Place::new("c.yaml", 1), &base, &env, &mut mistakes);
        (node, mistakes)
    }

    fn text<'a>(node: &'a Node, path: &[&str]) -> &'a Value {
        &path.iter().fold(node, |n, key| n.get(key).expect("key")).value
    }

    #[test]
    fn variables_are_resolved_where_they_stand() {
        let (node, mistakes) = read(concat!(
            "a: 127.0.0.1:${env:PORT}\nb: ${env:NONE:-x:y}\nc: ${env:NONE}\n",
            "d: $$5\ne: ${env:LIST}\nf: '${env:LIST}'\ng: a${b\n"
        ));
        let node = node.expect("node");
        assert_eq!(text(&node, &["a"]), &Value::Text("127.0.0.1:5317".into()));
        assert_eq!(text(&node, &["b"]), &Value::Text("x:y".into()));
        assert_eq!(text(&node, &["c"]), &Value::Absent);
        assert_eq!(text(&node, &["d"]), &Value::Text("$5".into()));
        assert!(matches!(text(&node, &["e"]), Value::List(items) if items.len() == 2));
        assert_eq!(text(&node, &["f"]), &Value::Text("[a, b]".into()));
        let shown: Vec<String> = mistakes.iter().map(|m| m.to_string()).collect();
        let unset = "the environment variable NONE is not set, which reads as empty; set it, or \
                     write `${env:NONE:-default}`";
        assert_eq!(
            shown,
            [
                &format!("c.yaml:3: warning: c: {unset}"),
                "c.yaml:7: g: `${` is not closed; write `${env:NAME}`",
            ]
        );
    }

    #[test]
    fn lines_are_kept_and_json_is_yaml() {
        let (node, _) = read("{\n  \"a\": {\n    \"b\": 3\n  }\n}\n");
        let node = node.expect("node");
        let b = node.get("a").and_then(|a| a.get("b")).expect("b");
        assert_eq!(b.place.to_string(), "c.yaml:3");
    }

    #[test]
    fn newer_files_win_key_by_key() {
        let (older, _) = read("a: {x: 1, y: 2}\nl: [1]\nk: {z: 1}\n");
        let (newer, _) = read("a: {y: 3}\nl: [2, 3]\nk:\n");
        let mut merged = older.expect("older");
        merged.merge(newer.expect("newer"));
        assert_eq!(text(&merged, &["a", "x"]), &Value::Text("1".into()));
        assert_eq!(text(&merged, &["a", "y"]), &Value::Text("3".into()));
        assert!(matches!(text(&merged, &["l"]), Value::List(items) if items.len() == 2));
        assert_eq!(text(&merged, &["k", "z"]), &Value::Text("1".into()));
    }

    #[test]
    fn set_takes_quoted_names() {
        let mut mistakes = Vec::new();
        let node = read_set("a.\"b.c\".d=[1, 2]", &env, &mut mistakes).expect("set");
        assert!(matches!(text(&node, &["a", "b.c", "d"]), Value::List(items) if items.len() == 2));
        assert!(read_set("a.b", &env, &mut mistakes).is_none());
        assert!(read_set("a..b=1", &env, &mut mistakes).is_none());
        assert_eq!(mistakes.len(), 2);
    }

    #[test]
    fn bad_yaml_names_its_line() {
        let (node, mistakes) = read("a: 1\nb: [1\nc: 2\n");
        assert!(node.is_none());
        assert_eq!(mistakes.len(), 1);
        let (node, mistakes) = read("a: 1\na: 2\n");
        assert!(node.is_none() && mistakes[0].says.contains("a"), "{mistakes:?}");
    }
}
