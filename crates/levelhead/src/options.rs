//! What a store is opened with.

use std::ops::RangeInclusive;

use pages::LogSync;

use crate::directory::Identity;
use crate::error::Error;

/// The smallest store, in bytes of pages on each member.
pub(crate) const LEAST_CAPACITY: u64 = 64 << 20;
/// Bytes of pages on each member of a store that is made without a word of it.
pub(crate) const USUAL_CAPACITY: u64 = 16 << 30;
/// What a memtable may have, in bytes.
pub(crate) const MEMTABLE_BYTES: RangeInclusive<u64> = 1 << 20..=1 << 30;

/// What a page may have, in bytes: powers of two.
pub(crate) const PAGE_BYTES: RangeInclusive<u32> = 4 << 10..=32 << 10;

/// The longest value, in bytes, that may stand beside its key: with the shortest of keys it takes a quarter of a page.
pub(crate) fn most_inline(page_bytes: u32) -> u32 {
    page_bytes / 4 - 24
}

/// When a write is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// At once. It is durable when a later write is that waits for it, when its memtable is flushed, and after
    /// [`Store::sync`](crate::Store::sync). The end of the process takes what is not durable by then.
    None,
    /// At once; it is handed to the drive a millisecond later.
    Interval,
    /// When it is durable, together with what came meanwhile: group commit.
    #[default]
    Group,
    /// When it is durable, by itself.
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

/// How files are read and written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Io {
    /// By `io_uring` where the system lets it, else by threads.
    #[default]
    Probe,
    /// By `io_uring`.
    Ring,
    /// By threads.
    Threads,
}

/// Whether windows are kept on the members of a store over several directories: all of them but one, in turn, are given nothing to
/// write in the background (by flushes, compactions, collection), and what lies on that one is rebuilt from the
/// others when it is read meanwhile. The log, which callers wait for, goes to all of them at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Windows {
    /// Not at all: everything is written as it comes.
    #[default]
    Off,
    /// By the store alone, on any directories or drives: Flash on Rails (ATC 2014), with parity for copies.
    Rails,
    /// By the drives, which have NVMe's Predictable Latency Mode (PLM). Where one of them has not, the store has no windows,
    /// and [`Statistics::troubles`](crate::Statistics::troubles) says why.
    Plm,
}

