//! Mismatches: wrong results of Gets and scans.

use std::fmt;

use runtime::Nanos;

use super::versions::ordinal;
use crate::value::Stamp;

/// A result of a Get or a scan that no order of the writes explains.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The session's seed.
    pub seed: u64,
    /// The number of the operation within its phase, from 1, in the order of issue.
    pub operation: u64,
    /// Time of the result, in virtual time.
    pub at: Nanos,
    /// The key, escaped to ASCII.
    pub key: String,
    /// The number of the key; `None` if it is not one of the session's keys.
    pub key_number: Option<u64>,
    /// Kind of the mismatch.
    pub kind: MismatchKind,
    /// All correct results.
    pub expected: String,
    /// The actual result.
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

/// Kinds of mismatches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MismatchKind {
    /// No value was found, although one must exist.
    Lost,
    /// A deleted value was found, although none may exist.
    Resurrected,
    /// A value that a later, acknowledged write had replaced.
    Stale,
    /// A value of another key, a damaged value, or one that was never written.
    Foreign,
    /// A scan skipped a key of its snapshot.
    Skipped,
    /// A scan returned a value that was written after its snapshot was taken.
    Newer,
    /// A scan returned a key that is not above the previous one.
    OutOfOrder,
    /// A scan returned a key below the sought one, or not below its bound.
    OutOfBounds,
    /// A scan returned a key that was never written.
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

/// The result of a Get, as far as it can be identified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Finding {
    Nothing,
    /// The value of this version of the key.
    Write(u32),
    /// The undamaged value of another key.
    OtherKey(Stamp),
    /// A value that was written, but with differences.
    Damaged(Stamp, String),
    /// No known write produced it.
    Unknown,
}

/// A wrong result of a Get.
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
