//! TODO: iterate.

pub(crate) mod cursor;
pub(crate) mod iterator;
pub(crate) mod snapshot;
pub(crate) mod snapshot_reads;
pub(crate) mod value_reads;
