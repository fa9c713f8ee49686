//! Designs: combinations of an index and its options, among them published systems.
//!
//! ```text
//!  design ... a name, a description, and the options of an index; built-in ones in `designs/`
//!  index .... an LSM-tree or a hash table on any medium, with their common methods
//! ```
//! A KV drive has an index in its firmware, a host's store has one on block drives; an index does
//! not depend on which.

#![forbid(unsafe_code)]

mod design;
mod index;

pub use design::Design;
pub use index::{Index, IndexOptions, IndexSetup};
