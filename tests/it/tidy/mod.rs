//! The shape of the source, kept by reading it as text: who may import whom, what the core may not
//! touch, how long things are. Each exception stands here by name with its reason; one that is no
//! longer needed fails the test, so that the list only shrinks.

mod source;

use std::collections::BTreeSet;
use std::path::Path;

use source::{Source, line_of, read_all};

/// Rules of the meaning: they see `model`, and what else is named in [`MAY_IMPORT`].
const RULES: &[&str] = &["normalise", "correlate", "judge", "catalog", "incident", "emit"];

/// The core: no I/O, no clock, no randomness, no logging, no async, nothing without an order.
const CORE: &[&str] = &[
    "model",
    "normalise",
    "correlate",
    "judge",
    "catalog",
    "incident",
    "emit",
    "engine",
    "coverage",
];

/// Each part of the program, and which others it may import.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("normalise", &["model", "wire"]),
    ("correlate", &["model"]),
    ("judge", &["model"]),
    ("catalog", &["model"]),
    ("incident", &["model"]),
    ("emit", &["model", "wire", "proto"]),
    // Generated messages.
    ("proto", &[]),
    ("engine", &["model", "normalise", "correlate", "judge", "catalog", "incident", "emit"]),
    ("coverage", &["model", "wire", "normalise", "engine"]),
    ("wire", &[]),
    ("clock", &["model"]),
    ("receive", &["wire", "model", "clock"]),
    ("log", &["wire", "model", "clock"]),
    ("show", &["model", "emit", "engine", "judge"]),
    ("export", &["wire", "model", "log", "clock", "show"]),
    ("config", &["model"]),
    ("telemetry", &["model", "emit", "clock"]),
    // What is asked of the running program: it reads published copies, no table.
    ("page", &["model", "catalog", "proto", "receive", "clock"]),
    // Both halves meet here alone: the running program, and the commands that judge files.
    ("app", EVERYTHING),
    ("cli", EVERYTHING),
    ("main", &["cli"]),
    ("lib", EVERYTHING),
];

const EVERYTHING: &[&str] = &["*"];

/// What the core never names.
const IMPURE: &[&str] = &[
    "HashMap",
    "HashSet",
    "SystemTime",
    "Instant::",
    "tokio::",
    "tracing::",
    "rand::",
    "std::fs",
    "std::io",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    ".await",
    "async fn",
];

const MAX_FILE: usize = 400;
/// No exception goes beyond this.
const HARD_MAX_FILE: usize = 600;
const MAX_LINE: usize = 100;
const MAX_FUNCTION: usize = 70;

struct Exception {
    rule: &'static str,
    /// As the broken rule names it.
    place: &'static str,
    why: &'static str,
}

const fn except(rule: &'static str, place: &'static str, why: &'static str) -> Exception {
    Exception { rule, place, why }
}

const EXCEPTIONS: &[Exception] = &[
    except(
        "import",
        "normalise -> catalog::projection",
        "a definition becomes its digest at first sight, so that no text is kept; what a digest \
         covers has one home",
    ),
    except("import", "config -> emit::redaction", "a setting is a value of emit, read as it is"),
    except("import", "config -> emit::Enrich", "words that emit knows, read from the file"),
    except("import", "config -> emit::Redact", "words that emit knows, read from the file"),
    except("import", "config -> emit::Which", "words that emit knows, read from the file"),
    except("file length", "catalog/diff_tests.rs", "one table of cases"),
    except("file length", "judge/tests/endings.rs", "one table of cases"),
    except("file length", "judge/tests/rows.rs", "one table of cases"),
    except("file length", "model/findings.rs", "one registry"),
];

/// A rule broken at a place that an exception can name.
struct Broken {
    rule: &'static str,
    place: String,
    says: String,
}

