//! The options of a store.

use std::ops::RangeInclusive;

use engine::LogSync;

use crate::error::Error;

/// The smallest capacity of a store, in bytes of pages on each member.
pub(crate) const LEAST_CAPACITY: u64 = 64 << 20;
/// The default capacity of a new store, in bytes of pages on each member.
pub(crate) const USUAL_CAPACITY: u64 = 16 << 30;
/// The permitted sizes of a memtable, in bytes.
pub(crate) const MEMTABLE_BYTES: RangeInclusive<u64> = 1 << 20..=1 << 30;

/// The permitted sizes of a page, in bytes; only powers of two.
pub(crate) const PAGE_BYTES: RangeInclusive<u32> = 4 << 10..=32 << 10;

/// Returns the longest value, in bytes, that may be stored inline (beside its key): with the
/// shortest key it takes a quarter of a page.
pub(crate) fn most_inline(page_bytes: u32) -> u32 {
    page_bytes / 4 - 24
}

/// When a write is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// At once. The write becomes durable with the next write that waits for durability, with the
    /// flush of its memtable, or with [`Store::sync`](crate::Store::sync). If the process ends
    /// before that, the write is lost.
    None,
    /// At once. The write is sent to the drive within a millisecond, after the log groups that are
    /// queued before it.
    Interval,
    /// Once the write is durable, together with concurrent writes (group commit).
    #[default]
    Group,
    /// Once the write is durable, in a log group of its own.
    Each,
}

impl From<Durability> for LogSync {
    fn from(durability: Durability) -> Self {
        match durability {
            Durability::None => Self::None,
            Durability::Interval => Self::Interval,
            Durability::Group => Self::Group,
            Durability::Each => Self::Each,
        }
    }
}

/// The I/O interface for reading and writing files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Io {
    /// `io_uring` if the system permits it, else threads.
    #[default]
    Probe,
    /// `io_uring`.
    Ring,
    /// Threads.
    Threads,
}

/// Whether a store over several directories keeps windows. With windows, background writes
/// (flushes, compactions, garbage collection) go to only one member at a time, in turn. Reads of
/// that member are meanwhile rebuilt from the others, so that they do not wait for its writes. The
/// log, for which callers wait, is written to all members at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Windows {
    /// No windows: all writes are issued as they come.
    #[default]
    Off,
    /// The store controls the windows, on any directories or drives: Flash on Rails (ATC 2014),
    /// with parity in place of copies.
    Rails,
    /// The drives control the windows, by NVMe's Predictable Latency Mode (PLM). If one drive does
    /// not support it, the store has no windows, and
    /// [`Statistics::troubles`](crate::Statistics::troubles) gives the reason.
    Plm,
}

