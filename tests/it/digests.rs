//! Digests against two implementations that share no code with ours: Python's `rfc8785` and
//! JavaScript's `canonicalize`, each with a projection of its own.

use crate::dice::Dice;
use mcp_verdict::catalog::projection::read_definition;
use mcp_verdict::model::digest::Digest;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const RANDOM_TOOLS: usize = 12_000;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/digests").join(name)
}

fn cache(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("digests").join(name)
}

fn ran(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A virtual environment with the pinned package, made once.
fn python() -> PathBuf {
    let (folder, package) = (cache("python"), "rfc8785==0.1.4");
    let program = folder.join("bin/python");
    let stamp = folder.join(package);
    if !stamp.exists() {
        ran(Command::new("python3").args(["-m", "venv"]).arg(&folder));
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package];
        ran(Command::new(&program).args(install));
        std::fs::write(stamp, "").unwrap();
    }
    program
}

/// A folder with the pinned package, made once, and the script in it, which imports the package.
fn javascript() -> PathBuf {
    let (folder, package) = (cache("javascript"), "canonicalize@2.1.0");
    let stamp = folder.join(package);
    if !stamp.exists() {
        std::fs::create_dir_all(&folder).unwrap();
        let install = ["install", "--silent", "--no-audit", "--no-fund", package, "--prefix"];
        ran(Command::new("npm").args(install).arg(&folder));
        std::fs::write(stamp, "").unwrap();
    }
    let script = folder.join("digests.mjs");
    std::fs::copy(data("digests.mjs"), &script).unwrap();
    script
}

fn answers(command: &mut Command, tools: &[String]) -> Vec<String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let text = tools.join("\n") + "\n";
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(ToOwned::to_owned).collect()
}

fn ours(tool: &str) -> String {
    let value: Value = serde_json::from_str(tool).unwrap_or_else(|error| panic!("{error}: {tool}"));
    match read_definition(&value).unwrap().digest {
        Some(digest @ Digest::Tool(_)) => digest.to_string().rsplit(':').next().unwrap().to_owned(),
        _ => "-".to_owned(),
    }
}

fn compare(tools: &[String]) {
    let mut script = Command::new(python());
    let python = answers(script.arg(data("digests.py")), tools);
    let mut script = Command::new("node");
    let javascript = answers(script.arg(javascript()), tools);
    assert_eq!((python.len(), javascript.len()), (tools.len(), tools.len()));
    for (at, tool) in tools.iter().enumerate() {
        let ours = ours(tool);
        assert_eq!((&ours, &ours), (&python[at], &javascript[at]), "tool {at}: {tool}");
    }
}

/// One of several.
fn pick<'a>(dice: &mut Dice, from: &[&'a str]) -> &'a str {
    from[dice.below(from.len())]
}

/// A number in any spelling that JSON has and a double can hold.
fn number(dice: &mut Dice) -> String {
    let special = [
        "0",
        "-0",
        "0.0",
        "-0.0e5",
        "1.0",
        "1e0",
        "10E-1",
        "1E+2",
        "0.000001",
        "0.0000001",
        "1e21",
        "1e20",
        "999999999999999999999",
        "9007199254740991",
        "9007199254740992",
        "9007199254740993",
        "-9007199254740993",
        "18446744073709551615",
        "18446744073709551616",
        "123456789012345678901234567890",
        "5e-324",
        "2.2250738585072014e-308",
        "1.7976931348623157e308",
        "4.35",
        "333333333.33333329",
        "0.1",
        "1e-7",
        "100e-2",
        "1e-400",
    ];
    match dice.roll(6) {
        0 | 1 => pick(dice, &special).to_owned(),
        2 => (dice.next().cast_signed() >> dice.roll(60)).to_string(),
        3 => format!("{}.{}", dice.roll(1000), dice.roll(1_000_000)),
        4 => {
            let (sign, exponent) = (pick(dice, &["", "-"]), pick(dice, &["e", "E+", "e-", "E-0"]));
            format!("{sign}{}.{}{exponent}{}", dice.roll(10), dice.next(), dice.roll(300))
        }
        // Any double at all, in its shortest spelling.
        _ => Some(f64::from_bits(dice.next()))
            .filter(|double| double.is_finite())
            .map_or_else(|| "7".to_owned(), |double| format!("{double:e}")),
    }
}

