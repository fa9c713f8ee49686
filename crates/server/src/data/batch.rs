//! What a command changes, written in one place.
//!
//! Pairs are written one after the other, in an order in which each of them may be the last that survives: the store has no
//! atomic batches yet. When it has, [`Batch::write`] is what changes.

use levelhead::{Durability, Error, Store};

/// Pairs to write (or, without a value, keys to delete), in this order.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    changes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// How many keys of users there are more, or less, for it.
    pub keys: i64,
}

impl Batch {
    pub(crate) fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.changes.push((key, Some(value)));
    }

    pub(crate) fn delete(&mut self, key: Vec<u8>) {
        self.changes.push((key, None));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Pairs and keys in it.
    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Adds what another one changes.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.changes.append(&mut other.changes);
        self.keys += other.keys;
    }

    /// Writes all of them; the first that fails ends it.
    pub(crate) fn write(self, store: &Store, durability: Durability) -> Result<(), Error> {
        // What waits for its durability waits for all before it: so only the last needs to.
        let last = self.changes.len().saturating_sub(1);
        for (number, (key, value)) in self.changes.into_iter().enumerate() {
            let durability = if number == last { durability } else { Durability::None };
            match value {
                Some(value) => store.put_with(&key, &value, durability)?,
                None => store.delete_with(&key, durability)?,
            }
        }
        Ok(())
    }
}
