//! What the program is shipped with: manual pages and completions, the systemd unit, the chart, the
//! Debian package. What can be printed from the program is; the rest is held to it.
//!
//! `UPDATE_DOCS=1 cargo test packaging` writes manual pages and completions anew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::CommandFactory;
use clap_complete::Shell;
use mcp_verdict::cli::Cli;
use mcp_verdict::config::{Sources, load_with};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn text(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Manual pages and completions as the command line is now, by path.
fn printed() -> BTreeMap<PathBuf, String> {
    let mut printed = BTreeMap::new();
    let folder = tempfile::tempdir().unwrap();
    clap_mangen::generate_to(Cli::command(), folder.path()).unwrap();
    for page in std::fs::read_dir(folder.path()).unwrap() {
        let page = page.unwrap().path();
        let name = Path::new("packaging/man").join(page.file_name().unwrap());
        printed.insert(name, std::fs::read_to_string(page).unwrap());
    }
    let completions = [
        (Shell::Bash, "mcp-verdict.bash"),
        (Shell::Zsh, "_mcp-verdict"),
        (Shell::Fish, "mcp-verdict.fish"),
    ];
    for (shell, name) in completions {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "mcp-verdict", &mut script);
        let script = String::from_utf8(script).unwrap();
        printed.insert(Path::new("packaging/completions").join(name), script);
    }
    printed
}

/// Scenario: the command line of today. Guarantees: the manual pages and completions that are shipped
/// tell of it, and of nothing else.
#[test]
fn packaging_manuals_and_completions_are_of_this_program() {
    let printed = printed();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        for (name, text) in &printed {
            std::fs::create_dir_all(root().join(name).parent().unwrap()).unwrap();
            std::fs::write(root().join(name), text).unwrap();
        }
    }
    assert!(printed.contains_key(Path::new("packaging/man/mcp-verdict-replay.1")));
    for (name, wanted) in &printed {
        let written = std::fs::read_to_string(root().join(name)).unwrap_or_default();
        let name = name.display();
        assert!(written == *wanted, "{name} is out of date: UPDATE_DOCS=1 cargo test packaging");
    }
    for folder in ["packaging/man", "packaging/completions"] {
        for file in std::fs::read_dir(root().join(folder)).unwrap() {
            let name = Path::new(folder).join(file.unwrap().file_name());
            assert!(printed.contains_key(&name), "{} is of no command", name.display());
        }
    }
}

const UNIT: &str = "packaging/systemd/mcp-verdict.service";

/// The value of a setting of the unit; the last one where it stands twice.
fn setting<'a>(unit: &'a str, key: &str) -> Option<&'a str> {
    unit.lines().rev().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
}

/// Scenario: the unit, as systemd reads it where systemd is here. Guarantees: its command is one that
/// the program takes; it ends later than the program's own patience, and is not started again for
/// what a restart does not mend; systemd finds no mistake in it, and calls it safe.
#[test]
fn packaging_unit_is_sound_and_hardened() {
    use clap::Parser;
    let unit = text(UNIT);
    let command = setting(&unit, "ExecStart").unwrap();
    assert!(Cli::try_parse_from(command.split(' ')).is_ok(), "{command}");
    let seconds = setting(&unit, "TimeoutStopSec").and_then(|text| text.strip_suffix('s'));
    let settings = load_with(&Sources { files: Vec::new(), set: Vec::new() }, &|_| None).unwrap();
    let patience = settings.service.shutdown_timeout / 1_000_000_000;
    assert!(seconds.unwrap().parse::<u64>().unwrap() > patience);
    let mut unmended = setting(&unit, "RestartPreventExitStatus").unwrap().split(' ');
    assert!(unmended.any(|code| code == "64"));
    for key in ["NoNewPrivileges", "PrivateDevices", "DynamicUser", "MemoryDenyWriteExecute"] {
        assert_eq!(setting(&unit, key), Some("yes"), "{key}");
    }
    let Ok(there) = Command::new("systemd-analyze").arg("--version").output() else { return };
    let version = String::from_utf8_lossy(&there.stdout).into_owned();
    let version = version.split_whitespace().nth(1).and_then(|text| text.parse().ok());
    // What looks at a file alone came with 250.
    if version.unwrap_or(0) < 250 {
        return;
    }
    // Where the program is not installed, systemd would find that it is not there.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("mcp-verdict.service");
    let here = unit.replace("/usr/bin/mcp-verdict", env!("CARGO_BIN_EXE_mcp-verdict"));
    std::fs::write(&copy, &here).unwrap();
    let analyze = |arguments: &[&str]| {
        let done = Command::new("systemd-analyze").args(arguments).arg(&copy).output().unwrap();
        let said = [done.stdout, done.stderr].concat();
        (done.status.success(), String::from_utf8_lossy(&said).into_owned())
    };
    let (good, said) = analyze(&["verify", "--man=no", "--recursive-errors=no"]);
    assert!(good && !said.contains("mcp-verdict.service:"), "{said}");
    // Of 100: "OK" is below 20. The network is its trade.
    let (good, said) = analyze(&["security", "--offline=true", "--threshold=20", "--no-pager"]);
    assert!(good, "{said}");
    std::fs::write(&copy, here.replace("PrivateDevices", "PrivateDevicez")).unwrap();
    let (_, said) = analyze(&["verify", "--man=no", "--recursive-errors=no"]);
    assert!(said.contains("PrivateDevicez"), "a mistake is found: {said}");
}