/// What a store is opened with.
///
/// # Memory
/// The store itself holds at most `memory_bytes` for index and values, twice `memtable_bytes` (and as much again where most
/// writes overwrite what is in the memtable, which keeps the room of both), and the pages of a flush, which are as much as a
/// memtable. A process needs more, because allocators keep what is freed in pieces. Give a container
/// `memory_bytes`, four times `memtable_bytes` and 32 MiB; with [`Windows`] besides once more `memtable_bytes`, and
/// `plm_cache_bytes`. With glibc's allocator that is true only with [`Self::trim_heap`]: it keeps for good what is freed, in a heap for each thread
/// or so (75, 283 and 567 MiB were resident where the rule has 64, 160 and 330). A program with an allocator that gives back by itself (mimalloc, jemalloc) does without. Besides, up to 64 MiB for snapshots and ranges that are read. That is for values of 1 KiB and more: what a key takes
/// in a memtable besides is not counted, and with short values that is more than the rule has room for.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent choices, by name")]
pub struct Options {
    /// Whether a store is made where none is.
    pub create_if_missing: bool,
    /// Whether nothing is written to the store's files. What opening it has to write is kept in memory, as much as a memtable or two, and puts are
    /// refused. A directory that is lost stays as far behind as it was; a store on a disk that takes no writes, or is full, can be read.
    /// The store is locked as for writing: one opening at a time, whether it is to be read or written.
    pub read_only: bool,
    /// Whether a store over several directories goes on without one that does not exist, whatever its name. Else it does so only if the others
    /// know that name: a mistyped one would leave the directory that was meant without what is written from then on.
    pub degraded: bool,
    /// Whether the one of several directories that is lost is made anew, empty, and filled from the others: a disk was replaced. Whatever is there stays:
    /// a directory whose drive is not mounted looks lost, too. One that does not exist is made only by a name that the others know, or with `degraded` besides. Not to be
    /// asked for with `read_only`.
    pub replace_lost: bool,
    /// How large each of its files may become, in bytes. 0, the default: as large as the store has been told before, 16 GiB if it is made. One that is opened with
    /// more than it has grows, to 16 times of what it was made with, or 512 GiB if that is more; beyond it is refused ([`Error::Invalid`]), and
    /// [`Store::checkpoint`](crate::Store::checkpoint) copies it into a larger one. It does not shrink: less than it has changes nothing. Nor do drives
    /// grow, or stores that an earlier version made. Room is taken as it is
    /// needed; what the store gives up it writes again, and keeps. 64 MiB at least; together, beside parity, less than 16 TiB.
    ///
    /// Not all of it is for pairs: log, index and what collection needs take their part, and pages are not filled to the last byte. One of 1 GiB was full with
    /// 64 % of that in pairs of 32 and 1,024 bytes ([`Error::Full`](crate::Error::Full)).
    pub capacity_bytes: u64,
    /// Whether its files get all of `capacity_bytes` from the disk at once, when the store is made, or opened and has not all of it. Else they take
    /// room as they need it, and where others have filled the disk the store takes deletes only as far as memtable and log go. With it the disk is never
    /// full for the store: a store that is full takes deletes always, and these make room for puts. Opening fails with [`Error::Full`] where the disk has
    /// not as much; a file system that cannot give room ahead is told in [`Statistics::troubles`](crate::Statistics::troubles). File systems that never overwrite (btrfs, ZFS)
    /// may run out of room all the same. Drives have all of theirs.
    pub preallocate: bool,
    /// Values up to this length, in bytes, stand beside their keys in the index; settled when a store is made: another one than it has is refused, unless it is
    /// the default. 0: none do, so that the index
    /// is small and a Get whose index is in memory reads its value and nothing else. Values beside their keys cost no read of their own, neither in
    /// a range nor in a Get; but the index has them in it, in memory as far as it is
    /// there, and compactions write them again. A value stands there only if it takes, with its key, a quarter of a page at most.
    /// [`Self::expected_value_bytes`] should say what values are like then. If a store like this one is so damaged that it does not open, and its
    /// index cannot be read, older ones of such values may stand for newer ones.
    pub inline_up_to: u32,
    /// Bytes of a page: 4, 8, 16 or 32 KiB; settled when a store is made, as `inline_up_to` is. A Get reads a page, and no value lies in two unless it is longer than one. So large
    /// pages are left less empty by values that are not much shorter than they are (three of 1 KiB with their keys take 4 KiB, seven take 8), and
    /// bring ranges more of what comes next where values stand beside their keys; but each Get reads more, and so does each write that is durable
    /// by itself, which takes a page of the log.
    pub page_bytes: u32,
    /// Memory for the index, in bytes. An index that fits makes a Get one read; beyond it parts are read as well. It may be another one each time that a
    /// store is opened.
    pub memory_bytes: u64,
    /// Whether glibc's allocator is asked to give back what is free in the heaps of the process (`malloc_trim`), on a thread of its own, when some 16 MiB
    /// were freed and when the store has been opened; four times as long as that took it is left alone then. Whoever allocates from a heap that is being
    /// searched waits, some milliseconds at a time, and so may gets. Other allocators are not asked.
    pub trim_heap: bool,
    /// Memory for values that were read last, in bytes, out of `memory_bytes`.
    pub value_cache_bytes: u64,
    /// Memory for writes before they are flushed, in bytes: twice that at most. A store leaves room for some memtables in its files that it fills
    /// with nothing else, so that a small one with large memtables is full early. 0, the default: a 128th of what its files hold together, 32 MiB at
    /// most, 1 MiB at least. A batch holds half of it. More than the files have room for is refused ([`Error::Invalid`]).
    pub memtable_bytes: u64,
    /// When writes are acknowledged that do not say it.
    pub durability: Durability,
    /// How files are read and written.
    pub io: Io,
    /// Whether windows are kept. They may be others each time that a store is opened.
    pub windows: Windows,
    /// With windows: memory for what waits for the slot of its member, in bytes, parity included. A flush takes half as
    /// much again as its memtable where there are three members. Background writes wait beyond it, reads never do.
    pub plm_cache_bytes: u64,
    /// For demonstrations: a simulated block drive, by the name of a built-in one (`vigil-15gb`) or the path of its file, beside the store's files. It is
    /// given each read and write as well, in real time, and a call waits for both, so that the store is as fast as it would be on that drive,
    /// as far as files and processor are faster. Each directory takes one of its NVM sets, which is as large as a file may be; with
    /// [`Windows::Plm`] the windows are the drive's. Every block of it was written once when the store is opened. None: nothing is simulated.
    pub simulated_drive: Option<String>,
    /// What keys and values are expected to be like, in bytes: the index is laid out for them. What no key or value can be counts as the
    /// nearest that one can.
    pub expected_key_bytes: u32,
    /// See `expected_key_bytes`.
    pub expected_value_bytes: u32,
}

impl Default for Options {
    /// A store without windows, of up to 16 GiB in each file, with 256 MiB of memory for its index and 2 x 32 MiB for writes (less in smaller files), in which a
    /// write that is acknowledged is durable.
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
            simulated_drive: None,
            expected_key_bytes: 32,
            expected_value_bytes: 1024,
        }
    }
}

/// What was settled when a store was made: what is asked for besides is not to be passed over in silence. What is as by default is not
/// asked for.
///
/// # Errors
/// [`Error::Invalid`], with what the store has, and what to do.
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

/// What is allowed, of a store over so many directories.
///
/// # Errors
/// [`Error::Invalid`], with what is not.
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