fn sources() -> Vec<Source> {
    read_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

fn broken(rule: &'static str, place: impl Into<String>, says: String) -> Broken {
    Broken { rule, place: place.into(), says }
}

fn imports(source: &Source) -> Vec<Broken> {
    let from = source.folder();
    let Some((_, allowed)) = MAY_IMPORT.iter().find(|(folder, _)| *folder == from) else {
        let says = format!("{}: `{from}` has no row in MAY_IMPORT", source.path);
        return vec![broken("import", from, says)];
    };
    let known = |to: &str| MAY_IMPORT.iter().any(|(folder, _)| *folder == to);
    let foreign = source.imports().into_iter().filter(|(_, path)| {
        let to = path.split("::").next().unwrap_or_default();
        to != from && known(to) && !allowed.contains(&"*") && !allowed.contains(&to)
    });
    let says = |(line, path): (usize, String)| {
        let module: Vec<&str> = path.split("::").take(2).collect();
        let says = format!("{}:{line}: {from} imports {path}", source.path);
        broken("import", format!("{from} -> {}", module.join("::")), says)
    };
    foreign.map(says).collect()
}

fn lengths(source: &Source) -> Vec<Broken> {
    let mut found = Vec::new();
    let lines = source.text.lines().count();
    if lines > HARD_MAX_FILE {
        let says = format!("{}: {lines} lines, no file has over {HARD_MAX_FILE}", source.path);
        found.push(broken("hard file length", source.path.clone(), says));
    } else if lines > MAX_FILE {
        let says = format!("{}: {lines} lines, the aim is {MAX_FILE}", source.path);
        found.push(broken("file length", source.path.clone(), says));
    }
    for (at, line) in source.text.lines().enumerate() {
        let wide = line.chars().count();
        if wide > MAX_LINE {
            let says = format!("{}:{}: {wide} columns", source.path, at + 1);
            found.push(broken("line length", source.path.clone(), says));
        }
    }
    for function in source.functions().iter().filter(|f| f.lines > MAX_FUNCTION) {
        let (name, line, lines) = (&function.name, function.line, function.lines);
        let says = format!("{}:{line}: fn {name} has {lines} lines", source.path);
        found.push(broken("function length", format!("{}: {name}", source.path), says));
    }
    found
}

/// Words that a file must not hold outside its tests.
fn words(rule: &'static str, source: &Source, banned: &[&str]) -> Vec<Broken> {
    let code = source.shipped();
    let hit = |word: &&str| {
        let at = code.find(*word)?;
        let says = format!("{}:{}: `{word}`", source.path, line_of(code, at));
        Some(broken(rule, source.path.clone(), says))
    };
    banned.iter().filter_map(hit).collect()
}

/// A rule computes a value; it is handed nothing to change but a witness. Helpers inside a file may
/// build their own value step by step.
fn mutations(source: &Source) -> Vec<Broken> {
    let takes = |signature: &str| {
        let mutable = signature.match_indices("&mut ").map(|(at, _)| &signature[at + 5..]);
        let mut mutable = mutable.filter(|what| !what.starts_with("self"));
        mutable
            .any(|what| !["W", "impl Witness", "dyn Witness"].iter().any(|w| what.starts_with(w)))
    };
    let functions = source.functions().into_iter().filter(|f| f.public && takes(&f.signature));
    let says = |f: source::Function| {
        let says = format!("{}:{}: fn {} takes &mut", source.path, f.line, f.name);
        broken("mutation", format!("{}: {}", source.path, f.name), says)
    };
    functions.map(says).collect()
}

fn check(source: &Source) -> Vec<Broken> {
    let folder = source.folder();
    let mut found = imports(source);
    found.extend(lengths(source));
    if !source.text.starts_with("//!") {
        let says = format!("{}: does not open with a //! doc", source.path);
        found.push(broken("module doc", source.path.clone(), says));
    }
    if CORE.contains(&folder) {
        found.extend(words("purity", source, IMPURE));
    }
    if RULES.contains(&folder) && folder != "normalise" {
        found.extend(mutations(source));
    }
    if folder != "clock" {
        found.extend(words("clock", source, &["SystemTime::now", "Instant::now"]));
    }
    if !["telemetry", "cli", "main", "show"].contains(&folder) {
        found.extend(words("print", source, &["print!", "println!", "stdout()", "stderr()"]));
    }
    found
}

#[test]
fn the_source_keeps_its_shape() {
    let found: Vec<Broken> = sources().iter().flat_map(check).collect();
    let mut needed = BTreeSet::new();
    let mut wrong = Vec::new();
    for one in &found {
        let excused = EXCEPTIONS.iter().position(|e| e.rule == one.rule && e.place == one.place);
        match excused {
            Some(at) => drop(needed.insert(at)),
            None => wrong.push(format!("{} ({})", one.says, one.rule)),
        }
    }
    for (at, exception) in EXCEPTIONS.iter().enumerate() {
        if !needed.contains(&at) {
            let Exception { rule, place, why } = exception;
            wrong.push(format!("no longer needed: {rule}, {place} ({why})"));
        }
    }
    assert!(wrong.is_empty(), "{} rules broken:\n{}", wrong.len(), wrong.join("\n"));
}
