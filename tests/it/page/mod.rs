//! The page's port and its gRPC twin, through the whole program: the check before a call, chains,
//! incidents, and who may ask.

mod access;
mod checks;
mod covered;
mod described;
mod instance;
mod lists;
mod many;
pub mod support;
mod twins;
mod view;
