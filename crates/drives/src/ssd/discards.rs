//! Discarded ranges with their sequences. They keep reads after a power cut from returning older
//! versions that are still on flash.

use std::collections::BTreeMap;
use std::ops::Range;

use super::page::{Lpn, Sequence};

/// Bytes of a range in a dump.
pub(crate) const ENTRY_BYTES: usize = 16;

/// Discarded ranges, disjoint, each with the sequence of its discard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Discards {
    /// First block of each range -> end (exclusive) and sequence.
    ranges: BTreeMap<u32, (u32, Sequence)>,
}

impl Discards {
    /// Returns the number of ranges.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Notes that `blocks` were discarded.
    pub(crate) fn add(&mut self, blocks: Range<u32>, sequence: Sequence) {
        self.remove(blocks.clone());
        if !blocks.is_empty() {
            self.ranges.insert(blocks.start, (blocks.end, sequence));
        }
    }

    /// Notes that a newer version of a block is on flash: removes the block from its range. If the
    /// split would make more than `limit` ranges, the range is left unchanged. The entry is
    /// harmless, as it is in earlier dumps, because the version's sequence is greater than that of
    /// the discard.
    pub(crate) fn landed(&mut self, lpn: Lpn, limit: usize) {
        let Some((start, (end, _))) = self.ranges.range(..=lpn.0).next_back() else { return };
        let is_inside = *start < lpn.0 && lpn.0 + 1 < *end;
        if *end > lpn.0 && !(is_inside && self.len() >= limit) {
            self.remove(lpn.0..lpn.0 + 1);
        }
    }

    /// Removes `blocks` from the discarded ranges.
    fn remove(&mut self, blocks: Range<u32>) {
        self.split(blocks.start);
        self.split(blocks.end);
        while let Some((&start, _)) = self.ranges.range(blocks.clone()).next() {
            self.ranges.remove(&start);
        }
    }

    /// Splits the range that contains `at`.
    fn split(&mut self, at: u32) {
        if let Some((_, (end, sequence))) = self.ranges.range_mut(..at).next_back()
            && *end > at
        {
            let behind = (*end, *sequence);
            *end = at;
            self.ranges.insert(at, behind);
        }
    }

    /// Returns the sequence of the block's discard, if it was discarded. It may have been written
    /// since.
    pub(crate) fn get(&self, lpn: Lpn) -> Option<Sequence> {
        let (_, (end, sequence)) = self.ranges.range(..=lpn.0).next_back()?;
        (*end > lpn.0).then_some(*sequence)
    }

    /// Returns the discarded ranges.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        self.ranges.iter().map(|(start, (end, _))| *start..*end)
    }

    /// Encodes the ranges: for each its first block, number of blocks, and sequence.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.ranges.len() * ENTRY_BYTES);
        for (start, (end, sequence)) in &self.ranges {
            bytes.extend_from_slice(&start.to_le_bytes());
            bytes.extend_from_slice(&(end - start).to_le_bytes());
            bytes.extend_from_slice(&sequence.0.to_le_bytes());
        }
        bytes
    }

    /// Decodes the ranges; `None` if the bytes are invalid.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (entries, rest) = bytes.as_chunks::<ENTRY_BYTES>();
        let mut ranges = BTreeMap::new();
        let mut behind = 0;
        for entry in entries {
            let start = u32::from_le_bytes(*entry.first_chunk()?);
            let count = u32::from_le_bytes(*entry[4..].first_chunk()?);
            let sequence = Sequence(u64::from_le_bytes(*entry[8..].first_chunk()?));
            let is_apart = start >= behind && count > 0;
            is_apart.then_some(())?;
            behind = start.checked_add(count)?;
            ranges.insert(start, (behind, sequence));
        }
        rest.is_empty().then_some(Self { ranges })
    }

    /// Returns the greatest sequence of a discard.
    pub(crate) fn newest(&self) -> Sequence {
        self.ranges.values().map(|(_, sequence)| *sequence).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use runtime::Rng;

    use super::*;

    #[test]
    fn it_knows_of_each_block_what_a_table_of_blocks_knows() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let (mut discards, mut model) = (Discards::default(), [None; 64]);
            for sequence in 1..60 {
                let start = rng.below(64) as u32;
                let end = start + rng.below(u64::from(65 - start)) as u32;
                let new = rng.chance(0.5).then_some(Sequence(sequence));
                match new {
                    Some(sequence) => discards.add(start..end, sequence),
                    None => discards.remove(start..end),
                }
                model[start as usize..end as usize].fill(new);
                for (lpn, expected) in model.iter().enumerate() {
                    assert_eq!(discards.get(Lpn(lpn as u32)), *expected, "seed {seed} block {lpn}");
                }
            }
            assert_eq!(Discards::decode(&discards.encode()), Some(discards));
        }
    }

    #[test]
    fn ranges_that_overlap_or_hold_nothing_are_none() {
        let bytes = |ranges: &[(u32, u32)]| -> Vec<u8> {
            let range = |(start, count): &(u32, u32)| {
                let numbers = start.to_le_bytes().into_iter().chain(count.to_le_bytes());
                numbers.chain(7_u64.to_le_bytes()).collect::<Vec<u8>>()
            };
            ranges.iter().flat_map(range).collect()
        };
        assert!(Discards::decode(&bytes(&[(1, 4), (5, 2)])).is_some());
        for wrong in [&[(1, 4), (4, 2)][..], &[(5, 2), (1, 4)], &[(3, 0)], &[(u32::MAX, 1)]] {
            assert_eq!(Discards::decode(&bytes(wrong)), None, "{wrong:?}");
        }
    }

    #[test]
    fn writes_do_not_make_more_ranges_than_allowed() {
        let mut discards = Discards::default();
        discards.add(10..20, Sequence(1));
        for lpn in [5, 10, 14, 16, 19, 20] {
            discards.landed(Lpn(lpn), 2);
        }
        let ranges: Vec<_> = discards.ranges().collect();
        assert_eq!(ranges, [11..14, 15..19], "there was no room to cut at 16");
    }
}
