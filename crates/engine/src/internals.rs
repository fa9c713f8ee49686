//! Internals for tests of other crates and of whole stores. Not a part of the interface.

pub use crate::format::page;
pub use crate::space::PageStore;
pub use crate::space::apart::Apart;
pub use crate::space::priority::Claimant;
