//! The engine: all state, no rule (design: tables in strata). Facts go in, verdicts come out; the
//! same code runs live, in replay and under test.
//!
//! State is a set of facts; everything else is derived from it. A stratum's table maps a key to the
//! output of one pure function over its sorted inputs. A new fact marks keys; a round takes the
//! strata from top to bottom, computes the marked keys anew and compares: an equal output marks
//! nothing below. No stratum reads one below itself, so one round reaches the fixed point.
//!
//! | stratum | key | file |
//! | --- | --- | --- |
//! | look-back, process | resource instance | `lookback`, `fold` |
//! | request | trace | `requests` |
//! | join | (session or process, id), then (method, tool's last word) | `joins` |
//! | chain | asking half, else answering half | `chains` |
//! | notification, scope | scope key | `notes`, `scopes`, `scope_view`, `hearers` |
//! | reference | (server, context, tool) | `references` |
//! | ending, operation, verdict | chain; operation key | `verdicts`, `case` |
//! | records | server; scope | `records` |
//!
//! What outlives a process is in `checkpoint` and `claims`.
//!
//! Promises: no I/O, no clock, no randomness, no panic; time is an argument; the final verdicts do
//! not depend on arrival order, batching or duplication.

mod case;
mod chains;
mod checkpoint;
mod claims;
mod crossings;
mod explain;
mod few;
mod fold;
mod forget;
mod hearers;
mod history;
mod holding;
mod incidents;
mod interned;
mod joins;
mod limits;
mod listed;
mod live;
mod lookback;
mod namesakes;
mod notes;
mod records;
mod references;
mod reload;
mod replay;
mod requests;
mod residue;
mod scope_view;
mod scopes;
mod tables;
mod verdicts;
mod whatif;

pub use checkpoint::{Checkpoint, FORMAT};
pub use claims::Claim;
pub use explain::{Explained, Role, explain};
pub use limits::Limits;
pub use live::{Effect, Engine};
pub use replay::{Revisions, replay};
pub use whatif::WhatIf;
