//! What an oracle says about a Get or a scan that returned what it may not.

use std::fmt;

use runtime::Nanos;

use super::versions::ordinal;
use crate::value::Stamp;

/// What no order of the writes explains, in an answer to a Get or a scan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The session's seed.
    pub seed: u64,
    /// The number of the operation within its phase, from 1, in the order of issue.
    pub operation: u64,
    /// When the answer came, in virtual time.
    pub at: Nanos,
    /// The key, escaped to ASCII.
    pub key: String,
    /// The number the key was made from; `None` if it is none of the session's keys.
    pub key_number: Option<u64>,
    /// What sort of wrong it is.
    pub kind: MismatchKind,
    /// Everything that would have been right.
    pub expected: String,
    /// What came.
    pub got: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, operation, at, key, key_number, kind, expected, got } = self;
        write!(f, "seed {seed}, operation {operation}, at {at}: key {key}")?;
        if let Some(number) = key_number {
            write!(f, " (number {number})")?;
        }
        write!(f, ": {kind}: expected {expected}, got {got}")
    }
}

/// The ways to be wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MismatchKind {
    /// There must be a value, and there was none.
    Lost,
    /// There must be no value, and there was one that was deleted before.
    Resurrected,
    /// A value that a later write had replaced, as that write's acknowledgement said.
    Stale,
    /// A value of another key, a damaged one, or one that was never written.
    Foreign,
    /// A scan passed over a key that its snapshot holds.
    Skipped,
    /// A scan gave a value that was written after its snapshot had been taken.
    Newer,
    /// A scan gave a key that is not above the one before.
    OutOfOrder,
    /// A scan gave a key below the one sought, or not below its bound.
    OutOfBounds,
    /// A scan gave a key that was never written.
    ForeignKey,
}

impl fmt::Display for MismatchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lost => "lost write",
            Self::Resurrected => "deleted value is back",
            Self::Stale => "stale value",
            Self::Foreign => "foreign value",
            Self::Skipped => "key skipped",
            Self::Newer => "value newer than the snapshot",
            Self::OutOfOrder => "key out of order",
            Self::OutOfBounds => "key out of bounds",
            Self::ForeignKey => "foreign key",
        })
    }
}

/// What a Get returned, as far as it can be told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Finding {
    Nothing,
    /// The value of this version of the key.
    Write(u32),
    /// The undamaged value of another key.
    OtherKey(Stamp),
    /// A value that was written, but not like this.
    Damaged(Stamp, String),
    /// No write is known to have produced it.
    Unknown,
}

/// A Get that returned what it may not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Surprise {
    pub(crate) kind: MismatchKind,
    pub(crate) finding: Finding,
}

pub(super) fn write_name(version: u32) -> String {
    format!("write {}", ordinal(version))
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Write(version) => f.write_str(&write_name(*version)),
            Self::OtherKey(Stamp { key, version }) => {
                write!(f, "the value of key number {key}, write {}", ordinal(*version))
            }
            Self::Damaged(Stamp { key, version }, problem) => {
                let ordinal = ordinal(*version);
                write!(f, "the value of key number {key}, write {ordinal}, but {problem}")
            }
            Self::Unknown => f.write_str("a value that was never written"),
        }
    }
}
