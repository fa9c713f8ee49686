//! Arrangements of a store's data on the sets of a drive.

use serde::{Deserialize, Serialize};

/// The layout of a store's data on the sets of a drive, except a set reserved for the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrangement {
    /// On the only set.
    Plain,
    /// Striped over all sets, without redundancy.
    Striped,
    /// Striped over all sets, with rotated parity: survives the loss of one set.
    Parity,
    /// A copy on every set.
    Mirrored,
}

impl Arrangement {
    /// All layouts and their names.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Plain, "plain"),
        (Self::Striped, "striped"),
        (Self::Parity, "parity"),
        (Self::Mirrored, "mirrored"),
    ];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.into_iter().find(|(one, _)| *one == self);
        named.expect("all of them are there").1
    }

    /// Returns the default layout of data on this many sets.
    pub fn of_sets(sets: u32) -> Self {
        if sets == 1 { Self::Plain } else { Self::Striped }
    }
}
