//! Documents that are generated from the registries: what they say is what the program reads.
//!
//! `UPDATE_DOCS=1 cargo test docs` writes them anew.

use std::fmt::Write;
use std::path::Path;

use mcp_verdict::config::keys;
use mcp_verdict::emit::metrics::{self, METRICS};
use mcp_verdict::model::words::Owner;
use mcp_verdict::telemetry::registry::{self, PROCESS_METRICS};

const BEGIN: &str = "<!-- generated from the registry by a test -->\n";
const END: &str = "<!-- end -->\n";

/// Holds what stands between the markers of a document to a table.
fn check(document: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the begin marker");
    let (written, after) = rest.split_once(END).expect("the end marker");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    assert!(written == table, "{document} is out of date: UPDATE_DOCS=1 cargo test docs");
}

#[test]
fn configuration_reference_lists_every_key() {
    let mut table = String::from("| key | form | default | says |\n| --- | --- | --- | --- |\n");
    for row in keys::rows() {
        let form = row.form.describe().replace('|', "\\|");
        let default = match row.default {
            "" => String::new(),
            default => format!("`{default}`"),
        };
        let says = row.says.replace('|', "\\|");
        writeln!(table, "| `{}` | {form} | {default} | {says} |", row.path).unwrap();
    }
    check("docs/configuration.md", &table);
}

#[test]
fn metrics_reference_lists_every_metric() {
    let mut table =
        String::from("| on Prometheus | kind | labels | says |\n| --- | --- | --- | --- |\n");
    for metric in METRICS {
        let (ending, kind) = match metric.kind {
            metrics::Kind::Counter => ("_total", "counter"),
            metrics::Kind::Gauge => ("", "gauge"),
            metrics::Kind::Histogram => ("_seconds", "histogram"),
        };
        line(&mut table, metric.name, ending, kind, metric.labels, metric.says);
    }
    for metric in PROCESS_METRICS {
        let (ending, kind) = match metric.kind {
            registry::Kind::Counter => ("_total", "counter"),
            registry::Kind::Gauge => ("", "gauge"),
        };
        line(&mut table, metric.name, ending, kind, metric.labels, metric.says);
    }
    check("docs/metrics.md", &table);
}

fn line(table: &mut String, name: &str, ending: &str, kind: &str, labels: &[&str], says: &str) {
    let name = name.replace('.', "_");
    let labels = labels.join(", ");
    writeln!(table, "| `{name}{ending}` | {kind} | {labels} | {says} |").unwrap();
}

fn shipped(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("otel-config");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn every_owner_has_an_alert_and_two_receivers() {
    let (alerts, routes) = (shipped("alerts.yaml"), shipped("alertmanager.yaml"));
    let groups = alerts.split("- name: ").find(|group| group.starts_with("mcp-verdict-owners"));
    let owned = groups.expect("the group of owners");
    for owner in Owner::ALL.iter().filter(|owner| **owner != Owner::None) {
        let alert = owned.split("- alert: ").filter(|alert| {
            alert.lines().any(|line| line.trim().ends_with(&format!(", owner: {owner} }}")))
        });
        assert_eq!(alert.count(), 1, "alerts.yaml: one alert of {owner}");
        for receiver in [owner.to_string(), format!("{owner}/over")] {
            let both = [format!("receiver: {receiver}\n"), format!("- name: {receiver}\n")];
            let there = both.iter().all(|line| routes.contains(line));
            assert!(there, "alertmanager.yaml: a route and a receiver {receiver}");
        }
    }
}
