//! Documents that are generated from the registries: what they say is what the program reads.
//!
//! `UPDATE_DOCS=1 cargo test docs` writes them anew.

use std::fmt::Write;
use std::path::Path;

const BEGIN: &str = "<!-- keys: generated from the registry by a test -->\n";
const END: &str = "<!-- end of keys -->\n";

/// One line for each key, as the registry has it.
fn table() -> String {
    let mut table = String::from("| key | form | default | says |\n| --- | --- | --- | --- |\n");
    for row in mcp_verdict::config::keys::rows() {
        let form = row.form.describe().replace('|', "\\|");
        let default = match row.default {
            "" => String::new(),
            default => format!("`{default}`"),
        };
        let says = row.says.replace('|', "\\|");
        writeln!(table, "| `{}` | {form} | {default} | {says} |", row.path).unwrap();
    }
    table
}

#[test]
fn configuration_reference_lists_every_key() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the begin marker");
    let (written, after) = rest.split_once(END).expect("the end marker");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", table())).unwrap();
        return;
    }
    assert!(written == table(), "docs/configuration.md is out of date: UPDATE_DOCS=1 cargo test docs");
}
