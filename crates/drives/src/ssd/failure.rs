//! Lost sets.

use std::fmt;

use crate::firmware::DumpError;

/// Why a set was lost with all its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetFailure {
    /// The set was failed by [`super::Ssd::fail_set`].
    TakenAway,
    /// The dump that capacitors saved at the last power cut is damaged: the contents of the buffer
    /// and the discarded ranges are unknown.
    DumpDamaged,
    /// The dump that capacitors saved at the last power cut is missing.
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
