//! The words of the product (judgment.md §1, 2, 7, 9): identities, facts, cases, records and the
//! registries of every closed vocabulary. Pure data: no rule, no I/O, no clock.

pub mod attributes;
pub mod case;
pub mod content;
pub mod digest;
pub mod evidence;
pub mod fact;
pub mod findings;
pub mod ids;
mod json_text;
pub mod policy;
pub mod rare;
pub mod record;
pub mod words;
