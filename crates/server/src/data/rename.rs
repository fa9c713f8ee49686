//! Renaming and copying of keys.

use super::access::Access;
use super::batch::Batch;
use super::keys::{self, Space};
use super::records::{Entry, Head, Kind};
use crate::fault::Fault;

/// Maximum bytes of a collection to copy, or of members to remove, in one command. More than a
/// batch of the store accepts, unless its memtables are larger than usual.
pub(super) const MOST_BYTES: usize = 64 << 20;

/// Memory in bytes of a copied part until it is written, besides its key and record.
const PART_BYTES: usize = 80;

/// Whether the target key may be overwritten.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Replace {
    Always,
    /// Requires that the target key does not exist.
    Never,
}

/// The result of renaming or copying.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moved {
    /// The source key does not exist.
    Missing,
    /// The target key exists.
    Refused,
    Done,
}

impl Access<'_> {
    /// Moves the value of a key to another key. The parts of a collection are not moved because
    /// they are stored under its id.
    pub(crate) fn rename(&self, from: &[u8], to: &[u8], replace: Replace) -> Result<Moved, Fault> {
        let _locks = self.lock_several(&[from, to]);
        let Some(entry) = self.find(from)? else { return Ok(Moved::Missing) };
        if replace == Replace::Never && self.find(to)?.is_some() {
            return Ok(Moved::Refused);
        }
        if from == to {
            return Ok(Moved::Done);
        }
        let mut batch = Batch::default();
        batch.keys -= 1;
        match &entry {
            Entry::String { value, expiry } => {
                Self::forget_expiry(&mut batch, from, *expiry);
                batch.delete(&keys::string(from));
                self.put_string(&mut batch, to, value, *expiry)?;
            }
            Entry::Head(head) => {
                Self::forget_expiry(&mut batch, from, head.expiry);
                batch.delete(&keys::head(from));
                self.place_head(&mut batch, to, head)?;
            }
        }
        self.write(batch)?;
        Ok(Moved::Done)
    }

    /// Copies the value of a key to another key.
    pub(crate) fn copy(&self, from: &[u8], to: &[u8], replace: Replace) -> Result<Moved, Fault> {
        let _locks = self.lock_several(&[from, to]);
        let Some(entry) = self.find(from)? else { return Ok(Moved::Missing) };
        if replace == Replace::Never && self.find(to)?.is_some() {
            return Ok(Moved::Refused);
        }
        let mut batch = Batch::default();
        match &entry {
            Entry::String { value, expiry } => self.put_string(&mut batch, to, value, *expiry)?,
            Entry::Head(head) => self.copy_collection(&mut batch, head, to)?,
        }
        self.write(batch)?;
        Ok(Moved::Done)
    }

    /// Copies all parts of a collection under a new collection id.
    fn copy_collection(&self, batch: &mut Batch, head: &Head, to: &[u8]) -> Result<(), Fault> {
        let id = self.database.next_number()?;
        let spaces: &[Space] = match head.kind {
            Kind::Hash => &[Space::Field],
            Kind::SortedSet => &[Space::Member, Space::Score],
            Kind::String => unreachable!("a string has no parts"),
        };
        let mut bytes = 0;
        for space in spaces {
            let ((first, end), (own, _)) = (keys::parts(*space, head.id), keys::parts(*space, id));
            for pair in self.between(&first, &end) {
                self.steps.take(1)?;
                let (at, record) = pair?;
                bytes += at.len() + record.len() + PART_BYTES;
                batch.put(&[&own[..], &at[own.len()..]].concat(), record);
                if bytes > MOST_BYTES {
                    return Err(Fault::error("what the key holds is too large to be copied"));
                }
            }
        }
        self.place_head(batch, to, &Head { id, ..*head })
    }

    /// Puts the head of a collection under another key and replaces any value there.
    fn place_head(&self, batch: &mut Batch, key: &[u8], head: &Head) -> Result<(), Fault> {
        keys::check(key)?;
        if let Some(before) = self.find_any(key)? {
            Self::remove(batch, key, &before);
        }
        batch.keys += 1;
        Self::put_head(batch, key, head);
        Ok(())
    }
}
