//! What an oracle says about a Get that returned what it may not.

use std::fmt;

use runtime::Nanos;

use super::versions::ordinal;
use crate::value::Stamp;

/// A Get that returned what no order of the writes explains.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// When the Get returned, in virtual time.
    pub at: Nanos,
    /// The key, escaped to ASCII.
    pub key: String,
    /// The number the key was made from.
    pub key_number: u64,
    /// What sort of wrong it is.
    pub kind: MismatchKind,
    /// Everything that would have been right.
    pub expected: String,
    /// What came.
    pub got: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, key, key_number, kind, expected, got } = self;
        write!(f, "at {at}: key {key} (number {key_number}): {kind}: ")?;
        write!(f, "expected {expected}, got {got}")
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
}

impl fmt::Display for MismatchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lost => "lost write",
            Self::Resurrected => "deleted value is back",
            Self::Stale => "stale value",
            Self::Foreign => "foreign value",
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
