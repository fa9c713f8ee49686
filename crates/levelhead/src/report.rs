//! The report of a walk over all pairs of a store: their number, and the damage found.

use engine::IndexPart;

use crate::error::Error;

/// A damaged place, and the keys that it may affect.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The damage: an [`Error::Damaged`] with file and offset.
    pub error: Error,
    /// The last readable key before the damage; `None` if there is none.
    pub after: Option<Box<[u8]>>,
    /// The first readable key after the damage; `None` if there is none.
    pub before: Option<Box<[u8]>>,
    /// Whether the damage affects redundancy only, so that no pair is lost: parity that does not
    /// agree with the data, or a page that parity can rebuild. Copy the store before another
    /// directory is lost.
    pub is_redundancy: bool,
}

/// The result of a walk over all pairs.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Pairs that can be read.
    pub pairs: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// For a store over several directories: stripes of which all chunks were read and compared.
    pub stripes: u64,
    /// Stripes that could not be compared, because a directory lacks a part of them or because they
    /// were being written.
    pub unchecked_stripes: u64,
    /// The damage found: in key order, followed by damage of redundancy; in order of file position
    /// if [`Self::salvaged`] is set.
    pub findings: Vec<Finding>,
    /// For a repair: pairs that were saved although their part of the index is damaged. They come
    /// from the pages with their values. Deleted keys may be among them, and older values may stand
    /// in for newer ones.
    pub rescued: u64,
    /// Parts of the index that cannot be read.
    pub(crate) unreadable: Vec<IndexPart>,
    /// For a store that did not open: the reason, and the doubts about the saved pairs.
    pub salvaged: Option<Salvaged>,
}

/// The limits of a salvage: the reason for it, and the doubts about the saved pairs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Salvaged {
    /// The reason why the store did not open.
    pub why: Error,
    /// Possible errors in the saved pairs, as text; empty if they are exactly those of the store.
    pub doubts: Vec<String>,
    /// Saved pairs that may have been deleted.
    pub unsure: u64,
    /// Keys whose value cannot be read in any version.
    pub lost: Vec<Box<[u8]>>,
    /// Keys that were saved with an older value, because the newest one cannot be read.
    pub older: Vec<Box<[u8]>>,
}
