//! One command at a time changes a key.
//!
//! Keys share locks by their hash. A command that changes several takes their locks in order, so that no two wait for each
//! other. Reading a single record needs none.
//!
//! Besides, it is counted how often a key was locked for writing, so that a transaction can tell whether something it watches
//! has changed. There are fewer counters than keys: it may be told so of a key that has not.
//!
//! A key that expires has changed when its time has come, swept or not. Keys that the sweep takes away are counted apart: who has watched a key that
//! had expired by then, or never does, is told of no change.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::records::Expiry;

const LOCKS: u64 = 1024;
const COUNTERS: u64 = 1 << 16;

pub(crate) struct Locks {
    all: Vec<RwLock<()>>,
    /// How often keys were locked for writing.
    counters: Vec<AtomicU32>,
    /// How often one was swept, because its time had come.
    swept: Vec<AtomicU32>,
    /// Clients cannot know which keys share a lock.
    hasher: RandomState,
}

/// A key that is watched, and how often it had been locked for writing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    hash: u64,
    count: u32,
    swept: u32,
    /// When it expires, or the first of those that are watched by the same counter.
    expiry: Expiry,
}

impl Watched {
    /// Which counter it is of.
    pub(crate) fn counter(&self) -> usize {
        counter(self.hash)
    }

    /// Both, of one counter, since this one was watched.
    pub(crate) fn with(self, later: Self) -> Self {
        let expiry = self.expiry.into_iter().chain(later.expiry).min();
        Self { expiry, ..self }
    }
}

/// A key that nobody was changing, and how often it had been locked for writing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glance {
    hash: u64,
    count: u32,
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
            swept: (0..COUNTERS).map(|_| AtomicU32::new(0)).collect(),
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

    /// Locks all keys, without counting that: nobody is writing then.
    pub(crate) fn all(&self) -> Writing<'_> {
        // Also where somebody has panicked: a server that ends has to leave word.
        self.all.iter().map(|lock| lock.write().unwrap_or_else(PoisonError::into_inner)).collect()
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

    /// A look at a key, unless somebody is changing it, without waiting.
    pub(crate) fn glance(&self, key: &[u8]) -> Option<Glance> {
        let hash = self.hash(key);
        let _reading = self.all[lock(hash)].try_read().ok()?;
        Some(Glance { hash, count: self.counters[counter(hash)].load(Ordering::Relaxed) })
    }

    /// Whether nobody has begun to change it since: whoever has seen a change in the store sees that it was counted before.
    pub(crate) fn is_as_it_was(&self, glance: Glance) -> bool {
        self.counters[counter(glance.hash)].load(Ordering::Relaxed) == glance.count
    }

    /// Counts a key, which is locked and goes because its time has come.
    pub(crate) fn sweep(&self, key: &[u8]) {
        self.swept[counter(self.hash(key))].fetch_add(1, Ordering::Relaxed);
    }

    /// How often a key was locked for writing, now that nobody has it locked, and when it expires, as `expiry` says then: of what has expired
    /// or is not there, never.
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

    /// Whether a key, which is locked, was not locked for writing since, nor has expired.
    pub(crate) fn is_unchanged(&self, watched: &Watched, now: u64) -> bool {
        let is = |counters: &[AtomicU32], count| {
            counters[counter(watched.hash)].load(Ordering::Relaxed) == count
        };
        // Swept, it is gone, also if the clock was set back since.
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
        // Of several that share a counter the first one counts.
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
