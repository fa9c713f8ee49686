//! The writes of a command, which take effect together or not at all.

use levelhead::{Durability, Error, Store};

use super::keys::Space;

/// A key of the store and its new value; `None` deletes the key.
pub(crate) type Change = (Box<[u8]>, Option<Vec<u8>>);

/// Pairs to write and keys to delete.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    changes: Vec<Change>,
    /// Change of the number of user keys.
    pub keys: i64,
    /// Whether the batch frees space, now or once dropped data is swept. A full store accepts such
    /// batches.
    pub makes_room: bool,
}

impl Batch {
    /// Returns an empty batch for a command that removes data.
    pub(crate) fn that_makes_room() -> Self {
        Self { makes_room: true, ..Self::default() }
    }

    pub(crate) fn of(
        changes: impl IntoIterator<Item = Change>,
        keys: i64,
        makes_room: bool,
    ) -> Self {
        Self { changes: changes.into_iter().collect(), keys, makes_room }
    }

    pub(crate) fn put(&mut self, key: &[u8], value: impl Into<Vec<u8>>) {
        self.changes.push((key.into(), Some(value.into())));
    }

    pub(crate) fn delete(&mut self, key: &[u8]) {
        self.changes.push((key.into(), None));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the store keys that the batch writes.
    pub(crate) fn put_keys(&self) -> impl Iterator<Item = &[u8]> {
        self.changes.iter().filter(|(_, value)| value.is_some()).map(|(key, _)| &key[..])
    }

    pub(crate) fn into_changes(self) -> Vec<Change> {
        self.changes
    }

    /// Whether the batch is in the store. Requires: the batch changes the number of user keys, and
    /// was written entirely or not at all. It suffices then to compare the user keys of the batch
    /// with the store.
    pub(crate) fn is_in(&self, store: &Store) -> Result<bool, Error> {
        let is_key = |at: &[u8]| at[0] == Space::String as u8 || at[0] == Space::Head as u8;
        for (at, value) in self.changes.iter().filter(|(at, _)| is_key(at)) {
            if store.exists(at)? != value.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(crate) fn write(&self, store: &Store, durability: Durability) -> Result<(), Error> {
        match &self.changes[..] {
            // A single write needs no batch.
            [(key, Some(value))] if !self.makes_room => store.put_with(key, value, durability),
            [(key, None)] => store.delete_with(key, durability),
            changes => {
                let mut batch = levelhead::Batch::new();
                for (key, value) in changes {
                    match value {
                        Some(value) => batch.put(key, value),
                        None => batch.delete(key),
                    }
                }
                if self.makes_room {
                    batch.makes_room();
                }
                store.write_with(&batch, durability)
            }
        }
    }
}