/// The options of a store.
///
/// # Memory
/// The store itself holds at most:
///
/// - `memory_bytes` for the index and values,
/// - twice `memtable_bytes` for memtables, and as much again if most writes overwrite keys in the
///   memtable, because it keeps the memory of both versions,
/// - the pages of a flush, which are as large as a memtable,
/// - 64 MiB for the snapshots and ranges that are being read.
///
/// A process needs more, because allocators keep freed memory in fragments. Give a container
/// `memory_bytes`, four times `memtable_bytes` and 32 MiB, plus up to 64 MiB for snapshots and
/// ranges. With [`Windows`], add `memtable_bytes` once more and `plm_cache_bytes`.
///
/// With glibc's allocator this rule holds only if [`Self::trim_heap`] is set, because glibc
/// otherwise keeps freed memory in about one heap per thread: 75, 283 and 567 MiB were resident
/// where the rule gives 64, 160 and 330. Allocators that return memory by themselves (mimalloc,
/// jemalloc) do not need it.
///
/// The rule is for values of 1 KiB and more. The memory that a memtable needs for each key is not
/// counted; with short values it exceeds the margin of the rule.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent choices, by name")]
pub struct Options {
    /// Whether to create a store if none exists.
    pub create_if_missing: bool,
    /// Whether to open the store read-only: nothing is written to its files, and puts are refused.
    /// The writes that opening itself needs are kept in memory, about the size of one or two
    /// memtables. A lost directory does not fall further behind. A store on a read-only or full
    /// disk can be read this way. The store is locked as for writing, so it can be open only once
    /// at a time.
    pub read_only: bool,
    /// Whether a store over several directories opens without a directory that does not exist, even
    /// under an unknown name. Else it does so only if the other directories know that name: with a
    /// mistyped name, the intended directory would miss all later writes.
    pub degraded: bool,
    /// Whether to recreate the lost directory of a store over several directories, empty, and to
    /// fill it from the others, as after a disk was replaced. Existing files are never overwritten,
    /// because a directory whose drive is not mounted looks lost, too. A directory that does not
    /// exist is created only if the others know its name, or if `degraded` is also set. Cannot be
    /// combined with `read_only`.
    pub replace_lost: bool,
    /// The size that each of the store's files may grow to, in bytes. 0, the default, keeps the
    /// size that the store already has; a new store gets 16 GiB. Must be at least 64 MiB. All files
    /// together, without parity, hold less than 16 TiB.
    ///
    /// If the value is larger than the store's present size, the store grows, up to 16 times its
    /// size at creation, or to 512 GiB if that is more. A larger value is refused
    /// ([`Error::Invalid`]); [`Store::checkpoint`](crate::Store::checkpoint) copies the store to a
    /// larger one. A smaller value has no effect, because stores do not shrink. Stores on drives
    /// and stores made by an earlier version do not grow. Disk space is allocated as needed; space
    /// that the store frees is reused by the store and not returned.
    ///
    /// Not all of the space is available for pairs: the log, the index and garbage collection use a
    /// part, and pages are not filled completely. A store of 1 GiB was full
    /// ([`Error::Full`](crate::Error::Full)) when pairs of 32-byte keys and 1,024-byte values took
    /// 64 % of it.
    pub capacity_bytes: u64,
    /// Whether the files get all of `capacity_bytes` from the disk at once, when the store is
    /// created, or opened with less. Else they grow as needed, and when other files have filled the
    /// disk, the store can take deletes only until the memtable and the log are full. With
    /// preallocation the disk never becomes full for the store: a full store always takes deletes,
    /// and these make space for puts. Opening fails with [`Error::Full`] if the disk has too little
    /// space. If a file system cannot preallocate,
    /// [`Statistics::troubles`](crate::Statistics::troubles) reports it. Copy-on-write file systems
    /// (btrfs, ZFS) may still run out of space. Drives always have all of their space.
    pub preallocate: bool,
    /// The maximum length of a value that is stored inline, beside its key in the index, in bytes.
    /// Set when the store is created: later, a value other than the store's own and other than the
    /// default is refused.
    ///
    /// With 0, the default, no values are inline: the index is small, and a Get whose index is in
    /// memory reads only the value. An inline value needs no read of its own, neither in a range
    /// nor in a Get. But it makes the index larger, both in memory and in compactions, which
    /// rewrite it. A value is stored inline only if it takes, with its key, at most a quarter of a
    /// page.
    ///
    /// Set [`Self::expected_value_bytes`] to the typical value length in that case. If the store is
    /// later so damaged that it does not open and its index cannot be read, repair may return older
    /// versions of inline values.
    pub inline_up_to: u32,
    /// The page size in bytes: 4, 8, 16 or 32 KiB. Set when the store is created, as `inline_up_to`
    /// is. A Get reads one page, and a value spans pages only if it is longer than one. Larger
    /// pages waste less space on values that are not much shorter than a page (a page of 4 KiB
    /// holds three values of 1 KiB with their keys, a page of 8 KiB seven), and with inline values
    /// a range gets more pairs per read. But each Get reads more, and each write that is made
    /// durable by itself writes a whole page of the log.
    pub page_bytes: u32,
    /// The memory for the index, in bytes. If the index fits, a Get costs one read; else parts of
    /// the index are read, too. May change each time the store is opened.
    pub memory_bytes: u64,
    /// Whether to return the free memory of the process's heaps to the system (glibc's
    /// `malloc_trim`). This runs on a thread of its own, after about 16 MiB were freed and after
    /// the store was opened. It then pauses for four times as long as it took. Allocations from a
    /// heap that is being searched wait for some milliseconds, and so may Gets. Has no effect on
    /// other allocators.
    pub trim_heap: bool,
    /// The memory for recently read values, in bytes; a part of `memory_bytes`.
    pub value_cache_bytes: u64,
    /// The size of a memtable, in bytes. Up to two memtables are in memory. The store also reserves
    /// space in its files for several memtables, so a small store with large memtables is full
    /// early. 0, the default, is 1/128 of the total size of the files, at least 1 MiB and at most
    /// 32 MiB. A batch may be half as large as a memtable. A value that is too large for the files
    /// is refused ([`Error::Invalid`]).
    pub memtable_bytes: u64,
    /// The durability of writes that do not specify one.
    pub durability: Durability,
    /// The I/O interface for reading and writing files.
    pub io: Io,
    /// Whether the store keeps windows. May change each time the store is opened.
    pub windows: Windows,
    /// With windows: the memory for writes that wait for the slot of their member, in bytes, parity
    /// included. A flush needs one and a half times its memtable if there are three members. When
    /// the memory is full, background writes wait, but reads never do.
    pub plm_cache_bytes: u64,
    /// The expected length of keys, in bytes; the layout of the index is based on it. A value
    /// outside the permitted key lengths is replaced by the nearest one.
    pub expected_key_bytes: u32,
    /// The expected length of values, in bytes; see `expected_key_bytes`.
    pub expected_value_bytes: u32,
}

