//! What clients of an index ask for and are told, whichever index it is.

use crate::Value;

/// What a Get found, and what it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup {
    /// The value, if the key has one.
    pub value: Option<Value>,
    /// Flash reads it took.
    pub flash_reads: u32,
}

/// When a conditional write goes ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    /// Whatever is there.
    Always,
    /// Only over an existing value.
    MustExist,
    /// Only where there is no value.
    MustNotExist,
}

/// Whether clients may write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fullness {
    /// They may, or wait for collection to make room.
    Room,
    /// Only deletes: there is no garbage left to collect.
    Full,
    /// Not even deletes can be flushed.
    Stuck,
}
