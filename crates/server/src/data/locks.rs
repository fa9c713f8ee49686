//! One command at a time changes a key.
//!
//! Keys share locks by their hash. A command that changes several takes their locks in order, so that no two wait for each
//! other. Reading a single record needs none.

use std::hash::{BuildHasher, RandomState};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

const LOCKS: u64 = 1024;

pub(crate) struct Locks {
    locks: Vec<RwLock<()>>,
    /// Clients cannot know which keys share a lock.
    hasher: RandomState,
}

/// Held while keys are changed.
pub(crate) type Writing<'a> = Vec<RwLockWriteGuard<'a, ()>>;

const WHY: &str = "a command panicked with a key locked; what it left half done is not known";

impl Locks {
    pub(crate) fn new() -> Self {
        Self { locks: (0..LOCKS).map(|_| RwLock::new(())).collect(), hasher: RandomState::new() }
    }

    fn number(&self, key: &[u8]) -> usize {
        (self.hasher.hash_one(key) % LOCKS) as usize
    }

    /// For reading what several records hold together.
    pub(crate) fn read(&self, key: &[u8]) -> RwLockReadGuard<'_, ()> {
        self.locks[self.number(key)].read().expect(WHY)
    }

    pub(crate) fn write_one(&self, key: &[u8]) -> RwLockWriteGuard<'_, ()> {
        self.locks[self.number(key)].write().expect(WHY)
    }

    pub(crate) fn write<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) -> Writing<'_> {
        let mut numbers: Vec<usize> = keys.into_iter().map(|key| self.number(key)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(|number| self.locks[number].write().expect(WHY)).collect()
    }

    /// Every key.
    pub(crate) fn write_all(&self) -> Writing<'_> {
        self.locks.iter().map(|lock| lock.write().expect(WHY)).collect()
    }
}
