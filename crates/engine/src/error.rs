//! What can go wrong for a caller of the engine.

use std::fmt;

use crate::store::medium::PageNo;

/// Why an operation failed. Nothing was changed by it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EngineError {
    /// The key is empty or longer than 255 bytes; the number is its length.
    KeyLength(usize),
    /// The value is longer than the store takes, in bytes.
    ValueTooLarge {
        /// Length of the value.
        len: u32,
        /// The longest there may be.
        max: u32,
    },
    /// There is no room, and no garbage left to collect. Delete something and try again.
    Full,
    /// What the index points to is not what was once written there, or cannot be read.
    Corrupt(PageNo),
    /// Background work met a page it cannot read; the store is read-only until it is recovered.
    ReadOnly(PageNo),
    /// The snapshot expired, because what it held was needed. Make a new iterator.
    SnapshotTooOld,
    /// There is no memory for another iterator. Destroy one and try again.
    IteratorMemory,
    /// The iterator stands nowhere yet: Seek first.
    NotPositioned,
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyLength(len) => write!(f, "a key has 1 to 255 bytes, this one has {len}"),
            Self::ValueTooLarge { len, max } => {
                write!(f, "the value has {len} bytes, the store takes up to {max}")
            }
            Self::Full => f.write_str("the store is full; delete something and try again"),
            Self::Corrupt(page) => write!(f, "page {} is damaged", page.0),
            Self::ReadOnly(page) => write!(
                f,
                "background work found page {} damaged; the store takes no more writes",
                page.0
            ),
            Self::SnapshotTooOld => {
                f.write_str("the iterator's snapshot was too old to be kept; make a new iterator")
            }
            Self::IteratorMemory => {
                f.write_str("there is no memory for another iterator; destroy one and try again")
            }
            Self::NotPositioned => f.write_str("the iterator stands nowhere yet; seek first"),
        }
    }
}

impl std::error::Error for EngineError {}
