//! The mapping: the slot of each logical block's newest version on flash.
//!
//! One entry for each block of a full drive would take gigabytes, and a simulation reads few of
//! them. Places of blocks that are still where the drive was prefilled are computed. Places of
//! blocks written since are stored by region: sparse regions as sorted pairs, dense ones as a
//! table. Memory grows with the number of blocks written.

use std::rc::Rc;

use super::layout::Slot;
use super::page::Lpn;
use super::prefill::Prefill;

const REGION_BLOCKS: u32 = 1024;
/// Pairs above which a table is smaller.
const SPARSE_LIMIT: usize = 384;

/// Stored in place of a slot: the block was discarded, or never written.
const UNMAPPED: u32 = u32::MAX;
/// Stored in a dense table: the block is where it was prefilled, if it was.
const AS_PREFILLED: u32 = u32::MAX - 1;

/// The mapping of a set.
pub(crate) struct Mapping {
    prefill: Option<Rc<Prefill>>,
    regions: Vec<Region>,
}

enum Region {
    /// Pairs of place in the region and slot, sorted by place.
    Sparse(Vec<(u16, u32)>),
    Dense(Box<[u32; REGION_BLOCKS as usize]>),
}

impl Mapping {
    /// Creates the mapping of a set with `blocks` logical blocks and the given prefill.
    pub(crate) fn new(blocks: u32, prefill: Option<Rc<Prefill>>) -> Self {
        let regions = (0..blocks.div_ceil(REGION_BLOCKS)).map(|_| Region::Sparse(Vec::new()));
        Self { prefill, regions: regions.collect() }
    }

    /// Returns the slot of the newest version on flash.
    pub(crate) fn get(&self, lpn: Lpn) -> Option<Slot> {
        match self.stored(lpn) {
            Some(UNMAPPED) => None,
            Some(slot) => Some(Slot(slot)),
            None => self.prefill.as_ref().and_then(|prefill| prefill.slot_of(lpn)),
        }
    }

    /// Sets the slot of the newest version on flash, and returns the previous one.
    pub(crate) fn set(&mut self, lpn: Lpn, slot: Option<Slot>) -> Option<Slot> {
        let before = self.get(lpn);
        let stored = slot.map_or(UNMAPPED, |slot| slot.0);
        debug_assert!(slot.is_none() || stored < AS_PREFILLED);
        self.store(lpn, stored);
        before
    }

    /// Returns whether no place was stored for the block: it is where it was prefilled, if it was.
    pub(crate) fn is_untouched(&self, lpn: Lpn) -> bool {
        self.stored(lpn).is_none()
    }

    /// Points to `to` if the newest version on flash is still at `from`, and returns whether it
    /// was. `was_prefilled`: whether `from` was prefilled with this block.
    pub(crate) fn move_from(
        &mut self,
        lpn: Lpn,
        from: Slot,
        was_prefilled: bool,
        to: Slot,
    ) -> bool {
        let is_there = match self.stored(lpn) {
            Some(stored) => stored == from.0,
            None => was_prefilled,
        };
        if is_there {
            self.store(lpn, to.0);
        }
        is_there
    }

    fn store(&mut self, lpn: Lpn, slot: u32) {
        self.regions[(lpn.0 / REGION_BLOCKS) as usize].store(lpn.0 % REGION_BLOCKS, slot);
    }

    fn stored(&self, lpn: Lpn) -> Option<u32> {
        self.regions[(lpn.0 / REGION_BLOCKS) as usize].stored(lpn.0 % REGION_BLOCKS)
    }

    /// Returns the approximate memory of the mapping, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let of_region = |region: &Region| match region {
            Region::Sparse(pairs) => pairs.capacity() * size_of::<(u16, u32)>(),
            Region::Dense(_) => size_of::<[u32; REGION_BLOCKS as usize]>(),
        };
        let stored: usize = self.regions.iter().map(of_region).sum();
        (stored + self.regions.len() * size_of::<Region>()) as u64
    }
}

impl Region {
    fn stored(&self, place: u32) -> Option<u32> {
        match self {
            Self::Sparse(pairs) => {
                let at = pairs.binary_search_by_key(&(place as u16), |pair| pair.0).ok()?;
                Some(pairs[at].1)
            }
            Self::Dense(table) => Some(table[place as usize]).filter(|s| *s != AS_PREFILLED),
        }
    }

    fn store(&mut self, place: u32, slot: u32) {
        match self {
            Self::Dense(table) => table[place as usize] = slot,
            Self::Sparse(pairs) => {
                match pairs.binary_search_by_key(&(place as u16), |pair| pair.0) {
                    Ok(at) => pairs[at].1 = slot,
                    Err(at) => pairs.insert(at, (place as u16, slot)),
                }
                if pairs.len() > SPARSE_LIMIT {
                    let mut table = Box::new([AS_PREFILLED; REGION_BLOCKS as usize]);
                    for (place, slot) in pairs {
                        table[usize::from(*place)] = *slot;
                    }
                    *self = Self::Dense(table);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use runtime::Rng;

    use super::*;

    #[test]
    fn it_is_a_map() {
        let blocks = 5 * REGION_BLOCKS + 3;
        for writes in [10, 300, 20_000] {
            let (mut mapping, mut model) = (Mapping::new(blocks, None), BTreeMap::new());
            let mut rng = Rng::new(writes);
            for _ in 0..writes {
                let lpn = rng.below(u64::from(blocks)) as u32;
                let slot = rng.chance(0.8).then(|| Slot(rng.below(1 << 31) as u32));
                let before = model.insert(lpn, slot).flatten();
                assert_eq!(mapping.set(Lpn(lpn), slot), before);
            }
            for lpn in 0..blocks {
                let expected = model.get(&lpn).copied().flatten();
                assert_eq!(mapping.get(Lpn(lpn)), expected, "block {lpn}");
            }
        }
    }

    #[test]
    fn memory_is_in_proportion_to_what_was_written() {
        let mut mapping = Mapping::new(100_000_000, None);
        let empty = mapping.memory_bytes();
        let mut rng = Rng::new(1);
        for _ in 0..100_000 {
            mapping.set(Lpn(rng.below(100_000_000) as u32), Some(Slot(1)));
        }
        let stored = mapping.memory_bytes() - empty;
        assert!(stored < 100_000 * 40, "{stored} bytes for 100,000 entries");
        assert!(empty < 100_000_000 / 20, "{empty} bytes for nothing");
    }
}