/// The part of a YAML file below a top-level key, moved to the left.
fn below(yaml: &str, key: &str) -> String {
    let lines = yaml.lines().skip_while(|line| *line != format!("{key}:")).skip(1);
    let part = lines.take_while(|line| line.is_empty() || line.starts_with("  "));
    part.map(|line| format!("{}\n", line.get(2..).unwrap_or_default())).collect()
}

/// Scenario: the chart as it is. Guarantees: its configuration is one that the program takes, with the
/// ports and the folder that its templates name; it is of this version. Helm itself reads it in the
/// long ladder.
#[test]
fn packaging_chart_is_of_this_program() {
    let (chart, values) =
        (text("charts/mcp-verdict/Chart.yaml"), text("charts/mcp-verdict/values.yaml"));
    for key in ["version: ", "appVersion: "] {
        let line = chart.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        assert_eq!(line.trim_matches('"'), env!("CARGO_PKG_VERSION"), "{key}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, below(&values, "config")).unwrap();
    let settings = load_with(&Sources { files: vec![file], set: Vec::new() }, &|_| None).unwrap();
    assert!(settings.warnings.is_empty(), "{:?}", settings.warnings);
    let pod = text("charts/mcp-verdict/templates/statefulset.yaml");
    let endpoints = below(&values, "config");
    let ports: Vec<&str> =
        endpoints.split("0.0.0.0:").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(ports, ["4317", "4318", "8888", "13133", "55679"]);
    for port in ports {
        assert!(pod.contains(&format!("containerPort: {port} ")), "{port}");
    }
    assert!(endpoints.contains("directory: /var/lib/mcp-verdict/"));
    assert!(pod.contains("mountPath: /var/lib/mcp-verdict }"));
    let grace =
        values.lines().find_map(|line| line.strip_prefix("terminationGracePeriodSeconds: "));
    let patience = settings.service.shutdown_timeout / 1_000_000_000;
    assert!(grace.unwrap().parse::<u64>().unwrap() > patience);
}

/// Scenario: the Debian package's metadata. Guarantees: every file that it takes is in the tree, but
/// the binary.
#[test]
fn packaging_debian_takes_what_is_there() {
    let cargo: toml_edit::DocumentMut = text("Cargo.toml").parse().unwrap();
    let assets = cargo["package"]["metadata"]["deb"]["assets"].as_array().unwrap();
    let sources: Vec<&str> = assets
        .iter()
        .map(|asset| asset.as_array().unwrap().get(0).unwrap().as_str().unwrap())
        .collect();
    assert!(sources.contains(&"target/release/mcp-verdict"));
    for source in sources.iter().filter(|source| !source.starts_with("target/")) {
        let folder = root().join(source.split("/*").next().unwrap());
        assert!(folder.exists(), "{source}");
    }
    for (name, folder) in [("man", "packaging/man/*.1"), ("unit", UNIT)] {
        assert!(sources.contains(&folder), "no {name}");
    }
}
