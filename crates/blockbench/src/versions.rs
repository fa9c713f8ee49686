//! A hash table of the written blocks: open addressing with linear probing.
//!
//! A map of the standard library either has an order that differs between runs, or costs a descent
//! of a tree per block, and jobs write millions of blocks. Cost: 24 bytes per entry, one to two
//! thirds of them in use, and one or two cache lines per lookup.

use runtime::mix64;

/// The versions of a written block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Entry {
    /// The oldest version that a read may return if it begins now.
    pub oldest: u32,
    /// The newest version, whose write or discard has begun.
    pub newest: u32,
    /// The first version of the current group of overlapping writes.
    pub overlapping: u32,
    /// Writes in flight.
    pub under_way: u32,
    /// The newest version that is a discard; 0 if there is none.
    pub discarded: u32,
}

/// The table.
#[derive(Default)]
pub(super) struct Versions {
    slots: Vec<Slot>,
    used: usize,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    /// The block number plus one; 0 if the slot is empty.
    key: u32,
    entry: Entry,
}

impl Versions {
    pub(super) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Returns the entry of a block, if there is one.
    pub(super) fn get(&self, block: u32) -> Option<&Entry> {
        if self.is_empty() {
            return None;
        }
        let slot = &self.slots[self.place(block)];
        (slot.key != 0).then_some(&slot.entry)
    }

    /// Same as [`Self::get`], mutable.
    pub(super) fn get_mut(&mut self, block: u32) -> Option<&mut Entry> {
        if self.is_empty() {
            return None;
        }
        let place = self.place(block);
        let slot = &mut self.slots[place];
        (slot.key != 0).then_some(&mut slot.entry)
    }

    /// Returns the entry of a block, after creating it if necessary.
    pub(super) fn entry(&mut self, block: u32) -> &mut Entry {
        if self.used * 3 >= self.slots.len() * 2 {
            self.grow();
        }
        let place = self.place(block);
        let slot = &mut self.slots[place];
        if slot.key == 0 {
            slot.key = block + 1;
            self.used += 1;
        }
        &mut slot.entry
    }

    /// Returns the slot of a block, or the empty slot where it would be inserted.
    fn place(&self, block: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut place = mix64(u64::from(block)) as usize & mask;
        while self.slots[place].key != 0 && self.slots[place].key != block + 1 {
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(1024);
        let slots = std::mem::replace(&mut self.slots, vec![Slot::default(); size]);
        for slot in slots.into_iter().filter(|slot| slot.key != 0) {
            let place = self.place(slot.key - 1);
            self.slots[place] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use runtime::Rng;

    use super::*;

    #[test]
    fn it_holds_what_a_map_holds() {
        let (mut rng, mut map, mut versions) = (Rng::new(1), BTreeMap::new(), Versions::default());
        assert_eq!(versions.get(7), None);
        for i in 0..50_000 {
            let block = rng.below(20_000) as u32 * 64;
            versions.entry(block).newest = i;
            map.insert(block, i);
        }
        for block in 0..20_000 * 64 {
            let newest = versions.get(block).map(|entry| entry.newest);
            assert_eq!(newest, map.get(&block).copied(), "{block}");
        }
        assert_eq!(versions.used, map.len());
    }

    #[test]
    fn the_last_block_that_a_set_can_have_fits() {
        let mut versions = Versions::default();
        versions.entry(u32::MAX - 1).newest = 3;
        assert_eq!(versions.get(u32::MAX - 1).map(|entry| entry.newest), Some(3));
    }
}
