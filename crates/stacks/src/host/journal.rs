//! The place of a store's journal: its log and its manifest.

use serde::{Deserialize, Serialize};

/// The place of a store's journal: its log and its manifest.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum JournalPlace {
    /// On the sets of the data.
    #[default]
    Beside,
    /// Alone on the drive's last set (Vigil-KV's meta-set); the data use the other sets. It has no
    /// redundancy: a store that loses this set is lost.
    OwnSet,
}

impl JournalPlace {
    /// All places and their names.
    pub const ALL: [(Self, &'static str); 2] =
        [(Self::Beside, "beside"), (Self::OwnSet, "own-set")];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Beside => "beside",
            Self::OwnSet => "own-set",
        }
    }

    /// Returns the number of sets that the journal takes from the data.
    pub fn sets(self) -> u32 {
        match self {
            Self::Beside => 0,
            Self::OwnSet => 1,
        }
    }
}

/// The media of a store, or the parts to make them from.
#[derive(Clone, Debug)]
pub struct Media<M> {
    /// The data.
    pub data: M,
    /// The journal; `None` if it is on the medium of the data.
    pub journal: Option<M>,
}

impl<M> Media<M> {
    /// Converts the data and the journal with `into`.
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
