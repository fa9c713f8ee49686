//! Sets that are lost.

use std::fmt;

use firmware::DumpError;

/// Why a set is lost with all it held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetFailure {
    /// [`crate::Ssd::fail_set`].
    TakenAway,
    /// What capacitors saved of it at the last power cut is damaged: what was in its buffer is
    /// unknown, and what had been discarded.
    DumpDamaged,
    /// What capacitors saved of it at the last power cut is not there.
    DumpMissing,
}

impl From<DumpError> for SetFailure {
    fn from(error: DumpError) -> Self {
        match error {
            DumpError::Damaged => Self::DumpDamaged,
            DumpError::Missing => Self::DumpMissing,
        }
    }
}

impl fmt::Display for SetFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TakenAway => write!(f, "the set was taken away"),
            Self::DumpDamaged => write!(f, "what was saved when power failed is damaged"),
            Self::DumpMissing => write!(f, "what was saved when power failed is missing"),
        }
    }
}
