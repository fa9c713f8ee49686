//! Where a store's journal lies: its log and its manifest.

use serde::{Deserialize, Serialize};

/// Where the journal of a store lies, its log and its manifest.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum JournalPlace {
    /// On the sets that the data are on.
    #[default]
    Beside,
    /// On the drive's last set, which has nothing else on it: Vigil-KV's meta-set. The data have the others. It
    /// has no redundancy, and a store that loses it is lost.
    OwnSet,
}

impl JournalPlace {
    /// All of them, and what they are called.
    pub const ALL: [(Self, &'static str); 2] =
        [(Self::Beside, "beside"), (Self::OwnSet, "own-set")];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Beside => "beside",
            Self::OwnSet => "own-set",
        }
    }

    /// How many sets the journal takes from the data.
    pub fn sets(self) -> u32 {
        match self {
            Self::Beside => 0,
            Self::OwnSet => 1,
        }
    }
}

/// What a store lies on, or what that is made of.
#[derive(Clone, Debug)]
pub struct Media<M> {
    /// Where its data lie.
    pub data: M,
    /// Where its journal lies, if not beside the data.
    pub journal: Option<M>,
}

impl<M> Media<M> {
    /// Both, made into something else.
    pub fn map<N>(self, into: impl Fn(M) -> N) -> Media<N> {
        Media { data: into(self.data), journal: self.journal.map(into) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_called_what_the_list_says() {
        assert!(JournalPlace::ALL.into_iter().all(|(place, name)| place.name() == name));
    }
}
