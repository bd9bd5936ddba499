//! Bounds of the engine's state. At a bound the least recently touched trace leaves as `evicted`.

/// How much the engine may hold. Sizes in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bones and facts of traces that show no MCP yet.
    pub lookback: usize,
    /// Facts of live traces, by an estimate of what they and their derived tables take; with them
    /// the definitions that anybody read, and what scopes keep of forgotten traces.
    pub facts: usize,
    /// Facts of one trace: an endless trace leaves before others do.
    pub facts_per_trace: usize,
    /// Live chains.
    pub chains: usize,
    /// Scopes: beyond it those without a live chain leave.
    pub scopes: usize,
    /// Incident entries in all.
    pub incidents: usize,
    /// Forgotten traces and processes that are remembered by their names.
    pub names: usize,
    /// Findings on one record.
    pub findings: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            lookback: 64 << 20,
            facts: 160 << 20,
            facts_per_trace: 10_000,
            chains: 131_072,
            scopes: 16_384,
            incidents: 52_428,
            names: 104_857,
            findings: 64,
        }
    }
}
