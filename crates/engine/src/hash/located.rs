//! The result of a search for a key.

use crate::format::value::Value;
use crate::memtable::Entry;

/// The newest entry of a key.
pub(crate) enum Located {
    /// In a memtable: a value or a tombstone.
    Memory(Entry),
    /// On the medium. The value is `None` only if it was not requested and the object is larger
    /// than a page.
    Stored(Option<Value>),
    Absent,
}

impl Located {
    pub(crate) fn exists(&self) -> bool {
        match self {
            Self::Memory(entry) => entry.is_some(),
            Self::Stored(_) => true,
            Self::Absent => false,
        }
    }

    pub(crate) fn into_value(self) -> Option<Value> {
        match self {
            Self::Memory(entry) => entry,
            Self::Stored(value) => value,
            Self::Absent => None,
        }
    }
}
