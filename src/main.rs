//! The `mcp-verdict` program: everything it does is in the library, so that tests drive the same code.

fn main() {}
