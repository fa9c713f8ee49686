//! The mapping from addresses of a trace to the part of a drive on which it is replayed: plain
//! arithmetic.
//!
//! Offsets are divided by a factor (fio's `replay_scale`) and rounded down to a multiple
//! (`replay_align`), if requested. A read or write of a part of a block covers the whole block; of
//! a trim only whole blocks count. Addresses beyond the part wrap around to its beginning. An
//! operation that would cross the end of the part, or of its range in a set, is shifted so that it
//! ends there.

use block::BLOCK_BYTES;
use workload::trace::block::{BlockOp, BlockRecord};

/// The part of a drive on which a trace is replayed: a range of blocks in each of some sets, one
/// set after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Addresses {
    /// The number of sets.
    pub sets: u64,
    /// Blocks of the range in each set.
    pub length: u64,
    /// The divisor of offsets.
    pub scale: u64,
    /// Offsets are rounded down to a multiple of this many bytes.
    pub align: u64,
}

/// The blocks of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stretch {
    /// The index of the set.
    pub set: usize,
    /// The first block, counted from the beginning of the range in the set.
    pub first: u64,
    pub blocks: u64,
    /// Whether the operation crossed the end of the part, or was beyond it.
    pub is_wrapped: bool,
    /// Whether the operation did not begin and end at block boundaries.
    pub is_widened: bool,
}

impl Addresses {
    /// Returns the blocks of an operation on bytes; `None` for a trim that covers no whole block.
    pub(super) fn of(&self, record: &BlockRecord) -> Option<Stretch> {
        let whole = u64::from(BLOCK_BYTES);
        let offset = record.offset / self.scale / self.align * self.align;
        let end = offset + record.bytes;
        let is_trim = record.op == BlockOp::Trim;
        let (from, to) = if is_trim {
            (offset.div_ceil(whole), end / whole)
        } else {
            (offset / whole, end.div_ceil(whole))
        };
        let blocks = to.checked_sub(from).filter(|blocks| *blocks > 0)?.min(self.length);
        let room = self.length * self.sets;
        let place = from % room;
        Some(Stretch {
            set: (place / self.length) as usize,
            first: (place % self.length).min(self.length - blocks),
            blocks,
            is_wrapped: to > room,
            is_widened: !(offset.is_multiple_of(whole) && end.is_multiple_of(whole)),
        })
    }
}

#[cfg(test)]
mod tests {
    use runtime::Nanos;

    use super::*;

    const PLAIN: Addresses = Addresses { sets: 1, length: 100, scale: 1, align: 1 };

    fn at(addresses: Addresses, op: BlockOp, offset: u64, bytes: u64) -> Option<(usize, u64, u64)> {
        let record = BlockRecord { at: Nanos::ZERO, op, offset, bytes };
        addresses.of(&record).map(|s| (s.set, s.first, s.blocks))
    }

    #[test]
    fn reads_and_writes_are_widened_and_trims_narrowed_to_whole_blocks() {
        use BlockOp::{Read, Trim, Write};
        assert_eq!(at(PLAIN, Read, 4096, 8192), Some((0, 1, 2)));
        assert_eq!(at(PLAIN, Write, 4095, 2), Some((0, 0, 2)));
        assert_eq!(at(PLAIN, Read, 512, 512), Some((0, 0, 1)));
        assert_eq!(at(PLAIN, Trim, 4096, 8192), Some((0, 1, 2)));
        assert_eq!(at(PLAIN, Trim, 4095, 8194), Some((0, 1, 2)));
        assert_eq!(at(PLAIN, Trim, 4097, 8190), None);
        let widened = |offset, bytes| {
            let record = BlockRecord { at: Nanos::ZERO, op: Read, offset, bytes };
            PLAIN.of(&record).unwrap().is_widened
        };
        assert!(!widened(4096, 4096) && widened(4096, 512) && widened(512, 3584));
    }

    #[test]
    fn what_lies_beyond_begins_again_and_nothing_reaches_beyond_the_end() {
        use BlockOp::{Read, Trim};
        let block = 4096;
        assert_eq!(at(PLAIN, Read, 250 * block, block), Some((0, 50, 1)));
        assert_eq!(at(PLAIN, Read, 98 * block, 5 * block), Some((0, 95, 5)));
        assert_eq!(at(PLAIN, Trim, 0, 1_000 * block), Some((0, 0, 100)));
        let last = (u64::MAX / block) % 100;
        assert_eq!(at(PLAIN, Read, u64::MAX - block, block), Some((0, last - 1, 2)));
        let is_wrapped = |first: u64, blocks: u64| {
            let record = BlockRecord {
                at: Nanos::ZERO,
                op: Read,
                offset: first * block,
                bytes: blocks * block,
            };
            PLAIN.of(&record).unwrap().is_wrapped
        };
        assert!(!is_wrapped(99, 1) && is_wrapped(99, 2) && is_wrapped(100, 1));
    }

    #[test]
    fn sets_lie_one_behind_the_other() {
        let four = Addresses { sets: 4, ..PLAIN };
        assert_eq!(at(four, BlockOp::Read, 0, 4096), Some((0, 0, 1)));
        assert_eq!(at(four, BlockOp::Read, 350 * 4096, 4096), Some((3, 50, 1)));
        assert_eq!(at(four, BlockOp::Read, 450 * 4096, 4096), Some((0, 50, 1)));
        assert_eq!(at(four, BlockOp::Read, 99 * 4096, 8192), Some((0, 98, 2)));
    }

    #[test]
    fn offsets_are_divided_and_aligned() {
        let scaled = Addresses { scale: 10, align: 16_384, ..PLAIN };
        assert_eq!(at(scaled, BlockOp::Read, 409_600, 4096), Some((0, 8, 1)));
        assert_eq!(at(scaled, BlockOp::Read, 163_840, 512), Some((0, 4, 1)));
    }
}
