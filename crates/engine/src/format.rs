//! The encoding of meta segments. Pure; no I/O.

pub(crate) mod columns;
pub(crate) mod entry;
pub(crate) mod group_index;
pub(crate) mod inlining;
pub(crate) mod key_heads;
pub(crate) mod meta_segment;
pub(crate) mod outline;
