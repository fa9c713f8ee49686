//! The entries of a cache: a hash table by key, and queues by age. A table of our own, because its
//! behaviour must depend only on the keys.

/// The key of an entry.
pub(crate) trait Key: Copy + Eq {
    /// Returns a hash of which every bit depends on the whole key.
    fn hash(&self) -> u64;
}

/// The queue of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Queue {
    Small,
    Main,
    /// Entries without a value.
    Ghosts,
}

/// An entry.
pub(super) struct Slot<K, V> {
    key: K,
    /// The value; `None` for a ghost.
    pub(super) value: Option<V>,
    /// All bytes that the entry takes.
    pub(super) bytes: u64,
    /// The number of uses since it was inserted or reinserted.
    pub(super) uses: u8,
    /// Whether a scan inserted it.
    pub(super) is_scanned: bool,
    queue: Queue,
    older: u32,
    newer: u32,
    /// The next entry in the same bucket of the table.
    next: u32,
}

#[derive(Clone, Copy)]
struct Ends {
    oldest: u32,
    newest: u32,
    count: usize,
}

/// Marks the end of a queue or bucket.
const NONE: u32 = u32::MAX;

/// Entries, by key and in queues.
pub(super) struct Slots<K, V> {
    all: Vec<Slot<K, V>>,
    free: Vec<u32>,
    /// The first entry of each bucket; the number of buckets is a power of two or 0.
    places: Vec<u32>,
    queues: [Ends; 3],
}

impl<K, V> Default for Slots<K, V> {
    fn default() -> Self {
        let empty = Ends { oldest: NONE, newest: NONE, count: 0 };
        Self { all: Vec::new(), free: Vec::new(), places: Vec::new(), queues: [empty; 3] }
    }
}

impl<K: Key, V> Slots<K, V> {
    pub(super) fn get(&self, at: u32) -> &Slot<K, V> {
        &self.all[at as usize]
    }

    pub(super) fn get_mut(&mut self, at: u32) -> &mut Slot<K, V> {
        &mut self.all[at as usize]
    }

    /// Returns the slot of `key`'s entry, if there is one.
    pub(super) fn find(&self, key: &K) -> Option<u32> {
        let mut at = *self.places.get(self.place(key))?;
        while at != NONE {
            let slot = self.get(at);
            if slot.key == *key {
                return Some(at);
            }
            at = slot.next;
        }
        None
    }

    /// Adds an entry as the newest of its queue. Requires: the key has no entry.
    pub(super) fn add(&mut self, key: K, value: V, bytes: u64, is_scanned: bool, queue: Queue) {
        let at = self.free.pop().unwrap_or(self.all.len() as u32);
        if at as usize >= self.places.len() {
            self.widen();
        }
        let place = self.place(&key);
        let next = std::mem::replace(&mut self.places[place], at);
        let value = Some(value);
        let (uses, older, newer) = (0, NONE, NONE);
        let slot = Slot { key, value, bytes, uses, is_scanned, queue, older, newer, next };
        if let Some(free) = self.all.get_mut(at as usize) {
            *free = slot;
        } else {
            self.all.push(slot);
        }
        self.link(at, queue);
    }

    /// Removes an entry.
    pub(super) fn remove(&mut self, at: u32) {
        self.unlink(at);
        let slot = self.get_mut(at);
        slot.value = None;
        let (key, next) = (slot.key, slot.next);
        let place = self.place(&key);
        let mut before = self.places[place];
        if before == at {
            self.places[place] = next;
        } else {
            while self.get(before).next != at {
                before = self.get(before).next;
            }
            self.get_mut(before).next = next;
        }
        self.free.push(at);
    }

    /// Makes an entry the newest of a queue.
    pub(super) fn move_to(&mut self, at: u32, queue: Queue) {
        self.unlink(at);
        self.link(at, queue);
    }

    pub(super) fn oldest(&self, queue: Queue) -> Option<u32> {
        let oldest = self.queues[queue as usize].oldest;
        (oldest != NONE).then_some(oldest)
    }

    pub(super) fn count(&self, queue: Queue) -> usize {
        self.queues[queue as usize].count
    }

    fn link(&mut self, at: u32, queue: Queue) {
        let ends = &mut self.queues[queue as usize];
        let older = std::mem::replace(&mut ends.newest, at);
        ends.count += 1;
        if older == NONE {
            ends.oldest = at;
        } else {
            self.get_mut(older).newer = at;
        }
        let slot = self.get_mut(at);
        (slot.queue, slot.older, slot.newer) = (queue, older, NONE);
    }

    fn unlink(&mut self, at: u32) {
        let &Slot { queue, older, newer, .. } = self.get(at);
        let ends = &mut self.queues[queue as usize];
        ends.count -= 1;
        if older == NONE {
            ends.oldest = newer;
        }
        if newer == NONE {
            ends.newest = older;
        }
        if older != NONE {
            self.get_mut(older).newer = newer;
        }
        if newer != NONE {
            self.get_mut(newer).older = older;
        }
    }

    fn place(&self, key: &K) -> usize {
        key.hash() as usize & self.places.len().wrapping_sub(1)
    }

    /// Doubles the number of buckets. All slots are in use at this point, so that each gets its new
    /// bucket.
    fn widen(&mut self) {
        let places = (2 * self.places.len()).max(16);
        self.places = vec![NONE; places];
        for at in 0..self.all.len() {
            let place = self.place(&self.all[at].key);
            self.all[at].next = std::mem::replace(&mut self.places[place], at as u32);
        }
    }
}
