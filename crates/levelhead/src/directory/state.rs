//! The state of one of the directories of an open store.

/// The state of one of a store's directories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DirectoryState {
    /// The directory is complete. If it is one of several, any other directory may be lost.
    Whole,
    /// The directory lacks the data that was written without it, and is being filled. If another
    /// directory is lost meanwhile, that data is lost.
    Behind,
    /// The directory is missing or read-only. The store runs without it, and no other directory may
    /// be lost.
    Lost,
}

impl DirectoryState {
    /// All states, the best first.
    pub const ALL: [Self; 3] = [Self::Whole, Self::Behind, Self::Lost];

    /// Returns `whole`, `behind` or `lost`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Behind => "behind",
            Self::Lost => "lost",
        }
    }
}
