//! Locks of keys: one command at a time changes a key.
//!
//! Keys share locks by their hash. A command that changes several keys acquires their locks in
//! order, which prevents deadlocks. Reading a single record needs no lock.
//!
//! Write counters tell a transaction whether a watched key has changed. Keys share counters, so
//! that an unchanged key may be reported as changed.
//!
//! A key with an expiry changes when it expires, whether it is swept or not. Removals by the
//! sweeper have counters of their own: a client that watches a key which had expired by then, or
//! which never expires, sees no change.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::records::Expiry;

const LOCKS: u64 = 1024;
const COUNTERS: u64 = 1 << 16;

pub(crate) struct Locks {
    all: Vec<RwLock<()>>,
    /// Number of write locks of the keys of each counter.
    counters: Vec<AtomicU32>,
    /// Number of expired keys swept, per counter.
    swept: Vec<AtomicU32>,
    /// A random hash, so that clients cannot find keys that share a lock.
    hasher: RandomState,
}

/// A watched key, with the values of its counters when WATCH ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    hash: u64,
    count: u32,
    swept: u32,
    /// The expiry of the key, or the earliest one of all watched keys that share the counter.
    expiry: Expiry,
}

impl Watched {
    /// Returns the index of the key's counters.
    pub(crate) fn counter(&self) -> usize {
        counter(self.hash)
    }

    /// Merges a key that was watched later and shares the counters. The counter values of the first
    /// one remain.
    pub(crate) fn with(self, later: Self) -> Self {
        let expiry = self.expiry.into_iter().chain(later.expiry).min();
        Self { expiry, ..self }
    }
}

/// An unlocked key, with the value of its write counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glance {
    hash: u64,
    count: u32,
}

fn lock(hash: u64) -> usize {
    (hash % LOCKS) as usize
}

/// Uses other bits of the hash than the locks.
fn counter(hash: u64) -> usize {
    ((hash >> 32) % COUNTERS) as usize
}

/// Write locks of several keys.
pub(crate) type Writing<'a> = Vec<RwLockWriteGuard<'a, ()>>;

const WHY: &str = "a command panicked with a key locked; what it left half done is not known";

impl Locks {
    pub(crate) fn new() -> Self {
        Self {
            all: (0..LOCKS).map(|_| RwLock::new(())).collect(),
            counters: (0..COUNTERS).map(|_| AtomicU32::new(0)).collect(),
            swept: (0..COUNTERS).map(|_| AtomicU32::new(0)).collect(),
            hasher: RandomState::new(),
        }
    }

    fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Locks a key for reading several of its records consistently.
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

    /// Locks keys for writing without counting a write.
    pub(crate) fn hold(&self, keys: &[&[u8]], watched: &[Watched]) -> Writing<'_> {
        let hashes = keys.iter().map(|key| self.hash(key));
        let hashes = hashes.chain(watched.iter().map(|watched| watched.hash));
        let mut numbers: Vec<usize> = hashes.map(lock).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(|number| self.all[number].write().expect(WHY)).collect()
    }

    /// Locks all keys for writing without counting a write.
    pub(crate) fn all(&self) -> Writing<'_> {
        // Also locks that a panic has poisoned: a stopping server has to record its state.
        self.all.iter().map(|lock| lock.write().unwrap_or_else(PoisonError::into_inner)).collect()
    }

    /// Counts a write of each key; the keys are locked.
    pub(crate) fn touch(&self, keys: &[&[u8]]) {
        for key in keys {
            self.count(self.hash(key));
        }
    }

    fn count(&self, hash: u64) {
        self.counters[counter(hash)].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a glance at a key, or `None` if a writer holds its lock. Does not wait.
    pub(crate) fn glance(&self, key: &[u8]) -> Option<Glance> {
        let hash = self.hash(key);
        let _reading = self.all[lock(hash)].try_read().ok()?;
        Some(Glance { hash, count: self.counters[counter(hash)].load(Ordering::Relaxed) })
    }

    /// Whether no write has begun since the glance. A reader that sees a change in the store also
    /// sees its count, because writes are counted before.
    pub(crate) fn is_as_it_was(&self, glance: Glance) -> bool {
        self.counters[counter(glance.hash)].load(Ordering::Relaxed) == glance.count
    }

    /// Counts the removal of an expired key, which is locked.
    pub(crate) fn sweep(&self, key: &[u8]) {
        self.swept[counter(self.hash(key))].fetch_add(1, Ordering::Relaxed);
    }

    /// Waits for writers of a key, and returns its counters and the expiry that `expiry` returns:
    /// `None` for a key that does not exist or has expired.
    pub(crate) fn watch<E>(
        &self,
        key: &[u8],
        expiry: impl FnOnce() -> Result<Expiry, E>,
    ) -> Result<Watched, E> {
        let hash = self.hash(key);
        let _reading = self.read(key);
        let of = |counters: &[AtomicU32]| counters[counter(hash)].load(Ordering::Relaxed);
        let (count, swept) = (of(&self.counters), of(&self.swept));
        Ok(Watched { hash, count, swept, expiry: expiry()? })
    }

    /// Whether a locked key was not written since it was watched, and has not expired.
    pub(crate) fn is_unchanged(&self, watched: &Watched, now: u64) -> bool {
        let is = |counters: &[AtomicU32], count| {
            counters[counter(watched.hash)].load(Ordering::Relaxed) == count
        };
        // A swept key is gone even if the clock was set back since.
        let is_alive = watched.expiry.is_none_or(|at| at > now && is(&self.swept, watched.swept));
        is_alive && is(&self.counters, watched.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_locked_for_writing_has_changed() {
        let locks = Locks::new();
        let watched = watch(&locks, None);
        drop(locks.read(b"a"));
        drop(locks.hold(&[b"a"], &[]));
        assert!(locks.is_unchanged(&watched, 0));
        drop(locks.write_one(b"a"));
        assert!(!locks.is_unchanged(&watched, 0));
    }

    #[test]
    fn a_glance_is_of_what_nobody_changes() {
        let locks = Locks::new();
        let glance = locks.glance(b"a").expect("nobody has it");
        assert!(locks.is_as_it_was(glance));
        let writing = locks.write_one(b"a");
        assert!(!locks.is_as_it_was(glance) && locks.glance(b"a").is_none());
        drop(writing);
        assert!(!locks.is_as_it_was(glance) && locks.glance(b"a").is_some());
    }

    #[test]
    fn what_was_to_expire_has_changed_when_it_has() {
        let locks = Locks::new();
        let (gone, alive) = (watch(&locks, None), watch(&locks, Some(10)));
        assert!(locks.is_unchanged(&alive, 9) && !locks.is_unchanged(&alive, 10));
        // Of several keys that share a counter the earliest expiry counts.
        for both in [alive.with(watch(&locks, Some(20))), gone.with(alive)] {
            assert!(locks.is_unchanged(&both, 9) && !locks.is_unchanged(&both, 10));
        }
        locks.sweep(b"a");
        assert!(!locks.is_unchanged(&alive, 5), "it was swept before the clock was set back");
        assert!(locks.is_unchanged(&gone, 5), "it was gone before");
    }

    fn watch(locks: &Locks, expiry: Expiry) -> Watched {
        locks.watch(b"a", || Ok::<_, ()>(expiry)).expect("it is known")
    }
}
