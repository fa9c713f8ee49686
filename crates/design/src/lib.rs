//! Designs: which index with which options makes which published system.
//!
//! ```text
//!  design ... a name, a sentence, and the options of an index; TOML files, those in `designs/` are built in
//!  index .... an LSM-tree or a hash table on any medium, with what both have
//! ```
//! A KV drive has one in its firmware, a host's store has one on block drives; neither knows which.

#![forbid(unsafe_code)]

mod design;
mod index;
mod planted;

pub use design::Design;
pub use index::{Index, IndexOptions, IndexSetup};
pub use planted::Planted;
