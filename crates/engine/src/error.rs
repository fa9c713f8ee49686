//! Errors that callers of a store can get.

use std::fmt;

use runtime::Nanos;

use crate::format::page::PageFault;
use crate::medium::{MediumError, PageNo};

/// The resource that a full store lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UsedUp {
    /// Space on the medium.
    Space,
    /// The memory for the index, with its limit in bytes.
    IndexMemory(u64),
}

/// The size of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSize {
    /// The number of writes.
    pub writes: usize,
    /// Bytes that the writes use in a memtable.
    pub bytes: u64,
}

/// The reason why an operation failed. It has changed nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EngineError {
    /// The key is empty or longer than 255 bytes. The number is its length in bytes.
    KeyLength(usize),
    /// The value is longer than the store accepts, in bytes.
    ValueTooLarge {
        /// The length of the value.
        len: u32,
        /// The longest value accepted.
        max: u32,
    },
    /// The batch is larger than the store accepts.
    BatchTooLarge {
        /// The size of the batch.
        size: BatchSize,
        /// The largest batch accepted.
        max: BatchSize,
    },
    /// A resource is used up, and no garbage is left to collect. Delete something and try again.
    Full(UsedUp),
    /// The page that the index points to does not have the contents once written there, or cannot
    /// be read.
    Corrupt(PageNo, PageFault),
    /// The medium failed; no page is known to be damaged.
    Medium(MediumError),
    /// Background work has stopped; the store is read-only until it is recovered.
    ReadOnly(Failure),
    /// The snapshot expired, because its memory or space was needed. Create a new iterator.
    SnapshotTooOld(Expired),
    /// No memory is left for another iterator. Destroy one and try again.
    IteratorMemory,
    /// The iterator has no position yet: call Seek first.
    NotPositioned,
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyLength(len) => write!(f, "a key has 1 to 255 bytes, this one has {len}"),
            Self::ValueTooLarge { len, max } => {
                write!(f, "the value has {len} bytes, the store takes up to {max}")
            }
            Self::BatchTooLarge { size, max } => {
                let BatchSize { writes, bytes } = size;
                write!(
                    f,
                    "the batch has {writes} writes with {bytes} bytes, the store takes up to "
                )?;
                if size.writes > max.writes {
                    write!(f, "{} with ", max.writes)?;
                }
                write!(f, "{} bytes; make several of it", max.bytes)
            }
            Self::Full(UsedUp::Space) => {
                f.write_str("the store is full; delete something and try again")
            }
            Self::Full(UsedUp::IndexMemory(bytes)) => write!(
                f,
                "the memory for the store's index is used up ({:.1} MiB); give it more, or delete something and try \
                 again",
                *bytes as f64 / f64::from(1 << 20)
            ),
            Self::Corrupt(page, fault) => write!(f, "page {} is damaged: {fault}", page.0),
            Self::Medium(error) => error.fmt(f),
            Self::ReadOnly(failure) => write!(f, "{failure}; the store takes no more writes"),
            Self::SnapshotTooOld(_) => {
                f.write_str("the iterator's snapshot was too old to be kept; make a new iterator")
            }
            Self::IteratorMemory => {
                f.write_str("there is no memory for another iterator; have fewer at a time")
            }
            Self::NotPositioned => f.write_str("the iterator stands nowhere yet; seek first"),
        }
    }
}

impl std::error::Error for EngineError {}

/// An expired snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expired {
    /// Its age.
    pub age: Nanos,
    /// The resource that it was given up for.
    pub for_want_of: WantOf,
}

/// The resource that was too short to keep a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WantOf {
    /// Memory: all snapshots together exceed their limit.
    Memory,
    /// Space: writers need the space that the snapshot keeps from being collected.
    Space,
}

/// The reason why background work stopped for good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// A page that it needs is damaged.
    Damaged(PageNo),
    /// The medium failed.
    Medium(MediumError),
    /// The separate medium of log and manifest failed.
    JournalMedium(MediumError),
    /// The recovered state contradicts itself about the items in use, although all of it passes
    /// its checksums.
    Inconsistent(&'static str),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(page) => write!(f, "background work found page {} damaged", page.0),
            Self::Medium(error) => write!(f, "background work met an error: {error}"),
            Self::JournalMedium(error) => {
                write!(f, "log and manifest lie on a medium of their own, and that failed: {error}")
            }
            Self::Inconsistent(what) => write!(f, "what was recovered contradicts itself: {what}"),
        }
    }
}

impl From<MediumError> for EngineError {
    fn from(error: MediumError) -> Self {
        match error {
            MediumError::Unreadable(page) => Self::Corrupt(page, PageFault::Unreadable),
            other => Self::Medium(other),
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Corrupt(page, _) => Self::Damaged(page),
            EngineError::Medium(error) => Self::Medium(error),
            EngineError::ReadOnly(failure) => failure,
            other => unreachable!("background work cannot meet this: {other}"),
        }
    }
}

