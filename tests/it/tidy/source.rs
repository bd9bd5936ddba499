//! One source file, looked at as text: its code without comments and literals, what it imports,
//! its functions.

use std::path::Path;

pub struct Source {
    /// Path below `src/`, with `/`.
    pub path: String,
    pub text: String,
    /// The text with comments and literals blanked out, line for line.
    pub code: String,
}

/// A function with a body.
pub struct Function {
    pub name: String,
    /// From 1.
    pub line: usize,
    pub lines: usize,
    /// From `fn` to the body.
    pub signature: String,
    /// Beyond its folder.
    pub public: bool,
}

/// Every `.rs` file below `folder`, sorted by path.
pub fn read_all(folder: &Path) -> Vec<Source> {
    let mut folders = vec![folder.to_path_buf()];
    let mut found = Vec::new();
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let below = path.strip_prefix(folder).expect("below").to_string_lossy();
                let text = std::fs::read_to_string(&path).expect("UTF-8");
                let code = code_of(&text);
                found.push(Source { path: below.replace('\\', "/"), text, code });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

impl Source {
    /// The part of the program it belongs to: `receive` for `receive/grpc.rs`, `main` for `main.rs`.
    pub fn folder(&self) -> &str {
        let first = self.path.split('/').next().unwrap_or_default();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// Code that is compiled for tests alone: a file of tests.
    pub fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        self.path.contains("/tests/") || name == "tests.rs" || name.ends_with("_tests.rs")
    }

    /// The code without the test module at its end.
    pub fn shipped(&self) -> &str {
        if self.is_test() {
            return "";
        }
        let inline = self.code.match_indices("#[cfg(test)]").find(|(at, mark)| {
            let after = self.code[at + mark.len()..].trim_start();
            after.starts_with("mod ") && after.find('{') < after.find(';').or(Some(usize::MAX))
        });
        inline.map_or(&self.code, |(at, _)| &self.code[..at])
    }

    /// Every path from the root of the crate that the code names, as `folder::rest`.
    pub fn imports(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for (at, root) in self.code.match_indices("crate::") {
            if !word_before(&self.code, at) {
                branches(&self.code[at + root.len()..], "", &mut |path| {
                    found.push((line_of(&self.code, at), path));
                });
            }
        }
        let depth = self.path.split('/').count() - usize::from(self.path.ends_with("/mod.rs"));
        let climb = "super::".repeat(depth);
        for (at, _) in self.code.match_indices(&climb) {
            if !word_before(&self.code, at) {
                branches(&self.code[at + climb.len()..], "", &mut |path| {
                    found.push((line_of(&self.code, at), path));
                });
            }
        }
        found
    }

    pub fn functions(&self) -> Vec<Function> {
        let code = self.shipped();
        let starts = code.match_indices("fn ").filter(|(at, _)| !word_before(code, *at));
        starts.filter_map(|(at, _)| function(code, at)).collect()
    }
}

pub fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Whether a word or a path runs into `at` from the left.
fn word_before(code: &str, at: usize) -> bool {
    let before = code[..at].chars().next_back();
    before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
}

/// The paths of a `use` tree that begins here.
fn branches(tree: &str, prefix: &str, found: &mut dyn FnMut(String)) {
    let tree = tree.trim_start();
    if let Some(group) = tree.strip_prefix('{') {
        let (mut depth, mut start) = (0, 0);
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                ',' | '}' if depth == 0 => {
                    if !group[start..at].trim().is_empty() {
                        branches(&group[start..at], prefix, found);
                    }
                    start = at + 1;
                    if c == '}' {
                        return;
                    }
                }
                '}' => depth -= 1,
                _ => {}
            }
        }
        return;
    }
    let word: String = tree.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let path = if prefix.is_empty() { word.clone() } else { format!("{prefix}::{word}") };
    match tree[word.len()..].strip_prefix("::") {
        Some(rest) if !word.is_empty() => branches(rest, &path, found),
        _ => found(path),
    }
}

fn function(code: &str, at: usize) -> Option<Function> {
    let rest = &code[at..];
    let name: String = rest[3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let (mut round, mut braces, mut open) = (0i32, 0i32, None);
    for (offset, c) in rest.char_indices() {
        match c {
            '(' | '[' => round += 1,
            ')' | ']' => round -= 1,
            ';' if round == 0 && open.is_none() => return None,
            '{' if round == 0 || open.is_some() => {
                open.get_or_insert(offset);
                braces += 1;
            }
            '}' if open.is_some() => {
                braces -= 1;
                if braces == 0 {
                    let line = code[..at].rsplit('\n').next().unwrap_or_default();
                    return Some(Function {
                        name,
                        line: line_of(code, at),
                        lines: rest[..offset].matches('\n').count() + 1,
                        signature: rest[..open?].to_string(),
                        public: line.trim_start().starts_with("pub "),
                    });
                }
            }
            _ => {}
        }
    }
    None
}

/// Blanks comments, strings and characters; line breaks stay.
fn code_of(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let inside_word = out.chars().next_back().is_some_and(|b| b.is_alphanumeric() || b == '_');
        let skip = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |at| at + 2)
        } else if !inside_word && raw_string(rest).is_some() {
            raw_string(rest).unwrap_or(1)
        } else if c == '"' {
            quoted(rest, '"')
        } else if c == '\'' && is_character(rest) {
            quoted(rest, '\'')
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        out.extend(rest[..skip].chars().filter(|c| *c == '\n'));
        rest = &rest[skip..];
    }
    out
}

/// The length of a raw string that begins here.
fn raw_string(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = body.chars().take_while(|c| *c == '#').count();
    body[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = rest.len() - body.len() + hashes + 1;
    Some(rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len()))
}

fn quoted(rest: &str, mark: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == mark => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Whether a quote begins a character and not a lifetime.
fn is_character(rest: &str) -> bool {
    let mut after = rest.chars().skip(1);
    match after.next() {
        Some('\\') => true,
        Some(_) => after.next() == Some('\''),
        None => false,
    }
}

#[test]
fn the_reader_of_sources_sees_code_and_nothing_else() {
    let text = concat!(
        "//! crate::a\nuse crate::{b::{self, C}, d as e};\nuse super::super::f::G;\n",
        "pub fn one<'x>(c: char) -> char { let _ = \"crate::h {\"; '{' }\n",
        "pub(crate) fn two(\n    a: [u8; 2],\n) {\n    r#\"crate::i\"# /* } */;\n    mycrate::j();\n}\n",
        "trait T { fn none(&self); }\n#[cfg(test)]\nmod tests {\n    fn three() {}\n}\n",
    );
    let source = Source { path: "k/l.rs".into(), text: text.into(), code: code_of(text) };
    let imports: Vec<_> = source.imports().into_iter().map(|(_, path)| path).collect();
    assert_eq!(imports, ["b::self", "b::C", "d", "f::G"]);
    let functions: Vec<_> =
        source.functions().into_iter().map(|f| (f.name, f.line, f.lines, f.public)).collect();
    assert_eq!(functions, [("one".into(), 4, 1, true), ("two".into(), 5, 6, false)]);
}
