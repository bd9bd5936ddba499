//! The one integration test binary: a module an area, so that the crate links once.

mod digests;
mod order;
mod wire;
