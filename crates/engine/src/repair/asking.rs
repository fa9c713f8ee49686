//! The state of a walk through a damaged index, from the top.

use std::collections::BTreeMap;

use crate::iterate::snapshot_reads::IndexPart;

/// The state of a walk through the index from the top.
#[derive(Default)]
pub(super) struct Asking {
    /// Keys without a readable version, and the entry of the topmost level that has them.
    pub missing: BTreeMap<Box<[u8]>, Said>,
    /// Keys with only an older version left.
    pub older: Vec<Box<[u8]>>,
    /// Damaged parts of the levels walked so far.
    pub unknown: Vec<IndexPart>,
}

/// A level's entry of a key.
#[derive(Clone, Copy)]
pub(super) struct Said {
    pub is_live: bool,
    /// Whether all levels above were readable.
    pub is_certain: bool,
}

impl Asking {
    /// Whether a level walked so far may have the key in an unreadable part.
    pub(super) fn is_unknown(&self, key: &[u8]) -> bool {
        self.unknown.iter().any(|part| part.covers(key))
    }
}
