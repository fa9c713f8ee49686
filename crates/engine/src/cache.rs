//! A cache of so many bytes that a scan does not sweep: S3-FIFO (Yang et al., SOSP'23) with a word for scans.
//!
//! What comes in stands in a *small* queue, a tenth of the bytes. What is asked for again before it reaches
//! the end goes on to the *main* queue, and what is not goes out; its key is remembered for a while, as a
//! *ghost*, and if it comes back it goes straight to main. What reaches the end of main goes round again as
//! often as it was asked for, three times at most. So whatever is read once passes through a tenth of the
//! cache. What a scan reads besides earns nothing: it leaves no ghost, and to be asked for by a scan does not count.
//!
//! Pure: no clock, no randomness, no order but that of the calls. Invariants: `bytes() <= budget`, with what
//! each entry takes besides its value; there are no more ghosts than entries. Cost: a look in a table, and now and
//! then an entry that goes round.

mod slots;
#[cfg(test)]
mod tests;

pub(crate) use slots::Key;
use slots::{Queue, Slots};

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Somebody who looks for one key.
    Point,
    /// Somebody who reads on from where the last read ended.
    Scan,
}

/// Bytes that an entry takes besides its value: key, links and a place in the table, and as much again for a
/// ghost.
pub(crate) const ENTRY_BYTES: u64 = 96;

/// Main is not made smaller while small has more than this part of the bytes.
const SMALL_PART: u64 = 10;

/// Rounds that an entry of main has earned at most.
const MOST_USES: u8 = 3;

/// Values by key, of `budget` bytes at most. What a key stands for never changes.
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

    /// Bytes that it holds.
    pub(crate) fn bytes(&self) -> u64 {
        self.small_bytes + self.main_bytes
    }

    /// The value of `key`, if it is there.
    pub(crate) fn get(&mut self, key: &K, access: Access) -> Option<&V> {
        let at = self.slots.find(key)?;
        let slot = self.slots.get_mut(at);
        if access == Access::Point && slot.value.is_some() {
            slot.uses = MOST_USES.min(slot.uses + 1);
        }
        slot.value.as_ref()
    }

    /// Whether the value of `key` is there; that counts as no use of it.
    pub(crate) fn holds(&self, key: &K) -> bool {
        self.slots.find(key).is_some_and(|at| self.slots.get(at).value.is_some())
    }

    /// Takes in a value of so many bytes, if it is not there already and not larger than everything.
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

    /// One step towards more room.
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