/// The reason why a store could not be opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// The design needs more memory for its index than is available, in bytes.
    DoesNotFit {
        /// The size of level lists, prefixes, range pointers and pinned segments.
        needed: u64,
        /// The memory available.
        available: u64,
        /// The number of levels to pin, if one was configured.
        pinned_levels: Option<u32>,
    },
    /// The caches of the design alone need more memory than is available for the index, in bytes.
    CachesDoNotFit {
        /// The size of the caches.
        needed: u64,
        /// The memory available.
        available: u64,
    },
    /// Background work, and the journal if there is one, would leave clients no space.
    TooFewExtents {
        /// The least number of extents.
        needed: usize,
        /// The number of extents available.
        available: usize,
    },
    /// An extent consists of a single append unit, so that its live items could not be moved to
    /// less space.
    SingleUnit,
    /// The design merges with an accelerator, but the device has none.
    NoAccelerator,
    /// The dump does not have the format that this program writes.
    BadDump,
    /// The medium holds pages of a store, but no manifest that leads to them.
    NoManifest,
    /// The journal medium belongs to another store than the index.
    ForeignJournal,
    /// The design has no log, or can keep it only next to the data.
    NoJournalApart,
    /// The separate medium of log and manifest failed.
    JournalMedium(MediumError),
    /// A part of the log or the manifest is missing; the text names it.
    DamagedJournal(&'static str),
    /// A page that recovery needs is damaged.
    Damaged(PageNo, PageFault),
    /// The medium holds pages written after the memory was saved: the saved memory is outdated.
    LostMemory,
    /// The medium failed.
    Medium(MediumError),
}

impl OpenError {
    /// Returns the error as one of the separate journal medium. Nothing can replace that medium, so
    /// the error must name it.
    pub(crate) fn of_journal(self) -> Self {
        match self {
            Self::Medium(error) => Self::JournalMedium(error),
            other => other,
        }
    }
}

impl From<MediumError> for OpenError {
    fn from(error: MediumError) -> Self {
        Self::Medium(error)
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DoesNotFit { needed, available, pinned_levels } => {
                does_not_fit(f, *needed, *available, *pinned_levels)
            }
            Self::CachesDoNotFit { needed, available } => write!(
                f,
                "the caches are to have {needed} bytes of the memory for the index, and that has \
                 {available}: make page_cache_bytes and value_cache_bytes smaller, or give it more"
            ),
            Self::TooFewExtents { needed, available } => write!(
                f,
                "memtables, background work and the journal, if there is one, need {needed} extents \
                 (superblocks of a drive), and there are {available}: use more flash \
                 (blocks_per_plane), smaller memtables or fewer that wait for their flush"
            ),
            Self::SingleUnit => f.write_str(
                "one append fills an extent (a superblock of a drive), so that none could be \
                 collected: use more pages_per_block or more dies",
            ),
            Self::NoAccelerator => f.write_str(
                "the design merges with an accelerator and the device has none: set merge to \
                 \"cpu\", or give the device an [accelerator]",
            ),
            Self::BadDump => f.write_str("the dump of the drive's memory has an unexpected form"),
            Self::NoManifest => f.write_str(
                "the medium holds pages of a store, and no whole manifest that says which of them \
                 count: the manifest is damaged, or something else wrote here",
            ),
            Self::ForeignJournal => f.write_str(
                "the journal is another store's than the data: give the one that belongs to \
                 them, or empty both media for a new store",
            ),
            Self::NoJournalApart => f.write_str(
                "log and manifest are to have a medium of their own, which is there for LSM-trees \
                 with a log only: leave them beside the data, or take such a design",
            ),
            Self::JournalMedium(error) => write!(
                f,
                "log and manifest lie on a medium of their own, without which the data are of no \
                 use, and that failed: {error}"
            ),
            Self::DamagedJournal(what) => {
                write!(f, "{what}, and what stood behind it is there: the journal is damaged")
            }
            Self::Damaged(page, fault) => {
                write!(f, "page {}, which is needed to open the store: {fault}", page.0)
            }
            Self::LostMemory => f.write_str(
                "the store ran after its memory was last saved, and acknowledged writes are lost",
            ),
            Self::Medium(error) => error.fmt(f),
        }
    }
}

fn does_not_fit(
    f: &mut fmt::Formatter<'_>,
    needed: u64,
    available: u64,
    pinned_levels: Option<u32>,
) -> fmt::Result {
    write!(f, "the index needs {needed} bytes of memory, and there are {available}: ")?;
    match pinned_levels {
        Some(0) | None => f.write_str("use longer values, shorter keys or more memory"),
        Some(levels) => write!(f, "pin fewer than {levels} levels, or leave pinned_levels out"),
    }
}

impl std::error::Error for OpenError {}