/// A text with escapes in every form and characters from every plane.
fn text(dice: &mut Dice) -> String {
    let pieces = [
        "a",
        "b",
        "Z",
        " ",
        "\\n",
        "\\t",
        "\\r",
        "\\b",
        "\\f",
        "\\\\",
        "\\\"",
        "\\/",
        "/",
        "\\u0000",
        "\\u001f",
        "\\u007f",
        "\\u0080",
        "\\u00E9",
        "é",
        "e\\u0301",
        "\\u2028",
        "\u{2029}",
        "€",
        "\\u20AC",
        "\u{fb33}",
        "\\uFB33",
        "😀",
        "\\uD83D\\uDE00",
        "\u{10ffff}",
        "\u{e000}",
        "\\uffff",
        "\u{feff}",
        "<",
        "'",
    ];
    let pieces: Vec<&str> = (0..dice.roll(5)).map(|_| pick(dice, &pieces)).collect();
    format!("\"{}\"", pieces.concat())
}

fn value(dice: &mut Dice, depth: u64) -> String {
    match dice.roll(if depth == 0 { 5 } else { 9 }) {
        0 => pick(dice, &["null", "true", "false"]).to_owned(),
        1 | 2 => number(dice),
        3 | 4 => text(dice),
        5 | 6 => {
            let items: Vec<String> = (0..dice.roll(4)).map(|_| value(dice, depth - 1)).collect();
            format!("[{}]", items.join(pick(dice, &[",", " , ", ",  "])))
        }
        _ => object(dice, depth, &[]),
    }
}

/// An object; keys may come twice.
fn object(dice: &mut Dice, depth: u64, first: &[String]) -> String {
    let mut members = first.to_vec();
    for _ in 0..dice.roll(5) {
        let key = match dice.roll(3) {
            0 => text(dice),
            _ => {
                format!("\"{}\"", pick(dice, &["a", "b", "B", "10", "9", "$ref", "\u{fb33}", "😀"]))
            }
        };
        members.push(format!("{key}:{}{}", pick(dice, &["", " "]), value(dice, depth - 1)));
    }
    format!("{{{}}}", members.join(","))
}

fn tool(dice: &mut Dice, seed: u64) -> String {
    let mut members = vec![format!("\"name\":\"tool{seed}\"")];
    for member in [
        "title",
        "description",
        "outputSchema",
        "annotations",
        "execution",
        "icons",
        "_meta",
        "inputSchema",
    ] {
        if dice.roll(if member == "inputSchema" { 20 } else { 3 }) != 0 {
            let content = match member {
                "title" | "description" if dice.roll(4) != 0 => text(dice),
                _ => value(dice, 4),
            };
            members.push(format!("\"{member}\":{content}"));
        }
    }
    if dice.roll(50) == 0 {
        let levels = usize::try_from(10 + dice.roll(90)).unwrap();
        let open = pick(dice, &["[", "{\"not\":"]);
        let close = if open == "[" { "]" } else { "}" };
        let deep = format!("{}1{}", open.repeat(levels), close.repeat(levels));
        members.push(format!("\"inputSchema\":{deep}"));
    }
    object(dice, 2, &members)
}

#[test]
fn random_tools_have_the_digests_that_two_other_implementations_give() {
    let mut dice = Dice(8785);
    let tools: Vec<String> = (0..RANDOM_TOOLS as u64).map(|seed| tool(&mut dice, seed)).collect();
    compare(&tools);
    let with_digest = tools.iter().filter(|tool| ours(tool) != "-").count();
    assert!(with_digest >= 10_000, "{with_digest}");
}

/// Written once by the Python script, for machines without Python and Node.
#[test]
fn golden_vectors_hold() {
    let golden = std::fs::read_to_string(data("golden.jsonl")).unwrap();
    let mut seen = 0;
    for line in golden.lines() {
        let (digest, tool) = line.split_once(' ').unwrap();
        assert_eq!(ours(tool), digest, "{tool}");
        seen += 1;
    }
    assert!(seen >= 40, "{seen}");
    let mut again = String::new();
    for line in golden.lines() {
        let (_, tool) = line.split_once(' ').unwrap();
        writeln!(again, "{} {tool}", ours(tool)).unwrap();
    }
    assert_eq!(again, golden);
}
