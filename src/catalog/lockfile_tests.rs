//! The lockfile's text, and the check that stands on it.

use super::check::{Held, Reason, Reference, check, located_by_members};
use super::diff::diff;
use super::listing::tools_from_json;
use super::lockfile::{Holder, Lockfile, Mark, Pin, PinKey, anyones, member_map};
use crate::model::digest::{Definition, Digest};
use crate::model::policy::ContractMode;
use crate::model::words::Grade;
use serde_json::{Value, json};

fn tool(name: &str, description: &str, parameters: Value) -> Definition {
    let tool = json!([{"name": name, "description": description,
        "inputSchema": {"type": "object", "properties": parameters}}]);
    tools_from_json(&tool.to_string()).unwrap().remove(0)
}

fn search() -> Definition {
    tool("search", "Search.", json!({"query": {"type": "string"}}))
}

fn mark(by: &str) -> Mark {
    Mark { at: "2026-01-02T03:04:05Z".into(), by: by.into() }
}

fn pin(tool: &Definition) -> Pin {
    Pin::of(tool, mark("lock init"), None).unwrap()
}

fn lockfile(tools: &[Definition]) -> Lockfile {
    let mut lockfile = Lockfile::default();
    for tool in tools {
        lockfile.set(anyones("srv", tool), pin(tool));
    }
    lockfile
}

#[test]
fn what_is_printed_is_read_again_and_sorted() {
    let (a, b) = (tool("alpha", "A", json!({"a/b": {}})), search());
    let mut one = lockfile(&[b.clone(), a.clone()]);
    let key = |holder| PinKey { server: "srv".into(), holder, tool: "search".into() };
    one.set(key(Holder::Auth("d1".into())), pin(&a));
    one.set(key(Holder::Client("c \"1\"".into())), pin(&b));
    let text = one.print();
    let again = Lockfile::parse(&text).unwrap();
    assert_eq!(again.pins(), one.pins());
    assert_eq!(again.print(), text);
    let mut other = lockfile(&[a.clone(), b.clone()]);
    other.set(key(Holder::Client("c \"1\"".into())), pin(&b));
    other.set(key(Holder::Auth("d1".into())), pin(&a));
    assert_eq!(other.print(), text);
    assert_eq!(again.find("srv", &Holder::Auth("d1".into()), "search"), Some(&pin(&a)));
    assert_eq!(again.find("srv", &Holder::Auth("d2".into()), "search"), Some(&pin(&b)));
    assert_eq!(again.find("other", &Holder::Anyone, "search"), None);
}

#[test]
fn the_form_is_the_documented_one() {
    let digest = search().digest.unwrap().to_string();
    let text = lockfile(&[search()]).print();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(
        lines[..6],
        [
            "version = 1",
            "",
            "[[tool]]",
            "server = \"srv\"",
            "tool = \"search\"",
            &format!("digest = \"{digest}\""),
        ]
    );
    let has = |start: &str| lines.iter().any(|line| line.starts_with(start));
    assert!(has("members.description = \"sha256:"), "{text}");
    assert!(has("members.\"inputSchema/properties/query\" = \"sha256:"), "{text}");
    assert!(!text.contains("Search."), "no text of a definition: {text}");
}

#[test]
fn comments_of_people_are_kept() {
    let mut text = lockfile(&[search()]).print();
    text = text.replace("[[tool]]", "# reviewed by Ada\n[[tool]]");
    text = text.replace("tool = \"search\"", "tool = \"search\" # the good one");
    text = format!("# ours\n{text}\n# the end\n");
    let mut lockfile = Lockfile::parse(&text).unwrap();
    let changed = tool("search", "Other.", json!({"q": {"type": "string"}}));
    lockfile.set(anyones("srv", &changed), pin(&changed));
    let first = tool("a first one", "", json!({}));
    lockfile.set(anyones("srv", &first), pin(&first));
    let printed = lockfile.print();
    for comment in [
        "# ours\n",
        "\n# reviewed by Ada\n[[tool]]\nserver = \"srv\"\ntool = \"search\" # the good one\n",
        "\n# the end\n",
    ] {
        assert!(printed.contains(comment), "{comment:?} in\n{printed}");
    }
    assert!(!printed.contains("properties/query"), "{printed}");
    let order = |name: &str| printed.find(&format!("tool = \"{name}\"")).unwrap();
    assert!(order("a first one") < order("search"), "{printed}");
    assert_eq!(Lockfile::parse(&printed).unwrap().pins(), lockfile.pins());
    let only_comments = Lockfile::parse("# later\n").unwrap();
    assert!(only_comments.pins().is_empty());
    assert_eq!(only_comments.print(), "# later\nversion = 1\n");
    let no_last_line = Lockfile::parse("# later").unwrap();
    assert_eq!(no_last_line.print(), "# later\nversion = 1\n");
}

