//! A scan-resistant cache with a byte budget: S3-FIFO (Yang et al., SOSP'23), extended for scans.
//!
//! New entries go into a *small* queue, a tenth of the bytes. At the end of that queue, an entry
//! that was used again moves to the *main* queue; other entries are evicted, and their keys are
//! remembered for a while as *ghosts*. An entry that returns while its ghost exists goes straight
//! to main. An entry at the end of main is reinserted once for each use, at most three times. So
//! entries that are read once pass through only a tenth of the cache. Entries read by a scan leave
//! no ghost, and uses by scans do not count.
//!
//! Pure: no clock, no randomness; the state depends only on the order of calls. Invariants:
//! `bytes() <= budget`, including the overhead of each entry; there are never more ghosts than
//! entries. Cost: a table lookup, and sometimes a reinsertion.

pub(crate) mod slots;
#[cfg(test)]
mod tests;

pub(crate) use crate::read::cache::slots::Key;
use crate::read::cache::slots::{Queue, Slots};

/// The kind of access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// A lookup of one key.
    Point,
    /// A sequential read that continues at the end of the previous one.
    Scan,
}

/// Bytes of an entry besides its value: key, links and a table slot, and the same again for a
/// ghost.
pub(crate) const ENTRY_BYTES: u64 = 96;

/// Main is not shrunk while small has more than this fraction (1/10) of the bytes.
const SMALL_PART: u64 = 10;

/// Maximum number of reinsertions that an entry of main can earn.
const MOST_USES: u8 = 3;

/// Values by key, of `budget` bytes at most. The value of a key never changes.
pub(crate) struct Cache<K, V> {
    slots: Slots<K, V>,
    budget: u64,
    small_bytes: u64,
    main_bytes: u64,
}

impl<K: Key, V> Cache<K, V> {
    pub(crate) fn new(budget: u64) -> Self {
        Self { slots: Slots::default(), budget, small_bytes: 0, main_bytes: 0 }
    }

    /// Returns the number of bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.small_bytes + self.main_bytes
    }

    /// Returns the value of `key`, if it is cached.
    pub(crate) fn get(&mut self, key: &K, access: Access) -> Option<&V> {
        let at = self.slots.find(key)?;
        let slot = self.slots.get_mut(at);
        if access == Access::Point && slot.value.is_some() {
            slot.uses = MOST_USES.min(slot.uses + 1);
        }
        slot.value.as_ref()
    }

    /// Whether the value of `key` is cached. Does not count as a use.
    pub(crate) fn holds(&self, key: &K) -> bool {
        self.slots.find(key).is_some_and(|at| self.slots.get(at).value.is_some())
    }

    /// Inserts a value of `bytes` bytes, unless it is cached already or larger than the budget.
    pub(crate) fn insert(&mut self, key: K, value: V, bytes: u64, access: Access) {
        let takes = bytes + ENTRY_BYTES;
        if self.holds(&key) || takes > self.budget {
            return;
        }
        let known = self.slots.find(&key);
        let is_back = known.is_some() && access == Access::Point;
        if let Some(ghost) = known {
            self.slots.remove(ghost);
        }
        while self.bytes() + takes > self.budget {
            self.evict();
        }
        let queue = if is_back { Queue::Main } else { Queue::Small };
        *self.bytes_of(queue) += takes;
        self.slots.add(key, value, takes, access == Access::Scan, queue);
        self.forget_ghosts();
    }

    fn bytes_of(&mut self, queue: Queue) -> &mut u64 {
        match queue {
            Queue::Small => &mut self.small_bytes,
            Queue::Main => &mut self.main_bytes,
            Queue::Ghosts => unreachable!("ghosts have no bytes of their own"),
        }
    }

    /// Takes one eviction step.
    fn evict(&mut self) {
        if self.small_bytes > self.budget / SMALL_PART || self.main_bytes == 0 {
            self.evict_from_small();
        } else {
            self.evict_from_main();
        }
    }

    fn evict_from_small(&mut self) {
        let at = self.slots.oldest(Queue::Small).expect("it has bytes, or main has none");
        let slot = self.slots.get_mut(at);
        let (takes, uses, is_scanned) = (slot.bytes, slot.uses, slot.is_scanned);
        slot.uses = 0;
        self.small_bytes -= takes;
        if uses > 0 {
            self.main_bytes += takes;
            self.slots.move_to(at, Queue::Main);
        } else if is_scanned {
            self.slots.remove(at);
        } else {
            slot.value = None;
            self.slots.move_to(at, Queue::Ghosts);
        }
    }

    fn evict_from_main(&mut self) {
        let at = self.slots.oldest(Queue::Main).expect("it has bytes");
        let slot = self.slots.get_mut(at);
        let takes = slot.bytes;
        if slot.uses > 0 {
            slot.uses -= 1;
            self.slots.move_to(at, Queue::Main);
        } else {
            self.main_bytes -= takes;
            self.slots.remove(at);
        }
    }

    fn forget_ghosts(&mut self) {
        let entries = self.slots.count(Queue::Small) + self.slots.count(Queue::Main);
        while self.slots.count(Queue::Ghosts) > entries {
            let oldest = self.slots.oldest(Queue::Ghosts).expect("there are some");
            self.slots.remove(oldest);
        }
    }
}
