//! Tracking of the parts of a file that have disk space allocated, and a check of free disk space.
//!
//! A write into a hole, or past the allocated end of a file, takes the file system's lock of the
//! whole file and blocks reads meanwhile. A file that gets its space as it is written therefore
//! gets it in parts that are larger than any write.

use std::cell::RefCell;
use std::fs::File;
use std::ops::Range;

use rustix::fs::{fstat, fstatvfs};

/// Unit of allocation in bytes.
const PART_BYTES: u64 = 16 << 20;

/// The parts of a file, by number, that are known to be allocated. A newly opened file starts with
/// no known part; allocating an allocated part has no effect.
pub(crate) struct Rooms {
    given: RefCell<Vec<bool>>,
    file_bytes: u64,
}

impl Rooms {
    /// Creates the map of a file of `file_bytes` bytes, with no part known to be allocated.
    pub(crate) fn of(file_bytes: u64) -> Self {
        let parts = file_bytes.div_ceil(PART_BYTES) as usize;
        Self { given: RefCell::new(vec![false; parts]), file_bytes }
    }

    /// Returns the bytes to allocate before `range` is written, if any, and marks them as
    /// allocated.
    pub(crate) fn take_missing(&self, range: Range<u64>) -> Option<Range<u64>> {
        let mut given = self.given.borrow_mut();
        let parts = parts_of(&range);
        let first = parts.clone().find(|part| !given[*part])?;
        let last = parts.rev().find(|part| !given[*part])?;
        given[first..=last].fill(true);
        Some(first as u64 * PART_BYTES..((last as u64 + 1) * PART_BYTES).min(self.file_bytes))
    }

    /// Marks `range` as possibly unallocated.
    pub(crate) fn forget(&self, range: Range<u64>) {
        self.given.borrow_mut()[parts_of(&range)].fill(false);
    }
}

fn parts_of(range: &Range<u64>) -> Range<usize> {
    (range.start / PART_BYTES) as usize..range.end.div_ceil(PART_BYTES) as usize
}

/// The space used by a file, and the free space of its disk.
#[derive(Clone, Copy)]
pub(crate) struct OnDisk {
    disk: u64,
    /// Allocated bytes of the file.
    has: u64,
    /// Free bytes of the disk.
    left: u64,
}

impl OnDisk {
    /// Returns the values of a file; `None` if the operating system cannot report them.
    pub(crate) fn of(file: &File) -> Option<Self> {
        let (found, disk) = (fstat(file).ok()?, fstatvfs(file).ok()?);
        // A file system without block accounting reports zero blocks.
        let is_known = disk.f_blocks > 0 && disk.f_frsize > 0;
        is_known.then(|| Self {
            disk: found.st_dev,
            has: found.st_blocks.cast_unsigned() * 512,
            left: disk.f_bavail * disk.f_frsize,
        })
    }
}

/// Returns the index of the first file that cannot be extended to `bytes` allocated bytes. Files on
/// the same disk share its free space.
pub(crate) fn without_room(files: &[Option<OnDisk>], bytes: u64) -> Option<usize> {
    let missing = |file: &OnDisk| bytes.saturating_sub(file.has);
    let wanted_of = |disk: u64| -> u64 {
        files.iter().flatten().filter(|file| file.disk == disk).map(missing).sum()
    };
    let lacks = |file: &OnDisk| missing(file) > 0 && wanted_of(file.disk) > file.left;
    files.iter().position(|file| file.as_ref().is_some_and(lacks))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_part_is_given_once_and_again_after_it_was_forgotten() {
        let rooms = Rooms::of(40 * MIB);
        assert_eq!(rooms.take_missing(17 * MIB..18 * MIB), Some(16 * MIB..32 * MIB));
        assert_eq!(rooms.take_missing(16 * MIB..32 * MIB), None);
        assert_eq!(rooms.take_missing(31 * MIB..33 * MIB), Some(32 * MIB..40 * MIB));
        assert_eq!(rooms.take_missing(15 * MIB..17 * MIB), Some(0..16 * MIB));
        rooms.forget(20 * MIB..21 * MIB);
        assert_eq!(rooms.take_missing(0..40 * MIB), Some(16 * MIB..32 * MIB));
        assert_eq!(rooms.take_missing(3 * MIB..3 * MIB), None);
    }

    #[test]
    fn files_of_one_disk_share_what_is_left_of_it() {
        let file = |disk, has, left| Some(OnDisk { disk, has, left });
        assert_eq!(without_room(&[file(1, 10, 90)], 100), None);
        assert_eq!(without_room(&[file(1, 10, 89)], 100), Some(0));
        assert_eq!(without_room(&[file(1, 10, 120), file(1, 70, 120)], 100), None);
        assert_eq!(without_room(&[None, file(2, 10, 119), file(2, 70, 119)], 100), Some(1));
        assert_eq!(without_room(&[file(1, 100, 0), file(2, 0, 100)], 100), None);
    }
}
