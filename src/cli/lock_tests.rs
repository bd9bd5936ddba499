//! `mcp-verdict lock` end to end, without a process: exit codes, files, every form of output.

use super::Exit;
use super::lock::{LockArgs, Stop, Surroundings, run_with};
use clap::Parser;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    lock: LockArgs,
}

struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Desk {
        Desk { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name).display().to_string()
    }

    fn read(&self) -> String {
        std::fs::read_to_string(self.path("mcp-tools.lock")).unwrap_or_default()
    }

    /// Exit code and what was said.
    fn lock(&self, words: &[&str], input: &str) -> (Exit, String) {
        let file = self.path("mcp-tools.lock").display().to_string();
        let mut all = vec!["lock"];
        all.extend(words);
        all.extend(["--lockfile", &file]);
        let program = Program::try_parse_from(all).unwrap();
        let mut output = Vec::new();
        let mut bytes = input.as_bytes();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_322_800);
        let mut around = Surroundings { input: &mut bytes, output: &mut output, now };
        let done = run_with(&program.lock, &mut around);
        let text = String::from_utf8(output).unwrap();
        match done {
            Ok(exit) => (exit, text),
            Err(Stop::Told(exit, told)) => (exit, told),
            Err(Stop::Output(error)) => panic!("{error}"),
        }
    }
}

fn tool(name: &str, parameter: &str, description: &str) -> String {
    format!(
        r#"{{"name":"{name}","description":"{description}","inputSchema":{{"type":"object",
        "properties":{{"{parameter}":{{"type":"string"}}}}}}}}"#
    )
}

