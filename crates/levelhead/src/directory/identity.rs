//! The identity that a directory records: of itself and of its store.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::capacity::grows_to;
use crate::error::Error;
use crate::options::{MEMTABLE_BYTES, Options, PAGE_BYTES};

/// Versions of the directory format that this program reads. Version 2 is for stores whose files
/// can grow. The format of pages has a version of its own.
pub(super) const FORMATS: RangeInclusive<u32> = 1..=2;
/// The maximum size of one write, in bytes.
const WRITE_BYTES: u32 = 64 << 10;

/// The identity of a member of a store.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Identity {
    pub format: u32,
    /// The store's id, the same in all its directories.
    pub id: u32,
    /// The number of directories, and the index of this one, from 0.
    pub members: u16,
    pub member: u16,
    pub page_bytes: u32,
    pub extent_bytes: u64,
    pub capacity_bytes: u64,
    /// The growth limit of each file in bytes of pages; 0 if the files do not grow.
    #[serde(default, skip_serializing_if = "is_default")]
    pub grows_to_bytes: u64,
    /// The maximum length of inline values, in bytes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub inline_up_to: u32,
    /// Whether the store is still incomplete, as far as this directory knows.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_being_made: bool,
    /// The paths of all directories when all were last present. Drives do not record them: they
    /// have no space for it, and their names change.
    #[serde(default, skip_serializing_if = "is_default")]
    pub directories: Vec<String>,
}

/// Whether a field has its default value and can be omitted.
fn is_default<T: Default + PartialEq>(field: &T) -> bool {
    *field == T::default()
}

impl Identity {
    /// Creates the identity of a new store with `capacity_bytes` in each directory and pages of the
    /// smallest size; its files can grow.
    pub(crate) fn new(id: u32, members: u16, capacity_bytes: u64) -> Self {
        // Some hundred extents, so that collecting one is a small part of the work; but not so
        // small that appends become small.
        let extent_bytes = (capacity_bytes / 512).next_power_of_two().clamp(1 << 20, 16 << 20);
        let capacity_bytes = capacity_bytes / extent_bytes * extent_bytes;
        let page_bytes = *PAGE_BYTES.start();
        let grows_to_bytes = grows_to(members.into(), capacity_bytes, extent_bytes);
        Self {
            format: *FORMATS.end(),
            id,
            members,
            member: 0,
            page_bytes,
            extent_bytes,
            capacity_bytes,
            grows_to_bytes,
            inline_up_to: 0,
            is_being_made: false,
            directories: Vec::new(),
        }
    }

    /// Sets the growth limit, in bytes; with 0 the files do not grow.
    pub(crate) fn growing_to(self, grows_to_bytes: u64) -> Self {
        let format = if grows_to_bytes == 0 { *FORMATS.start() } else { *FORMATS.end() };
        Self { format, grows_to_bytes, ..self }
    }

    pub(crate) fn extents(&self) -> u32 {
        (self.capacity_bytes / self.extent_bytes) as u32
    }

    /// Returns the maximum number of extents of each file after growth; 0 if it does not grow.
    pub(crate) fn most_extents(&self) -> u32 {
        (self.grows_to_bytes / self.extent_bytes) as u32
    }

    pub(crate) fn pages_per_extent(&self) -> u32 {
        (self.extent_bytes / u64::from(self.page_bytes)) as u32
    }

    /// Returns the number of pages in 64 KiB: the maximum size of one write, and, for a store over
    /// several files, the chunk size of a stripe. Reads wait least beside writes of this length
    /// (decision 39).
    pub(crate) fn pages_of_a_write(&self) -> u32 {
        WRITE_BYTES / self.page_bytes
    }

    /// Returns the page size of a store whose writes have `pages_of_a_write` pages, or `None` if no
    /// such store can exist.
    pub(crate) fn page_bytes_by(pages_of_a_write: u32) -> Option<u32> {
        let page_bytes = WRITE_BYTES.checked_div(pages_of_a_write)?;
        let may_be = page_bytes.is_power_of_two() && PAGE_BYTES.contains(&page_bytes);
        may_be.then_some(page_bytes)
    }

    /// Returns the memtable size, in bytes: the requested size, or 1/128 of the total size of the
    /// files without parity. With the default, the reserve for memtables and the log take a
    /// twentieth of a small store.
    pub(crate) fn memtable_bytes(&self, options: &Options) -> u64 {
        const PART: u64 = 128;
        const MOST: u64 = 32 << 20;
        let files_of_data = u64::from(self.members.saturating_sub(1).max(1));
        match options.memtable_bytes {
            0 => (files_of_data * self.capacity_bytes / PART).clamp(*MEMTABLE_BYTES.start(), MOST),
            given => given,
        }
    }

    /// Whether both identities belong to one store. One of them may not record the new size yet.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        let shared = |it: &Self| Self {
            member: 0,
            capacity_bytes: 0,
            is_being_made: false,
            directories: Vec::new(),
            ..it.clone()
        };
        shared(self) == shared(other)
    }
}

/// Checks the options that were set when the store was created. A request for another value must
/// not be ignored silently. An option with its default value is not a request.
///
/// # Errors
/// Returns [`Error::Invalid`] with the store's value and the remedy.
pub(crate) fn check_settled(options: &Options, identity: &Identity) -> Result<(), Error> {
    let usual = Options::default();
    for (name, asked, usual, has) in [
        ("page_bytes", options.page_bytes, usual.page_bytes, identity.page_bytes),
        ("inline_up_to", options.inline_up_to, usual.inline_up_to, identity.inline_up_to),
    ] {
        if asked != has && asked != usual {
            return Err(Error::Invalid(format!(
                "{name} is {asked}, and the store was made with {has}, which stays: leave it as it is, or copy the store \
                 into another one (Store::checkpoint, levelhead backup)"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memtables_are_small_in_small_stores_unless_somebody_says_otherwise() {
        let of = |members, capacity, memtable_bytes| {
            let options = Options { memtable_bytes, ..Options::default() };
            Identity::new(1, members, capacity).memtable_bytes(&options) >> 20
        };
        assert_eq!((of(1, 64 << 20, 0), of(1, 1 << 30, 0), of(3, 1 << 30, 0)), (1, 8, 16));
        assert_eq!((of(1, 16 << 30, 0), of(1, 1 << 40, 0)), (32, 32));
        assert_eq!((of(1, 64 << 20, 7 << 20), of(1, 1 << 40, 1 << 30)), (7, 1024));
    }

    #[test]
    fn a_store_is_cut_into_some_hundred_extents_of_whole_pages() {
        for (capacity, extent, count) in
            [(64 << 20, 1 << 20, 64), (1 << 30, 2 << 20, 512), (16 << 30, 16 << 20, 1024)]
        {
            let identity = Identity::new(1, 1, capacity);
            assert_eq!((identity.extent_bytes, identity.extents()), (extent, count), "{capacity}");
            assert_eq!(u64::from(identity.pages_per_extent()) * 4096, extent);
        }
    }
}
