//! Compiles `proto/` with a parser written in Rust: no `protoc` is needed.

use std::error::Error;
use std::path::Path;

use prost::Message;

/// Messages that the HTTP API prints as they are.
const PRINTED: [&str; 14] = [
    "GetOverviewResponse",
    "Calls",
    "Minute",
    "OwnedIncidents",
    "GetNamesResponse",
    "HeldContract",
    "ListContractsResponse",
    "GetHealthResponse",
    "Part",
    "Receives",
    "Metric",
    "GetCoverageResponse",
    "ToolCoverage",
    "LayerCoverage",
];

/// Their fields that it prints in a form of their own.
const PRINTED_AS: [(&str, &str); 5] = [
    ("Minute.start", r#"serialize_with = "time""#),
    ("HeldContract.seen", r#"serialize_with = "time_or_null""#),
    ("HeldContract.first_seen", r#"serialize_with = "time_or_null""#),
    ("ListContractsResponse.next_page_token", r#"serialize_with = "text_or_null""#),
    ("Part.why", r#"skip_serializing_if = "String::is_empty""#),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let files = ["evidence", "service", "status", "verdict"]
        .map(|name| format!("mcp_verdict/v1/{name}.proto"));
    let descriptors = protox::compile(files, ["proto"])?;
    let out = std::env::var("OUT_DIR")?;
    std::fs::write(Path::new(&out).join("mcp_verdict.v1.bin"), descriptors.encode_to_vec())?;
    let mut messages = tonic_prost_build::configure().btree_map(".");
    for message in PRINTED {
        let message = format!("mcp_verdict.v1.{message}");
        messages = messages.type_attribute(message, "#[derive(serde::Serialize)]");
    }
    for (field, how) in PRINTED_AS {
        let field = format!("mcp_verdict.v1.{field}");
        messages = messages.field_attribute(field, format!("#[serde({how})]"));
    }
    messages.compile_fds(descriptors)?;
    Ok(())
}