fn page(tools: &[String]) -> String {
    format!(r#"{{"tools":[{}]}}"#, tools.join(","))
}

#[test]
fn a_list_of_nothing_says_so() {
    let desk = Desk::new();
    let (exit, says) = desk.lock(&["list"], "");
    assert_eq!(
        (exit, says.contains("is not there: nothing is pinned")),
        (Exit::No, true),
        "{says}"
    );
    let listed = desk.write("a.json", &page(&[tool("find", "query", "")]));
    assert_eq!(desk.lock(&["init", "--server", "srv", &listed], "").0, Exit::Done);
    assert_eq!(desk.lock(&["list", "--server", "srv"], "").0, Exit::Done);
    let (exit, says) = desk.lock(&["list", "--server", "other"], "");
    assert_eq!((exit, says.contains("it has pins of {\"srv\"}")), (Exit::No, true), "{says}");
}

#[test]
fn pin_check_review_approve() {
    let desk = Desk::new();
    let before =
        desk.write("a.json", &page(&[tool("find", "query", "Find it"), tool("put", "x", "")]));
    let after = desk.write("b.json", &page(&[tool("find", "q", "Find it"), tool("new", "x", "")]));
    let (exit, says) = desk.lock(&["check", &before], "");
    assert_eq!(exit, Exit::Input, "{says}");
    assert_eq!(desk.lock(&["init", &before], "").0, Exit::Input, "whose?");
    let (exit, says) = desk.lock(&["init", "--server", "srv", &before], "");
    assert_eq!((exit, says.contains("2 tools pinned")), (Exit::Done, true), "{says}");
    assert!(desk.read().contains("approved_at = \"2026-01-02T03:00:00Z\""), "{}", desk.read());
    assert_eq!(desk.lock(&["init", "--server", "srv", &before], "").0, Exit::Input, "twice");
    assert_eq!(desk.lock(&["check", &before], "").0, Exit::Done);
    assert_eq!(
        desk.lock(&["check"], &page(&[tool("put", "x", ""), tool("find", "query", "Find it")])).0,
        Exit::Done,
        "from stdin, in another order"
    );
    let (exit, says) = desk.lock(&["check", &after], "");
    assert_eq!(exit, Exit::No, "{says}");
    for line in [
        "breaking property_renamed /inputSchema/properties/query",
        "unpinned",
        "breaking tool_removed",
        "0 same, 1 drifted, 1 unpinned, 1 removed",
    ] {
        assert!(says.contains(line), "{line:?} in\n{says}");
    }
    assert!(!says.contains("Find it"), "no text without both definitions\n{says}");
    let (exit, says) = desk.lock(&["diff", "--against", &before, &after], "");
    assert_eq!(exit, Exit::No);
    assert!(says.contains("- {\"type\":\"string\"}"), "{says}");
    let (exit, _) = desk.lock(&["approve", &after], "");
    assert_eq!((exit, desk.lock(&["check", &after], "").0), (Exit::Done, Exit::Done));
    assert!(!desk.read().contains("\"put\""), "{}", desk.read());
    let (exit, says) = desk.lock(&["list"], "");
    assert_eq!((exit, says.lines().count()), (Exit::Done, 2), "{says}");
}

#[test]
fn approval_is_of_what_was_reviewed() {
    let desk = Desk::new();
    let reviewed = desk.write("a.json", &page(&[tool("find", "query", "1"), tool("put", "x", "")]));
    let moved = desk.write("b.json", &page(&[tool("find", "query", "2"), tool("put", "x", "")]));
    desk.lock(&["init", "--server", "srv", &reviewed], "");
    let digest = |file: &str, name: &str| {
        let text = std::fs::read_to_string(file).unwrap();
        let tools = crate::catalog::listing::tools_from_json(&text).unwrap();
        let tool = tools.iter().find(|tool| tool.name.as_str() == name).unwrap();
        tool.digest.clone().unwrap().to_string()
    };
    let before = desk.read();
    let stale = digest(&reviewed, "find");
    let (exit, says) = desk.lock(&["approve", "--tool", "find", "--expect", &stale, &moved], "");
    assert_eq!(exit, Exit::No, "{says}");
    assert!(says.contains("moved again"), "{says}");
    assert_eq!(desk.read(), before);
    let fresh = digest(&moved, "find");
    let (exit, _) = desk.lock(&["approve", "--tool", "find", "--expect", &fresh, &moved], "");
    assert_eq!((exit, desk.lock(&["check", &moved], "").0), (Exit::Done, Exit::Done));
    for wrong in ["abc", "sep-2636:sha256:00"] {
        assert_eq!(desk.lock(&["approve", "--expect", wrong, &moved], "").0, Exit::Input);
    }
    assert_eq!(desk.lock(&["approve", "--tool", "ghost", &moved], "").0, Exit::Input);
}

#[test]
fn what_cannot_be_checked_is_neither_same_nor_drift() {
    let desk = Desk::new();
    let good = desk.write("a.json", &page(&[tool("find", "query", "")]));
    desk.lock(&["init", "--server", "srv", &good], "");
    let first = page(&[tool("find", "query", "")]).replace("]}", "],\"nextCursor\":\"\"}");
    for (input, why) in [
        ("", "no tools"),
        ("{", "line 1"),
        (r#"{"error":{}}"#, "JSON-RPC error"),
        (first.as_str(), "goes on"),
        (r#"{"tools":[{"name":"find"}]}"#, "no inputSchema"),
        (r#"{"tools":[5]}"#, "not tool definitions"),
        (r#"[{"name":"a","inputSchema":{}},{"name":"a","inputSchema":{"x":1}}]"#, "twice"),
        (r#"{"resourceSpans":[]}"#, "recording"),
    ] {
        let (exit, says) = desk.lock(&["check", "-"], input);
        assert_eq!(exit, Exit::Input, "{input}: {says}");
        assert!(says.contains(why), "{input}: {says}");
    }
    let (exit, says) = desk.lock(&["check", "nowhere.json"], "");
    assert_eq!(
        (exit, says.starts_with("nowhere.json: cannot read")),
        (Exit::Input, true),
        "{says}"
    );
    let pages = [desk.write("1.json", &first), desk.write("2.json", r#"{"tools":[]}"#)];
    assert_eq!(desk.lock(&["check", &pages[0], &pages[1]], "").0, Exit::Done, "two pages");
    desk.write("mcp-tools.lock", "<<<<<<< ours\nversion = 1\n");
    let (exit, says) = desk.lock(&["approve", "--server", "srv", &good], "");
    assert_eq!(exit, Exit::Input);
    assert!(says.contains("line 1: a conflict marker"), "{says}");
    assert_eq!(desk.read(), "<<<<<<< ours\nversion = 1\n");
}

#[test]
fn every_form_says_the_same() {
    let desk = Desk::new();
    let before = desk.write("a.json", &page(&[tool("a<b", "query", "x"), tool("same", "x", "")]));
    let after = desk.write("b.json", &page(&[tool("a<b", "query", "y"), tool("same", "x", "")]));
    desk.lock(&["init", "--server", "srv", &before], "");
    let print = |form: &str| desk.lock(&["check", "--format", form, &after], "");
    let (exit, json) = print("json");
    assert_eq!(exit, Exit::No);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["tools"][0]["changes"][0]["pointer"], "/description");
    assert_eq!(json["tools"][0]["grade"], "semantic");
    assert_eq!(json["tools"][1]["status"], "same");
    let (_, sarif) = print("sarif");
    let sarif: serde_json::Value = serde_json::from_str(&sarif).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(
        (&result["ruleId"], &result["level"]),
        (&"contract/semantic".into(), &"warning".into())
    );
    assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), 1);
    let (_, junit) = print("junit");
    assert!(junit.contains("tests=\"2\" failures=\"1\""), "{junit}");
    assert!(junit.contains("name=\"a&lt;b\""), "{junit}");
    assert!(junit.contains("message=\"semantic text_changed /description\""), "{junit}");
}

/// Scenario: every status there is, of tools and servers with names made to break a report, in a
/// lockfile whose path is no URI. Guarantees: the report is SARIF 2.1.0 by its own schema, and a
/// report that is not would be told.
#[test]
fn sarif_is_what_its_schema_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/schemas/sarif-2.1.0.json");
    // As published it has one bracket too many, which strict readers of patterns refuse.
    let text = std::fs::read_to_string(path).unwrap().replace("-[a-zA-Z]{2}]?$", "-[a-zA-Z]{2}?$");
    let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
    let schema = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let desk = Desk::new();
    let hostile = r#"a: <b>\u001b[31m\"%zz #ø"#;
    let pinned = [tool(hostile, "query", "x"), tool("gone", "x", ""), tool("moved", "x", "old")];
    let listed = [tool(hostile, "q", "x"), tool("new", "x", ""), tool("moved", "x", "another")];
    let (before, after) =
        (desk.write("a.json", &page(&pinned)), desk.write("b.json", &page(&listed)));
    let file = desk.path("my tools: 100%.lock").display().to_string();
    let lock = |words: &[&str]| {
        let words = [&["lock"], words, &["--lockfile", &file, "--server", "sr\u{7}v/ö"]].concat();
        let mut output = Vec::new();
        let now = SystemTime::UNIX_EPOCH;
        let mut around = Surroundings { input: &mut &[][..], output: &mut output, now };
        let done = run_with(&Program::try_parse_from(words).unwrap().lock, &mut around);
        (done.unwrap(), String::from_utf8(output).unwrap())
    };
    assert_eq!(lock(&["init", &before]).0, Exit::Done);
    let (exit, text) = lock(&["check", "--format", "sarif", &after]);
    assert_eq!(exit, Exit::No);
    let mut sarif: serde_json::Value = serde_json::from_str(&text).unwrap();
    let wrong: Vec<String> = schema.iter_errors(&sarif).map(|error| error.to_string()).collect();
    assert_eq!(wrong, Vec::<String>::new(), "{text}");
    assert!(sarif["runs"][0]["results"].as_array().unwrap().len() >= 4, "{text}");
    assert!(schema.is_valid(
        &serde_json::from_str(&lock(&["check", "--format", "sarif", &before]).1).unwrap()
    ));
    sarif["runs"][0]["results"][0]["level"] = "awful".into();
    assert!(!schema.is_valid(&sarif));
}

#[test]
fn a_recording_is_read_by_server() {
    let desk = Desk::new();
    let data =
        |case: &str| format!("{}/tests/data/cases/{case}/input.jsonl", env!("CARGO_MANIFEST_DIR"));
    let recording = data("seed-contract-1-unchanged");
    let (exit, says) = desk.lock(&["init", "--server", "srv", &recording], "");
    assert_eq!(exit, Exit::Done, "{says}");
    assert_eq!(desk.lock(&["check", &recording], "").0, Exit::Done);
    let (exit, says) = desk.lock(&["check", &data("seed-contract-2-renamed")], "");
    assert_eq!(exit, Exit::No, "{says}");
    assert!(says.contains("property_renamed /inputSchema/properties/query"), "{says}");
    let (exit, says) = desk.lock(&["check", "--server", "other", &recording], "");
    assert_eq!(exit, Exit::Input, "{says}");
}
