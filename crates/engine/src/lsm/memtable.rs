//! L0: the newest writes, in memory, in key order.
//!
//! A key may have several versions, newest first; older ones are kept only while a snapshot can
//! see them. Cost of a lookup or an insert: `O(log n)` comparisons.

use std::collections::BTreeMap;

use crate::Value;
use crate::format::object::{Sequence, full_len};

/// What one write left behind. `None` is a tombstone.
pub(crate) type Entry = Option<Value>;

/// Writes that are not in any level yet.
#[derive(Default)]
pub(crate) struct Memtable {
    keys: BTreeMap<Box<[u8]>, Versions>,
    bytes: u64,
    entries: usize,
}

struct Versions {
    newest: Version,
    /// Newest first; nearly always empty.
    older: Vec<Version>,
}

#[derive(Clone)]
struct Version {
    sequence: Sequence,
    entry: Entry,
}

impl Memtable {
    /// The newest write of `key` at or before `at`.
    pub(crate) fn get(&self, key: &[u8], at: Sequence) -> Option<(Sequence, &Entry)> {
        let versions = self.keys.get(key)?;
        std::iter::once(&versions.newest)
            .chain(&versions.older)
            .find(|version| version.sequence <= at)
            .map(|version| (version.sequence, &version.entry))
    }

    /// Adds a write that is newer than every other of its key. The version it replaces is kept if
    /// a snapshot at or after it, given by `newest_snapshot`, can still see it.
    pub(crate) fn insert(
        &mut self,
        key: &[u8],
        sequence: Sequence,
        entry: Entry,
        newest_snapshot: Option<Sequence>,
    ) {
        let len = |entry: &Entry| full_len(key.len(), entry.as_ref().map_or(0, Value::len)) as u64;
        self.bytes += len(&entry);
        let version = Version { sequence, entry };
        let Some(versions) = self.keys.get_mut(key) else {
            self.entries += 1;
            self.keys.insert(key.into(), Versions { newest: version, older: Vec::new() });
            return;
        };
        assert!(versions.newest.sequence < sequence, "writes of a key come in order");
        let replaced = std::mem::replace(&mut versions.newest, version);
        if newest_snapshot.is_some_and(|snapshot| replaced.sequence <= snapshot) {
            self.entries += 1;
            versions.older.insert(0, replaced);
        } else {
            self.bytes -= len(&replaced.entry);
        }
    }

    /// Keys and their newest version, in key order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], Sequence, &Entry)> {
        self.keys
            .iter()
            .map(|(key, versions)| (&key[..], versions.newest.sequence, &versions.newest.entry))
    }

    /// Full length of all objects, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of versions.
    pub(crate) fn len(&self) -> usize {
        self.entries
    }
}
