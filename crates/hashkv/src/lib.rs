//! The hash table that the LSM engine is compared with: the engine's operations on a flat table of
//! slots in bucket pages. `hash.rs` describes the design and its invariants.
//!
//! The crate is built on `pages`, as the engine is, and does not depend on the engine.

#![forbid(unsafe_code)]

mod bucket;
#[cfg(test)]
mod fuzz_tests;
mod hash;
mod options;
mod planted;
mod stats;

pub use hash::HashEngine;
pub use hash::open::HashSetup;
pub use options::HashOptions;
pub use planted::{Fault, Planted};
pub use stats::HashStats;
