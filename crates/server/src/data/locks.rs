//! One command at a time changes a key.
//!
//! Keys share locks by their hash. A command that changes several takes their locks in order, so that no two wait for each
//! other. Reading a single record needs none.
//!
//! Besides, it is counted how often a key was locked for writing, so that a transaction can tell whether something it watches
//! has changed. There are fewer counters than keys: it may be told so of a key that has not.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

const LOCKS: u64 = 1024;
const COUNTERS: u64 = 1 << 16;

pub(crate) struct Locks {
    all: Vec<RwLock<()>>,
    /// How often keys were locked for writing.
    counters: Vec<AtomicU32>,
    /// Clients cannot know which keys share a lock.
    hasher: RandomState,
}

/// A key that is watched, and how often it had been locked for writing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    hash: u64,
    count: u32,
}

impl Watched {
    /// Which counter it is of.
    pub(crate) fn counter(&self) -> usize {
        counter(self.hash)
    }
}

fn lock(hash: u64) -> usize {
    (hash % LOCKS) as usize
}

/// By other bits of the hash than locks go.
fn counter(hash: u64) -> usize {
    ((hash >> 32) % COUNTERS) as usize
}

/// Held while keys are changed.
pub(crate) type Writing<'a> = Vec<RwLockWriteGuard<'a, ()>>;

const WHY: &str = "a command panicked with a key locked; what it left half done is not known";

impl Locks {
    pub(crate) fn new() -> Self {
        Self {
            all: (0..LOCKS).map(|_| RwLock::new(())).collect(),
            counters: (0..COUNTERS).map(|_| AtomicU32::new(0)).collect(),
            hasher: RandomState::new(),
        }
    }

    fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    /// For reading what several records hold together.
    pub(crate) fn read(&self, key: &[u8]) -> RwLockReadGuard<'_, ()> {
        self.all[lock(self.hash(key))].read().expect(WHY)
    }

    pub(crate) fn write_one(&self, key: &[u8]) -> RwLockWriteGuard<'_, ()> {
        let hash = self.hash(key);
        let lock = self.all[lock(hash)].write().expect(WHY);
        self.count(hash);
        lock
    }

    pub(crate) fn write(&self, keys: &[&[u8]]) -> Writing<'_> {
        let locks = self.hold(keys, &[]);
        self.touch(keys);
        locks
    }

    /// Locks keys without counting that.
    pub(crate) fn hold(&self, keys: &[&[u8]], watched: &[Watched]) -> Writing<'_> {
        let hashes = keys.iter().map(|key| self.hash(key));
        let hashes = hashes.chain(watched.iter().map(|watched| watched.hash));
        let mut numbers: Vec<usize> = hashes.map(lock).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(|number| self.all[number].write().expect(WHY)).collect()
    }

    /// Counts keys, which are locked, as locked for writing.
    pub(crate) fn touch(&self, keys: &[&[u8]]) {
        for key in keys {
            self.count(self.hash(key));
        }
    }

    fn count(&self, hash: u64) {
        self.counters[counter(hash)].fetch_add(1, Ordering::Relaxed);
    }

    /// How often a key was locked for writing, now that nobody has it locked.
    pub(crate) fn watch(&self, key: &[u8]) -> Watched {
        let hash = self.hash(key);
        let _reading = self.read(key);
        Watched { hash, count: self.counters[counter(hash)].load(Ordering::Relaxed) }
    }

    /// Whether a key, which is locked, was not locked for writing since.
    pub(crate) fn is_unchanged(&self, watched: &Watched) -> bool {
        self.counters[counter(watched.hash)].load(Ordering::Relaxed) == watched.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_locked_for_writing_has_changed() {
        let locks = Locks::new();
        let watched = locks.watch(b"a");
        drop(locks.read(b"a"));
        drop(locks.hold(&[b"a"], &[]));
        assert!(locks.is_unchanged(&watched));
        drop(locks.write_one(b"a"));
        assert!(!locks.is_unchanged(&watched));
    }
}
