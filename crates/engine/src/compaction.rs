//! TODO: compaction.

pub(crate) mod columns;
pub(crate) mod groups;
pub(crate) mod leveled;
pub(crate) mod manual;
pub(crate) mod sliced;
