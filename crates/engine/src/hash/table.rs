//! The arithmetic of the table: its size, and the slots that a key may be in. Pure.
//!
//! Probe `c` of a key goes to slot `(h + c + c * c) mod m + 1`, as in the published code. The
//! published modulus is the number of slots minus one. Here the modulus is the largest prime up to
//! that number: modulo a prime, the first half of the probes are all different; modulo a number
//! with many divisors, hardly any are. If all these slots are taken, which is half of the table,
//! the search continues slot by slot, so that it always ends. The steps 0, 2, 6, 12, ... are small:
//! most searches stay in one page.

use super::key_hash::KeyHash;

/// A slot: its bucket page and its index in the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SlotNo {
    pub page: u32,
    pub index: u32,
}

/// The size of a table, which is fixed when the drive is formatted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Table {
    /// Bucket pages.
    pub pages: u32,
    slots_per_page: u32,
    modulus: u64,
}

impl Table {
    /// Creates a table with one slot for every `pair_bytes` bytes of flash, rounded up to whole
    /// pages.
    pub(crate) fn new(capacity_bytes: u64, pair_bytes: u64, slots_per_page: u32) -> Self {
        let slots = capacity_bytes.div_ceil(pair_bytes.max(1));
        let pages = slots.div_ceil(u64::from(slots_per_page)).max(1) as u32;
        let slots = u64::from(pages) * u64::from(slots_per_page);
        Self { pages, slots_per_page, modulus: largest_prime_to(slots - 1) }
    }

    /// Returns the number of slots in all pages.
    pub(crate) fn slots(&self) -> u64 {
        u64::from(self.pages) * u64::from(self.slots_per_page)
    }

    /// Returns the maximum number of keys. In a fuller table, searches for absent keys become long.
    pub(crate) fn most_keys(&self) -> u64 {
        self.slots() / 8 * 7
    }

    /// Returns the number of probes after which every slot up to the modulus has been looked at.
    pub(crate) fn most_searches(&self) -> u64 {
        self.modulus / 2 + self.modulus
    }

    /// Returns the slot of probe `number` of a key.
    pub(crate) fn slot(&self, hash: KeyHash, number: u32) -> SlotNo {
        let (start, c) = (hash.place % self.modulus, u64::from(number));
        let last_square = self.modulus / 2;
        let step = if c <= last_square { c + c * c } else { c - last_square };
        let slot = (start + step % self.modulus) % self.modulus + 1;
        let per_page = u64::from(self.slots_per_page);
        SlotNo { page: (slot / per_page) as u32, index: (slot % per_page) as u32 }
    }
}

/// Returns the largest prime up to `limit`. Cost: the square root of `limit`, for each of the few
/// numbers down to the prime.
fn largest_prime_to(limit: u64) -> u64 {
    let is_prime = |n: &u64| (2..=n.isqrt()).all(|d| !n.is_multiple_of(d));
    (2..=limit).rev().find(is_prime).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::hash::bucket::slots_per_page;

    #[test]
    fn the_paper_s_table_for_64_gb() {
        let table = Table::new(64 << 30, 1 << 10, slots_per_page(8192, 4));
        let mib = f64::from(table.pages) * 8192.0 / f64::from(1 << 20);
        assert!((mib - 320.1).abs() < 0.05, "{mib} MiB");
        assert!((table.slots() as f64 / 1e6 - 67.1).abs() < 0.05, "{} slots", table.slots());
        // The smallest number of pages with one slot for each KiB.
        assert_eq!(table.pages, 40_971);
    }

    #[test]
    fn searches_differ_at_first_and_reach_every_slot_but_the_unused_ones() {
        let table = Table::new(60 * 150, 150, 20);
        assert_eq!((table.slots(), table.modulus), (60, 59));
        for place in [0, 7, 58, 59, 1 << 50] {
            let slot_of = |number| {
                let at = table.slot(KeyHash { place, signature: 1 }, number);
                assert!(at.page < table.pages && at.index < 20);
                at.page * 20 + at.index
            };
            let first: BTreeSet<u32> = (0..=29).map(slot_of).collect();
            assert_eq!(first.len(), 30);
            let all: BTreeSet<u32> = (0..table.most_searches() as u32).map(slot_of).collect();
            assert_eq!(all, (1..60).collect());
        }
    }

    #[test]
    fn the_first_steps_are_those_published() {
        let table = Table::new(64 << 30, 1 << 10, 1638);
        let hash = KeyHash { place: 100, signature: 1 };
        let slots: Vec<u32> = (0..5).map(|c| table.slot(hash, c).index).collect();
        assert_eq!(slots, [101, 103, 107, 113, 121]);
    }
}
