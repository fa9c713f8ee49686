//! The hash table that the LSM engine is compared with: the commands of the engine on a flat table of
//! slots in bucket pages. What it is, and its invariants, stand at the top of `hash.rs`.
//!
//! It stands on `pages`, as the engine does, and knows nothing of the engine.

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