#[test]
fn every_damage_has_its_line_and_remedy() {
    let text = lockfile(&[search()]).print();
    let line_of =
        |needle: &str| 1 + text.lines().position(|line| line.starts_with(needle)).unwrap();
    let entry = &text[text.find("[[tool]]").unwrap()..];
    let swap = |from: &str, to: &str| text.replacen(from, to, 1);
    let hex = search().digest.unwrap().to_string();
    for (damaged, line, what) in [
        (swap("[[tool]]", "<<<<<<< HEAD\n[[tool]]"), line_of("[[tool]]"), "conflict marker"),
        (swap("server =", "=======\nserver ="), line_of("server"), "conflict marker"),
        (swap("version = 1", "version = 2"), line_of("version"), "newer mcp-verdict"),
        (swap("version = 1", "version = \"x\""), line_of("version"), "no such version"),
        (swap("version = 1\n", ""), 1, "no version"),
        (swap("tool = \"search\"", "tool = search"), line_of("tool ="), ""),
        (swap("tool = \"search\"\n", ""), line_of("[[tool]]"), "without `tool`"),
        (swap("pinned_by", "pined_by"), line_of("pinned_by"), "unknown key `pined_by`"),
        (swap(&hex, &hex[..40]), line_of("digest"), "no digest"),
        (swap("mcp-tool/1:", "mcp-tool/2:"), line_of("digest"), "another scheme"),
        (format!("{text}\n{entry}"), text.lines().count() + 2, "pinned twice"),
        (
            swap("tool =", "auth = \"a\"\nclient = \"b\"\ntool ="),
            line_of("[[tool]]"),
            "both `auth`",
        ),
        (
            swap("version = 1", "version = 1\nextra = 2"),
            line_of("version") + 1,
            "unknown key `extra`",
        ),
        (text[..text.len() - 20].to_owned(), text.lines().count(), ""),
    ] {
        let damage = Lockfile::parse(&damaged).unwrap_err();
        assert_eq!(damage.line, line, "{damage}\n{damaged}");
        assert!(damage.what.contains(what), "{damage}");
        assert!(!damage.remedy.is_empty());
    }
}

#[test]
fn a_drift_is_located_by_digests_alone() {
    let pinned = pin(&search());
    let located = |tool: &Definition| {
        let located = located_by_members(&pinned.members, &member_map(tool)).unwrap();
        let changes = located.changes.iter();
        let found = changes.map(|c| format!("{} {} {}", c.grade, c.kind, c.pointer)).collect();
        let found: Vec<String> = found;
        (located.grade, found)
    };
    let (grade, found) = located(&tool("search", "Other.", json!({"query": {"type": "string"}})));
    assert_eq!(
        (grade, found),
        (Grade::Semantic, vec!["semantic text_changed /description".into()])
    );
    let (grade, found) = located(&tool("search", "Search.", json!({"q": {"type": "string"}})));
    assert_eq!(grade, Grade::Breaking);
    assert!(
        found.contains(&"breaking property_renamed /inputSchema/properties/query".into()),
        "{found:?}"
    );
    let (grade, found) = located(&tool("search", "Search.", json!({"query": {"type": "number"}})));
    assert_eq!(grade, Grade::Unlocated);
    assert!(
        found.contains(&"unlocated member_changed /inputSchema/properties/query".into()),
        "{found:?}"
    );
}

#[test]
fn each_mode_decides_as_it_says() {
    use ContractMode::{Enforce, Observe, Off, Pin as Pinned};
    let (held, moved) = (search(), tool("search", "Other.", json!({"query": {"type": "string"}})));
    let wider = tool("search", "Search.", json!({"query": {"type": "string"}, "n": {}}));
    let lock = lockfile(&[search()]);
    let pinned = Reference::pinned(&lock, "srv", &Holder::Anyone, "search");
    let whole = Reference { definition: Some(&held), ..pinned };
    let nothing = Reference::pinned(&lock, "srv", &Holder::Anyone, "ghost");
    let foreign = Digest::parse("sep-2636:sha256:00").unwrap();
    let other = moved.digest.clone().unwrap();
    let fail_on = [Grade::Breaking, Grade::Semantic, Grade::Unlocated];
    for (mode, reference, holds, proceed, reason) in [
        (Off, &pinned, Held::Definition(&moved), true, Reason::Off),
        (Observe, &pinned, Held::Definition(&moved), true, Reason::DriftTolerated),
        (Observe, &nothing, Held::Definition(&moved), true, Reason::Unpinned),
        (Pinned, &pinned, Held::Definition(&held), true, Reason::Pinned),
        (Pinned, &pinned, Held::Definition(&moved), false, Reason::ContractDrift),
        (Pinned, &pinned, Held::Digest(&other), false, Reason::ContractDrift),
        (Pinned, &pinned, Held::Digest(&foreign), true, Reason::ContractUnknown),
        (Pinned, &nothing, Held::Definition(&moved), true, Reason::Unpinned),
        (Pinned, &whole, Held::Definition(&wider), true, Reason::DriftTolerated),
        (Enforce, &pinned, Held::Definition(&held), true, Reason::Pinned),
        (Enforce, &whole, Held::Definition(&wider), true, Reason::DriftTolerated),
        (Enforce, &pinned, Held::Definition(&moved), false, Reason::ContractDrift),
        (Enforce, &nothing, Held::Definition(&held), false, Reason::ContractUnpinned),
        (Enforce, &pinned, Held::Nothing, false, Reason::ContractUnknown),
        (Enforce, &pinned, Held::Digest(&foreign), false, Reason::ContractUnknown),
    ] {
        let answer = check(mode, &fail_on, reference, &holds);
        assert_eq!((answer.proceed, answer.reason), (proceed, reason), "{mode} {holds:?}");
        let drifted = matches!(reason, Reason::ContractDrift | Reason::DriftTolerated);
        assert_eq!(answer.drift.is_some(), drifted);
    }
    assert!(diff(&held, &moved).is_some());
}
