//! What a command changes, written in one place: all of it, or nothing.

use levelhead::{Durability, Error, Store};

/// Pairs to write, and keys to delete.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    changes: levelhead::Batch,
    /// How many keys of users there are more, or less, for it.
    pub keys: i64,
}

impl Batch {
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) {
        self.changes.put(key, value);
    }

    pub(crate) fn delete(&mut self, key: &[u8]) {
        self.changes.delete(key);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Pairs and keys in it.
    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }

    pub(crate) fn write(&self, store: &Store, durability: Durability) -> Result<(), Error> {
        store.write_with(&self.changes, durability)
    }
}
