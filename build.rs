//! Compiles `proto/` with a parser written in Rust: no `protoc` is needed.

use std::error::Error;
use std::path::Path;

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let files =
        ["evidence", "service", "verdict"].map(|name| format!("mcp_verdict/v1/{name}.proto"));
    let descriptors = protox::compile(files, ["proto"])?;
    let out = std::env::var("OUT_DIR")?;
    std::fs::write(Path::new(&out).join("mcp_verdict.v1.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure().btree_map(".").compile_fds(descriptors)?;
    Ok(())
}