impl Default for Options {
    /// A store without windows, with files of up to 16 GiB, 256 MiB of memory for the index and 2 x
    /// 32 MiB for memtables (less for smaller files), in which acknowledged writes are durable.
    fn default() -> Self {
        Self {
            create_if_missing: true,
            read_only: false,
            degraded: false,
            replace_lost: false,
            capacity_bytes: 0,
            preallocate: false,
            inline_up_to: 0,
            page_bytes: *PAGE_BYTES.start(),
            memory_bytes: 256 << 20,
            trim_heap: false,
            value_cache_bytes: 64 << 20,
            memtable_bytes: 0,
            durability: Durability::default(),
            io: Io::default(),
            windows: Windows::default(),
            plm_cache_bytes: 128 << 20,
            expected_key_bytes: 32,
            expected_value_bytes: 1024,
        }
    }
}

/// Checks the options of a store over `directories` directories.
///
/// # Errors
/// Returns [`Error::Invalid`] with the option that is not permitted.
pub(crate) fn check(directories: usize, options: &Options) -> Result<(), Error> {
    let invalid = |what: String| Err(Error::Invalid(what));
    if directories == 0 || directories == 2 || directories > 64 {
        return invalid(format!(
            "a store is over one directory, or over 3 to 64 of which one may be lost, not over {directories}"
        ));
    }
    if options.read_only && options.replace_lost {
        return invalid(
            "replace_lost makes a directory anew, and read_only writes nothing: ask for one of them".to_owned(),
        );
    }
    if options.replace_lost && directories < 3 {
        return invalid(
            "replace_lost makes one of several directories anew from the others, and there are none: without what is lost the \
             store would be empty"
                .to_owned(),
        );
    }
    if options.windows != Windows::Off && directories < 3 {
        return invalid(
            "windows are kept on three directories and more: what lies on the one that is written is rebuilt from the others"
                .to_owned(),
        );
    }
    if options.capacity_bytes != 0 && options.capacity_bytes < LEAST_CAPACITY {
        let given = options.capacity_bytes;
        return invalid(format!(
            "capacity_bytes is {given}, must be {LEAST_CAPACITY} at least, or 0"
        ));
    }
    let Options { page_bytes, inline_up_to, .. } = *options;
    if !page_bytes.is_power_of_two() || !PAGE_BYTES.contains(&page_bytes) {
        return invalid(format!("page_bytes is {page_bytes}, must be 4096, 8192, 16384 or 32768"));
    }
    let most = most_inline(page_bytes);
    if inline_up_to > most {
        return invalid(format!(
            "inline_up_to is {inline_up_to}, must be {most} at most: a value that stands beside its key takes a quarter of a page of {page_bytes} bytes with it"
        ));
    }
    let given = options.memtable_bytes;
    if given != 0 && !MEMTABLE_BYTES.contains(&given) {
        let what = "must be 1 MiB to 1 GiB, or 0 for what suits the store's size";
        return invalid(format!("memtable_bytes is {given}, {what}"));
    }
    Ok(())
}
